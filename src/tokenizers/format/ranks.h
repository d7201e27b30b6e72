/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_FORMAT_RANKS_H
#define TNK_TOKENIZERS_FORMAT_RANKS_H

#include "tokenizers/format/format.h"

/* Functions shared by the readers of files with ranks: tiktoken.c, tekken.c and
 * encodings.c. */

/* Make the merges, when all ranks are in the vocabulary and nothing else is.
 * `file` is the kind of the file, for errors. */
int tnk__ranks_finish(tnk_tokenizer_t *tok, const char *file,
                      tnk_tokenizer_error_t *error);
/* Add a special token that is searched for. Returns TNK_OK, TNK_EPROTO for an
 * id that is used, TNK_ETOOBIG or TNK_ENOMEM. */
int tnk__ranks_special(tnk_tokenizer_t *tok, uint32_t id, const uint8_t *text,
                       size_t n, unsigned flags);

/* encodings.c: the name of the encoding in a file of this name, or NULL. */
const char *tnk__encoding_of_file(const char *path);
/* The shape of an encoding, or NONE for an unknown name. */
tnk__shape_t tnk__encoding_shape(const char *name);
/* Add the special tokens of a known encoding. As tnk__ranks_special(). */
int tnk__encoding_specials(tnk_tokenizer_t *tok, const char *name);

#endif
