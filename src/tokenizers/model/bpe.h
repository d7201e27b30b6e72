/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_BPE_H
#define TNK_TOKENIZERS_MODEL_BPE_H

#include <stdatomic.h>

#include "tokenizers/model/vocab.h"

/*
 * Byte-pair encoding. A piece starts as single bytes or characters. The
 * adjacent pair with the lowest rank is merged, the leftmost of equal ones,
 * until no pair has a rank.
 *
 * Pairs are collected as left << 44 | right << 24 | rank, with 20 bits per id
 * and 24 bits per rank. At the end they are inserted into an open-addressing
 * table of the right size. Most lookups are for pairs without a rank. A bit
 * filter that fits in the CPU cache answers most of them.
 */
#define TNK__NO_RANK UINT32_MAX
#define TNK__CHARS 0x10000u
#define TNK__MAX_MERGES ((uint32_t)1 << 24)

typedef struct {
  const tnk_allocator_t *alloc;
  uint64_t *pairs; /* in order of insertion; NULL after loading */
  uint32_t n_pairs;
  uint32_t cap_pairs;
  uint64_t *table; /* UINT64_MAX: empty slot */
  uint32_t n_slots;
  uint32_t n_merges;
  uint32_t cap_merges;
  int32_t *merged;  /* rank -> id */
  uint32_t *filter; /* two bits per pair */
  unsigned filter_shift;
  int32_t byte_id[256];     /* -1: no token for this byte */
  uint32_t *byte_pair_rank; /* [left byte << 8 | right byte] */
  uint32_t *chars;          /* chars.c: properties of characters */
  uint32_t *joined;         /* chars.c: a bit for adjacent characters */
  unsigned joined_shift;
  /* One bit per id, set if merging the bytes of this token is known to give the
   * token again. Any thread may set a bit while encoding. It is never
   * cleared. */
  atomic_uint *settled;
  uint32_t n_settled; /* larger than the id of any merge's result */
} tnk__bpe_t;

void tnk__bpe_init(tnk__bpe_t *bpe, const tnk_allocator_t *alloc);
void tnk__bpe_deinit(tnk__bpe_t *bpe);
/* Add the merge with the next rank. A pair that is added twice keeps the later
 * rank. */
int tnk__bpe_add(tnk__bpe_t *bpe, int32_t left, int32_t right, int32_t merged);
/* Add a merge whose rank is the id of its result, as in tiktoken. Do not mix it
 * with tnk__bpe_add(). All pairs with the same result have the same rank. */
int tnk__bpe_add_ranked(tnk__bpe_t *bpe, int32_t left, int32_t right,
                        int32_t merged);
/* Build the table. Call this after the last merge, with byte_id filled in. */
int tnk__bpe_finish(tnk__bpe_t *bpe);

uint32_t tnk__bpe_rank(const tnk__bpe_t *bpe, int32_t left, int32_t right);

/* Returns whether merging the bytes of a token is known to give the token.
 * tnk__bpe_settle() records that it does. */
static inline int tnk__bpe_is_settled(const tnk__bpe_t *bpe, int32_t id) {
  return (uint32_t)id < bpe->n_settled &&
         (atomic_load_explicit(&bpe->settled[(uint32_t)id / 32],
                               memory_order_relaxed) >>
              ((uint32_t)id % 32) &
          1u) != 0;
}
void tnk__bpe_settle(const tnk__bpe_t *bpe, int32_t id);

/* Memory for merging long pieces, reused in later calls. Its owner frees it
 * with `alloc`. */
typedef struct {
  const tnk_allocator_t *alloc;
  void *memory;
  size_t size;
} tnk__bpe_work_t;

/* Merge n bytes. `out` needs room for n ids. Returns the number of ids, or
 * TNK_ENOMEM. */
int64_t tnk__bpe_bytes(const tnk__bpe_t *bpe, tnk__bpe_work_t *work,
                       const uint8_t *bytes, size_t n, int32_t *out);
/* Merge the ids in `ids` in place. */
int64_t tnk__bpe_ids(const tnk__bpe_t *bpe, tnk__bpe_work_t *work, int32_t *ids,
                     size_t n);

#endif
