/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_TOKENIZER_H
#define TNK_TOKENIZERS_MODEL_TOKENIZER_H

#include <stdatomic.h>

#include "lib/base/buf.h"
#include "tnk/tokenizers.h"
#include "tokenizers/model/added.h"
#include "tokenizers/model/bpe.h"
#include "tokenizers/model/metaspace.h"
#include "tokenizers/split/split.h"
#include "tokenizers/model/normal.h"
#include "tokenizers/model/vocab.h"

/* Most ids that a file adds before a text, or after it. */
#define TNK__MAX_AROUND 8

/* State of streaming decoding by an engine. */
typedef struct {
  tnk__buf_t pending; /* what is not decoded yet: int32_t ids, or bytes */
  int begun;          /* some text was returned: keep leading white space */
} tnk__engine_stream_t;

/* A model that encodes or decodes whole texts by itself, such as SentencePiece.
 * Its pieces are in the vocabulary too. */
typedef struct {
  /* Encode valid UTF-8. Calls `put` for each piece, with offsets if requested.
   * A negative code of `put` ends the call. NULL: byte-pair encoding. */
  int (*encode)(const tnk_tokenizer_t *tok, const uint8_t *text, size_t n,
                int with_places,
                int (*put)(void *user, int32_t id, size_t begin, size_t end),
                void *user);
  /* Append the text of all ids. */
  int (*decode)(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                unsigned flags, tnk__buf_t *out);
  /* Add ids and append the text that is certain, or all of it at the end. On
   * failure the stream is unchanged, and `out` must be discarded. */
  int (*push)(const tnk_tokenizer_t *tok, tnk__engine_stream_t *stream,
              const int32_t *ids, size_t n, unsigned flags, int at_end,
              tnk__buf_t *out);
  void (*unload)(tnk_tokenizer_t *tok); /* free the model; may be NULL */
} tnk__engine_t;

/* fallback.h: joins tokens of bytes. */
extern const tnk__engine_t tnk__fallback_engine;
/* fallback.h: the decoder Metaspace, which leaves them as they are. */
extern const tnk__engine_t tnk__metaspace_engine;

/* After loading only `refs` and `bpe.settled` change. */
struct tnk_tokenizer {
  tnk_allocator_t alloc;
  atomic_size_t refs;
  tnk__vocab_t vocab;
  tnk__bpe_t bpe;
  tnk__added_t raw;        /* searched for in raw text */
  tnk__added_t normalized; /* searched for in normalized text */
  tnk__shape_t shape;
  tnk__normal_t normal;
  int by_chars;          /* pieces start as characters, see fallback.h */
  tnk__metaspace_t meta; /* its pre-tokenizer */
  uint8_t blank[4]; /* by_chars: what the names of tokens have for a space */
  size_t n_blank;
  int keeps_bytes;   /* its decoder does not join tokens of bytes */
  int drops_first;   /* its decoder removes blanks of the first token */
  unsigned strip;    /* leading spaces that its decoder removes */
  int ignore_merges; /* a piece that is a token is not merged */
  int long_cuts;     /* Kimi: cut long texts and long runs */
  uint32_t n_ranks;  /* tiktoken: lower ids are ranks */
  int32_t before[TNK__MAX_AROUND];
  int32_t behind[TNK__MAX_AROUND];
  unsigned n_before;
  unsigned n_behind;
  const tnk__engine_t *engine; /* NULL: byte-pair encoding of bytes */
  struct tnk__sp *sp;          /* the SentencePiece model of the engine */
  int32_t anchor;              /* see find_anchor() of the engine; or -1 */
  int32_t bos;
  int32_t eos;
};

/* Fill in *error, which may be NULL, and return `code`. Long text is
 * truncated. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int tnk__fault(tnk_tokenizer_error_t *error, int code, uint64_t offset,
               const char *format, ...);
/* Report that memory is out. */
int tnk__fault_memory(tnk_tokenizer_error_t *error);
void tnk__fault_clear(tnk_tokenizer_error_t *error);

/* Create an empty tokenizer with one reference. NULL: out of memory. */
tnk_tokenizer_t *tnk__tokenizer_new(const tnk_allocator_t *alloc);

#endif
