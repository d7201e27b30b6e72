/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_SENTENCEPIECE_SP_H
#define TNK_TOKENIZERS_SENTENCEPIECE_SP_H

#include "tokenizers/model/tokenizer.h"

/* Read a SentencePiece model and make it the engine of the tokenizer. Fails in
 * a build without the shim (see meson.build). */
int tnk__sp_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 tnk_tokenizer_error_t *error);

#endif
