/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_NUMBER_H
#define TNK_LIB_BASE_NUMBER_H

#include <stdint.h>

/*
 * Decimal numbers without signs and blanks, independent of the locale.
 * strtoull() accepts these and wraps negative numbers.
 */

/* Read the digits at *at, up to `end` or the first other byte. `end` may be
 * NULL for a string with a NUL. Returns TNK_OK and sets *at past the digits.
 * Returns TNK_EINVAL without digits, and TNK_ETOOBIG for a number above `max`;
 * *at and *out are then unchanged. */
int tnk__read_u64(const char **at, const char *end, uint64_t max,
                  uint64_t *out);
/* Read a string that is such a number and nothing else. Returns TNK_EINVAL for
 * other text, and otherwise the same codes. */
int tnk__text_u64(const char *text, uint64_t max, uint64_t *out);

#endif
