/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_CODING_ENCODE_H
#define TNK_TOKENIZERS_CODING_ENCODE_H

#include "tokenizers/model/tokenizer.h"
#include "tokenizers/coding/tokens.h"

/* State of encoding one text into a list. */
typedef struct {
  const tnk_tokenizer_t *tok;
  tnk_tokens_t *tokens;
  unsigned flags;
  int count_only;
  size_t count; /* number of tokens, if `count_only` */
  size_t place; /* offset of the text, added to all offsets */
} tnk__encoder_t;

/* Check the flags and the text, then append the ids. After a failure the caller
 * restores the list. */
int tnk__encode(tnk__encoder_t *encoder, const char *text, size_t n,
                tnk_tokenizer_error_t *error);

/* Cut [p, end) into pieces and append their ids, without offsets. */
int tnk__encode_pieces(tnk__encoder_t *encoder, const uint8_t *p,
                       const uint8_t *end);

#endif
