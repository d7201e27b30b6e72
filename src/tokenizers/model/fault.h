/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_FAULT_H
#define TNK_TOKENIZERS_MODEL_FAULT_H

#include "tnk/tokenizers.h"

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

#endif
