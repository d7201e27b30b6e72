/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/fallback.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tokenizers/unicode/unicode.h"

#define N_BYTE 6u /* "<0x41>" */

/* The value of a digit, or 16. */
static unsigned hex_digit(uint8_t c) {
  return c >= '0' && c <= '9'   ? c - (unsigned)'0'
         : c >= 'A' && c <= 'F' ? c - (unsigned)'A' + 10
         : c >= 'a' && c <= 'f' ? c - (unsigned)'a' + 10
                                : 16;
}

int tnk__fallback_is_byte(const uint8_t *name, size_t n) {
  return n == N_BYTE && memcmp(name, "<0x", 3) == 0 && name[5] == '>' &&
         hex_digit(name[3]) < 16 && hex_digit(name[4]) < 16;
}

int tnk__fallback_prepare(tnk_tokenizer_t *tok, unsigned *byte) {
  tnk__bpe_t *bpe = &tok->bpe;

  for (*byte = 0; *byte < 256; (*byte)++) {
    char name[N_BYTE + 1];

    (void)snprintf(name, sizeof(name), "<0x%02X>", *byte);
    bpe->byte_id[*byte] =
        tnk__vocab_find(&tok->vocab, (const uint8_t *)name, N_BYTE, 0);
    if (bpe->byte_id[*byte] < 0)
      return TNK_EUNSUPPORTED;
  }
  bpe->chars = tnk__calloc(bpe->alloc, TNK__CHARS, sizeof(*bpe->chars));
  if (bpe->chars == NULL)
    return TNK_ENOMEM;
  for (uint32_t cp = 0; cp < TNK__CHARS; cp++) {
    uint8_t bytes[4];

    if (cp < 0xd800 || cp > 0xdfff)
      bpe->chars[cp] = (uint32_t)(tnk__vocab_find(&tok->vocab, bytes,
                                                  tnk__utf8_put(bytes, cp), 0) +
                                  1);
  }
  return tnk__bpe_finish(bpe);
}

/* Change blanks of a name to spaces. Returns the length of the text, which is
 * not longer, and the number of spaces that were there before. */
static size_t put_spaces(const tnk_tokenizer_t *tok, uint8_t *p, size_t n,
                         size_t *n_spaces) {
  size_t n_out = 0;

  *n_spaces = 0;
  for (size_t i = 0; i < n;) {
    if (n - i >= tok->n_blank && memcmp(p + i, tok->blank, tok->n_blank) == 0) {
      p[n_out++] = ' ';
      i += tok->n_blank;
    } else {
      *n_spaces += p[i] == ' ';
      p[n_out++] = p[i++];
    }
  }
  return n_out;
}

/* Change a name to its text. */
static int to_text(tnk_tokenizer_t *tok, uint32_t id) {
  tnk__token_t *token = &tok->vocab.tokens[id];
  uint8_t *p = tok->vocab.blob + token->offset;
  size_t n = token->packed >> 8, n_spaces;
  unsigned flags = token->packed & 0xff;

  if (!tnk__fallback_is_byte(p, n)) {
    size_t n_out = put_spaces(tok, p, n, &n_spaces);

    if (tok->drops_first && n_spaces > 0) {
      flags |= TNK__TOKEN_SPACED;
      if (n_out != n)
        return TNK_EUNSUPPORTED;
    }
    n = n_out;
  } else {
    flags |= TNK__TOKEN_BYTE;
    if (!tok->keeps_bytes) {
      p[0] = (uint8_t)(hex_digit(p[3]) << 4 | hex_digit(p[4]));
      n = 1;
      flags |= TNK__TOKEN_LITERAL;
    }
  }
  token->packed = (uint32_t)n << 8 | flags;
  return TNK_OK;
}

int tnk__fallback_finish(tnk_tokenizer_t *tok) {
  int err = TNK_OK;

  for (uint32_t id = 0; id < tok->vocab.n && err == TNK_OK; id++)
    if (tnk__vocab_has(&tok->vocab, id))
      err = to_text(tok, id);
  tnk__vocab_reindex(&tok->vocab);
  return err;
}

size_t tnk__fallback_ids(const tnk_tokenizer_t *tok, const uint8_t *p, size_t n,
                         int32_t *out) {
  const uint8_t *end = p + n;
  size_t n_out = 0;

  while (p < end) {
    uint32_t cp = tnk__utf8_get(p);
    size_t length = tnk__utf8_length(*p);
    int32_t id = cp < TNK__CHARS ? (int32_t)tok->bpe.chars[cp] - 1
                                 : tnk__vocab_find(&tok->vocab, p, length, 0);

    if (id >= 0)
      out[n_out++] = id;
    else
      for (size_t i = 0; i < length; i++)
        out[n_out++] = tok->bpe.byte_id[p[i]];
    p += length;
  }
  return n_out;
}

size_t tnk__fallback_length(const tnk_tokenizer_t *tok, int32_t id,
                            const uint8_t *p) {
  const uint8_t *start = p, *bytes;
  size_t n;

  if ((tok->vocab.tokens[id].packed & TNK__TOKEN_BYTE) != 0)
    return 1;
  bytes = tnk__vocab_bytes(&tok->vocab, (uint32_t)id, &n);
  for (size_t i = 0; i < n; i++)
    p += bytes[i] == ' ' && *p != ' ' ? tok->n_blank : 1;
  return (size_t)(p - start);
}

/* ---- Ids to text ----
 *
 * A run of byte tokens that is not valid UTF-8 as a whole becomes as many
 * U+FFFD. So a stream holds a run back until it ends. Some files have the first
 * spaces of a text removed.
 */
typedef struct {
  const tnk_tokenizer_t *tok;
  tnk__buf_t *out;
  unsigned stripped; /* spaces that were removed, or all that may be */
} writer_t;

/* Append text, of which the first spaces may have to go. */
static void put_text(writer_t *writer, const uint8_t *p, size_t n) {
  while (n > 0 && writer->stripped < writer->tok->strip) {
    if (*p != ' ') {
      writer->stripped = writer->tok->strip;
      break;
    }
    writer->stripped++;
    p++;
    n--;
  }
  (void)tnk__buf_append(writer->out, p, n);
}

/* Append a run of bytes. */
static void put_run(writer_t *writer, const uint8_t *run, size_t n) {
  static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};

  if (n == 0)
    return;
  if (tnk__utf8_valid(run, n) == n)
    put_text(writer, run, n);
  else
    for (size_t i = 0; i < n; i++)
      put_text(writer, replacement, sizeof(replacement));
}

static int is_byte(const tnk_tokenizer_t *tok, int32_t id) {
  return (tok->vocab.tokens[id].packed & TNK__TOKEN_BYTE) != 0;
}

/* Append the text of ids. `run` has the bytes of a run that is not over. */
static int write_ids(writer_t *writer, const int32_t *ids, size_t n,
                     unsigned flags, tnk__buf_t *run) {
  const tnk__vocab_t *vocab = &writer->tok->vocab;

  for (size_t i = 0; i < n; i++) {
    const uint8_t *bytes;
    size_t n_bytes;

    if (!tnk__vocab_has(vocab, ids[i]) ||
        ((flags & TNK_DECODE_SKIP_SPECIAL) != 0 &&
         (vocab->tokens[ids[i]].packed & TNK__TOKEN_SPECIAL) != 0))
      continue;
    bytes = tnk__vocab_bytes(vocab, (uint32_t)ids[i], &n_bytes);
    if (is_byte(writer->tok, ids[i])) {
      (void)tnk__buf_append(run, bytes, n_bytes);
      continue;
    }
    put_run(writer, run->data, run->len);
    tnk__buf_clear(run);
    put_text(writer, bytes, n_bytes);
  }
  return run->err != TNK_OK ? run->err : writer->out->err;
}

static int decode(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                  unsigned flags, tnk__buf_t *out) {
  writer_t writer = {tok, out, 0};
  tnk__buf_t run;
  int err;

  tnk__buf_init(&run, &tok->alloc, SIZE_MAX / 2);
  err = write_ids(&writer, ids, n, flags, &run);
  if (err == TNK_OK)
    put_run(&writer, run.data, run.len);
  tnk__buf_deinit(&run);
  return err < 0 ? err : out->err;
}

static int push(const tnk_tokenizer_t *tok, tnk__engine_stream_t *stream,
                const int32_t *ids, size_t n, unsigned flags, int at_end,
                tnk__buf_t *out) {
  writer_t writer = {tok, out, (unsigned)stream->begun};
  tnk__buf_t run;
  int err;

  tnk__buf_init(&run, &tok->alloc, SIZE_MAX / 2);
  err = tnk__buf_append(&run, stream->pending.data, stream->pending.len);
  if (err == TNK_OK)
    err = write_ids(&writer, ids, n, flags, &run);
  if (err == TNK_OK && at_end)
    put_run(&writer, run.data, run.len);
  if (err == TNK_OK)
    err = out->err;
  if (err == TNK_OK) {
    tnk__buf_t old = stream->pending;

    stream->pending = run;
    run = old;
    if (at_end)
      tnk__buf_clear(&stream->pending);
    stream->begun = at_end ? 0 : (int)writer.stripped;
  }
  tnk__buf_deinit(&run);
  return err;
}

const tnk__engine_t tnk__fallback_engine = {NULL, decode, push, NULL};

/* ---- The decoder Metaspace ----
 *
 * Names of tokens become text one by one, and the vocabulary has that text
 * already. Unless its option is "never", the decoder removes all replacements
 * from the first token, which the vocabulary has as spaces.
 */
static int put_first(const tnk_tokenizer_t *tok, int32_t id, tnk__buf_t *out) {
  size_t n;
  const uint8_t *p = tnk__vocab_bytes(&tok->vocab, (uint32_t)id, &n);

  if ((tok->vocab.tokens[id].packed & TNK__TOKEN_SPACED) != 0)
    return tnk__buf_append(out, p, n);
  for (size_t i = 0; i < n; i++)
    if (p[i] != ' ')
      (void)tnk__buf_append(out, p + i, 1);
  return out->err;
}

static int put_ids(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                   unsigned flags, int *begun, tnk__buf_t *out) {
  const tnk__vocab_t *vocab = &tok->vocab;

  for (size_t i = 0; i < n && out->err == TNK_OK; i++) {
    const uint8_t *p;
    size_t n_bytes;

    if (!tnk__vocab_has(vocab, ids[i]) ||
        ((flags & TNK_DECODE_SKIP_SPECIAL) != 0 &&
         (vocab->tokens[ids[i]].packed & TNK__TOKEN_SPECIAL) != 0))
      continue;
    if (!*begun && tok->drops_first) {
      (void)put_first(tok, ids[i], out);
    } else {
      p = tnk__vocab_bytes(vocab, (uint32_t)ids[i], &n_bytes);
      (void)tnk__buf_append(out, p, n_bytes);
    }
    *begun = 1;
  }
  return out->err;
}

static int decode_names(const tnk_tokenizer_t *tok, const int32_t *ids,
                        size_t n, unsigned flags, tnk__buf_t *out) {
  int begun = 0;

  return put_ids(tok, ids, n, flags, &begun, out);
}

static int push_names(const tnk_tokenizer_t *tok, tnk__engine_stream_t *stream,
                      const int32_t *ids, size_t n, unsigned flags, int at_end,
                      tnk__buf_t *out) {
  int begun = stream->begun;
  int err = put_ids(tok, ids, n, flags, &begun, out);

  if (err == TNK_OK)
    stream->begun = at_end ? 0 : begun;
  return err;
}

const tnk__engine_t tnk__metaspace_engine = {NULL, decode_names, push_names,
                                             NULL};
