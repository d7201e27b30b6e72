#include "tokenizers/encode.h"

#include <string.h>

#include "base/alloc.h"
#include "tokenizers/chars.h"

/*
 * Text without added tokens: it is cut into pieces, and each is merged by
 * itself. A short piece is looked up among those that came before.
 */

/* Text below this is encoded without a cache: it would not pay. */
#define CACHE_FROM 4096u

static int prepare_cache(tnk__encoder_t *encoder, size_t n) {
  tnk__scratch_t *scratch = &encoder->tokens->scratch;
  const size_t entries = (size_t)1 << TNK__CACHE_LOG2;

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

/* Ids of one piece at `out`, which has room for n; their number, or
 * TNK_ENOMEM. */
static int64_t merge(tnk__encoder_t *encoder, const uint8_t *p, size_t n,
                     int32_t *out) {
  const tnk_tokenizer_t *tok = encoder->tok;

  if (tok->ignore_merges) {
    int32_t id = tnk__vocab_find(&tok->vocab, p, n, 0);

    if (id >= 0) {
      out[0] = id;
      return 1;
    }
  }
  /* Long text outside ASCII begins as characters: look at its middle. */
  if (n >= 6 && p[n / 2] >= 0x80)
    return tnk__bpe_ids(&tok->bpe, &encoder->tokens->scratch.work, out,
                        tnk__chars_ids(&tok->bpe, p, n, out));
  return tnk__bpe_bytes(&tok->bpe, &encoder->tokens->scratch.work, p, n, out);
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

static inline tnk__cache_entry_t *cache_entry(tnk__cache_entry_t *cache,
                                              const uint64_t key[2]) {
  uint64_t h = (key[0] ^ key[1] * UINT64_C(0xff51afd7ed558ccd)) *
               UINT64_C(0x9e3779b97f4a7c15);

  h ^= h >> 32;
  h *= UINT64_C(0xd6e8feb86659fd93);
  return &cache[h >> (64 - TNK__CACHE_LOG2)];
}

/* The same through the cache. */
static int64_t look_up(tnk__encoder_t *encoder, const uint8_t *p, size_t n,
                       size_t readable, int32_t *out) {
  tnk__cache_entry_t *entry;
  uint64_t key[2];
  int64_t n_ids;

  load_key(key, p, n, readable);
  entry = cache_entry(encoder->tokens->scratch.cache, key);
  if (entry->key[0] == key[0] && entry->key[1] == key[1]) {
    for (size_t i = 0; i < entry->n; i++)
      out[i] = entry->ids[i];
    return entry->n;
  }
  n_ids = merge(encoder, p, n, out);
  if (n_ids > 0 && n_ids <= TNK__CACHE_IDS) {
    memcpy(entry->key, key, sizeof(key));
    memcpy(entry->ids, out, (size_t)n_ids * sizeof(*out));
    entry->n = (uint32_t)n_ids;
  }
  return n_ids;
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
    n_ids =
        n <= TNK__CACHE_BYTES && tokens->scratch.cache != NULL
            ? look_up(encoder, p, n, (size_t)(end - p), tokens->ids + tokens->n)
            : merge(encoder, p, n, tokens->ids + tokens->n);
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
