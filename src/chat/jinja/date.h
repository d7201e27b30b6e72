#ifndef TNK_CHAT_JINJA_DATE_H
#define TNK_CHAT_JINJA_DATE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Append a time, in seconds since 1970 of the caller's own clock, by a format
 * of strftime, in English whatever the locale. 0: a conversion is not known. */
int tnk__date_text(tnk__buf_t *out, int64_t now_s, const char *format,
                   size_t n);

#endif
