/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/chars.h"

#include <string.h>

#include "tnk/error.h"
#include "lib/base/alloc.h"
#include "tokenizers/unicode/unicode.h"

/* Properties of a character below U+10000. The low bits are the id + 1 of the
 * token that its bytes merge to on their own, or 0. The high bits are flags. */
#define CHAR_ID ((UINT32_C(1) << 21) - 1)
#define CHAR_AHEAD (UINT32_C(1) << 21) /* its bytes can be merged ahead */
#define CHAR_TAIL (UINT32_C(1) << 22)  /* a token may start with its tail */
#define CHAR_HEAD (UINT32_C(1) << 23)  /* a token may end with its head */

/*
 * Characters whose bytes can be merged in advance. The bytes are merged step by
 * step, as they would be on their own. Consider all pairs that cross the start
 * or the end of the character. If each of them has a higher rank than a step,
 * none of them is ever merged before that step. The step can then be done in
 * advance, whatever the neighbors are. The neighbors are known to be outside
 * ASCII, so pairs with ASCII do not count.
 */
typedef struct {
  const tnk__bpe_t *bpe;
  uint8_t *ends;    /* id -> flags of its first and last byte */
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

/* Merge a character of n bytes. Returns its id + 1, and CHAR_AHEAD if
 * possible. */
static uint32_t merge_alone(const lowest_t *lowest, const uint8_t *bytes,
                            size_t n) {
  const tnk__bpe_t *bpe = lowest->bpe;
  uint32_t ahead = CHAR_AHEAD;
  int32_t ids[4] = {0};

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
    if (best == TNK__NO_RANK)
      return 0;
    if (lowest->before[ids[0]] <= best || lowest->behind[ids[n - 1]] <= best)
      ahead = 0;
    ids[at] = bpe->merged[best];
    n--;
    for (size_t i = at + 1; i < n; i++)
      ids[i] = ids[i + 1];
  }
  return (uint32_t)(ids[0] + 1) | ahead;
}

static int prepare_ids(tnk__bpe_t *bpe, const tnk__vocab_t *vocab) {
  lowest_t lowest = {bpe, NULL, NULL, NULL};
  int err = gather(&lowest, vocab);

  if (err == TNK_OK) {
    bpe->chars = tnk__calloc(bpe->alloc, TNK__CHARS, sizeof(uint32_t));
    err = bpe->chars == NULL ? TNK_ENOMEM : TNK_OK;
  }
  for (uint32_t cp = 0x80; cp < TNK__CHARS && err == TNK_OK; cp++) {
    uint8_t bytes[4];

    if (cp < 0xd800 || cp > 0xdfff)
      bpe->chars[cp] = merge_alone(&lowest, bytes, tnk__utf8_put(bytes, cp));
  }
  tnk__free(bpe->alloc, lowest.ends);
  tnk__free(bpe->alloc, lowest.before);
  tnk__free(bpe->alloc, lowest.behind);
  return err;
}

/*
 * Positions where a piece can be cut: between two characters that no token
 * spans. The first merge across the position would create a token that spans
 * it. Without such a merge the two sides are independent.
 *
 * At a position that it spans, a token has something on both sides. On the
 * right there is a whole character or, at the token's end, the head of one. On
 * the left there is a whole character or, at the token's start, the tail of
 * one. `joined` has a bit for each such pair. Few tokens have heads and tails,
 * so the characters that could have them are marked. This applies to characters
 * from U+0080 to U+FFFF only.
 */
typedef struct {
  tnk__bpe_t *bpe;
  uint8_t *tails; /* one bit for each tail of one or two bytes */
  uint8_t *heads;
  size_t n;
} marks_t;

/* Code of a head or tail of n bytes, 1 or 2. It is larger than any character
 * here. */
static inline uint32_t part_of(const uint8_t *p, size_t n) {
  return 0x10000u | (n == 1 ? p[0] : (uint32_t)p[0] << 8 | p[1]);
}

static inline uint64_t joined_bit(const tnk__bpe_t *bpe, uint32_t left,
                                  uint32_t right) {
  return ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15) >>
         bpe->joined_shift;
}

static inline int is_joined(const tnk__bpe_t *bpe, uint32_t left,
                            uint32_t right) {
  uint64_t bit = joined_bit(bpe, left, right);

  return (bpe->joined[bit >> 5] >> (bit & 31) & 1) != 0;
}

/* The left side of a position inside a token: a character, a tail, or 0 for
 * anything else. */
static uint32_t left_of(const uint8_t *bytes, size_t at) {
  size_t start = at - 1;

  while (start > 0 && at - start < 3 && (bytes[start] & 0xc0) == 0x80)
    start--;
  if ((bytes[start] & 0xc0) == 0x80)
    return start == 0 && at <= 2 ? part_of(bytes, at) : 0;
  return bytes[start] < 0xc2 || tnk__utf8_length(bytes[start]) != at - start
             ? 0
             : tnk__utf8_get(bytes + start);
}

/* The right side of a position, from which n bytes of the token are left. */
static uint32_t right_of(const uint8_t *p, size_t n) {
  size_t length = tnk__utf8_length(*p);

  if (*p < 0xc2 || length == 4)
    return 0;
  return length > n ? part_of(p, n) : tnk__utf8_get(p);
}

static inline void set_part(uint8_t *bits, uint32_t part) {
  bits[(part & 0xffff) >> 3] |= (uint8_t)(1u << (part & 7));
}

static inline int has_part(const uint8_t *bits, const uint8_t *p, size_t n) {
  uint32_t part = part_of(p, n);

  return (bits[(part & 0xffff) >> 3] >> (part & 7) & 1) != 0;
}

/* Mark each position in a token. Without `tails`, only count them. */
static void mark_token(marks_t *marks, const uint8_t *bytes, size_t n) {
  for (size_t at = 1; at < n; at++) {
    uint32_t left, right;
    uint64_t bit;

    if (bytes[at] < 0xc2 || bytes[at - 1] < 0x80)
      continue;
    left = left_of(bytes, at);
    right = right_of(bytes + at, n - at);
    if (left == 0 || right == 0)
      continue;
    marks->n++;
    if (marks->tails == NULL)
      continue;
    if (left >= 0x10000)
      set_part(marks->tails, left);
    if (right >= 0x10000)
      set_part(marks->heads, right);
    bit = joined_bit(marks->bpe, left, right);
    marks->bpe->joined[bit >> 5] |= 1u << (bit & 31);
  }
}

static void mark_tokens(marks_t *marks, const tnk__vocab_t *vocab) {
  for (uint32_t id = 0; id < vocab->n; id++) {
    size_t n;
    const uint8_t *bytes = tnk__vocab_bytes(vocab, id, &n);

    if ((vocab->tokens[id].packed & TNK__TOKEN_LITERAL) == 0)
      mark_token(marks, bytes, n);
  }
}

static void mark_chars(const marks_t *marks) {
  for (uint32_t cp = 0x80; cp < TNK__CHARS; cp++) {
    uint8_t bytes[4];
    size_t length = tnk__utf8_put(bytes, cp);

    for (size_t i = 1; i < length; i++) {
      if (has_part(marks->tails, bytes + i, length - i))
        marks->bpe->chars[cp] |= CHAR_TAIL;
      if (has_part(marks->heads, bytes, i))
        marks->bpe->chars[cp] |= CHAR_HEAD;
    }
  }
}

/* At most one bit in 16 is set. A false positive only makes a segment
 * longer. */
static int prepare_joined(tnk__bpe_t *bpe, const tnk__vocab_t *vocab) {
  marks_t marks = {bpe, NULL, NULL, 0};
  unsigned log2 = 10;

  mark_tokens(&marks, vocab);
  while (log2 < 22 && (uint64_t)1 << log2 < (uint64_t)marks.n * 16)
    log2++;
  bpe->joined_shift = 64 - log2;
  bpe->joined = tnk__calloc(bpe->alloc, (size_t)1 << (log2 - 5), 4);
  marks.tails = tnk__calloc(bpe->alloc, 2, 0x10000 / 8);
  if (bpe->joined == NULL || marks.tails == NULL) {
    tnk__free(bpe->alloc, marks.tails);
    return TNK_ENOMEM;
  }
  marks.heads = marks.tails + 0x10000 / 8;
  mark_tokens(&marks, vocab);
  mark_chars(&marks);
  tnk__free(bpe->alloc, marks.tails);
  return TNK_OK;
}

int tnk__chars_prepare(tnk__bpe_t *bpe, const tnk__vocab_t *vocab) {
  int err = prepare_ids(bpe, vocab);

  return err < 0 ? err : prepare_joined(bpe, vocab);
}

/* A character of a piece. */
typedef struct {
  uint32_t cp;
  uint32_t known;
  size_t length;
} char_t;

static inline char_t char_at(const tnk__bpe_t *bpe, const uint8_t *p) {
  char_t c;

  c.cp = tnk__utf8_get(p);
  c.known = c.cp - 0x80 < TNK__CHARS - 0x80 ? bpe->chars[c.cp] : 0;
  c.length = tnk__utf8_length(*p);
  return c;
}

/* As is_joined(), but also for the heads and tails of both characters. The
 * right one is at p. */
static int parts_joined(const tnk__bpe_t *bpe, const uint8_t *p,
                        const char_t *left, const char_t *right) {
  size_t n_left = left->known & CHAR_TAIL ? left->length : 1;
  size_t n_right = right->known & CHAR_HEAD ? right->length : 1;

  for (size_t i = 0; i < n_left; i++)
    for (size_t j = 0; j < n_right; j++)
      if (is_joined(bpe, i == 0 ? left->cp : part_of(p - i, i),
                    j == 0 ? right->cp : part_of(p, j)))
        return 1;
  return 0;
}

static inline int can_cut(const tnk__bpe_t *bpe, const uint8_t *p,
                          const char_t *left, const char_t *right) {
  if (left->cp < 0x80 || right->cp < 0x80 || left->cp >= TNK__CHARS ||
      right->cp >= TNK__CHARS || is_joined(bpe, left->cp, right->cp))
    return 0;
  return ((left->known & CHAR_TAIL) | (right->known & CHAR_HEAD)) == 0 ||
         !parts_joined(bpe, p, left, right);
}

const uint8_t *tnk__chars_segment(const tnk__bpe_t *bpe, const uint8_t *p,
                                  const uint8_t *end, int32_t *id) {
  char_t left = char_at(bpe, p);

  *id = (int32_t)(left.known & CHAR_ID) - 1;
  for (p += left.length; p < end; p += left.length) {
    char_t right = char_at(bpe, p);

    if (can_cut(bpe, p, &left, &right))
      break;
    left = right;
    *id = -1;
  }
  return p;
}

/* Returns whether the character at p can be merged in advance here. */
static inline int is_ahead(const char_t *c, const uint8_t *p,
                           const uint8_t *start, const uint8_t *end) {
  return (c->known & CHAR_AHEAD) != 0 && (p == start || p[-1] >= 0x80) &&
         (p + c->length == end || p[c->length] >= 0x80);
}

size_t tnk__chars_ids(const tnk__bpe_t *bpe, const uint8_t *bytes, size_t n,
                      int32_t *out) {
  const uint8_t *p = bytes, *end = bytes + n;
  size_t n_out = 0;

  while (p < end) {
    char_t c = char_at(bpe, p);

    if (is_ahead(&c, p, bytes, end)) {
      out[n_out++] = (int32_t)(c.known & CHAR_ID) - 1;
      p += c.length;
      continue;
    }
    for (; c.length > 0; c.length--)
      out[n_out++] = bpe->byte_id[*p++];
  }
  return n_out;
}
