/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_CODING_ENCODE_H
#define TNK_TOKENIZERS_CODING_ENCODE_H

#include "tokenizers/model/tokenizer.h"

/*
 * Cache of short pieces, as they occur again and again. A key has the bytes of
 * a piece, zeros, and the number of bytes. An unused entry has number 0, which
 * no piece has. The ids are packed, 20 bits each, three in a word. The first
 * word ends with their number. Entries form pairs, with the most recently used
 * one first.
 */
#define TNK__CACHE_LOG2 15 /* number of pairs; 2 MiB */
#define TNK__CACHE_BYTES 15u
#define TNK__CACHE_IDS 6u

typedef struct {
  uint64_t key[2];
  uint64_t ids[2];
} tnk__cache_entry_t;

/* Memory of an encoder, reused in later calls. */
typedef struct {
  tnk__cache_entry_t *cache; /* NULL until enough text was encoded */
  const tnk_tokenizer_t
      *cached;   /* tokenizer of the cached pieces, with a reference; or NULL */
  size_t n_seen; /* bytes encoded with `cached` */
  tnk__bpe_work_t work;
  tnk__buf_t clean;     /* text with replacements */
  tnk__buf_t normal[2]; /* normalized text, of the last step and of the one
                           before */
  tnk__buf_t cps;       /* code points of a section being normalized */
  tnk__buf_t cleaned;   /* tnk__nfc_change_t: from repaired to given text */
  /* tnk__nfc_change_t: from the result of a step to its source */
  tnk__buf_t changes[TNK__MAX_STEPS];
  tnk__buf_t meta;         /* result of the pre-tokenizer Metaspace */
  tnk__buf_t meta_changes; /* the same, to normalized text */
} tnk__scratch_t;

struct tnk_tokens {
  tnk_allocator_t alloc;
  int32_t *ids;
  size_t n;
  size_t cap;
  tnk_token_span_t *spans;
  size_t n_spans;
  size_t cap_spans;
  tnk__scratch_t scratch;
};

/* Initialize an empty list in the caller's memory. */
void tnk__tokens_init(tnk_tokens_t *tokens, const tnk_allocator_t *alloc);
void tnk__tokens_deinit(tnk_tokens_t *tokens);
/* Reserve memory for n more ids, or n more offsets. */
int tnk__tokens_reserve(tnk_tokens_t *tokens, size_t n);
int tnk__tokens_reserve_spans(tnk_tokens_t *tokens, size_t n);

/* State of encoding one text into a list. */
typedef struct {
  const tnk_tokenizer_t *tok;
  tnk_tokens_t *tokens;
  unsigned flags;
  int count_only;
  size_t count; /* number of tokens, if `count_only` */
  size_t place; /* offset of the text, added to all offsets */
} tnk__encoder_t;

/* Check the flags and the text, then append the ids. After a failure the caller
 * restores the list. */
int tnk__encode(tnk__encoder_t *encoder, const char *text, size_t n,
                tnk_tokenizer_error_t *error);

#endif
