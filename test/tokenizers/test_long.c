/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "tokenizers/small.h"

/* Texts that would hang a quadratic tokenizer, on every shape: with these, one
 * takes minutes, and a case has a minute. Where TNK_TEST_STRETCH makes that
 * longer, no case would hang, and what remains to be seen are the reads and
 * writes, for which shorter texts do. */
enum { LONG = 400000, LONGEST = 10000000 };

static size_t length(size_t n) {
  const char *stretch = getenv("TNK_TEST_STRETCH");

  return stretch != NULL && atoi(stretch) > 1 ? n / 10 : n;
}

static void check(const char *shape, const char *text, size_t n) {
  tnk_tokenizer_t *tok = small_load(shape);
  tnk_tokens_t *tokens = small_encode(tok, text, n, 0);
  size_t n_ids, n_back;
  const int32_t *ids = tnk_tokens_ids(tokens, &n_ids);
  char *back;

  CHECK(n_ids > 0);
  CHECK_INT(tnk_tokenizer_decode(tok, &back, &n_back, ids, n_ids, 0), TNK_OK);
  /* Tokens of "words" take blanks with them. The decoders of "metaspace" do not
   * give all texts back. */
  if (strcmp(shape, "words") != 0 && strncmp(shape, "metaspace", 9) != 0)
    CHECK_MEM(back, n_back, text, n);
  tnk_tokenizer_free_text(tok, back);
  tnk_tokens_free(tokens);
  tnk_tokenizer_unref(tok);
}

static char *repeat(const char *unit, size_t n) {
  size_t n_unit = strlen(unit);
  char *text = malloc(n);

  CHECK(text != NULL);
  for (size_t i = 0; i < n; i++)
    text[i] = unit[i % n_unit];
  return text;
}

static void check_all(const char *unit) {
  const size_t n = length(LONG) / strlen(unit) * strlen(unit);
  char *text = repeat(unit, n);

  for (size_t i = 0; i < SMALL_SHAPES; i++)
    check(small_shapes[i], text, n);
  free(text);
}

TEST_LIMIT(one_letter, 60) {
  check_all("a");
}
TEST_LIMIT(spaces, 60) {
  check_all(" ");
}
TEST_LIMIT(newlines, 60) {
  check_all("\n");
}
TEST_LIMIT(digits, 60) {
  check_all("7");
}
TEST_LIMIT(symbols, 60) {
  check_all("!");
}
TEST_LIMIT(quotes, 60) {
  check_all("'");
}
TEST_LIMIT(chinese, 60) {
  check_all("\xe4\xb8\xad");
}
TEST_LIMIT(marks, 60) {
  check_all("\xcc\x80");
}
TEST_LIMIT(beginnings_of_added_tokens, 60) {
  check_all("<|im_");
}
TEST_LIMIT(capitals_and_spaces, 60) {
  check_all("A ");
}
TEST_LIMIT(zeros, 60) {
  const size_t n = length(LONG);
  char *text = calloc(1, n);

  CHECK(text != NULL);
  for (size_t i = 0; i < SMALL_SHAPES; i++)
    check(small_shapes[i], text, n);
  free(text);
}
TEST_LIMIT(ten_megabytes_of_one_letter, 60) {
  const size_t n = length(LONGEST);
  char *text = repeat("a", n);

  check("qwen2", text, n);
  free(text);
}

/* A block goes back to the allocator that it came from. */
TEST(a_list_with_an_allocator_of_its_own) {
  tnk_tokenizer_t *tok = small_load("whole");
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  char *text = repeat("ab", 10000);

  CHECK_INT(tnk_tokenizer_encode(tok, tokens, text, 10000, 0, NULL), TNK_OK);
  tnk_tokens_free(tokens);
  tnk_tokenizer_unref(tok);
  free(text);
}
