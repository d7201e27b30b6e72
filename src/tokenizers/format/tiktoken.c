/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/number.h"
#include "tokenizers/format/ranks.h"
#include "tokenizers/model/chars.h"

/*
 * tiktoken rank files. A line has the bytes of a token in base64 and its rank,
 * which is also its id. Any two tokens whose concatenation is a token form a
 * merge. Its priority is the rank of the result. Special tokens are not in the
 * file.
 */
#define KIMI_SPECIALS 256u

typedef struct {
  tnk_tokenizer_t *tok;
  const uint8_t *base;
  const uint8_t *p;
  const uint8_t *end;
  tnk_tokenizer_error_t *error;
} reader_t;

static int malformed(const reader_t *reader, const char *what) {
  return tnk__fault(
      reader->error, TNK_EPROTO, (uint64_t)(reader->p - reader->base),
      "rank file, byte %zu: %s", (size_t)(reader->p - reader->base), what);
}

static int read_rank(reader_t *reader, uint32_t *rank) {
  const char *at = (const char *)reader->p;
  uint64_t value;
  int err =
      tnk__read_u64(&at, (const char *)reader->end, TNK__MAX_VOCAB - 1, &value);

  if (err == TNK_OK) {
    *rank = (uint32_t)value;
    reader->p = (const uint8_t *)at;
  }
  return err;
}

static int read_line(reader_t *reader) {
  const uint8_t *start = reader->p;
  tnk__vocab_t *vocab = &reader->tok->vocab;
  uint32_t rank = 0;
  size_t n;
  uint8_t *out;
  int err;

  while (reader->p<reader->end && * reader->p> ' ')
    reader->p++;
  out = tnk__vocab_reserve(vocab, (size_t)(reader->p - start) + 1);
  if (out == NULL)
    return tnk__fault_memory(reader->error);
  n = (size_t)(reader->p - start);
  /* Whisper's file has an empty token, written as "=". */
  n = n == 1 && *start == '=' ? 0
      : n == 0 || n % 4 != 0  ? SIZE_MAX
                              : tnk__base64_decode(out, (const char *)start, n);
  if (n == SIZE_MAX) {
    reader->p = start;
    return malformed(reader, "no base64");
  }
  err = reader->p == reader->end || *reader->p++ != ' '
            ? TNK_EPROTO
            : read_rank(reader, &rank);
  if (err < 0)
    return malformed(reader, err == TNK_ETOOBIG ? "a rank too large"
                                                : "no rank behind the token");
  if (reader->p < reader->end && *reader->p == '\r')
    reader->p++;
  if (reader->p < reader->end && *reader->p++ != '\n')
    return malformed(reader, "something behind the rank");
  err = tnk__vocab_put(vocab, rank, n, n == 0 ? TNK__TOKEN_LITERAL : 0, n > 0);
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(reader->error);
  return err == TNK_OK
             ? TNK_OK
             : malformed(reader, err == TNK_ETOOBIG ? "a token too large"
                                                    : "a token or rank twice");
}

static int read_lines(reader_t *reader) {
  int err = TNK_OK;

  while (err == TNK_OK && reader->p < reader->end) {
    if (*reader->p == '\n' || *reader->p == '\r')
      reader->p++;
    else
      err = read_line(reader);
  }
  return err;
}

/* Each split of a token into two tokens is a merge. */
static int add_merges(tnk_tokenizer_t *tok) {
  tnk__vocab_t *vocab = &tok->vocab;

  for (uint32_t id = 0; id < vocab->n; id++) {
    const uint8_t *bytes;
    size_t n;

    if (!tnk__vocab_has(vocab, id))
      continue;
    bytes = tnk__vocab_bytes(vocab, id, &n);
    for (size_t i = 1; i < n; i++) {
      int32_t left = tnk__vocab_find(vocab, bytes, i, 0), right;

      if (left < 0)
        continue;
      right = tnk__vocab_find(vocab, bytes + i, n - i, 0);
      if (right >= 0 &&
          tnk__bpe_add_ranked(&tok->bpe, left, right, (int32_t)id) < 0)
        return TNK_ENOMEM;
    }
  }
  return TNK_OK;
}

int tnk__ranks_finish(tnk_tokenizer_t *tok, const char *file,
                      tnk_tokenizer_error_t *error) {
  for (unsigned i = 0; i < 256; i++) {
    uint8_t byte = (uint8_t)i;

    tok->bpe.byte_id[i] = tnk__vocab_find(&tok->vocab, &byte, 1, 0);
    if (tok->bpe.byte_id[i] < 0)
      return tnk__fault(error, TNK_EUNSUPPORTED, 0,
                        "%s: a vocabulary without a token for byte 0x%02X is "
                        "not implemented",
                        file, i);
  }
  if (add_merges(tok) < 0 || tnk__bpe_finish(&tok->bpe) < 0 ||
      tnk__chars_prepare(&tok->bpe, &tok->vocab) < 0)
    return tnk__fault_memory(error);
  return TNK_OK;
}

int tnk__ranks_special(tnk_tokenizer_t *tok, uint32_t id, const uint8_t *text,
                       size_t n, unsigned flags) {
  unsigned kind = TNK__TOKEN_LITERAL | TNK__TOKEN_ADDED |
                  (flags & TNK__ADDED_SPECIAL ? TNK__TOKEN_SPECIAL : 0);
  uint8_t *room = tnk__vocab_reserve(&tok->vocab, n + 1);
  int err;

  if (room == NULL)
    return TNK_ENOMEM;
  memcpy(room, text, n);
  err = tnk__vocab_put(&tok->vocab, id, n, kind, 0);
  return err < 0 ? err : tnk__added_put(&tok->raw, text, n, id, flags);
}

/* Kimi's special tokens come directly after the ranks. Other tokens of its
 * config are ignored. An id without a name is a reserved token. */
static int put_kimi_special(tnk_tokenizer_t *tok, uint32_t id,
                            const uint8_t *text, size_t n, unsigned flags) {
  uint32_t first = tok->n_ranks;

  return id < first || id >= first + KIMI_SPECIALS
             ? TNK_OK
             : tnk__ranks_special(tok, id, text, n, flags);
}

static int reserve_kimi(tnk_tokenizer_t *tok) {
  for (uint32_t i = 0; i < KIMI_SPECIALS; i++) {
    uint32_t id = tok->n_ranks + i;
    char name[48];
    int n, err;

    if (tnk__vocab_has(&tok->vocab, id))
      continue;
    n = snprintf(name, sizeof(name), "<|reserved_token_%u|>", (unsigned)id);
    err = tnk__ranks_special(tok, id, (const uint8_t *)name, (size_t)n,
                             TNK__ADDED_SPECIAL);
    if (err < 0)
      return err;
  }
  return TNK_OK;
}

/* Add the special tokens: of a named encoding, or of Kimi, or of the config. */
static int put_specials(tnk_tokenizer_t *tok, int named,
                        const tnk_tokenizer_options_t *options,
                        tnk_tokenizer_error_t *error) {
  int kimi = options->pattern == NULL, err = TNK_OK;

  if (named) {
    err = tnk__encoding_specials(tok, options->pattern);
    if (err == TNK_EPROTO)
      return tnk__fault(error, TNK_EPROTO, 0,
                        "rank file: its ranks are not those of %.64s",
                        options->pattern);
  } else if (options->config != NULL) {
    err =
        tnk__config_added(tok, options->config, options->n_config,
                          kimi ? put_kimi_special : tnk__ranks_special, error);
    if (err < 0)
      return err;
  }
  if (kimi)
    err = reserve_kimi(tok);
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(error);
  return err < 0 ? tnk__fault(error, err, 0, "rank file: too many tokens")
                 : TNK_OK;
}

int tnk__tiktoken_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                       const tnk_tokenizer_options_t *options,
                       tnk_tokenizer_error_t *error) {
  reader_t reader = {tok, data, data, data + n, error};
  int kimi = options->pattern == NULL, named = 0, err;

  tok->shape = kimi ? TNK__SHAPE_KIMI : tnk__encoding_shape(options->pattern);
  if (!kimi && tok->shape != TNK__SHAPE_NONE)
    named = 1;
  else if (!kimi)
    tok->shape = tnk__split_find(options->pattern, strlen(options->pattern));
  if (tok->shape == TNK__SHAPE_NONE)
    return tnk__fault(error, TNK_EUNSUPPORTED, 0,
                      "rank file: pattern %.200s is not implemented",
                      options->pattern);
  tok->ignore_merges = 1;
  tok->long_cuts = kimi;
  err = read_lines(&reader);
  if (err == TNK_OK)
    err = tnk__ranks_finish(tok, "rank file", error);
  tok->n_ranks = tok->vocab.n;
  if (err == TNK_OK)
    err = put_specials(tok, named, options, error);
  if (err < 0)
    return err;
  tnk__added_finish(&tok->raw);
  tnk__added_finish(&tok->normalized);
  if (tnk__added_twice(&tok->raw, &tok->normalized))
    return tnk__fault(error, TNK_EUNSUPPORTED, 0,
                      "rank file: two special tokens of one name are not "
                      "implemented");
  tnk__vocab_trim(&tok->vocab);
  return TNK_OK;
}
