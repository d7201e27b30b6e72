#ifndef TNK_TOKENIZERS_TOKENIZER_H
#define TNK_TOKENIZERS_TOKENIZER_H

#include <stdatomic.h>

#include "tokenizers/added.h"
#include "tokenizers/bpe.h"
#include "tokenizers/fault.h"
#include "tokenizers/split.h"
#include "tokenizers/tokens.h"
#include "tokenizers/vocab.h"

/* Ids that a file puts before and behind a text. */
#define TNK__MAX_AROUND 8

/* Everything but `refs` is as it is from the end of loading on. */
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
  struct tnk__sp *sp;                   /* a SentencePiece model, or NULL */
  void (*unload)(tnk_tokenizer_t *tok); /* frees it */
  int32_t anchor;                       /* of sp.c: a piece with text, or -1 */
  int32_t bos;
  int32_t eos;
};

/* With one reference, empty; NULL when memory is out. */
tnk_tokenizer_t *tnk__tokenizer_new(const tnk_allocator_t *alloc);

/* The byte alphabet of byte-level vocabularies: a token's name has one
 * character a byte. Turns a name into bytes; returns their number, or -1 when
 * a character is not of the alphabet. `out` may be `name`. */
int64_t tnk__byte_level(const uint8_t *name, size_t n, uint8_t *out);

/* The readers, one file a format. They fill in an empty tokenizer. */
int tnk__hf_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 tnk_tokenizer_error_t *error);
int tnk__tiktoken_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                       const tnk_tokenizer_options_t *options,
                       tnk_tokenizer_error_t *error);

#endif
