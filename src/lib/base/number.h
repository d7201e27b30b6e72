#ifndef TNK_LIB_BASE_NUMBER_H
#define TNK_LIB_BASE_NUMBER_H

#include <stdint.h>

/*
 * Decimal numbers. Signs and blanks are no part of one, and no locale has a
 * say, unlike with strtoull(), which wraps around besides.
 */

/* Read the digits at *at, up to `end` or to the first byte that is none; `end`
 * may be NULL for a text with a NUL behind it. TNK_OK: *at is behind them.
 * TNK_EINVAL: there are none; TNK_ETOOBIG: the number is above `max`; *at and
 * *out are as they were. */
int tnk__read_u64(const char **at, const char *end, uint64_t max,
                  uint64_t *out);
/* Read a text that is such a number and nothing else. TNK_EINVAL when it is
 * not; the rest likewise. */
int tnk__text_u64(const char *text, uint64_t max, uint64_t *out);

#endif
