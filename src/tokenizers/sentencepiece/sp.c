/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tokenizers/sentencepiece/shim.h"
#include "tokenizers/sentencepiece/sp.h"
#include "tokenizers/unicode/unicode.h"

/* The table of functions to which a model points first. */
static const tnk__sp_calls_t *calls_of(const tnk__sp_t *sp) {
  return *(const tnk__sp_calls_t *const *)(const void *)sp;
}

#define BLANK "\xe2\x96\x81" /* U+2581, which represents a space */

static int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* "<0x41>": returns the byte, or -1. */
static int byte_of(const char *piece, size_t n) {
  int high, low;

  if (n != 6 || memcmp(piece, "<0x", 3) != 0)
    return -1;
  high = hex_digit(piece[3]);
  low = hex_digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Convert a piece to bytes: U+2581 becomes a space. */
static size_t piece_bytes(const char *piece, size_t n, tnk__sp_kind_t kind,
                          uint8_t *out) {
  size_t n_out = 0;

  if (kind == TNK__SP_BYTE && byte_of(piece, n) >= 0) {
    out[0] = (uint8_t)byte_of(piece, n);
    return 1;
  }
  for (size_t i = 0; i < n;) {
    if (kind == TNK__SP_NORMAL && n - i >= 3 &&
        memcmp(piece + i, BLANK, 3) == 0) {
      out[n_out++] = ' ';
      i += 3;
    } else {
      out[n_out++] = (uint8_t)piece[i++];
    }
  }
  return n_out;
}

static int put_piece(tnk_tokenizer_t *tok, int32_t id) {
  tnk__sp_kind_t kind;
  size_t n;
  const char *piece = calls_of(tok->sp)->piece(tok->sp, id, &n, &kind);
  unsigned flags = kind == TNK__SP_CONTROL
                       ? TNK__TOKEN_SPECIAL | TNK__TOKEN_LITERAL
                   : kind == TNK__SP_NORMAL ? 0
                                            : TNK__TOKEN_LITERAL;
  uint8_t *room;

  if (piece == NULL)
    return TNK_EINTERNAL;
  room = tnk__vocab_reserve(&tok->vocab, n + 1);
  if (room == NULL)
    return TNK_ENOMEM;
  n = piece_bytes(piece, n, kind, room);
  /* Two pieces may have the same bytes. A lookup finds the first one. */
  return tnk__vocab_put(&tok->vocab, (uint32_t)id, n, flags,
                        tnk__vocab_find(&tok->vocab, room, n, flags) < 0);
}

/* Find a piece without a leading space. Decoding it before other pieces makes
 * them continue a text, instead of starting one. */
static int32_t find_anchor(const tnk_tokenizer_t *tok) {
  for (int32_t id = 0; id < calls_of(tok->sp)->size(tok->sp); id++) {
    tnk__sp_kind_t kind;
    size_t n;
    const char *piece = calls_of(tok->sp)->piece(tok->sp, id, &n, &kind);

    if (piece != NULL && kind == TNK__SP_NORMAL && n > 0 &&
        memchr(piece, '\xe2', n) == NULL)
      return id;
  }
  return -1;
}

static int encode(const tnk_tokenizer_t *tok, const uint8_t *text, size_t n,
                  int with_places,
                  int (*put)(void *user, int32_t id, size_t begin, size_t end),
                  void *user) {
  return calls_of(tok->sp)->encode(tok->sp, (const char *)text, n, with_places,
                                   put, user);
}

static int put_text(void *user, const char *text, size_t n) {
  return tnk__buf_append(user, text, n);
}

/* Append the ids to `known`, without unknown ids and skipped special tokens. */
static int filter(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                  unsigned flags, tnk__buf_t *known) {
  for (size_t i = 0; i < n; i++) {
    if (!tnk__vocab_has(&tok->vocab, ids[i]) ||
        ((flags & TNK_DECODE_SKIP_SPECIAL) &&
         (tok->vocab.tokens[ids[i]].packed & TNK__TOKEN_SPECIAL)))
      continue;
    (void)tnk__buf_append(known, &ids[i], sizeof(*ids));
  }
  return known->err;
}

static int decode(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                  unsigned flags, tnk__buf_t *out) {
  tnk__buf_t known;
  int err;

  tnk__buf_init(&known, &tok->alloc, SIZE_MAX / 2);
  err = filter(tok, ids, n, flags, &known);
  if (err == TNK_OK)
    err = calls_of(tok->sp)->decode(tok->sp,
                                    (const int32_t *)(const void *)known.data,
                                    known.len / sizeof(*ids), put_text, out);
  tnk__buf_deinit(&known);
  return err;
}

/* The number of trailing ids that are bytes of an incomplete character. */
static size_t held_back(const tnk_tokenizer_t *tok, const int32_t *ids,
                        size_t n) {
  for (size_t k = n < 3 ? n : 3; k > 0; k--) {
    uint8_t bytes[3];
    size_t i, bad;
    int cut;

    for (i = 0; i < k; i++) {
      tnk__sp_kind_t kind;
      size_t n_piece;
      const char *piece =
          calls_of(tok->sp)->piece(tok->sp, ids[n - k + i], &n_piece, &kind);

      if (piece == NULL || kind != TNK__SP_BYTE)
        break;
      bytes[i] = (uint8_t)byte_of(piece, n_piece);
    }
    if (i == k && tnk__utf8_check(bytes, k, &bad, &cut) == 0 && cut)
      return k;
  }
  return 0;
}

/* Decode with the anchor in front, and remove its text. */
static int decode_further(const tnk_tokenizer_t *tok, const tnk__buf_t *all,
                          size_t n, tnk__buf_t *out) {
  tnk__buf_t text;
  size_t n_anchor;
  int err;

  (void)tnk__vocab_bytes(&tok->vocab, (uint32_t)tok->anchor, &n_anchor);
  tnk__buf_init(&text, &tok->alloc, SIZE_MAX / 2);
  err = calls_of(tok->sp)->decode(tok->sp,
                                  (const int32_t *)(const void *)all->data,
                                  n + 1, put_text, &text);
  if (err == TNK_OK && text.len >= n_anchor)
    err = tnk__buf_append(out, text.data + n_anchor, text.len - n_anchor);
  tnk__buf_deinit(&text);
  return err;
}

static int push(const tnk_tokenizer_t *tok, tnk__engine_stream_t *stream,
                const int32_t *ids, size_t n, unsigned flags, int at_end,
                tnk__buf_t *out) {
  tnk__buf_t all; /* the anchor, pending ids, new ids */
  const int32_t *known;
  size_t n_known, n_held, before = out->len;
  int err;

  tnk__buf_init(&all, &tok->alloc, SIZE_MAX / 2);
  (void)tnk__buf_append(&all, &tok->anchor, sizeof(tok->anchor));
  (void)tnk__buf_append(&all, stream->pending.data, stream->pending.len);
  err = filter(tok, ids, n, flags, &all);
  known = (const int32_t *)(const void *)all.data + 1;
  n_known = err < 0 ? 0 : all.len / sizeof(*ids) - 1;
  n_held = at_end ? 0 : held_back(tok, known, n_known);
  if (err == TNK_OK && tnk__buf_reserve(&stream->pending, all.len) == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_OK)
    err = stream->begun && tok->anchor >= 0
              ? decode_further(tok, &all, n_known - n_held, out)
              : calls_of(tok->sp)->decode(tok->sp, known, n_known - n_held,
                                          put_text, out);
  if (err == TNK_OK) {
    /* Until there is some text, decode everything again each time. */
    if (out->len == before && !stream->begun)
      n_held = n_known;
    stream->begun = !at_end && (stream->begun || out->len > before);
    tnk__buf_clear(&stream->pending);
    if (!at_end)
      (void)tnk__buf_append(&stream->pending, known + n_known - n_held,
                            n_held * sizeof(*ids));
  }
  stream->pending.err = TNK_OK;
  tnk__buf_deinit(&all);
  return err;
}

static void unload(tnk_tokenizer_t *tok) {
  calls_of(tok->sp)->destroy(tok->sp);
}

static const tnk__engine_t engine = {encode, decode, push, unload};

int tnk__sp_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 tnk_tokenizer_error_t *error) {
  char why[160];
  const tnk__sp_calls_t *calls = tnk__sp_open(why, sizeof(why));
  int err;

  if (calls == NULL)
    return tnk__fault(error, TNK_EUNSUPPORTED, 0, "SentencePiece models: %s",
                      why);
  err = calls->create(&tok->sp, data, n, why, sizeof(why));
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(error);
  if (err < 0)
    return tnk__fault(error, TNK_EPROTO, 0, "SentencePiece model: %s",
                      why[0] != '\0' ? why : "it has no pieces");
  tok->engine = &engine;
  for (int32_t id = 0; id < calls_of(tok->sp)->size(tok->sp) && err == TNK_OK;
       id++)
    err = put_piece(tok, id);
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(error);
  if (err < 0)
    return tnk__fault(error, err == TNK_ETOOBIG ? err : TNK_EPROTO, 0,
                      "SentencePiece model: a piece is too large, or there "
                      "are too many");
  tok->bos = calls_of(tok->sp)->bos(tok->sp);
  tok->eos = calls_of(tok->sp)->eos(tok->sp);
  tok->anchor = find_anchor(tok);
  if (tok->bos >= 0)
    tok->before[tok->n_before++] = tok->bos;
  tnk__added_finish(&tok->raw);
  tnk__added_finish(&tok->normalized);
  tnk__vocab_trim(&tok->vocab);
  return TNK_OK;
}
