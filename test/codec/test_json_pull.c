/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/json_pull.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/wire/format/json_read.h"
#include "support/test.h"
#include "tnk/error.h"

/* Memory that ends where the text ends, so that a sanitizer sees who goes
 * further. */
static uint8_t *copy_of(const char *text, size_t n) {
  uint8_t *data = malloc(n > 0 ? n : 1);

  CHECK(data != NULL);
  memcpy(data, text, n);
  return data;
}

static int skip_all(const char *text, size_t n) {
  uint8_t *data = copy_of(text, n);
  tnk__json_pull_t pull;
  int err;

  tnk__json_pull_init(&pull, data, n);
  tnk__json_pull_skip(&pull, NULL, NULL);
  err = tnk__json_pull_finish(&pull);
  CHECK(memcmp(data, text, n) == 0); /* what is passed over stays as it is */
  free(data);
  return err;
}

/* Read every value as what it is. */
static void walk(tnk__json_pull_t *pull, int depth) {
  size_t n;

  if (depth > TNK__MAX_JSON_DEPTH)
    return;
  switch (tnk__json_pull_kind(pull)) {
  case TNK__PULL_OBJECT:
    if (tnk__json_pull_begin(pull, '{'))
      while (tnk__json_pull_member(pull, &n) != NULL)
        walk(pull, depth + 1);
    return;
  case TNK__PULL_ARRAY:
    if (tnk__json_pull_begin(pull, '['))
      while (tnk__json_pull_element(pull))
        walk(pull, depth + 1);
    return;
  case TNK__PULL_TEXT:
    tnk__json_pull_text(pull, NULL);
    return;
  default:
    tnk__json_pull_skip(pull, NULL, NULL);
  }
}

static int walk_all(const char *text, size_t n) {
  uint8_t *data = copy_of(text, n);
  tnk__json_pull_t pull;
  int err;

  tnk__json_pull_init(&pull, data, n);
  walk(&pull, 0);
  err = tnk__json_pull_finish(&pull);
  free(data);
  return err;
}

static void check_both(const char *text, int expected) {
  const size_t n = strlen(text);

  if (skip_all(text, n) != expected || walk_all(text, n) != expected)
    test_fail(__FILE__, __LINE__, "%s is taken otherwise", text);
}

TEST(every_kind_of_value_is_read_and_passed_over) {
  static const char *const good[] = {
      "{}",
      "[]",
      " [ ] ",
      "\"\"",
      "0",
      "-0.5e+3",
      "true",
      "false",
      "null",
      "[1,2]",
      "[[],{}]",
      "{\"a\":{\"b\":[1]}}",
      "\n\t{ \"a\" : 1 , \"b\" : [ true , null ] }\r",
      "{\"a\":\"x\\u00e9\\ud83d\\ude00\",\"\":{}}"};

  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
    check_both(good[i], TNK_OK);
}

TEST(what_is_no_json_is_refused) {
  static const char *const bad[] = {"",
                                    "{",
                                    "[",
                                    "}",
                                    "[1,]",
                                    "[,1]",
                                    "{,}",
                                    "{\"a\"}",
                                    "{\"a\":}",
                                    "{a:1}",
                                    "[1 2]",
                                    "{\"a\":1,}",
                                    "{1:2}",
                                    "\"a",
                                    "\"\\x\"",
                                    "\"\\\"",
                                    "01",
                                    "1.",
                                    ".5",
                                    "+1",
                                    "1e",
                                    "--1",
                                    "nul",
                                    "tru",
                                    "NaN",
                                    "Infinity",
                                    "1 2",
                                    "[1}",
                                    "{\"a\":1]",
                                    "\"\n\"",
                                    "\"\xff\"",
                                    "\"\xc3\"",
                                    "[\"\xed\xa0\x80\"]",
                                    "{} x",
                                    "'a'",
                                    "[\"a]",
                                    "{\"a\" 1}",
                                    "{\"a\":1 \"b\":2}"};

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    check_both(bad[i], TNK_EPROTO);
  check_both("\"\\u12g4\"", TNK_EPROTO);
}

/* The text that remains of one in JSON. */
static void check_text(const char *json, const char *expected) {
  uint8_t *data = copy_of(json, strlen(json));
  tnk__json_pull_t pull;
  size_t n = 99;

  tnk__json_pull_init(&pull, data, strlen(json));
  CHECK_STR(tnk__json_pull_text(&pull, &n), expected);
  CHECK_INT(n, strlen(expected));
  CHECK_INT(tnk__json_pull_finish(&pull), TNK_OK);
  free(data);
}

TEST(texts_are_decoded_where_they_lie) {
  check_text("\"\"", "");
  check_text("\"plain text of more than eight bytes\"",
             "plain text of more than eight bytes");
  check_text("\"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\te\"", "a\"b\\c/d\b\f\n\r\te");
  check_text("\"caf\\u00e9 caf\xc3\xa9\"", "caf\xc3\xa9 caf\xc3\xa9");
  check_text("\"\\u20AC\\ud83D\\uDe00!\"", "\xe2\x82\xac\xf0\x9f\x98\x80!");
  check_text("\"01234567\\n89abcdef\xc3\xa9ghijklmnop\"",
             "01234567\n89abcdef\xc3\xa9ghijklmnop");
}

/* A server in Python may send half a pair, and any may send a NUL. */
TEST(what_no_text_can_hold_is_replaced) {
  check_text("\"a\\u0000b\"", "a\xef\xbf\xbd"
                              "b");
  check_text("\"\\ud83dx\"", "\xef\xbf\xbdx");
  check_text("\"\\ude00\\ud83d\\u0041\"", "\xef\xbf\xbd\xef\xbf\xbd"
                                          "A");
  check_text("\"\\ud83d\"", "\xef\xbf\xbd");
}

TEST(what_is_passed_over_is_handed_out_as_it_is) {
  char data[] = "[ {\"a\":[1, \"\\n\"]} ,2]";
  tnk__json_pull_t pull;
  const char *raw;
  size_t n;

  tnk__json_pull_init(&pull, (uint8_t *)data, strlen(data));
  CHECK(tnk__json_pull_begin(&pull, '['));
  CHECK(tnk__json_pull_element(&pull));
  tnk__json_pull_skip(&pull, &raw, &n);
  CHECK_MEM(raw, n, "{\"a\":[1, \"\\n\"]}", 15);
  CHECK(tnk__json_pull_element(&pull));
  raw = tnk__json_pull_number(&pull, &n);
  CHECK_MEM(raw, n, "2", 1);
  CHECK(!tnk__json_pull_element(&pull));
  CHECK_INT(tnk__json_pull_finish(&pull), TNK_OK);
}

TEST(nothing_is_read_of_a_value_of_another_kind) {
  static const char *const texts[] = {"7", "{}", "null", "true", ""};

  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    uint8_t *data = copy_of(texts[i], strlen(texts[i]));
    tnk__json_pull_t pull;

    tnk__json_pull_init(&pull, data, strlen(texts[i]));
    CHECK(tnk__json_pull_text(&pull, NULL) == NULL);
    CHECK(pull.is_bad);
    CHECK(!tnk__json_pull_begin(&pull, '{'));
    CHECK(tnk__json_pull_member(&pull, NULL) == NULL);
    CHECK_INT(tnk__json_pull_finish(&pull), TNK_EPROTO);
    free(data);
  }
}

static int nested(size_t depth, char open, const char *between) {
  char text[1024];
  size_t n = 0;

  for (size_t i = 0; i < depth; i++)
    n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%s", open,
                          i + 1 < depth ? between : "");
  for (size_t i = 0; i < depth; i++)
    text[n++] = open == '[' ? ']' : '}';
  CHECK_INT(skip_all(text, n), walk_all(text, n));
  return skip_all(text, n);
}

TEST(depth_has_a_ceiling) {
  CHECK_INT(nested(TNK__MAX_JSON_DEPTH, '[', ""), TNK_OK);
  CHECK_INT(nested(TNK__MAX_JSON_DEPTH + 1, '[', ""), TNK_EPROTO);
  CHECK_INT(nested(TNK__MAX_JSON_DEPTH, '{', "\"a\":"), TNK_OK);
  CHECK_INT(nested(TNK__MAX_JSON_DEPTH + 1, '{', "\"a\":"), TNK_EPROTO);
}

/* Every cut and every changed byte of a text: never past the end, and what
 * jansson takes is taken. */
TEST_LIMIT(damaged_texts_are_taken_as_jansson_takes_them, 30) {
  static const char text[] =
      "{\"a\":[1,-2.5e3,\"x\\u00e9\\n\",true,false,null],\"b\":{\"c\":{}}}";
  const size_t n = sizeof(text) - 1;
  uint64_t state = 1;
  json_t *tree;
  char copy[sizeof(text)];

  for (size_t i = 0; i < n; i++)
    CHECK_INT(skip_all(text, i), TNK_EPROTO);
  for (int i = 0; i < 20000; i++) {
    const size_t at = (size_t)(test_random(&state) % n);
    int err;

    memcpy(copy, text, n);
    copy[at] = "{}[],:\"\\0aetn-. \n"[test_random(&state) % 17];
    err = tnk__json_parse(&tree, copy, n);
    if (err == TNK_OK && walk_all(copy, n) != TNK_OK)
      test_fail(__FILE__, __LINE__, "refused: %.*s", (int)n, copy);
    json_decref(tree);
    skip_all(copy, n);
  }
}
