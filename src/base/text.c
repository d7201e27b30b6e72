#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void tnk__text_init(tnk__text_t *text, char *data, size_t size) {
  text->data = data;
  text->size = size;
  text->len = 0;
  if (size > 0)
    data[0] = '\0';
}

/* Blanks in place of what could act on a terminal, from the byte at `from`. */
static void clean(tnk__text_t *text, size_t from) {
  size_t i;

  for (i = from; i + 1 < text->size && text->data[i] != '\0'; i++)
    if ((unsigned char)text->data[i] < 0x20 || text->data[i] == 0x7f)
      text->data[i] = ' ';
}

/* A cut may have split a character of several bytes: drop what is left. */
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
  clean(text, begin);
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
