#ifndef TNK_CHAT_JINJA_LEX_LITERAL_H
#define TNK_CHAT_JINJA_LEX_LITERAL_H

#include <stddef.h>

#include "chat/value/value.h"

/* The text between quotes, with its escapes as Python has them. TNK_EINVAL;
 * TNK_EUNSUPPORTED for characters by name and halves of pairs; the heap's. */
int tnk__literal_text(tnk__heap_t *heap, const char *text, size_t n,
                      tnk__value_t *out);
/* Read the number that begins here; `may_be_float` allows a point. Returns its
 * length, or 0 when it has more than 64 bits. */
size_t tnk__literal_number(const char *text, size_t n, int may_be_float,
                           tnk__value_t *out);

#endif
