#ifndef TNK_LIB_WIRE_FORMAT_TIME_TEXT_H
#define TNK_LIB_WIRE_FORMAT_TIME_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Points in time as text, by the rules of RFC 3339 and what servers write
 * beside it. Times count in microseconds since the beginning of 1970, UTC, and
 * lie in the years 1 to 9999. Nothing depends on a locale or a time zone.
 */

/* Read "2026-01-02", or with a time behind "T" or a blank: "03:04" at least,
 * seconds, a fraction and a zone ("Z", "+02:00", "+0200", "+02") if they are
 * there. Without a zone it is UTC. 0: it is none. */
int tnk__time_read(int64_t *us, const char *text, size_t n);
/* Make a time of a number of Unix seconds, or of milliseconds if that is what
 * it must be. 0: it is out of range. */
int tnk__time_of_number(int64_t *us, double number);

/* Room for a time and its NUL. */
enum { TNK__TIME_TEXT = 32 };
/* Write "2026-01-02T03:04:05Z", with six more digits if there are any. */
void tnk__time_write(char *out, int64_t us);

#endif
