/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TOKENIZERS_SMALL_H
#define TNK_TEST_TOKENIZERS_SMALL_H

#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "tnk/tokenizers.h"

/* The small vocabularies in data/, by the name of their shape. */
static const char *const small_shapes[] = {
    "gpt2",      "whole",           "qwen2",          "llama3",   "qwen35",
    "o200k",     "tekken",          "kimi",           "deepseek", "words",
    "digits",    "numbers",         "nfkc",           "llama2",   "gemma",
    "metaspace", "metaspace_first", "metaspace_never"};
#define SMALL_SHAPES (sizeof(small_shapes) / sizeof(small_shapes[0]))

static inline tnk_tokenizer_options_t small_options(void) {
  tnk_tokenizer_options_t options = TNK_TOKENIZER_OPTIONS_INIT;

  options.allocator = test_allocator();
  return options;
}

static inline tnk_tokenizer_t *small_load(const char *shape) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  char path[512];

  (void)snprintf(path, sizeof(path), "%s/%s.json", TNK_TEST_DATA, shape);
  if (tnk_tokenizer_load(&tok, path, &options, &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s: %s", shape, error.text);
  return tok;
}

/* A whole file in static memory, NUL-terminated. */
static inline char *small_read(const char *file, size_t *n) {
  static char text[256 * 1024];
  char path[512];
  FILE *from;

  (void)snprintf(path, sizeof(path), "%s/%s", TNK_TEST_DATA, file);
  from = fopen(path, "rb");
  CHECK(from != NULL);
  *n = fread(text, 1, sizeof(text) - 1, from);
  (void)fclose(from);
  text[*n] = '\0';
  return text;
}

static inline tnk_tokens_t *small_encode(const tnk_tokenizer_t *tok,
                                         const char *text, size_t n,
                                         unsigned flags) {
  tnk_tokens_t *tokens = tnk_tokens_new(test_allocator());
  tnk_tokenizer_error_t error;

  CHECK(tokens != NULL);
  if (tnk_tokenizer_encode(tok, tokens, text, n, flags, &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "encode: %s", error.text);
  return tokens;
}

static inline void small_check_ids(const tnk_tokens_t *tokens,
                                   const int32_t *expected, size_t n_expected) {
  size_t n;
  const int32_t *ids = tnk_tokens_ids(tokens, &n);

  CHECK_MEM(ids, n * sizeof(*ids), expected, n_expected * sizeof(*ids));
}

#endif
