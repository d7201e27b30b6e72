/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tokenizers/format/json.h"

static int skips(const char *text) {
  tnk__jread_t json;

  tnk__jread_init(&json, text, strlen(text));
  if (tnk__jread_skip(&json) < 0)
    return -1;
  return tnk__jread_peek(&json) == 0 && json.p == json.end;
}

TEST(skip_takes_one_value) {
  static const char *const good[] = {"1",
                                     "-1.5e+3",
                                     "\"a\\\"b\"",
                                     "[]",
                                     "{}",
                                     "[1,2]",
                                     "{\"a\":[{\"b\":{}}]}",
                                     " [ 1 , [ ] ] ",
                                     "null",
                                     "true",
                                     "false",
                                     "{\"a\":1,\"b\":\"]\"}"};

  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
    CHECK_INT(skips(good[i]), 1);
}

TEST(skip_refuses_what_is_no_value) {
  static const char *const bad[] = {"",         "]",     "[1,]",     "{\"a\"}",
                                    "{a:1}",    "[1 2]", "\"a",      "\"\\",
                                    "[[[",      "nul",   "{\"a\":}", "x",
                                    "\"\x01\"", "[1}",   "{\"a\":1]"};

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_INT(skips(bad[i]), -1);
}

TEST(nesting_has_a_limit) {
  char text[2 * TNK__JREAD_DEPTH + 4];

  memset(text, '[', TNK__JREAD_DEPTH);
  memset(text + TNK__JREAD_DEPTH, ']', TNK__JREAD_DEPTH);
  text[2 * TNK__JREAD_DEPTH] = '\0';
  CHECK_INT(skips(text), 1);
  memset(text, '[', TNK__JREAD_DEPTH + 1);
  memset(text + TNK__JREAD_DEPTH + 1, ']', TNK__JREAD_DEPTH + 1);
  text[2 * TNK__JREAD_DEPTH + 2] = '\0';
  CHECK_INT(skips(text), -1);
}

static int unescapes(const char *text, const char *expected) {
  tnk__jread_text_t raw = {(const uint8_t *)text, strlen(text), 1};
  uint8_t out[64];
  size_t n;

  if (tnk__jread_unescape(&raw, out, &n) < 0)
    return -1;
  return n == strlen(expected) && memcmp(out, expected, n) == 0;
}

TEST(escapes) {
  CHECK_INT(unescapes("a\\n\\t\\\\\\/\\\"\\b\\f\\r", "a\n\t\\/\"\b\f\r"), 1);
  CHECK_INT(unescapes("\\u0041\\u00e9\\u4E2d", "A\xc3\xa9\xe4\xb8\xad"), 1);
  CHECK_INT(unescapes("\\ud83d\\ude00", "\xf0\x9f\x98\x80"), 1);
  CHECK_INT(unescapes("\\ud83d", ""), -1);
  CHECK_INT(unescapes("\\ude00", ""), -1);
  CHECK_INT(unescapes("\\ud83d\\u0041", ""), -1);
  CHECK_INT(unescapes("\\u12", ""), -1);
  CHECK_INT(unescapes("\\x", ""), -1);
}

TEST(numbers_are_whole_and_fit_in_32_bits) {
  static const struct {
    const char *text;
    int code;
    uint32_t value;
  } cases[] = {{"0", TNK_OK, 0},
               {"4294967295", TNK_OK, UINT32_MAX},
               {"4294967296", TNK_EPROTO, 0},
               {"-1", TNK_EPROTO, 0},
               {"1.5", TNK_EPROTO, 0},
               {"1e3", TNK_EPROTO, 0},
               {"", TNK_EPROTO, 0}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tnk__jread_t json;
    uint32_t value = 0;

    tnk__jread_init(&json, cases[i].text, strlen(cases[i].text));
    CHECK_INT(tnk__jread_uint(&json, &value), cases[i].code);
    if (cases[i].code == TNK_OK)
      CHECK_INT(value, cases[i].value);
  }
}
