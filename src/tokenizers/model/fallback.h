/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_FALLBACK_H
#define TNK_TOKENIZERS_MODEL_FALLBACK_H

#include "tokenizers/model/tokenizer.h"

/*
 * A tokenizer.json that was made from a SentencePiece model, as those of Llama
 * 2, Gemma and Yi. A piece starts as characters. A character without a token
 * becomes the tokens of its bytes, whose names are "<0x00>" to "<0xFF>". In the
 * names of tokens U+2581, or the replacement of a Metaspace, represents a
 * space.
 *
 * While the file is read, the vocabulary has the names. Afterwards it has the
 * text that a token stands for.
 */

/* Find the tokens of the bytes and characters. Call this when the vocabulary is
 * complete. Returns TNK_OK, TNK_ENOMEM or TNK_EUNSUPPORTED, with a byte that
 * has no token in *byte. */
int tnk__fallback_prepare(tnk_tokenizer_t *tok, unsigned *byte);
/* Change names to text, when no name is needed anymore. Returns TNK_OK or
 * TNK_EUNSUPPORTED, if a name has spaces and blanks and the decoder treats them
 * differently. */
int tnk__fallback_finish(tnk_tokenizer_t *tok);
/* Returns whether the name is that of a byte. */
int tnk__fallback_is_byte(const uint8_t *name, size_t n);
/* Write the initial ids of a piece. `out` needs room for n ids. Returns their
 * number. */
size_t tnk__fallback_ids(const tnk_tokenizer_t *tok, const uint8_t *p, size_t n,
                         int32_t *out);
/* The number of bytes that a token covers at `p`, where it was found. */
size_t tnk__fallback_length(const tnk_tokenizer_t *tok, int32_t id,
                            const uint8_t *p);

#endif
