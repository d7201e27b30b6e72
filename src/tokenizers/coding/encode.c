/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "tokenizers/coding/encode.h"
#include "tokenizers/model/chars.h"
#include "tokenizers/model/fallback.h"
#include "tokenizers/unicode/unicode.h"

/* ---- Pieces ----
 *
 * Text without added tokens is cut into pieces, and each piece is merged by
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

  if (encoder->tok->by_chars)
    return tnk__bpe_ids(bpe, work, out,
                        tnk__fallback_ids(encoder->tok, p, n, out));
  /* Long text outside ASCII starts as characters. Its middle byte decides. */
  if (n >= 6 && p[n / 2] >= 0x80)
    return tnk__bpe_ids(bpe, work, out, tnk__chars_ids(bpe, p, n, out));
  return tnk__bpe_bytes(bpe, work, p, n, out);
}

/* Eight bytes as a number, the first one lowest. */
static inline uint64_t load8(const uint8_t *p) {
  return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
         (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 |
         (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

static inline void load_key(uint64_t key[2], const uint8_t *p, size_t n,
                            size_t readable) {
  if (readable >= 16) {
    key[0] = load8(p);
    key[1] = load8(p + 8);
    if (n < 8) {
      key[0] &= (UINT64_C(1) << (8 * n)) - 1;
      key[1] = 0;
    } else {
      key[1] &= (UINT64_C(1) << (8 * (n - 8))) - 1;
    }
  } else {
    uint8_t copy[16] = {0};

    memcpy(copy, p, n);
    key[0] = load8(copy);
    key[1] = load8(copy + 8);
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
  if (encoder->tok->by_chars)
    return cached(encoder, p, n, readable, 0, merge, out);
  if (is_dense(p, n)) {
    int32_t id;
    const uint8_t *stop = tnk__chars_segment(&encoder->tok->bpe, p, p + n, &id);

    if (stop < p + n)
      return segments(encoder, p, stop, p + n, p + readable, id, out);
  }
  return cached(encoder, p, n, readable, 0, whole, out);
}

/* Cut [p, end) into pieces and append their ids, without offsets. */
static int encode_pieces(tnk__encoder_t *encoder, const uint8_t *p,
                         const uint8_t *end) {
  const tnk__metaspace_t *meta = &encoder->tok->meta;
  tnk_tokens_t *tokens = encoder->tokens;
  tnk__splitter_t splitter;

  if (p == end)
    return TNK_OK;
  if (prepare_cache(encoder, (size_t)(end - p)) < 0)
    return TNK_ENOMEM;
  if (meta->splits)
    tnk__split_before(&splitter, meta->step.to, meta->step.n_to);
  else
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

/* ---- Texts ----
 *
 * The UTF-8 of a text is checked or repaired. The text is cut at the added
 * tokens of raw text, and each gap is normalized by itself. Each gap is cut at
 * the added tokens of normalized text. The rest is cut into pieces.
 */
#define ALL_FLAGS                                                              \
  (TNK_ENCODE_ADD_SPECIAL | TNK_ENCODE_SPLIT_SPECIAL | TNK_ENCODE_PLAIN |      \
   TNK_ENCODE_LOSSY | TNK_ENCODE_OFFSETS)
#define MAX_TEXT ((size_t)1 << 31)
#define MAX_SLICE 400000u
#define MAX_RUN 25000u

/* Map an offset in changed text to the original text. An offset inside a change
 * is mapped to one of its ends. */
static size_t map_back(const tnk__buf_t *changes, size_t at, int is_end) {
  const tnk__nfc_change_t *all = (const void *)changes->data;
  size_t low = 0, high = changes->len / sizeof(*all);

  while (low < high) { /* the last change that starts before `at` */
    size_t mid = (low + high) / 2;

    if (all[mid].to < at || (!is_end && all[mid].to == at))
      low = mid + 1;
    else
      high = mid;
  }
  if (low == 0)
    return at;
  all += low - 1;
  if (at < all->to + all->n_to || (is_end && at == all->to + all->n_to))
    return is_end ? all->from + all->n_from : all->from;
  return at - (all->to + all->n_to) + all->from + all->n_from;
}

/* A text that is being cut. */
typedef struct {
  tnk__encoder_t *encoder;
  size_t gap;   /* start of the gap in the repaired text */
  int mapped;   /* `changes` map the gap to the repaired text */
  size_t slice; /* start of the chunk that contains the gap */
} cut_t;

static size_t to_given(const cut_t *cut, size_t at, int is_end) {
  const tnk__scratch_t *scratch = &cut->encoder->tokens->scratch;

  for (unsigned i = cut->encoder->tok->normal.n; cut->mapped && i-- > 0;)
    at = map_back(&scratch->changes[i], at, is_end);
  at += cut->gap;
  if (scratch->cleaned.len > 0)
    at = map_back(&scratch->cleaned, at, is_end);
  return at + cut->encoder->place;
}

/* Append an id, with its offsets if they are requested. */
static int put_id(tnk__encoder_t *encoder, int32_t id, size_t start,
                  size_t end) {
  tnk_tokens_t *tokens = encoder->tokens;

  if (encoder->count_only) {
    encoder->count++;
    return TNK_OK;
  }
  if (tnk__tokens_reserve(tokens, 1) < 0)
    return TNK_ENOMEM;
  if (encoder->flags & TNK_ENCODE_OFFSETS) {
    if (tnk__tokens_reserve_spans(tokens, 1) < 0)
      return TNK_ENOMEM;
    tokens->spans[tokens->n_spans].start = start;
    tokens->spans[tokens->n_spans++].end = end;
  }
  tokens->ids[tokens->n++] = id;
  return TNK_OK;
}

/* Map an offset in what encode_rest() encodes, which starts at `from` in the
 * gap. */
static size_t rest_to_given(const cut_t *cut, size_t from, size_t at,
                            int is_end) {
  if (cut->encoder->tok->meta.is_on)
    at = map_back(&cut->encoder->tokens->scratch.meta_changes, at, is_end);
  return to_given(cut, from + at, is_end);
}

/* Append the offsets of the ids from index `first` on. Their bytes start at
 * `rest`, which is `from` in the gap. */
static int add_spans(const cut_t *cut, const uint8_t *rest, size_t first,
                     size_t from) {
  const tnk_tokenizer_t *tok = cut->encoder->tok;
  tnk_tokens_t *tokens = cut->encoder->tokens;
  size_t at = 0;

  if (tnk__tokens_reserve_spans(tokens, tokens->n - first) < 0)
    return TNK_ENOMEM;
  for (size_t i = first; i < tokens->n; i++) {
    tnk_token_span_t *span = &tokens->spans[tokens->n_spans++];
    size_t n;

    if (tok->by_chars)
      n = tnk__fallback_length(tok, tokens->ids[i], rest + at);
    else
      (void)tnk__vocab_bytes(&tok->vocab, (uint32_t)tokens->ids[i], &n);
    span->start = rest_to_given(cut, from, at, 0);
    at += n;
    span->end = rest_to_given(cut, from, at, 1);
  }
  return TNK_OK;
}

/* Encode a part of a gap that has no added tokens. */
static int encode_rest(const cut_t *cut, const uint8_t *gap, size_t from,
                       size_t to) {
  tnk__encoder_t *encoder = cut->encoder;
  tnk__scratch_t *scratch = &encoder->tokens->scratch;
  const tnk__metaspace_t *meta = &encoder->tok->meta;
  const uint8_t *rest = gap + from;
  size_t n = to - from, first = encoder->tokens->n;
  int with_spans = (encoder->flags & TNK_ENCODE_OFFSETS) != 0, err = TNK_OK;

  if (meta->is_on) {
    err = tnk__metaspace_run(
        meta, rest, n, encoder->place + cut->gap + from == 0, &scratch->meta,
        with_spans ? &scratch->meta_changes : NULL);
    rest = scratch->meta.data;
    n = scratch->meta.len;
  }
  if (err == TNK_OK)
    err = encode_pieces(encoder, rest, rest + n);
  if (err == TNK_OK && with_spans && !encoder->count_only)
    err = add_spans(cut, rest, first, from);
  return err;
}

static int search(const cut_t *cut, const tnk__added_t *added,
                  const uint8_t *text, size_t n,
                  int (*gap)(cut_t *cut, const uint8_t *text, size_t from,
                             size_t to),
                  cut_t *of_gap) {
  tnk__encoder_t *encoder = cut->encoder;
  tnk__added_search_t found = {.added = added, .text = text, .n = n};
  tnk__added_match_t match;
  size_t behind = 0;
  int err = TNK_OK;

  found.skip_special = (encoder->flags & TNK_ENCODE_SPLIT_SPECIAL) != 0;
  if (added->n == 0 || (encoder->flags & TNK_ENCODE_PLAIN))
    found.at = n;
  while (err == TNK_OK && tnk__added_next(&found, &match)) {
    if (behind < match.start)
      err = gap(of_gap, text, behind, match.start);
    if (err == TNK_OK)
      err = put_id(encoder, (int32_t)match.id, to_given(cut, match.start, 0),
                   to_given(cut, match.end, 1));
    behind = match.end;
  }
  if (err == TNK_OK && behind < n)
    err = gap(of_gap, text, behind, n);
  return err;
}

static int rest_gap(cut_t *cut, const uint8_t *text, size_t from, size_t to) {
  return encode_rest(cut, text, from, to);
}

/* Normalize a gap. Each step reads the buffer that the previous one wrote. */
static int normalize(cut_t *cut, const uint8_t **text, size_t *n) {
  const tnk__normal_t *normal = &cut->encoder->tok->normal;
  tnk__scratch_t *scratch = &cut->encoder->tokens->scratch;
  int with_changes = (cut->encoder->flags & TNK_ENCODE_OFFSETS) != 0, err;
  unsigned n_run = 0;

  cut->mapped = 0;
  for (unsigned i = 0; i < normal->n; i++) {
    tnk__buf_t *out = &scratch->normal[n_run % 2];

    tnk__buf_clear(&scratch->changes[i]);
    if (!tnk__step_changes(&normal->steps[i], *text, *n))
      continue;
    n_run++;
    tnk__buf_clear(out);
    err = tnk__step_run(&normal->steps[i], *text, *n, out, &scratch->cps,
                        with_changes ? &scratch->changes[i] : NULL);
    if (err < 0)
      return err;
    *text = out->data;
    *n = out->len;
  }
  cut->mapped = n_run > 0 && with_changes;
  return TNK_OK;
}

/* Encode a gap between the added tokens of raw text. */
static int raw_gap(cut_t *cut, const uint8_t *text, size_t from, size_t to) {
  size_t n = to - from;
  int err;

  text += from;
  cut->gap = cut->slice + from;
  err = normalize(cut, &text, &n);
  if (err < 0)
    return err;
  return search(cut, &cut->encoder->tok->normalized, text, n, rest_gap, cut);
}

/* Replace invalid UTF-8, and record where, so that offsets can be mapped
 * back. */
static int clean(tnk__encoder_t *encoder, const uint8_t *text, size_t n,
                 size_t good) {
  tnk__scratch_t *scratch = &encoder->tokens->scratch;

  tnk__buf_clear(&scratch->clean);
  while (n > 0) {
    tnk__nfc_change_t change;
    int cut;

    (void)tnk__buf_append(&scratch->clean, text, good);
    if (good == n)
      break;
    (void)tnk__utf8_check(text + good, n - good, &change.n_from, &cut);
    change.to = scratch->clean.len;
    change.n_to = 3;
    change.from = change.to;
    if (scratch->cleaned.len > 0) {
      const tnk__nfc_change_t *last =
          (const void *)(scratch->cleaned.data + scratch->cleaned.len);

      last--;
      change.from += last->from + last->n_from;
      change.from -= last->to + last->n_to;
    }
    (void)tnk__buf_append(&scratch->clean, "\xef\xbf\xbd", 3);
    (void)tnk__buf_append(&scratch->cleaned, &change, sizeof(change));
    text += good + change.n_from;
    n -= good + change.n_from;
    good = tnk__utf8_valid(text, n);
  }
  return scratch->clean.err != TNK_OK ? scratch->clean.err
                                      : scratch->cleaned.err;
}

static int put_around(tnk__encoder_t *encoder, const int32_t *ids, unsigned n,
                      size_t at) {
  int err = TNK_OK;

  if ((encoder->flags & TNK_ENCODE_ADD_SPECIAL) == 0)
    return TNK_OK;
  for (unsigned i = 0; i < n && err == TNK_OK; i++)
    err = put_id(encoder, ids[i], encoder->place + at, encoder->place + at);
  return err;
}

static int put_piece(void *user, int32_t id, size_t begin, size_t end) {
  const cut_t *cut = user;

  return put_id(cut->encoder, id, to_given(cut, begin, 0),
                to_given(cut, end, 1));
}

static int encode_slice(tnk__encoder_t *encoder, const uint8_t *text,
                        size_t from, size_t to) {
  cut_t raw = {encoder, from, 0, from}, gap = raw;

  return search(&raw, &encoder->tok->raw, text + from, to - from, raw_gap,
                &gap);
}

/* str.isspace() of Python: White_Space and four control characters. */
static int is_python_space(const uint8_t *p) {
  return (*p >= 0x1c && *p <= 0x1f) ||
         (tnk__char_class(tnk__utf8_get(p)) & TNK__C_SPACE) != 0;
}

/* End of the chunk that Kimi's wrapper encodes at a time. It cuts a text after
 * a number of characters, and inside long runs of white space or of other
 * characters. */
static size_t slice_end(const uint8_t *text, size_t n, size_t from,
                        size_t *n_chars) {
  size_t n_run = 0, at = from;
  int last = -1;

  while (at < n && *n_chars < MAX_SLICE) {
    int space = is_python_space(text + at);

    n_run = space == last ? n_run + 1 : 1;
    if (n_run > MAX_RUN)
      return at;
    last = space;
    at += tnk__utf8_length(text[at]);
    (*n_chars)++;
  }
  *n_chars = 0;
  return at;
}

static int encode_slices(tnk__encoder_t *encoder, const uint8_t *text,
                         size_t n) {
  size_t n_chars = 0;
  int err = TNK_OK;

  for (size_t at = 0; at < n && err == TNK_OK;) {
    size_t end = slice_end(text, n, at, &n_chars);

    err = encode_slice(encoder, text, at, end);
    at = end;
  }
  return err;
}

static int encode_text(tnk__encoder_t *encoder, const uint8_t *text, size_t n,
                       size_t n_given) {
  const tnk_tokenizer_t *tok = encoder->tok;
  cut_t whole = {encoder, 0, 0, 0};
  int err = put_around(encoder, tok->before, tok->n_before, 0);

  if (err == TNK_OK && tok->engine != NULL && tok->engine->encode != NULL)
    err = tok->engine->encode(tok, text, n,
                              (encoder->flags & TNK_ENCODE_OFFSETS) != 0,
                              put_piece, &whole);
  else if (err == TNK_OK && tok->long_cuts && n > MAX_RUN)
    err = encode_slices(encoder, text, n);
  else if (err == TNK_OK)
    err = encode_slice(encoder, text, 0, n);
  if (err == TNK_OK)
    err = put_around(encoder, tok->behind, tok->n_behind, n_given);
  return err;
}

int tnk__encode(tnk__encoder_t *encoder, const char *text, size_t n,
                tnk_tokenizer_error_t *error) {
  tnk__scratch_t *scratch = &encoder->tokens->scratch;
  const uint8_t *p = text == NULL ? (const uint8_t *)"" : (const void *)text;
  size_t n_given = n, good;
  int err = TNK_OK;

  if ((encoder->flags & ~(unsigned)ALL_FLAGS) != 0)
    return tnk__fault(error, TNK_EINVAL, 0, "unknown flag of encoding");
  if (text == NULL && n > 0)
    return tnk__fault(error, TNK_EINVAL, 0, "no text");
  if (n >= MAX_TEXT)
    return tnk__fault(error, TNK_ETOOBIG, 0, "the text is larger than 2 GiB");
  good = tnk__utf8_valid(p, n);
  tnk__buf_clear(&scratch->cleaned);
  if (good < n) {
    if ((encoder->flags & TNK_ENCODE_LOSSY) == 0)
      return tnk__fault(error, TNK_EINVAL, encoder->place + good,
                        "the text is not UTF-8 at byte %zu", good);
    err = clean(encoder, p, n, good);
    p = scratch->clean.data;
    n = scratch->clean.len;
  }
  if (err == TNK_OK)
    err = encode_text(encoder, p, n, n_given);
  if (err == TNK_OK)
    return TNK_OK;
  return err == TNK_ENOMEM
             ? tnk__fault_memory(error)
             : tnk__fault(error, err, 0, "the model failed on this text");
}

static int encode_or_restore(tnk__encoder_t *encoder, const char *text,
                             size_t n, size_t n_ids, size_t n_spans,
                             tnk_tokenizer_error_t *error) {
  int err = tnk__encode(encoder, text, n, error);

  if (err < 0) {
    encoder->tokens->n = n_ids;
    encoder->tokens->n_spans = n_spans;
  }
  return err;
}

int tnk_tokenizer_encode(const tnk_tokenizer_t *tok, tnk_tokens_t *tokens,
                         const char *text, size_t n, unsigned flags,
                         tnk_tokenizer_error_t *error) {
  tnk__encoder_t encoder = {tok, tokens, flags, 0, 0, 0};

  tnk__fault_clear(error);
  if (tok == NULL || tokens == NULL)
    return tnk__fault(error, TNK_EINVAL, 0, "no tokenizer or no list");
  return encode_or_restore(&encoder, text, n, tokens->n, tokens->n_spans,
                           error);
}

int tnk_tokenizer_encode_parts(const tnk_tokenizer_t *tok, tnk_tokens_t *tokens,
                               const tnk_tokenizer_part_t *parts,
                               size_t n_parts, tnk_tokenizer_error_t *error) {
  tnk__encoder_t encoder = {tok, tokens, 0, 0, 0, 0};
  size_t n_ids, n_spans;
  int err = TNK_OK;

  tnk__fault_clear(error);
  if (tok == NULL || tokens == NULL || (parts == NULL && n_parts > 0))
    return tnk__fault(error, TNK_EINVAL, 0, "no tokenizer, list or parts");
  n_ids = tokens->n;
  n_spans = tokens->n_spans;
  for (size_t i = 0; i < n_parts && err == TNK_OK; i++) {
    encoder.flags = parts[i].flags;
    if (parts[i].text != NULL) {
      err = encode_or_restore(&encoder, parts[i].text, parts[i].n, n_ids,
                              n_spans, error);
      encoder.place += parts[i].n;
    } else if (parts[i].id < 0) {
      err = tnk__fault(error, TNK_EINVAL, 0, "parts[%zu]: a negative id", i);
    } else if (put_id(&encoder, parts[i].id, encoder.place, encoder.place) <
               0) {
      err = tnk__fault_memory(error);
    }
  }
  if (err < 0) {
    tokens->n = n_ids;
    tokens->n_spans = n_spans;
  }
  return err;
}

int tnk_tokenizer_count(const tnk_tokenizer_t *tok, const char *text, size_t n,
                        unsigned flags, size_t *count,
                        tnk_tokenizer_error_t *error) {
  tnk__encoder_t encoder = {tok, NULL, flags, 1, 0, 0};
  tnk_tokens_t tokens;
  int err;

  tnk__fault_clear(error);
  if (count != NULL)
    *count = 0;
  if (tok == NULL || count == NULL)
    return tnk__fault(error, TNK_EINVAL, 0, "no tokenizer or no count");
  tnk__tokens_init(&tokens, &tok->alloc);
  encoder.tokens = &tokens;
  err = tnk__encode(&encoder, text, n, error);
  if (err == TNK_OK)
    *count = encoder.count;
  tnk__tokens_deinit(&tokens);
  return err;
}
