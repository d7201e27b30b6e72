/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/json_read.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/limits.h"
#include "support/test.h"
#include "tnk/error.h"

static json_t *parse(const char *text) {
  json_t *root;

  CHECK_INT(tnk__json_parse(&root, text, strlen(text)), TNK_OK);
  return root;
}

static int status(const char *text, size_t n) {
  json_t *root;
  int err = tnk__json_parse(&root, text, n);

  CHECK((root != NULL) == (err == TNK_OK));
  json_decref(root);
  return err;
}

TEST(any_value_may_stand_at_the_top) {
  static const char *const good[] = {"1",    "\"x\"", "null", "[]",
                                     " {} ", "-0.5",  "true"};
  json_t *root;
  size_t i;

  for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
    CHECK_INT(status(good[i], strlen(good[i])), TNK_OK);
  CHECK_INT(tnk__json_parse_object(&root, "[1]", 3), TNK_EPROTO);
  CHECK(root == NULL);
  CHECK_INT(tnk__json_parse_object(&root, "{}", 2), TNK_OK);
  json_decref(root);
}

TEST(malformed_text_is_refused) {
  static const char *const bad[] = {"",
                                    " ",
                                    "{",
                                    "[1,]",
                                    "{\"a\"}",
                                    "{\"a\":1,}",
                                    "01",
                                    "1.",
                                    ".5",
                                    "+1",
                                    "1 2",
                                    "[1] x",
                                    "NaN",
                                    "Infinity",
                                    "-Infinity",
                                    "nul",
                                    "'a'",
                                    "// c\n1",
                                    "/* c */1",
                                    "\"\n\"",
                                    "\"\x01\"",
                                    "\"\xff\"",
                                    "\"\xc0\x80\"",
                                    "\"\xed\xa0\x80\"",
                                    "\"\xf4\x90\x80\x80\"",
                                    "\"\\ud800\"",
                                    "\"\\u0000\"",
                                    "{\"\\u0000\":1}",
                                    "9223372036854775808",
                                    "1e400",
                                    "\"\\x\"",
                                    "\"abc",
                                    "{a:1}",
                                    "]"};
  size_t i;

  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_INT(status(bad[i], strlen(bad[i])), TNK_EPROTO);
  CHECK_INT(status("1\0", 2), TNK_EPROTO);
}

static int nested(size_t depth, char open, char close) {
  char *text = malloc(2 * depth + 1);
  int err;

  memset(text, open, depth);
  memset(text + depth, close, depth);
  err = status(text, 2 * depth);
  free(text);
  return err;
}

TEST(nesting_has_a_ceiling) {
  char text[200];

  CHECK_INT(nested(TNK__MAX_JSON_DEPTH, '[', ']'), TNK_OK);
  CHECK_INT(nested(TNK__MAX_JSON_DEPTH + 1, '[', ']'), TNK_EPROTO);
  CHECK_INT(nested(1000000, '[', '['), TNK_EPROTO);
  CHECK_INT(nested(1000000, '{', '}'), TNK_EPROTO);
  /* brackets in texts do not count */
  memset(text, '[', sizeof(text));
  memcpy(text, "\"\\\"", 3);
  text[sizeof(text) - 1] = '"';
  CHECK_INT(status(text, sizeof(text)), TNK_OK);
}

TEST(the_last_of_equal_keys_wins) {
  json_t *root = parse("{\"a\":1,\"a\":\"x\"}");

  CHECK_STR(tnk__json_str(root, "a"), "x");
  json_decref(root);
}

TEST(getters_tell_absent_null_and_wrong_apart) {
  json_t *root = parse("{\"t\":\"x\",\"i\":7,\"d\":1.5,\"b\":true,\"z\":null,"
                       "\"o\":{},\"a\":[]}");
  const char *text = "default";
  const json_t *value = NULL;
  int64_t i = -1;
  double d = -1;
  int b = -1;

  CHECK_INT(tnk__json_get_text(root, "no", &text), TNK__JSON_ABSENT);
  CHECK_INT(tnk__json_get_text(root, "z", &text), TNK__JSON_NULL);
  CHECK_INT(tnk__json_get_text(root, "i", &text), TNK__JSON_WRONG);
  CHECK_STR(text, "default");
  CHECK_INT(tnk__json_get_text(root, "t", &text), TNK__JSON_FOUND);
  CHECK_STR(text, "x");

  CHECK_INT(tnk__json_get_int(root, "no", 0, 9, &i), TNK__JSON_ABSENT);
  CHECK_INT(tnk__json_get_int(root, "z", 0, 9, &i), TNK__JSON_NULL);
  CHECK_INT(tnk__json_get_int(root, "d", 0, 9, &i), TNK__JSON_WRONG);
  CHECK_INT(tnk__json_get_int(root, "b", 0, 9, &i), TNK__JSON_WRONG);
  CHECK_INT(tnk__json_get_int(root, "i", 8, 9, &i), TNK__JSON_WRONG);
  CHECK_INT(tnk__json_get_int(root, "i", 0, 6, &i), TNK__JSON_WRONG);
  CHECK_INT(i, -1);
  CHECK_INT(tnk__json_get_int(root, "i", 7, 7, &i), TNK__JSON_FOUND);
  CHECK_INT(i, 7);

  CHECK_INT(tnk__json_get_double(root, "z", &d), TNK__JSON_NULL);
  CHECK_INT(tnk__json_get_double(root, "t", &d), TNK__JSON_WRONG);
  CHECK_INT(tnk__json_get_double(root, "i", &d), TNK__JSON_FOUND);
  CHECK(d == 7);
  CHECK_INT(tnk__json_get_double(root, "d", &d), TNK__JSON_FOUND);
  CHECK(d == 1.5);

  CHECK_INT(tnk__json_get_bool(root, "i", &b), TNK__JSON_WRONG);
  CHECK_INT(tnk__json_get_bool(root, "no", &b), TNK__JSON_ABSENT);
  CHECK_INT(b, -1);
  CHECK_INT(tnk__json_get_bool(root, "b", &b), TNK__JSON_FOUND);
  CHECK_INT(b, 1);

  CHECK_INT(tnk__json_get_object(root, "a", &value), TNK__JSON_WRONG);
  CHECK_INT(tnk__json_get_object(root, "o", &value), TNK__JSON_FOUND);
  CHECK_INT(tnk__json_get_array(root, "o", &value), TNK__JSON_WRONG);
  CHECK_INT(tnk__json_get_array(root, "a", &value), TNK__JSON_FOUND);
  CHECK(tnk__json_arr(root, "o") == NULL);
  CHECK(tnk__json_obj(root, "o") != NULL);
  CHECK(tnk__json_str(root, "i") == NULL);
  CHECK_INT(tnk__json_get_text(NULL, "t", &text), TNK__JSON_ABSENT);
  CHECK_INT(tnk__json_get_text(tnk__json_arr(root, "a"), "t", &text),
            TNK__JSON_ABSENT);
  json_decref(root);
}

/* jansson's hook is the application's; this test is the application. */
static long allocations_left;

static void *counted_malloc(size_t size) {
  return allocations_left-- > 0 ? malloc(size) : NULL;
}

TEST(reports_lack_of_memory) {
  static const char text[] = "{\"a\":[1,2.5,\"x\",{\"b\":[true,null]}]}";
  json_t *root;
  long n;
  int n_told = 0;
  int err = TNK_ENOMEM;

  /* Inside a text jansson reports a syntax error instead; that an error comes
   * and nothing leaks is what can be asked of it. */
  json_set_alloc_funcs(counted_malloc, free);
  for (n = 0; err != TNK_OK && n < 1000; n++) {
    allocations_left = n;
    err = tnk__json_parse(&root, text, sizeof(text) - 1);
    n_told += err == TNK_ENOMEM;
    CHECK((root != NULL) == (err == TNK_OK));
  }
  CHECK_INT(err, TNK_OK);
  CHECK(n > 5);
  CHECK(n_told > 2);
  json_decref(root);
}
