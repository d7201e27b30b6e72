#ifndef TNK_TOKENIZERS_CHARS_H
#define TNK_TOKENIZERS_CHARS_H

#include "tokenizers/bpe.h"

/*
 * Text outside ASCII is merged faster when it begins as characters rather than
 * as bytes. That must not change the result, so it is done only for characters
 * of which it was proved when the merges were loaded.
 */
int tnk__chars_prepare(tnk__bpe_t *bpe, const tnk__vocab_t *vocab);
/* The ids to begin with: of characters where possible, else of bytes. The text
 * is valid UTF-8; `out` has room for n. */
size_t tnk__chars_ids(const tnk__bpe_t *bpe, const uint8_t *bytes, size_t n,
                      int32_t *out);

#endif
