/* SPDX-License-Identifier: MIT */
#include "tokenizers/coding/encode.h"

#include <string.h>

#include "lib/base/alloc.h"

void tnk__tokens_init(tnk_tokens_t *tokens, const tnk_allocator_t *alloc) {
  tnk__scratch_t *scratch = &tokens->scratch;

  memset(tokens, 0, sizeof(*tokens));
  tokens->alloc = *alloc;
  alloc = &tokens->alloc;
  scratch->work.alloc = alloc;
  tnk__buf_init(&scratch->clean, alloc, SIZE_MAX / 2);
  for (unsigned i = 0; i < 2; i++)
    tnk__buf_init(&scratch->normal[i], alloc, SIZE_MAX / 2);
  tnk__buf_init(&scratch->cps, alloc, SIZE_MAX / 2);
  tnk__buf_init(&scratch->cleaned, alloc, SIZE_MAX / 2);
  for (unsigned i = 0; i < TNK__MAX_STEPS; i++)
    tnk__buf_init(&scratch->changes[i], alloc, SIZE_MAX / 2);
  tnk__buf_init(&scratch->meta, alloc, SIZE_MAX / 2);
  tnk__buf_init(&scratch->meta_changes, alloc, SIZE_MAX / 2);
}

void tnk__tokens_deinit(tnk_tokens_t *tokens) {
  tnk__scratch_t *scratch = &tokens->scratch;

  tnk__free(&tokens->alloc, tokens->ids);
  tnk__free(&tokens->alloc, tokens->spans);
  tnk__free(&tokens->alloc, scratch->cache);
  tnk__free(&tokens->alloc, scratch->work.memory);
  tnk__buf_deinit(&scratch->clean);
  for (unsigned i = 0; i < 2; i++)
    tnk__buf_deinit(&scratch->normal[i]);
  tnk__buf_deinit(&scratch->cps);
  tnk__buf_deinit(&scratch->cleaned);
  for (unsigned i = 0; i < TNK__MAX_STEPS; i++)
    tnk__buf_deinit(&scratch->changes[i]);
  tnk__buf_deinit(&scratch->meta);
  tnk__buf_deinit(&scratch->meta_changes);
  tnk_tokenizer_unref((tnk_tokenizer_t *)(uintptr_t)scratch->cached);
}

tnk_tokens_t *tnk_tokens_new(const tnk_allocator_t *allocator) {
  const tnk_allocator_t *alloc =
      allocator != NULL ? allocator : tnk__allocator_default();
  tnk_tokens_t *tokens = tnk__malloc(alloc, sizeof(*tokens));

  if (tokens != NULL)
    tnk__tokens_init(tokens, alloc);
  return tokens;
}

void tnk_tokens_free(tnk_tokens_t *tokens) {
  tnk_allocator_t alloc;

  if (tokens == NULL)
    return;
  alloc = tokens->alloc;
  tnk__tokens_deinit(tokens);
  tnk__free(&alloc, tokens);
}

void tnk_tokens_clear(tnk_tokens_t *tokens) {
  if (tokens != NULL)
    tokens->n = tokens->n_spans = 0;
}

const int32_t *tnk_tokens_ids(const tnk_tokens_t *tokens, size_t *n) {
  if (n != NULL)
    *n = tokens == NULL ? 0 : tokens->n;
  return tokens == NULL ? NULL : tokens->ids;
}

const tnk_token_span_t *tnk_tokens_offsets(const tnk_tokens_t *tokens) {
  return tokens == NULL || tokens->n_spans != tokens->n ? NULL : tokens->spans;
}

/* Grow an array to hold n items after the `used` ones. NULL: out of memory, and
 * the old array is unchanged. */
static void *grow(tnk_tokens_t *tokens, void *items, size_t size, size_t *cap,
                  size_t used, size_t n) {
  size_t wanted = *cap * 2 > used + n ? *cap * 2 : used + n + 64;
  void *grown = wanted > SIZE_MAX / size
                    ? NULL
                    : tnk__realloc(&tokens->alloc, items, wanted * size);

  if (grown != NULL)
    *cap = wanted;
  return grown;
}

int tnk__tokens_reserve(tnk_tokens_t *tokens, size_t n) {
  int32_t *ids;

  if (n <= tokens->cap - tokens->n)
    return TNK_OK;
  ids = grow(tokens, tokens->ids, sizeof(*ids), &tokens->cap, tokens->n, n);
  if (ids == NULL)
    return TNK_ENOMEM;
  tokens->ids = ids;
  return TNK_OK;
}

int tnk__tokens_reserve_spans(tnk_tokens_t *tokens, size_t n) {
  tnk_token_span_t *spans;

  if (n <= tokens->cap_spans - tokens->n_spans)
    return TNK_OK;
  spans = grow(tokens, tokens->spans, sizeof(*spans), &tokens->cap_spans,
               tokens->n_spans, n);
  if (spans == NULL)
    return TNK_ENOMEM;
  tokens->spans = spans;
  return TNK_OK;
}
