#ifndef TNK_TOKENIZERS_MODEL_CHARS_H
#define TNK_TOKENIZERS_MODEL_CHARS_H

#include "tokenizers/model/bpe.h"

/*
 * Text outside ASCII is merged faster when it begins as characters rather than
 * as bytes, and when it is cut where nothing can be merged. Neither must change
 * the result: both are done only where it was proved when the vocabulary was
 * loaded.
 */
int tnk__chars_prepare(tnk__bpe_t *bpe, const tnk__vocab_t *vocab);
/* Write the ids to begin with: of characters where possible, else of bytes. The
 * text is valid UTF-8; `out` has room for n. */
size_t tnk__chars_ids(const tnk__bpe_t *bpe, const uint8_t *bytes, size_t n,
                      int32_t *out);
/* The end of the segment of a piece that begins at p: what is merged out of the
 * piece is what is merged out of its segments, each alone, and a piece of two
 * segments or more is no token. *id is that of a segment that is one character
 * and becomes one token, else -1. */
const uint8_t *tnk__chars_segment(const tnk__bpe_t *bpe, const uint8_t *p,
                                  const uint8_t *end, int32_t *id);

#endif
