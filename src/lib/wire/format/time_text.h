/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_TIME_TEXT_H
#define TNK_LIB_WIRE_FORMAT_TIME_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Points in time as text, in the format of RFC 3339 and in other formats that
 * servers use. Times are microseconds since the beginning of 1970, UTC, in the
 * years 1 to 9999. They do not depend on a locale or a time zone.
 */

/* Read "2026-01-02", optionally with a time after "T" or a blank. The time is
 * at least "03:04"; seconds, a fraction and a zone ("Z", "+02:00", "+0200",
 * "+02") are optional. The default zone is UTC. Returns 0 if the text is not a
 * time. */
int tnk__time_read(int64_t *us, const char *text, size_t n);
/* Convert Unix seconds, or milliseconds if the number is too large for seconds.
 * Returns 0 if it is out of range. */
int tnk__time_of_number(int64_t *us, double number);

/* Size of a time with its NUL. */
enum { TNK__TIME_TEXT = 32 };
/* Write "2026-01-02T03:04:05Z", with a six-digit fraction unless it is zero. */
void tnk__time_write(char *out, int64_t us);

#endif
