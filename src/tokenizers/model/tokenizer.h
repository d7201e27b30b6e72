#ifndef TNK_TOKENIZERS_MODEL_TOKENIZER_H
#define TNK_TOKENIZERS_MODEL_TOKENIZER_H

#include <stdatomic.h>

#include "lib/base/buf.h"
#include "tokenizers/model/added.h"
#include "tokenizers/model/bpe.h"
#include "tokenizers/model/fault.h"
#include "tokenizers/split/split.h"
#include "tokenizers/model/vocab.h"

/* Ids that a file puts before and behind a text. */
#define TNK__MAX_AROUND 8

/* A stream of ids that an engine decodes. */
typedef struct {
  tnk__buf_t pending; /* int32_t: ids that cannot be decoded yet */
  int begun;          /* some text came out: blanks at the front are kept */
} tnk__engine_stream_t;

/* A model that encodes and decodes whole texts by itself, as SentencePiece
 * does. Its pieces are in the vocabulary as well. */
typedef struct {
  /* The pieces of valid UTF-8, one by one, with their places; `put` may end it
   * with a negative code. */
  int (*encode)(const tnk_tokenizer_t *tok, const uint8_t *text, size_t n,
                int with_places,
                int (*put)(void *user, int32_t id, size_t begin, size_t end),
                void *user);
  /* The whole text of ids, appended. */
  int (*decode)(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                unsigned flags, tnk__buf_t *out);
  /* Take ids in, append the text that is certain; all of it at the end. On
   * failure nothing was taken and `out` is to be thrown away. */
  int (*push)(const tnk_tokenizer_t *tok, tnk__engine_stream_t *stream,
              const int32_t *ids, size_t n, unsigned flags, int at_end,
              tnk__buf_t *out);
  void (*unload)(tnk_tokenizer_t *tok); /* frees the model */
} tnk__engine_t;

/* Everything but `refs` and `bpe.settled` is as it is from the end of loading
 * on. */
struct tnk_tokenizer {
  tnk_allocator_t alloc;
  atomic_size_t refs;
  tnk__vocab_t vocab;
  tnk__bpe_t bpe;
  tnk__added_t raw;        /* looked for in the text as given */
  tnk__added_t normalized; /* looked for in normalized text */
  tnk__shape_t shape;
  int nfc;           /* text is composed first */
  int ignore_merges; /* a piece that is a token as a whole is that token */
  int long_cuts;     /* Kimi: long texts and runs are cut */
  uint32_t n_ranks;  /* tiktoken: ids below are ranks */
  int32_t before[TNK__MAX_AROUND];
  int32_t behind[TNK__MAX_AROUND];
  unsigned n_before;
  unsigned n_behind;
  const tnk__engine_t *engine; /* NULL: pieces are cut and merged here */
  struct tnk__sp *sp;          /* of the engine: a SentencePiece model */
  int32_t anchor;              /* of the engine: a piece with text, or -1 */
  int32_t bos;
  int32_t eos;
};

/* Make an empty one with one reference; NULL when memory is out. */
tnk_tokenizer_t *tnk__tokenizer_new(const tnk_allocator_t *alloc);

#endif
