#ifndef TNK_LIB_BASE_TEXT_H
#define TNK_LIB_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * A sentence that is written piece by piece into memory of the caller. What
 * does not fit is cut, but counted. Never fails and allocates nothing.
 */
typedef struct {
  char *data; /* NUL-terminated whenever size > 0 */
  size_t size;
  size_t len; /* of the whole text, also when it was cut */
} tnk__text_t;

/* Put blanks in place of the characters of a text that could act on a terminal
 * or begin a new line: those below a blank, DEL, and U+0080 to U+009F, which
 * terminals take for escape sequences as well. */
void tnk__text_clean(char *data, size_t n);
/* Begin an empty text. `data` may be NULL when `size` is 0: then the text is
 * only measured. */
void tnk__text_init(tnk__text_t *text, char *data, size_t size);
/* Append a piece. Control characters become blanks: some pieces are a server's
 * words. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void tnk__text_printf(tnk__text_t *text, const char *format, ...);
/* Append a length of time as people write it: "350 ms", "12.3 s", "5 min 3 s",
 * "2 h 5 min". */
void tnk__text_time(tnk__text_t *text, uint64_t ms);
/* Append a number of bytes: "812 bytes", "12.3 kB", "3.9 MB". */
void tnk__text_bytes(tnk__text_t *text, uint64_t n);

#endif
