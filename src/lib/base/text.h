/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_TEXT_H
#define TNK_LIB_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * A sentence that is written in parts into the caller's memory. Text that does
 * not fit is truncated, but counted. Never fails and allocates nothing.
 */
typedef struct {
  char *data; /* ends with NUL whenever size > 0 */
  size_t size;
  size_t len; /* length of the whole text, including truncated parts */
} tnk__text_t;

/* Replace characters that could act on a terminal or begin a new line by
 * blanks. These are control characters, DEL, and U+0080 to U+009F, which
 * terminals interpret as escape sequences. */
void tnk__text_clean(char *data, size_t n);
/* Begin an empty text. `data` may be NULL if `size` is 0; the text is then only
 * measured. */
void tnk__text_init(tnk__text_t *text, char *data, size_t size);
/* Append formatted text. Control characters become blanks, because some parts
 * come from a server. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void tnk__text_printf(tnk__text_t *text, const char *format, ...);
/* Append a duration for people: "350 ms", "12.3 s", "5 min 3 s", "2 h 5
 * min". */
void tnk__text_time(tnk__text_t *text, uint64_t ms);
/* Append a number of bytes: "812 bytes", "12.3 kB", "3.9 MB". */
void tnk__text_bytes(tnk__text_t *text, uint64_t n);

#endif
