#include "tokenizers/chars.h"

#include <string.h>

#include "tnk/error.h"
#include "base/alloc.h"
#include "tokenizers/unicode.h"

/*
 * Which characters can be merged ahead. Their bytes are merged step by step,
 * as they would be alone. A step may be taken ahead when no pair that reaches
 * over the character's first or last symbol has a rank that is not higher:
 * then no such pair is ever merged before the step, whatever stands beside.
 * What stands beside is known to be outside ASCII, so that pairs with ASCII
 * neighbours do not count.
 */
typedef struct {
  const tnk__bpe_t *bpe;
  uint8_t *ends;    /* id -> what its bytes begin and end with */
  uint32_t *before; /* id -> lowest rank of a pair (end of a character, id) */
  uint32_t *behind; /* id -> lowest rank of a pair (id, lead byte) */
} lowest_t;

#define BEGINS_WITH_LEAD 1u
#define ENDS_WITH_TAIL 2u

static void note_ends(lowest_t *lowest, const tnk__vocab_t *vocab) {
  for (uint32_t id = 0; id < vocab->n; id++) {
    size_t n;
    const uint8_t *bytes = tnk__vocab_bytes(vocab, id, &n);

    lowest->ends[id] = 0;
    if (n > 0 && bytes[0] >= 0xc2)
      lowest->ends[id] |= BEGINS_WITH_LEAD;
    if (n > 0 && (bytes[n - 1] & 0xc0) == 0x80)
      lowest->ends[id] |= ENDS_WITH_TAIL;
  }
}

static int gather(lowest_t *lowest, const tnk__vocab_t *vocab) {
  const tnk__bpe_t *bpe = lowest->bpe;
  size_t size = vocab->n * sizeof(uint32_t);

  lowest->ends = tnk__malloc(bpe->alloc, vocab->n);
  lowest->before = tnk__malloc(bpe->alloc, size);
  lowest->behind = tnk__malloc(bpe->alloc, size);
  if (lowest->ends == NULL || lowest->before == NULL || lowest->behind == NULL)
    return TNK_ENOMEM;
  note_ends(lowest, vocab);
  memset(lowest->before, 0xff, size);
  memset(lowest->behind, 0xff, size);
  for (size_t i = 0; i < bpe->n_slots; i++) {
    uint32_t left = (uint32_t)(bpe->table[i] >> 44);
    uint32_t right = (uint32_t)(bpe->table[i] >> 24) & 0xfffff;
    uint32_t rank = (uint32_t)bpe->table[i] & 0xffffff;

    if (bpe->table[i] == UINT64_MAX)
      continue;
    if ((lowest->ends[left] & ENDS_WITH_TAIL) && rank < lowest->before[right])
      lowest->before[right] = rank;
    if ((lowest->ends[right] & BEGINS_WITH_LEAD) && rank < lowest->behind[left])
      lowest->behind[left] = rank;
  }
  return TNK_OK;
}

/* The id of a character of n bytes that can be merged ahead, or -1. */
static int32_t merge_ahead(const lowest_t *lowest, const uint8_t *bytes,
                           size_t n) {
  const tnk__bpe_t *bpe = lowest->bpe;
  int32_t ids[4];

  for (size_t i = 0; i < n; i++)
    ids[i] = bpe->byte_id[bytes[i]];
  while (n > 1) {
    uint32_t best = TNK__NO_RANK;
    size_t at = 0;

    for (size_t i = 0; i + 1 < n; i++) {
      uint32_t rank = tnk__bpe_rank(bpe, ids[i], ids[i + 1]);

      if (rank < best) {
        best = rank;
        at = i;
      }
    }
    if (best == TNK__NO_RANK || lowest->before[ids[0]] <= best ||
        lowest->behind[ids[n - 1]] <= best)
      return -1;
    ids[at] = bpe->merged[best];
    n--;
    for (size_t i = at + 1; i < n; i++)
      ids[i] = ids[i + 1];
  }
  return ids[0];
}

int tnk__chars_prepare(tnk__bpe_t *bpe, const tnk__vocab_t *vocab) {
  lowest_t lowest = {bpe, NULL, NULL, NULL};
  int err = gather(&lowest, vocab);

  if (err == TNK_OK) {
    bpe->char_id = tnk__calloc(bpe->alloc, TNK__CHARS, sizeof(int32_t));
    err = bpe->char_id == NULL ? TNK_ENOMEM : TNK_OK;
  }
  for (uint32_t cp = 0x80; cp < TNK__CHARS && err == TNK_OK; cp++) {
    uint8_t bytes[4];

    if (cp < 0xd800 || cp > 0xdfff)
      bpe->char_id[cp] =
          merge_ahead(&lowest, bytes, tnk__utf8_put(bytes, cp)) + 1;
  }
  tnk__free(bpe->alloc, lowest.ends);
  tnk__free(bpe->alloc, lowest.before);
  tnk__free(bpe->alloc, lowest.behind);
  return err;
}

size_t tnk__chars_ids(const tnk__bpe_t *bpe, const uint8_t *bytes, size_t n,
                      int32_t *out) {
  size_t n_out = 0;

  for (size_t i = 0; i < n;) {
    size_t length = tnk__utf8_length(bytes[i]);
    uint32_t cp = length == 1 ? 0 : tnk__utf8_get(bytes + i);
    int32_t id = 0;

    if (length > 1 && cp < TNK__CHARS && (i == 0 || bytes[i - 1] >= 0x80) &&
        (i + length == n || bytes[i + length] >= 0x80))
      id = bpe->char_id[cp];
    if (id > 0) {
      out[n_out++] = id - 1;
      i += length;
      continue;
    }
    for (size_t end = i + length; i < end; i++)
      out[n_out++] = bpe->byte_id[bytes[i]];
  }
  return n_out;
}
