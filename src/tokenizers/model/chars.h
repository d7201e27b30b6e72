/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_CHARS_H
#define TNK_TOKENIZERS_MODEL_CHARS_H

#include "tokenizers/model/bpe.h"

/*
 * Faster merging of text outside ASCII. It starts as characters instead of
 * bytes, and it is cut where nothing can be merged. Neither may change the
 * result, so both are done only where they were proved safe when the vocabulary
 * was loaded.
 */
int tnk__chars_prepare(tnk__bpe_t *bpe, const tnk__vocab_t *vocab);
/* Write the initial ids: of characters if possible, otherwise of bytes. The
 * text must be valid UTF-8. `out` needs room for n ids. */
size_t tnk__chars_ids(const tnk__bpe_t *bpe, const uint8_t *bytes, size_t n,
                      int32_t *out);
/* The end of the segment that starts at p. Merging the segments separately
 * gives the same ids as merging the piece. A piece of two or more segments is
 * not a token. *id is the token of a segment that is one character, or -1. */
const uint8_t *tnk__chars_segment(const tnk__bpe_t *bpe, const uint8_t *p,
                                  const uint8_t *end, int32_t *id);

#endif
