/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chat/value/value.h"
#include "support/test.h"
#include "tnk/error.h"

enum { MAX = 1 << 20 };

static const char *back(const char *json, const tnk__value_json_t *how) {
  static char text[4096];
  tnk__heap_t heap;
  tnk__buf_t buf;
  tnk__value_t value;
  int err;

  tnk__heap_init(&heap, test_allocator(), MAX);
  tnk__buf_init(&buf, test_allocator(), MAX);
  err = tnk__value_from_json(&heap, json, strlen(json), &value);
  if (err == TNK_OK)
    err = tnk__value_to_json(&buf, value, how);
  strncpy(text, err == TNK_OK ? tnk__buf_cstr(&buf) : "refused",
          sizeof(text) - 1);
  tnk__buf_deinit(&buf);
  tnk__heap_deinit(&heap);
  return text;
}

TEST(json_there_and_back) {
  CHECK_STR(back(" { \"a\" : [ 1 , -2.5, true,null, \"x\" ] } ", NULL),
            "{\"a\": [1, -2.5, true, null, \"x\"]}");
  CHECK_STR(back("\"\\u00e9\\ud83d\\ude00\\n\\u0001\\\"\\\\\"", NULL),
            "\"\xc3\xa9\xf0\x9f\x98\x80\\n\\u0001\\\"\\\\\"");
  CHECK_STR(back("{\"a\":1,\"b\":2,\"a\":3}", NULL), "{\"a\": 3, \"b\": 2}");
  CHECK_STR(back("[[],{},\"\"]", NULL), "[[], {}, \"\"]");
  CHECK_STR(back("[9223372036854775807,-9223372036854775807]", NULL),
            "[9223372036854775807, -9223372036854775807]");
  CHECK_STR(back("[9223372036854775808,1e400,-1E-7]", NULL),
            "[9.223372036854776e+18, 1e999, -1e-07]");
}

TEST(json_in_other_manners) {
  const tnk__value_json_t compact = {.is_compact = 1, .is_ascii = 1};
  const tnk__value_json_t lines = {.indent = 2, .is_sorted = 1};
  const tnk__value_json_t own = {.between = ";", .behind_key = "="};

  CHECK_STR(
      back("{\"b\":[1,2],\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"}", &compact),
      "{\"b\":[1,2],\"a\":\"\\u00e9\\ud83d\\ude00\\u007f\"}");
  CHECK_STR(back("{\"b\":[1,{}],\"a\":{\"c\":2}}", &lines),
            "{\n  \"a\": {\n    \"c\": 2\n  },\n  \"b\": [\n    1,\n    "
            "{}\n  ]\n}");
  CHECK_STR(back("{\"b\":[1,2]}", &own), "{\"b\"=[1;2]}");
}

TEST(json_that_is_none) {
  static const char *const bad[] = {
      "",    "{",       "[1,]", "nul",   "01",     "{1:2}",   "\"\\x",
      "1 2", "{\"a\"}", "-",    "[1 2]", "\xff\"", "\"\xff\""};
  char deep[200];

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_STR(back(bad[i], NULL), "refused");
  memset(deep, '[', 99);
  memset(deep + 99, ']', 99);
  deep[198] = '\0';
  CHECK_STR(back(deep, NULL), "refused");
}

TEST(dicts_with_many_members) {
  tnk__heap_t heap;
  tnk__value_t dict;
  tnk__value_t found;
  char key[16];

  tnk__heap_init(&heap, test_allocator(), MAX);
  dict = tnk__value_dict(&heap);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 300; i++) {
      snprintf(key, sizeof(key), "k%d", i);
      tnk__value_set(&heap, dict, key, tnk__value_int(i + round));
    }
  CHECK_INT(dict.as.dict->n, 300);
  for (int i = 0; i < 300; i++) {
    snprintf(key, sizeof(key), "k%d", i);
    found = tnk__value_get(dict, key);
    CHECK_INT(found.kind, TNK__VALUE_INT);
    CHECK_INT(found.as.number, i + 1);
    CHECK(tnk__value_is(dict.as.dict->entries[i].key, key));
  }
  CHECK_INT(tnk__value_get(dict, "k300").kind, TNK__VALUE_UNDEFINED);
  CHECK_INT(tnk__value_get(tnk__value_none(), "a").kind, TNK__VALUE_UNDEFINED);
  CHECK_INT(heap.err, TNK_OK);
  tnk__heap_deinit(&heap);
}

TEST(keys_that_are_one) {
  tnk__heap_t heap;
  tnk__value_t dict;

  tnk__heap_init(&heap, test_allocator(), MAX);
  dict = tnk__value_dict(&heap);
  tnk__value_put(&heap, dict, tnk__value_int(1), tnk__value_int(10));
  tnk__value_put(&heap, dict, tnk__value_float(1), tnk__value_int(20));
  tnk__value_put(&heap, dict, tnk__value_bool(1), tnk__value_int(30));
  tnk__value_put(&heap, dict, tnk__value_text("1", 1), tnk__value_int(40));
  CHECK_INT(dict.as.dict->n, 2);
  CHECK_INT(tnk__value_find(dict, tnk__value_int(1)).as.number, 30);
  tnk__value_put(&heap, dict, tnk__value_float(-0.0), tnk__value_int(50));
  CHECK_INT(tnk__value_find(dict, tnk__value_int(0)).as.number, 50);
  CHECK(!tnk__value_is_hashable(dict));
  CHECK(tnk__value_is_hashable(tnk__value_none()));
  tnk__heap_deinit(&heap);
}

TEST(equality_and_order) {
  tnk__heap_t heap;
  tnk__value_t a;
  tnk__value_t b;
  int order = 9;

  tnk__heap_init(&heap, test_allocator(), MAX);
  CHECK(tnk__value_equal(tnk__value_int(2), tnk__value_float(2)));
  CHECK(!tnk__value_equal(tnk__value_int(INT64_MAX),
                          tnk__value_float(9223372036854775808.0)));
  CHECK(!tnk__value_equal(tnk__value_none(), tnk__value_bool(0)));
  CHECK(!tnk__value_equal(tnk__value_float(NAN), tnk__value_float(NAN)));
  CHECK(tnk__value_equal(tnk__value_undefined(), tnk__value_undefined()));
  CHECK(tnk__value_from_json(&heap, "{\"a\":[1,2],\"b\":{}}", 18, &a) ==
        TNK_OK);
  CHECK(tnk__value_from_json(&heap, "{\"b\":{},\"a\":[1,2.0]}", 20, &b) ==
        TNK_OK);
  CHECK(tnk__value_equal(a, b));
  CHECK(!tnk__value_compare(a, b, &order));
  CHECK(tnk__value_compare(tnk__value_text("a", 1), tnk__value_text("ab", 2),
                           &order));
  CHECK_INT(order, -1);
  CHECK(tnk__value_compare(tnk__value_float(1.5), tnk__value_int(1), &order));
  CHECK_INT(order, 1);
  CHECK(tnk__value_compare(tnk__value_float(NAN), tnk__value_int(1), &order));
  CHECK_INT(order, 2);
  CHECK(
      !tnk__value_compare(tnk__value_text("a", 1), tnk__value_int(1), &order));
  tnk__heap_deinit(&heap);
}

TEST(truth) {
  CHECK(!tnk__value_truth(tnk__value_undefined()));
  CHECK(!tnk__value_truth(tnk__value_none()));
  CHECK(!tnk__value_truth(tnk__value_text("", 0)));
  CHECK(!tnk__value_truth(tnk__value_float(0)));
  CHECK(tnk__value_truth(tnk__value_float(0.1)));
  CHECK(tnk__value_truth(tnk__value_text("0", 1)));
  CHECK(tnk__value_truth(tnk__value_int(-1)));
}

TEST(numbers_as_python_writes_them) {
  static const struct {
    double real;
    const char *text;
  } rows[] = {
      {1, "1.0"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {1e16, "1e+16"},
      {1e15, "1000000000000000.0"},
      {123456.789, "123456.789"},
      {-0.0, "-0.0"},
      {1e100, "1e+100"},
      {1.5e-7, "1.5e-07"},
      {0.1, "0.1"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {12345678901234567890.0, "1.2345678901234567e+19"},
      {9007199254740993.0, "9007199254740992.0"},
      {INFINITY, "inf"},
      {-INFINITY, "-inf"},
      {NAN, "nan"},
  };
  char text[TNK__VALUE_NUMBER + 1];

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    text[tnk__value_float_text(text, rows[i].real)] = '\0';
    CHECK_STR(text, rows[i].text);
  }
}

TEST(a_heap_that_is_full) {
  tnk__heap_t heap;
  tnk__value_t list;

  tnk__heap_init(&heap, test_allocator(), 2000);
  list = tnk__value_list(&heap);
  for (int i = 0; i < 1000; i++)
    tnk__value_append(&heap, list, tnk__value_int(i));
  CHECK_INT(heap.err, TNK_ETOOBIG);
  CHECK(list.as.list->n < 200);
  CHECK_INT(tnk__value_dict(&heap).kind, TNK__VALUE_UNDEFINED);
  tnk__heap_deinit(&heap);
}

TEST(every_allocation_fails_once) {
  const char *json = "{\"a\":[1,2,3,4,5,6,7,8,9],\"b\":{\"c\":1,\"d\":2,"
                     "\"e\":3,\"f\":4,\"g\":5,\"h\":6,\"i\":7,\"j\":8,"
                     "\"k\":9},\"l\":\"text\"}";
  const tnk__value_json_t how = {.is_sorted = 1};
  int err = TNK_ENOMEM;

  for (long at = 0; err == TNK_ENOMEM && at < 1000; at++) {
    tnk__heap_t heap;
    tnk__buf_t buf;
    tnk__value_t value;

    test_alloc_fail_at(at);
    tnk__heap_init(&heap, test_allocator(), MAX);
    tnk__buf_init(&buf, test_allocator(), MAX);
    err = tnk__value_from_json(&heap, json, strlen(json), &value);
    if (err == TNK_OK)
      err = tnk__value_to_json(&buf, value, &how);
    CHECK(err == TNK_OK || err == TNK_ENOMEM);
    tnk__buf_deinit(&buf);
    tnk__heap_deinit(&heap);
    test_alloc_fail_at(-1);
    CHECK_INT(test_alloc_live(), 0);
    if (err == TNK_OK)
      CHECK(at > 2);
  }
  CHECK_INT(err, TNK_OK);
}

TEST(reasons) {
  tnk__why_t why;
  char name[600];

  CHECK_INT(tnk__why(&why, TNK_EINVAL, 12, "there is no filter \"%s\"", "a\nb"),
            TNK_EINVAL);
  CHECK_STR(why.text, "line 12: there is no filter \"a b\"");
  CHECK_INT(why.line, 12);
  memset(name, 'x', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  tnk__why(&why, TNK_EINVAL, 0, "%s", name);
  CHECK_INT(strlen(why.text), sizeof(why.text) - 1);
  CHECK_INT(tnk__why(NULL, TNK_EINVAL, 0, "nobody reads it"), TNK_EINVAL);
}

/* ---- Keys that were chosen ---- */

static uint64_t unmix(uint64_t mixed) {
  const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
  uint64_t hash = mixed, inverse = factor;

  for (int i = 0; i < 3; i++)
    hash = mixed ^ hash >> 29;
  for (int i = 0; i < 6; i++)
    inverse *= 2 - factor * inverse;
  return hash * inverse;
}

/* Keys of eight bytes whose hashes end with the same 40 bits where nothing of a
 * dict's own goes into them. Looked through one by one they take longer than a
 * test may. */
TEST(keys_that_were_chosen_have_places_of_their_own) {
  enum { N = 150000 };
  static uint64_t keys[N];
  tnk__heap_t heap;
  tnk__value_t dict;

  tnk__heap_init(&heap, test_allocator(), (size_t)1 << 27);
  dict = tnk__value_dict(&heap);
  for (size_t i = 0; i < N; i++) {
    keys[i] = unmix(unmix((uint64_t)i << 40)) ^ 8;
    tnk__value_put(&heap, dict, tnk__value_text((const char *)&keys[i], 8),
                   tnk__value_int((int64_t)i));
  }
  CHECK_INT(heap.err, TNK_OK);
  CHECK_INT(dict.as.dict->n, N);
  CHECK_INT(tnk__value_find(dict, tnk__value_text((const char *)&keys[7], 8))
                .as.number,
            7);
  tnk__heap_deinit(&heap);
}
