/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_DATE_H
#define TNK_CHAT_JINJA_DATE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/* Append a time in a format of strftime(), always in English. `now_s` is in
 * seconds since 1970, in the caller's local time. Returns 0 for an unknown
 * conversion. */
int tnk__date_text(tnk__buf_t *out, int64_t now_s, const char *format,
                   size_t n);

#endif
