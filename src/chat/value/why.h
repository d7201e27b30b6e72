#ifndef TNK_CHAT_VALUE_WHY_H
#define TNK_CHAT_VALUE_WHY_H

#include <stdint.h>

/* Why something was refused: a code of tnk/error.h, a line of the template or
 * 0, and a sentence. */
typedef struct {
  int code;
  uint32_t line; /* counted from 1 */
  char text[368];
} tnk__why_t;

/* Write the reason, unless `why` is NULL, and return the code. Names of a
 * template or a peer are cut, and control characters in them become blanks. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int tnk__why(tnk__why_t *why, int code, uint32_t line, const char *format, ...);

#endif
