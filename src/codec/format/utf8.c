#include "codec/format/utf8.h"

#include <string.h>

static int is_tail(unsigned char c) {
  return (c & 0xC0) == 0x80;
}

/* The rows of table 3-7 of the Unicode standard: only the second byte's
 * range depends on the first. */
size_t tnk__utf8_char(const char *text, size_t n) {
  const unsigned char *s = (const unsigned char *)text;

  if (n == 0)
    return 0;
  if (s[0] < 0x80)
    return 1;
  if (s[0] < 0xC2 || s[0] > 0xF4 || n < 2 || !is_tail(s[1]))
    return 0;
  if (s[0] < 0xE0)
    return 2;
  if (n < 3 || !is_tail(s[2]))
    return 0;
  if (s[0] < 0xF0)
    return (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ? 0
                                                                          : 3;
  if (n < 4 || !is_tail(s[3]))
    return 0;
  return (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F) ? 0 : 4;
}

void tnk__utf8_repair(char *text) {
  size_t n = strlen(text);
  size_t step;

  for (size_t i = 0; i < n; i += step) {
    step = tnk__utf8_char(text + i, n - i);
    if (step == 0) {
      text[i] = '?';
      step = 1;
    }
  }
}
