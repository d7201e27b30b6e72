/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/vocab.h"

#include <string.h>

#include "tnk/error.h"
#include "lib/base/alloc.h"

#define FIRST_SLOTS 1024u

void tnk__vocab_init(tnk__vocab_t *vocab, const tnk_allocator_t *alloc) {
  memset(vocab, 0, sizeof(*vocab));
  vocab->alloc = alloc;
}

void tnk__vocab_deinit(tnk__vocab_t *vocab) {
  tnk__free(vocab->alloc, vocab->tokens);
  tnk__free(vocab->alloc, vocab->blob);
  tnk__free(vocab->alloc, vocab->slots);
}

#define MUL UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t load8(const uint8_t *p) {
  uint64_t word;

  memcpy(&word, p, 8);
  return word;
}

static inline uint32_t load4(const uint8_t *p) {
  uint32_t word;

  memcpy(&word, p, 4);
  return word;
}

/* Up to eight bytes as a number; for more bytes, the last eight. Together with
 * the number of bytes it distinguishes strings of up to eight bytes. */
static inline uint64_t last_bytes(const uint8_t *p, size_t n) {
  if (n >= 8)
    return load8(p + n - 8);
  if (n >= 4)
    return (uint64_t)load4(p) << 32 | load4(p + n - 4);
  return n == 0 ? 0 : (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
}

/* This hash does not resist attacks. A malicious vocabulary can make loading
 * slow, but a file has at most 2^20 tokens. */
static uint32_t hash_bytes(const uint8_t *p, size_t n, unsigned flags) {
  uint64_t h = (n << 1 | (flags & TNK__TOKEN_LITERAL)) * MUL;

  h ^= last_bytes(p, n);
  for (; n > 8; p += 8, n -= 8) {
    h = (h ^ h >> 29) * MUL;
    h ^= load8(p);
  }
  h *= MUL;
  h ^= h >> 32;
  h *= MUL;
  return (uint32_t)(h >> 32);
}

static inline int same_bytes(const uint8_t *a, const uint8_t *b, size_t n) {
  if (last_bytes(a, n) != last_bytes(b, n))
    return 0;
  for (; n > 8; a += 8, b += 8, n -= 8)
    if (load8(a) != load8(b))
      return 0;
  return 1;
}

static int rehash(tnk__vocab_t *vocab, uint32_t n_slots) {
  uint64_t *slots = tnk__calloc(vocab->alloc, n_slots, sizeof(*slots));

  if (slots == NULL)
    return TNK_ENOMEM;
  for (uint32_t i = 0; vocab->slots != NULL && i <= vocab->mask; i++) {
    uint32_t at = (uint32_t)(vocab->slots[i] >> 32) & (n_slots - 1);

    if (vocab->slots[i] == 0)
      continue;
    while (slots[at] != 0)
      at = (at + 1) & (n_slots - 1);
    slots[at] = vocab->slots[i];
  }
  tnk__free(vocab->alloc, vocab->slots);
  vocab->slots = slots;
  vocab->mask = n_slots - 1;
  return TNK_OK;
}

/* Find the slot of the token, or the empty slot where it belongs. */
static uint32_t find_slot(const tnk__vocab_t *vocab, const uint8_t *bytes,
                          size_t n, unsigned flags, uint32_t hash) {
  uint32_t at = hash & vocab->mask;

  for (; vocab->slots[at] != 0; at = (at + 1) & vocab->mask) {
    const tnk__token_t *token;

    if ((uint32_t)(vocab->slots[at] >> 32) != hash)
      continue;
    token = &vocab->tokens[(uint32_t)vocab->slots[at] - 1];
    if (token->packed >> 8 == n &&
        ((token->packed ^ flags) & TNK__TOKEN_LITERAL) == 0 &&
        same_bytes(vocab->blob + token->offset, bytes, n))
      break;
  }
  return at;
}

uint8_t *tnk__vocab_reserve(tnk__vocab_t *vocab, size_t n) {
  if (vocab->cap_blob - vocab->n_blob < n) {
    size_t cap = vocab->cap_blob * 2 + n + 4096;
    uint8_t *blob =
        cap > UINT32_MAX ? NULL : tnk__realloc(vocab->alloc, vocab->blob, cap);

    if (blob == NULL)
      return NULL;
    vocab->blob = blob;
    vocab->cap_blob = cap;
  }
  return vocab->blob + vocab->n_blob;
}

static int grow_tokens(tnk__vocab_t *vocab, uint32_t id) {
  uint32_t cap = vocab->cap;
  tnk__token_t *tokens;

  if (id >= cap) {
    cap = cap * 2 > id + 1024 ? cap * 2 : id + 1024;
    tokens = tnk__realloc(vocab->alloc, vocab->tokens, cap * sizeof(*tokens));
    if (tokens == NULL)
      return TNK_ENOMEM;
    vocab->tokens = tokens;
    vocab->cap = cap;
  }
  if (id >= vocab->n) {
    memset(vocab->tokens + vocab->n, 0,
           (id + 1 - vocab->n) * sizeof(*vocab->tokens));
    vocab->n = id + 1;
  }
  return TNK_OK;
}

/* Insert a token of the list into the table. */
static int put_slot(tnk__vocab_t *vocab, uint32_t id) {
  tnk__token_t *token = &vocab->tokens[id];
  const uint8_t *bytes = vocab->blob + token->offset;
  size_t n = token->packed >> 8;
  uint32_t hash = hash_bytes(bytes, n, token->packed);
  uint32_t at = find_slot(vocab, bytes, n, token->packed, hash);

  if (vocab->slots[at] != 0)
    return TNK_EPROTO;
  vocab->slots[at] = (uint64_t)hash << 32 | (id + 1);
  token->packed |= TNK__TOKEN_INDEXED;
  vocab->n_used++;
  if (n > vocab->longest)
    vocab->longest = (uint32_t)n;
  return TNK_OK;
}

int tnk__vocab_put(tnk__vocab_t *vocab, uint32_t id, size_t n, unsigned flags,
                   int hashed) {
  if (id >= TNK__MAX_VOCAB - 1 || n > TNK__MAX_TOKEN_BYTES)
    return TNK_ETOOBIG;
  if (grow_tokens(vocab, id) < 0)
    return TNK_ENOMEM;
  if (tnk__vocab_has(vocab, id))
    return TNK_EPROTO;
  if (hashed &&
      (vocab->slots == NULL || vocab->n_used >= (vocab->mask + 1) / 4 * 3) &&
      rehash(vocab,
             vocab->slots == NULL ? FIRST_SLOTS : (vocab->mask + 1) * 2) < 0)
    return TNK_ENOMEM;
  vocab->tokens[id].offset = (uint32_t)vocab->n_blob;
  vocab->tokens[id].packed = (uint32_t)n << 8 | flags | TNK__TOKEN_PRESENT;
  if (hashed && put_slot(vocab, id) < 0) {
    vocab->tokens[id].packed = 0;
    return TNK_EPROTO;
  }
  vocab->n_blob += n;
  return TNK_OK;
}

int tnk__vocab_index(tnk__vocab_t *vocab) {
  uint32_t n_slots = FIRST_SLOTS;
  int err;

  while (n_slots / 4 * 3 < vocab->n)
    n_slots *= 2;
  err = rehash(vocab, n_slots);
  for (uint32_t id = 0; id < vocab->n && err == TNK_OK; id++)
    if (tnk__vocab_has(vocab, id))
      err = put_slot(vocab, id);
  return err;
}

void tnk__vocab_reindex(tnk__vocab_t *vocab) {
  if (vocab->slots == NULL)
    return;
  memset(vocab->slots, 0, ((size_t)vocab->mask + 1) * sizeof(*vocab->slots));
  vocab->n_used = 0;
  vocab->longest = 0;
  for (uint32_t id = 0; id < vocab->n; id++)
    if (vocab->tokens[id].packed & TNK__TOKEN_INDEXED)
      (void)put_slot(vocab, id);
}

int tnk__vocab_is(const tnk__vocab_t *vocab, uint32_t id, const uint8_t *bytes,
                  size_t n, unsigned flags) {
  const tnk__token_t *token = &vocab->tokens[id];

  return tnk__vocab_has(vocab, id) && token->packed >> 8 == n &&
         ((token->packed ^ flags) & TNK__TOKEN_LITERAL) == 0 &&
         same_bytes(vocab->blob + token->offset, bytes, n);
}

int32_t tnk__vocab_find_hashed(const tnk__vocab_t *vocab, const uint8_t *bytes,
                               size_t n, unsigned flags, uint32_t hash) {
  if (vocab->slots == NULL || n > vocab->longest)
    return -1;
  return (int32_t)(uint32_t)
             vocab->slots[find_slot(vocab, bytes, n, flags, hash)] -
         1;
}

int32_t tnk__vocab_find(const tnk__vocab_t *vocab, const uint8_t *bytes,
                        size_t n, unsigned flags) {
  return tnk__vocab_find_hashed(vocab, bytes, n, flags,
                                hash_bytes(bytes, n, flags));
}

uint32_t tnk__vocab_hash(const uint8_t *bytes, size_t n, unsigned flags) {
  return hash_bytes(bytes, n, flags);
}

void tnk__vocab_soon(const tnk__vocab_t *vocab, uint32_t hash, int step) {
  const uint64_t *slot = vocab->slots + (hash & vocab->mask);

  if (step == 0)
    tnk__prefetch(slot);
  else if (*slot != 0 && step == 1)
    tnk__prefetch(&vocab->tokens[(uint32_t)*slot - 1]);
  else if (*slot != 0)
    tnk__prefetch(vocab->blob + vocab->tokens[(uint32_t)*slot - 1].offset);
}

void tnk__vocab_trim(tnk__vocab_t *vocab) {
  tnk__token_t *tokens;
  uint8_t *blob;

  /* If shrinking fails, the larger block is kept. */
  tokens = tnk__realloc(vocab->alloc, vocab->tokens,
                        (vocab->n + 1) * sizeof(*tokens));
  if (tokens != NULL) {
    vocab->tokens = tokens;
    vocab->cap = vocab->n + 1;
  }
  blob = tnk__realloc(vocab->alloc, vocab->blob, vocab->n_blob);
  if (blob != NULL) {
    vocab->blob = blob;
    vocab->cap_blob = vocab->n_blob;
  }
}
