/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/fallback.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tokenizers/unicode/unicode.h"

#define BLANK "\xe2\x96\x81" /* U+2581 */
#define N_BLANK 3u
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

/* Change a name to its text, which is not longer. */
static void to_text(tnk__vocab_t *vocab, uint32_t id) {
  tnk__token_t *token = &vocab->tokens[id];
  uint8_t *p = vocab->blob + token->offset;
  size_t n = token->packed >> 8, n_out = 0;
  unsigned flags = token->packed & 0xff;

  if (tnk__fallback_is_byte(p, n)) {
    p[0] = (uint8_t)(hex_digit(p[3]) << 4 | hex_digit(p[4]));
    n_out = 1;
    flags |= TNK__TOKEN_BYTE | TNK__TOKEN_LITERAL;
  } else {
    for (size_t i = 0; i < n;) {
      if (n - i >= N_BLANK && memcmp(p + i, BLANK, N_BLANK) == 0) {
        p[n_out++] = ' ';
        i += N_BLANK;
      } else {
        p[n_out++] = p[i++];
      }
    }
  }
  token->packed = (uint32_t)n_out << 8 | flags;
}

void tnk__fallback_finish(tnk_tokenizer_t *tok) {
  for (uint32_t id = 0; id < tok->vocab.n; id++)
    if (tnk__vocab_has(&tok->vocab, id))
      to_text(&tok->vocab, id);
  tnk__vocab_reindex(&tok->vocab);
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

  bytes = tnk__vocab_bytes(&tok->vocab, (uint32_t)id, &n);
  for (size_t i = 0; i < n; i++)
    p += bytes[i] == ' ' && *p != ' ' ? N_BLANK : 1;
  return (size_t)(p - start);
}

/* ---- Ids to text ----
 *
 * A run of byte tokens that is no UTF-8 as a whole becomes as many U+FFFD. So a
 * stream holds a run back until it ends. Some files have the first spaces of a
 * text removed.
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
