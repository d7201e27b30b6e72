/* SPDX-License-Identifier: MIT */
#include "tokenizer_file.h"

#include <stdio.h>

/* Any bytes through the small vocabularies of test/tokenizers: the first byte
 * chooses the vocabulary and the flags, the rest is the text. */
static const char *const names[] = {
    "gpt2.json",   "whole.json",    "qwen2.json",
    "llama3.json", "qwen35.json",   "o200k.json",
    "tekken.json", "deepseek.json", "ranks.tiktoken"};
enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

static const tnk_tokenizer_t *get(size_t i) {
  static tnk_tokenizer_t *loaded[N_NAMES];
  char path[512];

  if (loaded[i] == NULL) {
    (void)snprintf(path, sizeof(path), "%s/%s", TNK_TEST_DATA, names[i]);
    FUZZ_CHECK(tnk_tokenizer_load(&loaded[i], path, NULL, NULL) == TNK_OK);
  }
  return loaded[i];
}

/* Streamed one id at a time, the text is the same as at once. */
static void check_decode(const tnk_tokenizer_t *tok, const int32_t *ids,
                         size_t n) {
  tnk_detokenizer_t *detok;
  char *whole;
  const char *text;
  size_t n_whole, n_text, at = 0;

  FUZZ_CHECK(tnk_tokenizer_decode(tok, &whole, &n_whole, ids, n, 0) == TNK_OK);
  FUZZ_CHECK(tnk_detokenizer_new(&detok, tok, 0) == TNK_OK);
  for (size_t i = 0; i <= n; i++) {
    FUZZ_CHECK((i < n
                    ? tnk_detokenizer_push(detok, ids + i, 1, &text, &n_text)
                    : tnk_detokenizer_finish(detok, &text, &n_text)) == TNK_OK);
    FUZZ_CHECK(n_text <= n_whole - at && memcmp(whole + at, text, n_text) == 0);
    at += n_text;
  }
  FUZZ_CHECK(at == n_whole);
  tnk_detokenizer_free(detok);
  tnk_tokenizer_free_text(tok, whole);
}

static void check_encode(const tnk_tokenizer_t *tok, const char *text, size_t n,
                         unsigned flags) {
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  const tnk_token_span_t *spans;
  size_t n_ids, count;
  const int32_t *ids;

  flags |= TNK_ENCODE_LOSSY | TNK_ENCODE_OFFSETS;
  FUZZ_CHECK(tokens != NULL);
  FUZZ_CHECK(tnk_tokenizer_encode(tok, tokens, text, n, flags, NULL) == TNK_OK);
  FUZZ_CHECK(tnk_tokenizer_count(tok, text, n, flags, &count, NULL) == TNK_OK);
  ids = tnk_tokens_ids(tokens, &n_ids);
  spans = tnk_tokens_offsets(tokens);
  FUZZ_CHECK(count == n_ids);
  for (size_t i = 0; i < n_ids; i++)
    FUZZ_CHECK(spans[i].start <= spans[i].end && spans[i].end <= n);
  check_decode(tok, ids, n_ids);
  tnk_tokens_free(tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const unsigned flags[] = {0, TNK_ENCODE_ADD_SPECIAL,
                                   TNK_ENCODE_SPLIT_SPECIAL, TNK_ENCODE_PLAIN};
  int32_t ids[256];
  const tnk_tokenizer_t *tok;
  size_t n;

  if (size == 0)
    return 0;
  tok = get(data[0] % N_NAMES);
  check_encode(tok, (const char *)data + 1, size - 1,
               flags[data[0] / N_NAMES % 4]);
  /* the same bytes as ids */
  n = (size - 1) / 2 < 256 ? (size - 1) / 2 : 256;
  for (size_t i = 0; i < n; i++)
    ids[i] = (int16_t)(data[1 + 2 * i] | data[2 + 2 * i] << 8);
  check_decode(tok, ids, n);
  return 0;
}
