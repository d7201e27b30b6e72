#ifndef TNK_TOKENIZERS_MODEL_BPE_H
#define TNK_TOKENIZERS_MODEL_BPE_H

#include <stdatomic.h>

#include "tokenizers/model/vocab.h"

/*
 * Byte-pair encoding: a piece starts as single bytes (or characters), and the
 * adjacent pair of lowest rank is merged, the leftmost of equal ones, until no
 * pair has a rank.
 *
 * Pairs are collected first, as left << 44 | right << 24 | rank: 20 bits an
 * id, 24 bits a rank. At the end they go into an open table of just the right
 * size. Most pairs that are asked for have no rank, so a bit filter that stays
 * in the cache answers first.
 */
#define TNK__NO_RANK UINT32_MAX
#define TNK__CHARS 0x10000u
#define TNK__MAX_MERGES ((uint32_t)1 << 24)

typedef struct {
  const tnk_allocator_t *alloc;
  uint64_t *pairs; /* as they were added; NULL from the end of loading on */
  uint32_t n_pairs;
  uint32_t cap_pairs;
  uint64_t *table; /* UINT64_MAX is empty */
  uint32_t n_slots;
  uint32_t n_merges;
  uint32_t cap_merges;
  int32_t *merged;  /* rank -> id */
  uint32_t *filter; /* two bits a pair */
  unsigned filter_shift;
  int32_t byte_id[256];     /* -1: no token for this byte */
  uint32_t *byte_pair_rank; /* [left byte << 8 | right byte] */
  uint32_t *chars;          /* of chars.c: what is known of a character */
  uint32_t *joined;         /* of chars.c: a bit for characters side by side */
  unsigned joined_shift;
  /* A bit an id: merging the bytes of this token was seen to give it again.
   * Found out while texts are encoded, by any thread; never taken back. */
  atomic_uint *settled;
  uint32_t n_settled; /* all results of merges are below it */
} tnk__bpe_t;

void tnk__bpe_init(tnk__bpe_t *bpe, const tnk_allocator_t *alloc);
void tnk__bpe_deinit(tnk__bpe_t *bpe);
/* Add the merge of the next rank. A pair given twice has the later rank. */
int tnk__bpe_add(tnk__bpe_t *bpe, int32_t left, int32_t right, int32_t merged);
/* Add a merge whose rank is the id of its result, as tiktoken wants it; not to
 * be mixed with the other. All pairs that give one result have one rank. */
int tnk__bpe_add_ranked(tnk__bpe_t *bpe, int32_t left, int32_t right,
                        int32_t merged);
/* Make it ready, after the last merge and with byte_id filled. */
int tnk__bpe_finish(tnk__bpe_t *bpe);

uint32_t tnk__bpe_rank(const tnk__bpe_t *bpe, int32_t left, int32_t right);

/* Whether the bytes of a token are known to be merged into just that token; and
 * note that they are. */
static inline int tnk__bpe_is_settled(const tnk__bpe_t *bpe, int32_t id) {
  return (uint32_t)id < bpe->n_settled &&
         (atomic_load_explicit(&bpe->settled[(uint32_t)id / 32],
                               memory_order_relaxed) >>
              ((uint32_t)id % 32) &
          1u) != 0;
}
void tnk__bpe_settle(const tnk__bpe_t *bpe, int32_t id);

/* Memory for merging long pieces, reused from call to call. Its owner, who has
 * the allocator, frees it. */
typedef struct {
  const tnk_allocator_t *alloc;
  void *memory;
  size_t size;
} tnk__bpe_work_t;

/* Merge n bytes into ids; `out` has room for n. TNK_ENOMEM or the number of
 * ids. */
int64_t tnk__bpe_bytes(const tnk__bpe_t *bpe, tnk__bpe_work_t *work,
                       const uint8_t *bytes, size_t n, int32_t *out);
/* Merge the ids that are in `ids`, which are replaced. */
int64_t tnk__bpe_ids(const tnk__bpe_t *bpe, tnk__bpe_work_t *work, int32_t *ids,
                     size_t n);

#endif
