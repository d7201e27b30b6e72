/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tokenizers/golden.h"

/*
 * Every shape of pre-tokenizer: ids against the reference's (gen_small.py),
 * and what must hold for all texts.
 */
/* Places lie in order and cover the text; a token's bytes are those of its
 * place unless normalization or stripping changed them. */
static void check_spans(const tnk_tokenizer_t *tok, const golden_t *golden,
                        const tnk_tokens_t *tokens, int exact) {
  const tnk_token_span_t *spans = tnk_tokens_offsets(tokens);
  size_t n, at = 0;
  const int32_t *ids = tnk_tokens_ids(tokens, &n);

  for (size_t i = 0; i < n; i++) {
    size_t n_bytes;
    const char *bytes = tnk_tokenizer_token(tok, ids[i], &n_bytes, NULL);

    CHECK(spans[i].start <= spans[i].end && spans[i].end <= golden->n);
    CHECK(spans[i].start <= at && spans[i].end >= at);
    at = spans[i].end;
    if (exact)
      CHECK_MEM(golden->text + spans[i].start, spans[i].end - spans[i].start,
                bytes, n_bytes);
  }
  CHECK_INT(at, golden->n);
}

static void check_line(const tnk_tokenizer_t *tok, const golden_t *golden,
                       const char *shape, size_t line) {
  const char *text = (const char *)golden->text;
  tnk_tokens_t *tokens =
      small_encode(tok, text, golden->n, golden->flags | TNK_ENCODE_OFFSETS);
  tnk_tokenizer_error_t error;
  size_t n, count, n_back;
  const int32_t *ids = tnk_tokens_ids(tokens, &n);
  int words = strcmp(shape, "words") == 0;
  /* Llama 2's texts come back as they were, although they were normalized. */
  int meta = strncmp(shape, "metaspace", 9) == 0;
  int pieces =
      meta || strcmp(shape, "llama2") == 0 || strcmp(shape, "gemma") == 0;
  int nfc =
      words || strncmp(shape, "qwen", 4) == 0 || strcmp(shape, "nfkc") == 0;
  int strips = words || memmem(text, golden->n, "<l>", 3) != NULL ||
               memmem(text, golden->n, "<r>", 3) != NULL;
  char *back;

  if (n != golden->n_ids ||
      (n > 0 && memcmp(ids, golden->ids, n * sizeof(*ids)) != 0))
    test_fail(__FILE__, __LINE__, "%s.golden line %zu: other ids", shape, line);
  CHECK_INT(
      tnk_tokenizer_count(tok, text, golden->n, golden->flags, &count, &error),
      TNK_OK);
  CHECK_INT(count, n);
  if (!strips && (golden->flags & TNK_ENCODE_ADD_SPECIAL) == 0) {
    check_spans(tok, golden, tokens, !nfc && !pieces);
    CHECK_INT(tnk_tokenizer_decode(tok, &back, &n_back, ids, n, 0), TNK_OK);
    if (!nfc && !meta)
      CHECK_MEM(back, n_back, text, golden->n);
    tnk_tokenizer_free_text(tok, back);
  }
  tnk_tokens_free(tokens);
}

TEST_LIMIT(ids_of_every_shape_are_those_of_the_reference, 30) {
  static golden_t golden;

  for (size_t i = 0; i < SMALL_SHAPES; i++) {
    tnk_tokenizer_t *tok = small_load(small_shapes[i]);
    size_t n_lines = 0;

    golden_open(&golden, small_shapes[i]);
    for (; golden_next(&golden); n_lines++)
      check_line(tok, &golden, small_shapes[i], n_lines + 1);
    CHECK(n_lines > 200);
    tnk_tokenizer_unref(tok);
  }
}

/* All texts of a shape into one list or, with NULL, each into one of its own;
 * their bytes. */
static size_t check_again(const tnk_tokenizer_t *tok, tnk_tokens_t *tokens,
                          const char *shape) {
  static golden_t golden;
  size_t n = 0;

  golden_open(&golden, shape);
  while (golden_next(&golden)) {
    tnk_tokens_t *own =
        tokens != NULL ? tokens : tnk_tokens_new(test_allocator());

    tnk_tokens_clear(own);
    CHECK_INT(tnk_tokenizer_encode(tok, own, (char *)golden.text, golden.n,
                                   golden.flags, NULL),
              TNK_OK);
    small_check_ids(own, golden.ids, golden.n_ids);
    n += golden.n;
    if (tokens == NULL)
      tnk_tokens_free(own);
  }
  return n;
}

/* One list for all texts of all shapes: what it keeps between calls must not
 * change any id. */
TEST_LIMIT(a_list_that_is_used_again_gives_the_same_ids, 60) {
  tnk_tokens_t *tokens = tnk_tokens_new(test_allocator());

  for (size_t round = 0; round < 2; round++)
    for (size_t i = 0; i < SMALL_SHAPES; i++) {
      tnk_tokenizer_t *tok = small_load(small_shapes[i]);

      /* It keeps pieces once it has seen 64 KiB, and finds them then. */
      for (size_t n_seen = 0; n_seen < (size_t)160 * 1024;)
        n_seen += check_again(tok, tokens, small_shapes[i]);
      tnk_tokenizer_unref(tok);
    }
  tnk_tokens_free(tokens);
}

/* A tokenizer notes which tokens merging gives, without regard to lists: a
 * fresh one for each text finds what it has trained from the texts before. */
TEST_LIMIT(a_tokenizer_that_has_seen_a_text_gives_the_same_ids, 60) {
  for (size_t i = 0; i < SMALL_SHAPES; i++) {
    tnk_tokenizer_t *tok = small_load(small_shapes[i]);

    for (size_t round = 0; round < 3; round++)
      (void)check_again(tok, NULL, small_shapes[i]);
    tnk_tokenizer_unref(tok);
  }
}
