/* SPDX-License-Identifier: MIT */
#include "tokenizers/coding/encode.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tokenizers/model/chars.h"

/*
 * Text without added tokens. It is cut into pieces, and each piece is merged by
 * itself. Short pieces are cached.
 */

/* Texts shorter than this are encoded without a cache, which would not pay
 * off. */
#define CACHE_FROM 65536u

static int prepare_cache(tnk__encoder_t *encoder, size_t n) {
  tnk__scratch_t *scratch = &encoder->tokens->scratch;
  const size_t entries = (size_t)2 << TNK__CACHE_LOG2;

  if (scratch->cached != encoder->tok) {
    tnk_tokenizer_unref((tnk_tokenizer_t *)(uintptr_t)scratch->cached);
    scratch->cached =
        tnk_tokenizer_ref((tnk_tokenizer_t *)(uintptr_t)encoder->tok);
    scratch->n_seen = 0;
    tnk__free(&encoder->tokens->alloc, scratch->cache);
    scratch->cache = NULL;
  }
  if (scratch->cache == NULL) {
    scratch->n_seen += n;
    if (scratch->n_seen < CACHE_FROM)
      return TNK_OK;
    scratch->cache =
        tnk__calloc(&encoder->tokens->alloc, entries, sizeof(*scratch->cache));
    if (scratch->cache == NULL)
      return TNK_ENOMEM;
  }
  return TNK_OK;
}

/* Merge a piece or segment. `out` has room for n ids. Returns their number, or
 * TNK_ENOMEM. */
static int64_t merge(tnk__encoder_t *encoder, const uint8_t *p, size_t n,
                     int32_t *out) {
  const tnk__bpe_t *bpe = &encoder->tok->bpe;
  tnk__bpe_work_t *work = &encoder->tokens->scratch.work;

  /* Long text outside ASCII starts as characters. Its middle byte decides. */
  if (n >= 6 && p[n / 2] >= 0x80)
    return tnk__bpe_ids(bpe, work, out, tnk__chars_ids(bpe, p, n, out));
  return tnk__bpe_bytes(bpe, work, p, n, out);
}

static inline void load_key(uint64_t key[2], const uint8_t *p, size_t n,
                            size_t readable) {
  if (readable >= 16) {
    memcpy(key, p, 16);
    if (n < 8) {
      key[0] &= (UINT64_C(1) << (8 * n)) - 1;
      key[1] = 0;
    } else {
      key[1] &= (UINT64_C(1) << (8 * (n - 8))) - 1;
    }
  } else {
    key[0] = key[1] = 0;
    memcpy(key, p, n);
  }
  key[1] |= (uint64_t)n << 56;
}

/* The two entries that a key can be in. */
static inline tnk__cache_entry_t *cache_pair(tnk__cache_entry_t *cache,
                                             const uint64_t key[2]) {
  uint64_t h = (key[0] ^ key[1] * UINT64_C(0xff51afd7ed558ccd)) *
               UINT64_C(0x9e3779b97f4a7c15);

  h ^= h >> 32;
  h *= UINT64_C(0xd6e8feb86659fd93);
  return &cache[(size_t)(h >> (64 - TNK__CACHE_LOG2)) * 2];
}

static inline int has_key(const tnk__cache_entry_t *entry,
                          const uint64_t key[2]) {
  return entry->key[0] == key[0] && entry->key[1] == key[1];
}

#define ID_BITS 20
#define ID_MASK ((UINT64_C(1) << ID_BITS) - 1)
#define N_SHIFT 60

/* Unpack the ids of an entry; always writes three. */
static inline int64_t unpack(const tnk__cache_entry_t *entry, int32_t *out) {
  uint64_t word = entry->ids[0];
  unsigned n = (unsigned)(word >> N_SHIFT);

  out[0] = (int32_t)(word & ID_MASK);
  if (n > 1) {
    out[1] = (int32_t)(word >> ID_BITS & ID_MASK);
    if (n > 2)
      out[2] = (int32_t)(word >> 2 * ID_BITS & ID_MASK);
    word = entry->ids[1];
    for (unsigned i = 3; i < n; i++, word >>= ID_BITS)
      out[i] = (int32_t)(word & ID_MASK);
  }
  return n;
}

/* Store the ids in the first entry of the pair. The old first entry becomes the
 * second. */
static inline void keep(tnk__cache_entry_t *pair, const uint64_t key[2],
                        const int32_t *ids, int64_t n_ids) {
  uint64_t words[2] = {0, 0};

  if (n_ids <= 0 || n_ids > TNK__CACHE_IDS)
    return;
  for (int64_t i = 0; i < n_ids; i++)
    words[i / 3] |= (uint64_t)ids[i] << (i % 3 * ID_BITS);
  pair[1] = pair[0];
  memcpy(pair->key, key, sizeof(pair->key));
  pair->ids[0] = words[0] | (uint64_t)n_ids << N_SHIFT;
  pair->ids[1] = words[1];
}

/* Look up a key. Returns the number of its ids, or 0 if it is not cached. */
static inline int64_t recall(tnk__cache_entry_t *pair, const uint64_t key[2],
                             int32_t *out) {
  tnk__cache_entry_t second;

  if (has_key(&pair[0], key))
    return unpack(&pair[0], out);
  if (!has_key(&pair[1], key))
    return 0;
  second = pair[1];
  pair[1] = pair[0];
  pair[0] = second;
  return unpack(&second, out);
}

typedef int64_t (*make_fn)(tnk__encoder_t *encoder, const uint8_t *p, size_t n,
                           int32_t *out);

/* Return the cached ids of these bytes, or call `make`. `mark` is part of the
 * key: pieces and segments with the same bytes may have different ids. */
static inline int64_t cached(tnk__encoder_t *encoder, const uint8_t *p,
                             size_t n, size_t readable, uint64_t mark,
                             make_fn make, int32_t *out) {
  tnk__cache_entry_t *cache = encoder->tokens->scratch.cache, *pair;
  uint64_t key[2];
  int64_t n_ids;

  if (n > TNK__CACHE_BYTES || cache == NULL)
    return make(encoder, p, n, out);
  load_key(key, p, n, readable);
  key[1] |= mark;
  pair = cache_pair(cache, key);
  n_ids = recall(pair, key, out);
  if (n_ids == 0) {
    n_ids = make(encoder, p, n, out);
    keep(pair, key, out, n_ids);
  }
  return n_ids;
}

/* Encode a segment of a piece. If whole pieces are looked up first, a piece
 * with the same bytes may have other ids. */
static int64_t segment(tnk__encoder_t *encoder, const uint8_t *p, size_t n,
                       size_t readable, int32_t *out) {
  uint64_t mark = encoder->tok->ignore_merges ? UINT64_C(1) << 63 : 0;

  return cached(encoder, p, n, readable, mark, merge, out);
}

/* Encode a piece that starts with the segment [p, stop), whose `id` is
 * known. */
static int64_t segments(tnk__encoder_t *encoder, const uint8_t *p,
                        const uint8_t *stop, const uint8_t *end,
                        const uint8_t *readable, int32_t id, int32_t *out) {
  int64_t n_out = 0;

  for (;;) {
    int64_t n_ids = 1;

    if (id >= 0)
      out[n_out] = id;
    else
      n_ids = segment(encoder, p, (size_t)(stop - p), (size_t)(readable - p),
                      out + n_out);
    if (n_ids < 0)
      return n_ids;
    n_out += n_ids;
    p = stop;
    if (p == end)
      return n_out;
    stop = tnk__chars_segment(&encoder->tok->bpe, p, end, &id);
  }
}

/* Encode a whole piece. Most pieces are one token, which is looked up. Without
 * `ignore_merges` this is done only for tokens whose bytes are known to merge
 * to themselves. */
static int64_t whole(tnk__encoder_t *encoder, const uint8_t *p, size_t n,
                     int32_t *out) {
  const tnk_tokenizer_t *tok = encoder->tok;
  const int32_t id = tnk__vocab_find(&tok->vocab, p, n, 0);
  int64_t n_ids;

  if (id >= 0 && (tok->ignore_merges || tnk__bpe_is_settled(&tok->bpe, id))) {
    out[0] = id;
    return 1;
  }
  n_ids = merge(encoder, p, n, out);
  if (n_ids == 1 && out[0] == id)
    tnk__bpe_settle(&tok->bpe, id);
  return n_ids;
}

/* Scripts without spaces, in which a word has few characters of three bytes.
 * There it pays off to look for segments first. */
static inline int is_dense(const uint8_t *p, size_t n) {
  return n >= 6 && (p[0] >= 0xe3 || p[1] >= 0xe3);
}

/* Encode one piece. */
static int64_t piece(tnk__encoder_t *encoder, const uint8_t *p, size_t n,
                     size_t readable, int32_t *out) {
  if (is_dense(p, n)) {
    int32_t id;
    const uint8_t *stop = tnk__chars_segment(&encoder->tok->bpe, p, p + n, &id);

    if (stop < p + n)
      return segments(encoder, p, stop, p + n, p + readable, id, out);
  }
  return cached(encoder, p, n, readable, 0, whole, out);
}

int tnk__encode_pieces(tnk__encoder_t *encoder, const uint8_t *p,
                       const uint8_t *end) {
  tnk_tokens_t *tokens = encoder->tokens;
  tnk__splitter_t splitter;

  if (p == end)
    return TNK_OK;
  if (prepare_cache(encoder, (size_t)(end - p)) < 0)
    return TNK_ENOMEM;
  tnk__split_init(&splitter, encoder->tok->shape);
  while (p < end) {
    const uint8_t *next = splitter.next(&splitter, p, end);
    size_t n = (size_t)(next - p);
    int64_t n_ids;

    if (tnk__tokens_reserve(tokens, n < 4 ? 4 : n) < 0)
      return TNK_ENOMEM;
    n_ids = piece(encoder, p, n, (size_t)(end - p), tokens->ids + tokens->n);
    if (n_ids < 0)
      return (int)n_ids;
    if (encoder->count_only)
      encoder->count += (size_t)n_ids;
    else
      tokens->n += (size_t)n_ids;
    p = next;
  }
  return TNK_OK;
}
