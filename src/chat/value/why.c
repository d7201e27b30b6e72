/* SPDX-License-Identifier: MIT */
#include "chat/value/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"

int tnk__why(tnk__why_t *why, int code, uint32_t line, const char *format,
             ...) {
  size_t at = 0;
  va_list args;

  if (why == NULL)
    return code;
  why->code = code;
  why->line = line;
  if (line > 0)
    at = (size_t)snprintf(why->text, sizeof(why->text),
                          "line %lu: ", (unsigned long)line);
  va_start(args, format);
  vsnprintf(why->text + at, sizeof(why->text) - at, format, args);
  va_end(args);
  /* Truncation may have split a character. */
  tnk__utf8_repair(why->text);
  for (char *p = why->text; *p != '\0'; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = ' ';
  return code;
}
