/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_LEX_LITERAL_H
#define TNK_CHAT_JINJA_LEX_LITERAL_H

#include <stddef.h>

#include "chat/value/value.h"

/* Read the text between quotes, with the escapes of Python. TNK_EINVAL;
 * TNK_EUNSUPPORTED for characters by name and for halves of surrogate pairs;
 * errors of the heap. */
int tnk__literal_text(tnk__heap_t *heap, const char *text, size_t n,
                      tnk__value_t *out);
/* Read the number that starts here; `may_be_float` allows a point. Returns its
 * length, or 0 if it needs more than 64 bits. */
size_t tnk__literal_number(const char *text, size_t n, int may_be_float,
                           tnk__value_t *out);

#endif
