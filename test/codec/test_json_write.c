/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/json_write.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/number_text.h"
#include "support/test.h"
#include "tnk/error.h"

static void write_everything(tnk__json_writer_t *w) {
  static const int32_t ids[] = {0, -1, 128000, INT32_MIN, INT32_MAX};
  static const int64_t longs[] = {INT64_MIN, INT64_MAX};
  static const float floats[] = {1.0f, 0.1f, NAN, -0.5f};

  tnk__json_begin_object(w);
  tnk__json_put_text(w, "text", "a\"\\/\b\f\n\r\t\x01\x1f\x7f é€😀");
  tnk__json_put_text(w, "none", NULL);
  tnk__json_put_int(w, "min", INT64_MIN);
  tnk__json_key(w, "max");
  tnk__json_uint(w, UINT64_MAX);
  tnk__json_put_double(w, "one", 1.0);
  tnk__json_put_double(w, "nan", NAN);
  tnk__json_put_bool(w, "yes", 5);
  tnk__json_key(w, "lists");
  tnk__json_begin_array(w);
  tnk__json_int32s(w, ids, 5);
  tnk__json_int64s(w, longs, 2);
  tnk__json_begin_array(w);
  for (size_t i = 0; i < 4; i++)
    tnk__json_float(w, floats[i]);
  tnk__json_end(w);
  tnk__json_int32s(w, NULL, 0);
  tnk__json_end(w);
  tnk__json_key_n(w, "rawX", 3);
  tnk__json_raw(w, "{\"a\":1}", 7);
  tnk__json_put_object(w, "empty");
  tnk__json_end(w);
  tnk__json_put_array(w, "array");
  tnk__json_end(w);
  tnk__json_put_raw(w, "json", "[7]");
  tnk__json_put_raw(w, "missing", NULL);
  tnk__json_end(w);
}

static const char everything[] =
    "{\"text\":\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f é€😀\","
    "\"none\":null,\"min\":-9223372036854775808,\"max\":18446744073709551615,"
    "\"one\":1.0,\"nan\":null,\"yes\":true,"
    "\"lists\":[[0,-1,128000,-2147483648,2147483647],"
    "[-9223372036854775808,9223372036854775807],[1.0,0.1,null,-0.5],[]],"
    "\"raw\":{\"a\":1},\"empty\":{},\"array\":[],"
    "\"json\":[7],\"missing\":null}";

TEST(writes_compact_json) {
  tnk__buf_t buf;
  tnk__json_writer_t w;

  tnk__buf_init(&buf, test_allocator(), 4096);
  tnk__json_writer_init(&w, &buf);
  write_everything(&w);
  CHECK_INT(tnk__json_finish(&w), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf), everything);
  tnk__buf_deinit(&buf);
}

TEST(reports_lack_of_memory_and_room) {
  tnk__buf_t buf;
  tnk__json_writer_t w;
  size_t max;
  long n;

  for (n = 0;; n++) {
    int err;
    tnk__buf_init(&buf, test_allocator(), 4096);
    tnk__json_writer_init(&w, &buf);
    test_alloc_fail_at(n);
    write_everything(&w);
    err = tnk__json_finish(&w);
    tnk__buf_deinit(&buf);
    if (!test_alloc_did_fail()) {
      CHECK_INT(err, TNK_OK);
      break;
    }
    CHECK_INT(err, TNK_ENOMEM);
  }
  CHECK(n >= 2);
  test_alloc_fail_at(-1);
  for (max = 0; max < sizeof(everything) - 1; max++) {
    tnk__buf_init(&buf, test_allocator(), max);
    tnk__json_writer_init(&w, &buf);
    write_everything(&w);
    CHECK_INT(tnk__json_finish(&w), TNK_ETOOBIG);
    CHECK(buf.len <= max);
    tnk__buf_deinit(&buf);
  }
}

static int text_status(const char *text, size_t n) {
  tnk__buf_t buf;
  tnk__json_writer_t w;
  int err;

  tnk__buf_init(&buf, test_allocator(), 4096);
  tnk__json_writer_init(&w, &buf);
  tnk__json_text_n(&w, text, n);
  err = tnk__json_finish(&w);
  tnk__buf_deinit(&buf);
  return err;
}

/* Blocks of plain text are tested at once: what is not plain must be noticed
 * at every place in them, whatever stands around it. */
TEST(escapes_at_every_place) {
  static const struct {
    const char *text;
    const char *json;
  } rows[] = {{"\"", "\\\""},   {"\\", "\\\\"},
              {"\n", "\\n"},    {"\x1f", "\\u001f"},
              {"\x7f", "\x7f"}, {"!", "!"},
              {" ", " "},       {"\xc3\xa9", "\xc3\xa9"},
              {"[", "["},       {"\xef\xbf\xbf", "\xef\xbf\xbf"}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (int before = 0; before < 20; before++)
      for (int as_key = 0; as_key < 2; as_key++) {
        char text[64];
        char expected[96];
        tnk__buf_t buf;
        tnk__json_writer_t w;
        snprintf(text, sizeof(text), "%.*s%s0123456789", before,
                 "]]]]]]]]]]]]]]]]]]]]", rows[i].text);
        snprintf(expected, sizeof(expected),
                 as_key ? "{\"%.*s%s0123456789\":1}" : "\"%.*s%s0123456789\"",
                 before, "]]]]]]]]]]]]]]]]]]]]", rows[i].json);
        tnk__buf_init(&buf, test_allocator(), 4096);
        tnk__json_writer_init(&w, &buf);
        if (as_key) {
          tnk__json_begin_object(&w);
          tnk__json_put_int(&w, text, 1);
          tnk__json_end(&w);
        } else {
          tnk__json_text(&w, text);
        }
        CHECK_INT(tnk__json_finish(&w), TNK_OK);
        CHECK_STR(tnk__buf_cstr(&buf), expected);
        tnk__buf_deinit(&buf);
      }
}

TEST(refuses_text_that_is_not_utf8) {
  static const char *const bad[] = {
      "\xff",         "\xc0\x80",         "\xc1\xbf",
      "\xc3",         "\xe0\x9f\xbf",     "\xe2\x82",
      "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
      "\x80",         "\xf0\x9f\x98",     "\xf5\x80\x80\x80",
      "\xc3\x28",     "\xe2\x28\xa1",     "\xf0\x9f\x28\x80"};
  static const char *const good[] = {
      "",
      "\xc2\x80",
      "\xe0\xa0\x80",
      "\xed\x9f\xbf",
      "\xee\x80\x80",
      "\xf0\x90\x80\x80",
      "\xf4\x8f\xbf\xbf",
      "\xef\xbf\xbf",
  };
  size_t i;

  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_INT(text_status(bad[i], strlen(bad[i])), TNK_EINVAL);
  for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
    CHECK_INT(text_status(good[i], strlen(good[i])), TNK_OK);
  CHECK_INT(text_status("a\0b", 3), TNK_OK);
}

static int nested_status(int depth) {
  tnk__buf_t buf;
  tnk__json_writer_t w;
  int err;
  int i;

  tnk__buf_init(&buf, test_allocator(), 4096);
  tnk__json_writer_init(&w, &buf);
  for (i = 0; i < depth; i++) {
    if (i % 2 == 0) {
      tnk__json_begin_object(&w);
      tnk__json_key(&w, "k");
    } else {
      tnk__json_begin_array(&w);
    }
  }
  tnk__json_null(&w);
  for (i = 0; i < depth; i++)
    tnk__json_end(&w);
  err = tnk__json_finish(&w);
  tnk__buf_deinit(&buf);
  return err;
}

TEST(nesting_has_a_ceiling) {
  CHECK_INT(nested_status(0), TNK_OK);
  CHECK_INT(nested_status(TNK__MAX_JSON_DEPTH), TNK_OK);
  CHECK_INT(nested_status(TNK__MAX_JSON_DEPTH + 1), TNK_EINVAL);
  CHECK_INT(nested_status(200), TNK_EINVAL);
}

/* Letters are calls: { [ ] begin and end, k key, v value. */
static int calls_status(const char *calls) {
  tnk__buf_t buf;
  tnk__json_writer_t w;
  int err;

  tnk__buf_init(&buf, test_allocator(), 4096);
  tnk__json_writer_init(&w, &buf);
  for (; *calls != '\0'; calls++) {
    switch (*calls) {
    case '{':
      tnk__json_begin_object(&w);
      break;
    case '[':
      tnk__json_begin_array(&w);
      break;
    case 'k':
      tnk__json_key(&w, "k");
      break;
    case 'v':
      tnk__json_int(&w, 1);
      break;
    default:
      tnk__json_end(&w);
    }
  }
  err = tnk__json_finish(&w);
  tnk__buf_deinit(&buf);
  return err;
}

TEST(calls_out_of_order_fail) {
  static const char *const bad[] = {"",   "vv",  "{v]", "{kk]", "[k]",
                                    "{",  "]",   "v]",  "{k]",  "k",
                                    "[v", "[]]", "[]v"};
  size_t i;

  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_INT(calls_status(bad[i]), TNK_EINTERNAL);
  CHECK_INT(calls_status("[vv{kvk[v]]v]"), TNK_OK);
}

static void check_double(double value, const char *expected) {
  char text[TNK__NUMBER_TEXT + 1];

  text[tnk__double_text(text, value)] = '\0';
  CHECK_STR(text, expected);
  CHECK(strtod(text, NULL) == value);
}

TEST(doubles_are_as_short_as_can_be) {
  check_double(0.0, "0.0");
  check_double(-0.0, "-0.0");
  check_double(1.0, "1.0");
  check_double(-123456.0, "-123456.0");
  check_double(0.1, "0.1");
  check_double(0.0001, "0.0001");
  check_double(0.00012345, "0.00012345");
  check_double(0.00001, "0.00001");
  check_double(1e-6, "1e-6");
  check_double(1.5e-7, "1.5e-7");
  check_double(1e-12, "1e-12");
  check_double(123456.5, "123456.5");
  check_double(1e15, "1000000000000000.0");
  check_double(1e16, "1e16");
  check_double(1.25e300, "1.25e300");
  check_double(0.3, "0.3");
  check_double(0.30000000000000004, "0.30000000000000004");
  check_double(1.0 / 3, "0.3333333333333333");
  check_double(9007199254740993.0, "9007199254740992.0");
  check_double(DBL_MAX, "1.7976931348623157e308");
  check_double(DBL_MIN, "2.2250738585072014e-308");
  check_double(4.9406564584124654e-324, "5e-324");
  check_double(ldexp(1, -44), "5.684341886080802e-14");
  check_double(-2.5, "-2.5");
}

TEST_LIMIT(random_doubles_and_floats_read_back, 20) {
  uint64_t state = 7;
  char text[TNK__NUMBER_TEXT + 1];
  int i;

  for (i = 0; i < 50000; i++) {
    uint64_t bits = test_random(&state);
    uint32_t low = (uint32_t)test_random(&state);
    double d;
    float f;
    memcpy(&d, &bits, sizeof(d));
    memcpy(&f, &low, sizeof(f));
    if (isfinite(d)) {
      size_t n = tnk__double_text(text, d);
      CHECK(n <= TNK__NUMBER_TEXT);
      text[n] = '\0';
      CHECK(strtod(text, NULL) == d);
    }
    if (isfinite(f)) {
      size_t n = tnk__float_text(text, f);
      CHECK(n <= TNK__NUMBER_TEXT);
      text[n] = '\0';
      CHECK((float)strtod(text, NULL) == f);
    }
  }
}

/* The digits that printf() needs so that strtod() reads the number back,
 * without point, exponent and final zeros. */
static void digits_needed(double value, int is_float, char *out) {
  char text[64];
  size_t n = 0;

  for (int wanted = is_float ? 6 : 15; wanted <= 17; wanted++) {
    const double back =
        (snprintf(text, sizeof(text), "%.*e", wanted - 1, value),
         strtod(text, NULL));

    if (is_float ? (float)back == (float)value : back == value)
      break;
  }
  for (const char *at = text; *at != 'e'; at++)
    if (*at >= '0' && *at <= '9' && (n > 0 || *at != '0'))
      out[n++] = *at;
  while (n > 1 && out[n - 1] == '0')
    n--;
  out[n] = '\0';
}

static void check_digits(double value, int is_float) {
  char text[TNK__NUMBER_TEXT + 1], digits[TNK__NUMBER_TEXT + 1], wanted[64];
  size_t n = 0;

  text[is_float ? tnk__float_text(text, (float)value)
                : tnk__double_text(text, value)] = '\0';
  CHECK(is_float ? (float)strtod(text, NULL) == (float)value
                 : strtod(text, NULL) == value);
  for (const char *at = text; *at != '\0' && *at != 'e'; at++)
    if (*at >= '0' && *at <= '9' && (n > 0 || *at != '0'))
      digits[n++] = *at;
  while (n > 1 && digits[n - 1] == '0')
    n--;
  digits[n] = '\0';
  digits_needed(value, is_float, wanted);
  test_context(text);
  CHECK_STR(digits, wanted);
}

/* Numbers of a usual size are written without printf(). Random ones, decimals
 * of few digits, and floats half way between two decimals. */
TEST_LIMIT(moderate_numbers_have_the_digits_of_printf, 60) {
  uint64_t state = 11;

  for (int i = 0; i < 100000; i++) {
    const int places = (int)(test_random(&state) % 13);
    const double random = ldexp((double)(test_random(&state) >> 11), -53);
    const double size = pow(10, (double)(test_random(&state) % 13) - 6);
    const double decimal =
        (double)(test_random(&state) % 100000000) / pow(10, places);
    const double half =
        (double)(test_random(&state) % 2000001) / 128 + 1.0 / 256;

    check_digits(random * size, 0);
    check_digits((double)(float)(random * size), 1);
    check_digits(decimal, 0);
    check_digits((double)(float)decimal, 1);
    check_digits(half, 0);
    check_digits((double)(float)half, 1);
  }
  for (int e = -7; e <= 7; e++) {
    const double power = pow(10, e);

    check_digits(power, 0);
    check_digits(nextafter(power, 0), 0);
    check_digits(nextafter(power, 1e9), 0);
    check_digits((double)(float)power, 1);
    check_digits((double)nextafterf((float)power, 0), 1);
    check_digits((double)nextafterf((float)power, 1e9f), 1);
  }
}

TEST(long_arrays_keep_every_element) {
  enum { N = 5000 };
  int64_t *values = calloc(N, sizeof(*values));
  tnk__buf_t buf;
  tnk__json_writer_t w;
  const char *at;
  char *end;
  int i;

  for (i = 0; i < N; i++)
    values[i] = INT64_MIN + i;
  tnk__buf_init(&buf, test_allocator(), 1 << 20);
  tnk__json_writer_init(&w, &buf);
  tnk__json_int64s(&w, values, N);
  CHECK_INT(tnk__json_finish(&w), TNK_OK);
  at = tnk__buf_cstr(&buf);
  for (i = 0; i < N; i++) {
    CHECK_INT(*at++, i == 0 ? '[' : ',');
    CHECK_INT(strtoll(at, &end, 10), values[i]);
    at = end;
  }
  CHECK_STR(at, "]");
  tnk__buf_deinit(&buf);
  free(values);
}

TEST(numbers_do_not_follow_the_locale) {
  if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL &&
      setlocale(LC_ALL, "tr_TR.UTF-8") == NULL)
    test_skip("no locale with a decimal comma is installed");
  check_double(1.0, "1.0");
  {
    char text[TNK__NUMBER_TEXT + 1];
    text[tnk__double_text(text, 0.30000000000000004)] = '\0';
    CHECK_STR(text, "0.30000000000000004");
  }
}

/* What a peer gave, cut off anywhere, can be written after a repair. */
TEST(repaired_text_is_utf8) {
  static const struct {
    const char *text, *repaired;
  } rows[] = {
      {"", ""},
      {"plain \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80",
       "plain \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80"},
      {"a\xff\x80z", "a??z"},
      {"cut \xe4\xb8", "cut ??"},
      {"\xed\xa0\x80\xc0\x80", "?????"},
  };
  char text[64];

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    memcpy(text, rows[i].text, strlen(rows[i].text) + 1);
    tnk__utf8_repair(text);
    CHECK_STR(text, rows[i].repaired);
  }
}
