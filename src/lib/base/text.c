/* SPDX-License-Identifier: MIT */
#include "lib/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tnk__text_init(tnk__text_t *text, char *data, size_t size) {
  text->data = data;
  text->size = size;
  text->len = 0;
  if (size > 0)
    data[0] = '\0';
}

void tnk__text_clean(char *data, size_t n) {
  size_t i;

  for (i = 0; i < n; i++) {
    unsigned char c = (unsigned char)data[i];
    if (c < 0x20 || c == 0x7f) {
      data[i] = ' ';
    } else if (c == 0xc2 && i + 1 < n &&
               ((unsigned char)data[i + 1] & 0xe0) == 0x80) {
      /* Replace both bytes, so that the text stays UTF-8. */
      data[i] = data[i + 1] = ' ';
    }
  }
}

/* Truncation may have split a multibyte character: remove its rest. */
static void trim(tnk__text_t *text) {
  size_t n = text->size - 1;
  size_t lead = n;

  while (lead > 0 && ((unsigned char)text->data[lead - 1] & 0xc0) == 0x80)
    lead--;
  if (lead == 0)
    return;
  lead--;
  if ((unsigned char)text->data[lead] >= 0xf0   ? n - lead < 4
      : (unsigned char)text->data[lead] >= 0xe0 ? n - lead < 3
      : (unsigned char)text->data[lead] >= 0xc0 ? n - lead < 2
                                                : 0)
    text->data[lead] = '\0';
}

void tnk__text_printf(tnk__text_t *text, const char *format, ...) {
  size_t begin = text->len < text->size ? text->len : text->size;
  va_list args;
  int n;

  va_start(args, format);
  n = vsnprintf(text->size > begin ? text->data + begin : NULL,
                text->size - begin, format, args);
  va_end(args);
  if (n < 0)
    return;
  if (begin < text->size)
    tnk__text_clean(text->data + begin, strlen(text->data + begin));
  /* Counted even after truncation, so that the caller can retry with enough
   * memory. */
  text->len += (size_t)n;
  if (begin < text->size && text->len >= text->size)
    trim(text);
}

void tnk__text_time(tnk__text_t *text, uint64_t ms) {
  const unsigned long long s = ms / 1000;

  if (ms < 1000)
    tnk__text_printf(text, "%u ms", (unsigned)ms);
  else if (s < 120)
    tnk__text_printf(text, "%llu.%u s", s, (unsigned)(ms % 1000 / 100));
  else if (s < 7200)
    tnk__text_printf(text, "%llu min %llu s", s / 60, s % 60);
  else
    tnk__text_printf(text, "%llu h %llu min", s / 3600, s % 3600 / 60);
}

void tnk__text_bytes(tnk__text_t *text, uint64_t n) {
  const unsigned long long tenths_of_kb = n / 100;

  if (n < 10000)
    tnk__text_printf(text, "%u bytes", (unsigned)n);
  else if (n < 1000000)
    tnk__text_printf(text, "%llu.%llu kB", tenths_of_kb / 10,
                     tenths_of_kb % 10);
  else
    tnk__text_printf(text, "%llu.%llu MB", tenths_of_kb / 10000,
                     tenths_of_kb / 1000 % 10);
}
