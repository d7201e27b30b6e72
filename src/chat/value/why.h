/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_VALUE_WHY_H
#define TNK_CHAT_VALUE_WHY_H

#include <stdint.h>

/* Reason of an error: a code of tnk/error.h, a line of the template or 0, and a
 * sentence. */
typedef struct {
  int code;
  uint32_t line; /* starts at 1 */
  char text[368];
} tnk__why_t;

/* Set the reason, unless `why` is NULL, and return the code. Long text is
 * truncated, and control characters become spaces. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int tnk__why(tnk__why_t *why, int code, uint32_t line, const char *format, ...);

#endif
