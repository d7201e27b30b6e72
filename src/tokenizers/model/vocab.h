/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_VOCAB_H
#define TNK_TOKENIZERS_MODEL_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/* Prefetch memory that will be read soon. */
#if defined(__GNUC__)
#define tnk__prefetch(p) __builtin_prefetch(p)
#else
#define tnk__prefetch(p) ((void)(p))
#endif

/* Ids fit in 20 bits, see bpe.h. The largest supported vocabulary has 262,144
 * ids. */
#define TNK__MAX_VOCAB ((uint32_t)1 << 20)
#define TNK__MAX_TOKEN_BYTES ((size_t)1 << 16)

/* A token with a character outside the byte alphabet. Its bytes are its name.
 * No piece of text equals it, and only its name finds it. */
#define TNK__TOKEN_LITERAL 1u
/* An added token, searched for before anything else. */
#define TNK__TOKEN_ADDED 2u
/* A control token. */
#define TNK__TOKEN_SPECIAL 4u
/* A token of a byte, see fallback.h. */
#define TNK__TOKEN_BYTE 16u
/* A token of the table from bytes to ids. */
#define TNK__TOKEN_INDEXED 32u
/* A name with spaces, where names have another character for a space. */
#define TNK__TOKEN_SPACED 64u
/* Set for every id that has a token. */
#define TNK__TOKEN_PRESENT 8u

typedef struct {
  uint32_t offset; /* offset of the bytes in the blob */
  uint32_t packed; /* length << 8 | TNK__TOKEN_* */
} tnk__token_t;

/*
 * Map between ids and bytes. Ids may have gaps. The table from bytes to ids has
 * only the tokens of the model. Added tokens are searched by added.h.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__token_t *tokens;
  uint32_t n; /* larger than any id */
  uint32_t cap;
  uint8_t *blob;
  size_t n_blob;
  size_t cap_blob;
  uint64_t *slots; /* hash << 32 | id + 1; 0: empty */
  uint32_t mask;   /* number of slots - 1 */
  uint32_t n_used;
  uint32_t longest; /* bytes of the longest token in the table */
} tnk__vocab_t;

void tnk__vocab_init(tnk__vocab_t *vocab, const tnk_allocator_t *alloc);
void tnk__vocab_deinit(tnk__vocab_t *vocab);
/* Reserve memory at the end of the blob for a token of at most n bytes. Fill it
 * before tnk__vocab_put(). NULL: out of memory. */
uint8_t *tnk__vocab_reserve(tnk__vocab_t *vocab, size_t n);
/* Assign the n reserved bytes to an id. TNK_EPROTO: the id or the bytes are
 * already used. Also TNK_ETOOBIG and TNK_ENOMEM. */
int tnk__vocab_put(tnk__vocab_t *vocab, uint32_t id, size_t n, unsigned flags,
                   int hashed);
/* Insert all tokens into the empty table. This is faster than one by one.
 * TNK_EPROTO: two tokens have the same bytes. Also TNK_ENOMEM. */
int tnk__vocab_index(tnk__vocab_t *vocab);
/* Fill the table again, after the bytes of tokens were changed. Of tokens with
 * the same bytes, the table has the first one. */
void tnk__vocab_reindex(tnk__vocab_t *vocab);
/* Returns whether the id has these bytes. */
int tnk__vocab_is(const tnk__vocab_t *vocab, uint32_t id, const uint8_t *bytes,
                  size_t n, unsigned flags);
/* Find a token of the model. Returns its id, or -1. `flags` distinguishes
 * literal tokens from others. */
int32_t tnk__vocab_find(const tnk__vocab_t *vocab, const uint8_t *bytes,
                        size_t n, unsigned flags);
/* Lookup in steps, which hides memory latency if there are many tokens. Call
 * tnk__vocab_hash(), then tnk__vocab_soon() with step 0, 1 and 2 for all
 * tokens, then tnk__vocab_find_hashed(). */
uint32_t tnk__vocab_hash(const uint8_t *bytes, size_t n, unsigned flags);
void tnk__vocab_soon(const tnk__vocab_t *vocab, uint32_t hash, int step);
int32_t tnk__vocab_find_hashed(const tnk__vocab_t *vocab, const uint8_t *bytes,
                               size_t n, unsigned flags, uint32_t hash);
/* Free unused memory after the last put. */
void tnk__vocab_trim(tnk__vocab_t *vocab);

static inline int tnk__vocab_has(const tnk__vocab_t *vocab, int64_t id) {
  return id >= 0 && id < vocab->n &&
         (vocab->tokens[id].packed & TNK__TOKEN_PRESENT) != 0;
}

static inline const uint8_t *tnk__vocab_bytes(const tnk__vocab_t *vocab,
                                              uint32_t id, size_t *n) {
  *n = vocab->tokens[id].packed >> 8;
  return vocab->blob + vocab->tokens[id].offset;
}

#endif
