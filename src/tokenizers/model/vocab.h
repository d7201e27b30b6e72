#ifndef TNK_TOKENIZERS_MODEL_VOCAB_H
#define TNK_TOKENIZERS_MODEL_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/* Fetch memory that will be read soon. */
#if defined(__GNUC__)
#define tnk__prefetch(p) __builtin_prefetch(p)
#else
#define tnk__prefetch(p) ((void)(p))
#endif

/* Ids fit in 20 bits, see bpe.h. The largest served vocabulary has 262,144. */
#define TNK__MAX_VOCAB ((uint32_t)1 << 20)
#define TNK__MAX_TOKEN_BYTES ((size_t)1 << 16)

/* A token whose text is no sequence of the byte alphabet: it stands for
 * itself, no piece of text ever equals it, and only its name finds it. */
#define TNK__TOKEN_LITERAL 1u
/* An added token, found in the text before anything else. */
#define TNK__TOKEN_ADDED 2u
/* A control token. */
#define TNK__TOKEN_SPECIAL 4u
/* Set for every id that has a token. */
#define TNK__TOKEN_PRESENT 8u

typedef struct {
  uint32_t offset; /* of its bytes in the blob */
  uint32_t packed; /* length << 8 | TNK__TOKEN_* */
} tnk__token_t;

/*
 * Id to bytes and back. Ids may have holes. Only tokens of the model are in
 * the table from bytes to id; added tokens are found by `added.h`.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__token_t *tokens;
  uint32_t n; /* all ids are below it */
  uint32_t cap;
  uint8_t *blob;
  size_t n_blob;
  size_t cap_blob;
  uint64_t *slots; /* hash << 32 | id + 1; 0 is empty */
  uint32_t mask;   /* slots - 1 */
  uint32_t n_used;
  uint32_t longest; /* bytes of the longest token in the table */
} tnk__vocab_t;

void tnk__vocab_init(tnk__vocab_t *vocab, const tnk_allocator_t *alloc);
void tnk__vocab_deinit(tnk__vocab_t *vocab);
/* Reserve memory for a token of at most n bytes at the end of the blob, to be
 * filled before tnk__vocab_put(); NULL when memory is out. */
uint8_t *tnk__vocab_reserve(tnk__vocab_t *vocab, size_t n);
/* Give the n reserved bytes to an id. TNK_EPROTO: the id or the bytes are
 * taken; TNK_ETOOBIG; TNK_ENOMEM. */
int tnk__vocab_put(tnk__vocab_t *vocab, uint32_t id, size_t n, unsigned flags,
                   int hashed);
/* Put all tokens into the table at once, none of which is in it: cheaper than
 * one by one. TNK_EPROTO: bytes are there twice; TNK_ENOMEM. */
int tnk__vocab_index(tnk__vocab_t *vocab);
/* Whether the id has these bytes. */
int tnk__vocab_is(const tnk__vocab_t *vocab, uint32_t id, const uint8_t *bytes,
                  size_t n, unsigned flags);
/* The id of a token of the model, -1 without one. `flags` tells literal
 * tokens from sequences of the byte alphabet. */
int32_t tnk__vocab_find(const tnk__vocab_t *vocab, const uint8_t *bytes,
                        size_t n, unsigned flags);
/* Find in steps, for who looks for many tokens and does not want to wait for
 * memory each time: tnk__vocab_hash(), then for all of them tnk__vocab_soon()
 * with step 0, 1, 2, then tnk__vocab_find_hashed(). */
uint32_t tnk__vocab_hash(const uint8_t *bytes, size_t n, unsigned flags);
void tnk__vocab_soon(const tnk__vocab_t *vocab, uint32_t hash, int step);
int32_t tnk__vocab_find_hashed(const tnk__vocab_t *vocab, const uint8_t *bytes,
                               size_t n, unsigned flags, uint32_t hash);
/* Give memory back after the last put. */
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
