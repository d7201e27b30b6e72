/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/tokenizer.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tokenizers/unicode/unicode.h"

/*
 * Ids to text. Tokens are bytes, and together they need not be valid UTF-8. A
 * decoder holds back at most three bytes, of a character that may still be
 * completed. All other bytes are returned at once; bytes that cannot be part of
 * a character are replaced.
 */
struct tnk_detokenizer {
  const tnk_tokenizer_t *tok; /* holds a reference */
  unsigned flags;
  tnk__buf_t bytes; /* held back bytes, followed by those of new tokens */
  tnk__engine_stream_t stream; /* the same for an engine */
  tnk__buf_t text;
};

static int is_wanted(const tnk_tokenizer_t *tok, int32_t id, unsigned flags) {
  return tnk__vocab_has(&tok->vocab, id) &&
         ((flags & TNK_DECODE_SKIP_SPECIAL) == 0 ||
          (tok->vocab.tokens[id].packed & TNK__TOKEN_SPECIAL) == 0);
}

static int put_bytes(const tnk_tokenizer_t *tok, tnk__buf_t *out,
                     const int32_t *ids, size_t n_ids, unsigned flags) {
  for (size_t i = 0; i < n_ids; i++)
    if (is_wanted(tok, ids[i], flags)) {
      size_t n;
      const uint8_t *p = tnk__vocab_bytes(&tok->vocab, (uint32_t)ids[i], &n);

      if (tnk__buf_append(out, p, n) < 0)
        return out->err;
    }
  return TNK_OK;
}

/* Move characters from `bytes` to `text`. Invalid bytes become U+FFFD. An
 * incomplete character at the end stays, except at the end of the stream. */
static int put_text(tnk__buf_t *bytes, tnk__buf_t *text, int at_end) {
  const uint8_t *p = bytes->data;
  size_t n = bytes->len;

  while (n > 0) {
    size_t good = tnk__utf8_valid(p, n), bad;
    int cut;

    (void)tnk__buf_append(text, p, good);
    p += good;
    n -= good;
    if (n == 0)
      break;
    (void)tnk__utf8_check(p, n, &bad, &cut);
    if (cut && !at_end)
      break;
    (void)tnk__buf_append(text, "\xef\xbf\xbd", 3);
    p += bad;
    n -= bad;
  }
  if (text->err == TNK_OK)
    tnk__buf_consume(bytes, bytes->len - n);
  return text->err;
}

int tnk_tokenizer_decode(const tnk_tokenizer_t *tok, char **text, size_t *n,
                         const int32_t *ids, size_t n_ids, unsigned flags) {
  tnk__buf_t bytes, out;
  int err;

  if (text == NULL)
    return TNK_EINVAL;
  *text = NULL;
  if (tok == NULL || (ids == NULL && n_ids > 0) ||
      (flags & ~(unsigned)TNK_DECODE_SKIP_SPECIAL) != 0)
    return TNK_EINVAL;
  tnk__buf_init(&bytes, &tok->alloc, SIZE_MAX / 2);
  tnk__buf_init(&out, &tok->alloc, SIZE_MAX / 2);
  err = tok->engine != NULL
            ? tok->engine->decode(tok, ids, n_ids, flags, &bytes)
            : put_bytes(tok, &bytes, ids, n_ids, flags);
  if (err == TNK_OK && tnk__utf8_valid(bytes.data, bytes.len) == bytes.len) {
    tnk__buf_t swap = out; /* nothing to replace */

    out = bytes;
    bytes = swap;
  } else if (err == TNK_OK) {
    err = put_text(&bytes, &out, 1);
  }
  if (err == TNK_OK && tnk__buf_cstr(&out) == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_OK) {
    if (n != NULL)
      *n = out.len;
    *text = (char *)out.data;
    out.data = NULL;
  }
  tnk__buf_deinit(&bytes);
  tnk__buf_deinit(&out);
  return err;
}

void tnk_tokenizer_free_text(const tnk_tokenizer_t *tok, char *text) {
  if (tok != NULL)
    tnk__free(&tok->alloc, text);
}

int tnk_detokenizer_new(tnk_detokenizer_t **out, const tnk_tokenizer_t *tok,
                        unsigned flags) {
  tnk_detokenizer_t *detok;

  if (out == NULL)
    return TNK_EINVAL;
  *out = NULL;
  if (tok == NULL || (flags & ~(unsigned)TNK_DECODE_SKIP_SPECIAL) != 0)
    return TNK_EINVAL;
  detok = tnk__malloc(&tok->alloc, sizeof(*detok));
  if (detok == NULL)
    return TNK_ENOMEM;
  detok->tok = tnk_tokenizer_ref((tnk_tokenizer_t *)(uintptr_t)tok);
  detok->flags = flags;
  tnk__buf_init(&detok->bytes, &tok->alloc, SIZE_MAX / 2);
  tnk__buf_init(&detok->text, &tok->alloc, SIZE_MAX / 2);
  tnk__buf_init(&detok->stream.pending, &tok->alloc, SIZE_MAX / 2);
  detok->stream.begun = 0;
  *out = detok;
  return TNK_OK;
}

void tnk_detokenizer_free(tnk_detokenizer_t *detok) {
  const tnk_tokenizer_t *tok;

  if (detok == NULL)
    return;
  tok = detok->tok;
  tnk__buf_deinit(&detok->bytes);
  tnk__buf_deinit(&detok->text);
  tnk__buf_deinit(&detok->stream.pending);
  tnk__free(&tok->alloc, detok);
  tnk_tokenizer_unref((tnk_tokenizer_t *)(uintptr_t)tok);
}

/* Return the text that is certain. On failure the decoder keeps its previous
 * state, with `held` bytes. */
static int hand_out(tnk_detokenizer_t *detok, size_t held, int at_end,
                    const char **text, size_t *n) {
  int err = detok->bytes.err;

  tnk__buf_clear(&detok->text);
  /* This reserves the terminator, so it fits after any append. */
  if (err == TNK_OK && tnk__buf_cstr(&detok->text) == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_OK)
    err = put_text(&detok->bytes, &detok->text, at_end);
  if (err == TNK_OK) {
    *text = tnk__buf_cstr(&detok->text);
    if (n != NULL)
      *n = detok->text.len;
    return TNK_OK;
  }
  detok->bytes.err = TNK_OK;
  detok->bytes.len = held;
  *text = "";
  return err;
}

static int push_to_engine(tnk_detokenizer_t *detok, const int32_t *ids,
                          size_t n_ids, int at_end, const char **text,
                          size_t *n) {
  int err;

  *text = "";
  tnk__buf_clear(&detok->text);
  if (tnk__buf_cstr(&detok->text) == NULL)
    return TNK_ENOMEM;
  err = detok->tok->engine->push(detok->tok, &detok->stream, ids, n_ids,
                                 detok->flags, at_end, &detok->text);
  if (err < 0)
    return err;
  *text = tnk__buf_cstr(&detok->text);
  if (n != NULL)
    *n = detok->text.len;
  return TNK_OK;
}

int tnk_detokenizer_push(tnk_detokenizer_t *detok, const int32_t *ids,
                         size_t n_ids, const char **text, size_t *n) {
  size_t held;

  if (n != NULL)
    *n = 0;
  if (detok == NULL || text == NULL || (ids == NULL && n_ids > 0))
    return TNK_EINVAL;
  if (detok->tok->engine != NULL)
    return push_to_engine(detok, ids, n_ids, 0, text, n);
  held = detok->bytes.len;
  (void)put_bytes(detok->tok, &detok->bytes, ids, n_ids, detok->flags);
  return hand_out(detok, held, 0, text, n);
}

int tnk_detokenizer_finish(tnk_detokenizer_t *detok, const char **text,
                           size_t *n) {
  if (n != NULL)
    *n = 0;
  if (detok == NULL || text == NULL)
    return TNK_EINVAL;
  if (detok->tok->engine != NULL)
    return push_to_engine(detok, NULL, 0, 1, text, n);
  return hand_out(detok, detok->bytes.len, 1, text, n);
}
