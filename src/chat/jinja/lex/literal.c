/* SPDX-License-Identifier: MIT */
#include "chat/jinja/lex/literal.h"

#include <string.h>

#include "chat/jinja/lex/chars.h"
#include "tnk/error.h"

static int digit_of(char c, int base) {
  int digit = 99;

  if (c >= '0' && c <= '9')
    digit = c - '0';
  else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
    digit = (c | 0x20) - 'a' + 10;
  return digit < base ? digit : -1;
}

/* ---- Texts ---- */

/* Read n hexadecimal digits into *out. */
static int read_hex(const char *p, const char *end, int n, uint32_t *out) {
  *out = 0;
  if (end - p < n)
    return 0;
  for (int i = 0; i < n; i++) {
    const int digit = digit_of(p[i], 16);

    if (digit < 0)
      return 0;
    *out = *out << 4 | (uint32_t)digit;
  }
  return 1;
}

/* Read a numeric escape: \x41 \u0041 \U00000041 \101. Returns the number of
 * bytes after the backslash, or 0. */
static size_t number_escape(const char *p, const char *end, uint32_t *out) {
  const int n = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
  size_t i = 0;

  if (n > 0)
    return read_hex(p + 1, end, n, out) && *out < 0x110000 ? (size_t)n + 1 : 0;
  for (*out = 0; i < 3 && p + i < end && digit_of(p[i], 8) >= 0; i++)
    *out = *out << 3 | (uint32_t)digit_of(p[i], 8);
  return i;
}

int tnk__literal_text(tnk__heap_t *heap, const char *text, size_t n,
                      tnk__value_t *out) {
  static const char from[] = "\\'\"abfnrtv";
  static const char to[] = "\\'\"\a\b\f\n\r\t\v";
  const char *p = text;
  const char *end = text + n;
  const char *known;
  char *copy;
  size_t at = 0;
  size_t used;
  uint32_t c;

  *out = tnk__value_text(text, n);
  if (n == 0 || memchr(text, '\\', n) == NULL)
    return TNK_OK;
  copy = tnk__heap_alloc(heap, n); /* no escape is shorter than its result */
  if (copy == NULL)
    return heap->err;
  for (; p < end; p += used) {
    used = 1;
    if (*p != '\\' || p + 1 == end) {
      copy[at++] = *p;
      continue;
    }
    p++;
    known = memchr(from, *p, sizeof(from) - 1);
    if (known != NULL) {
      copy[at++] = to[known - from];
    } else if (*p == 'N') {
      return TNK_EUNSUPPORTED;
    } else if (strchr("xuU01234567", *p) != NULL && *p != '\0') {
      used = number_escape(p, end, &c);
      if (used == 0)
        return TNK_EINVAL;
      if (c >= 0xd800 && c < 0xe000)
        return TNK_EUNSUPPORTED;
      at += tnk__char_put(copy + at, c);
    } else if (*p != '\n') {
      copy[at++] = '\\';
      copy[at++] = *p;
    }
  }
  *out = tnk__value_text(copy, at);
  return TNK_OK;
}

/* ---- Numbers ---- */

/* The end of digits in a base. Single underscores are allowed between them, and
 * before the first one after a prefix. */
static const char *digits_end(const char *p, const char *end, int base) {
  while (p < end && (digit_of(*p, base) >= 0 ||
                     (*p == '_' && p + 1 < end && digit_of(p[1], base) >= 0)))
    p++;
  return p;
}

static size_t read_whole(const char *text, const char *end, int base,
                         size_t skip, tnk__value_t *out) {
  uint64_t value = 0;

  for (const char *p = text + skip; p < end; p++) {
    const int digit = digit_of(*p, base);

    if (digit < 0)
      continue; /* an underscore */
    if (value > ((uint64_t)INT64_MAX - (uint64_t)digit) / (uint64_t)base)
      return 0;
    value = value * (uint64_t)base + (uint64_t)digit;
  }
  *out = tnk__value_int((int64_t)value);
  return (size_t)(end - text);
}

/* The end of the float that starts here, or NULL. */
static const char *float_end(const char *text, const char *end) {
  const char *p = digits_end(text, end, 10);
  const char *q;

  if (p + 1 < end && *p == '.' && digit_of(p[1], 10) >= 0)
    p = digits_end(p + 1, end, 10);
  q = p;
  if (q < end && (*q | 0x20) == 'e') {
    q++;
    q += q < end && (*q == '+' || *q == '-');
    if (q < end && digit_of(*q, 10) >= 0)
      return digits_end(q, end, 10);
  }
  return memchr(text, '.', (size_t)(p - text)) != NULL ? p : NULL;
}

static size_t read_float(const char *text, const char *end, tnk__value_t *out) {
  char copy[512];
  size_t n = 0;
  double real = 0;

  for (const char *p = text; p < end; p++) {
    if (n == sizeof(copy))
      return 0;
    if (*p != '_')
      copy[n++] = *p;
  }
  if (!tnk__value_read_float(copy, n, &real))
    return 0;
  *out = tnk__value_float(real);
  return (size_t)(end - text);
}

size_t tnk__literal_number(const char *text, size_t n, int may_be_float,
                           tnk__value_t *out) {
  const char *end = text + n;
  const char *p = may_be_float ? float_end(text, end) : NULL;
  int base = 0;

  if (p != NULL)
    return read_float(text, p, out);
  if (n > 2 && text[0] == '0') {
    const char c = (char)(text[1] | 0x20);

    base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    if (base > 0 && digits_end(text + 2, end, base) > text + 2)
      return read_whole(text, digits_end(text + 2, end, base), base, 2, out);
  }
  if (text[0] == '0') {
    /* Only zeros: other digits after them are a separate number. */
    for (p = text + 1;
         p < end && (*p == '0' || (*p == '_' && p + 1 < end && p[1] == '0'));)
      p++;
    return read_whole(text, p, 10, 0, out);
  }
  return read_whole(text, digits_end(text, end, 10), 10, 0, out);
}
