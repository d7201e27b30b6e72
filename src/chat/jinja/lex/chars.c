/* SPDX-License-Identifier: MIT */
#include "chat/jinja/lex/chars.h"

#include "chat/jinja/lex/chars_tables.h"
#include "chat/value/value.h"
#include "lib/base/utf8.h"

static int in_ranges(uint32_t c, const tnk__char_range_t *rows, size_t n) {
  size_t low = 0;

  while (low < n) {
    const size_t mid = low + (n - low) / 2;

    if (c > rows[mid].last)
      low = mid + 1;
    else if (c < rows[mid].first)
      n = mid;
    else
      return 1;
  }
  return 0;
}

#define IN(name) in_ranges(c, tnk__chars_##name, tnk__chars_n_##name)

/* Nearly all characters are ASCII and need no table. */
static int is_ascii(uint32_t c, tnk__char_class_t wanted) {
  const int is_upper = c >= 'A' && c <= 'Z';
  const int is_lower = c >= 'a' && c <= 'z';

  switch (wanted) {
  case TNK__CHAR_ALPHA:
    return is_upper || is_lower;
  case TNK__CHAR_DECIMAL:
  case TNK__CHAR_DIGIT:
  case TNK__CHAR_NUMERIC:
    return c >= '0' && c <= '9';
  case TNK__CHAR_UPPER:
    return is_upper;
  case TNK__CHAR_LOWER:
    return is_lower;
  case TNK__CHAR_TITLE:
    return 0;
  case TNK__CHAR_HIDDEN:
    return c < 0x20 || c == 0x7f;
  default:
    return c == '\'' || c == '.' || c == ':' || c == '^' || c == '`';
  }
}

int tnk__char_is(uint32_t c, tnk__char_class_t wanted) {
  if (c < 0x80)
    return is_ascii(c, wanted);
  switch (wanted) {
  case TNK__CHAR_ALPHA:
    return IN(alpha);
  case TNK__CHAR_DECIMAL:
    return IN(decimal);
  case TNK__CHAR_DIGIT:
    return IN(digit);
  case TNK__CHAR_NUMERIC:
    return IN(numeric);
  case TNK__CHAR_UPPER:
    return IN(upper);
  case TNK__CHAR_LOWER:
    return IN(lower);
  case TNK__CHAR_TITLE:
    return IN(title);
  case TNK__CHAR_HIDDEN:
    return IN(hidden);
  default:
    return IN(ignorable);
  }
}

int tnk__char_is_blank(uint32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

int tnk__char_is_cased(uint32_t c) {
  if (c < 0x80)
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  return IN(upper) || IN(lower) || IN(title);
}

static int32_t distance(uint32_t c, const tnk__char_case_t *rows, size_t n) {
  size_t low = 0;

  while (low < n) {
    const size_t mid = low + (n - low) / 2;

    if (c > rows[mid].last)
      low = mid + 1;
    else if (c < rows[mid].first)
      n = mid;
    else
      return (c - rows[mid].first) % rows[mid].step == 0 ? rows[mid].distance
                                                         : 0;
  }
  return 0;
}

static size_t change(uint32_t c, const tnk__char_case_t *rows, size_t n,
                     const tnk__char_special_t *special, size_t n_special,
                     uint32_t out[3]) {
  size_t low = 0;
  size_t k = 0;

  for (size_t high = n_special; low < high;) {
    const size_t mid = low + (high - low) / 2;

    if (special[mid].from < c)
      low = mid + 1;
    else
      high = mid;
  }
  if (low < n_special && special[low].from == c) {
    for (; k < 3 && special[low].to[k] != 0; k++)
      out[k] = special[low].to[k];
    return k;
  }
  out[0] = (uint32_t)((int64_t)c + distance(c, rows, n));
  return 1;
}

#define CHANGE(name)                                                           \
  change(c, tnk__chars_##name, tnk__chars_n_##name,                            \
         tnk__chars_##name##_special, tnk__chars_n_##name##_special, out)

size_t tnk__char_to(uint32_t c, tnk__char_to_t to, uint32_t out[3]) {
  if (c < 0x80) {
    const int is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';

    out[0] = !is_letter ? c : to == TNK__CASE_LOWER ? c | 0x20 : c & ~0x20u;
    return 1;
  }
  if (to == TNK__CASE_LOWER)
    return CHANGE(to_lower);
  return to == TNK__CASE_UPPER ? CHANGE(to_upper) : CHANGE(to_title);
}

/* ---- UTF-8 ---- */

uint32_t tnk__char_next(const char **at) {
  return tnk__value_char(at);
}

uint32_t tnk__char_prev(const char **at) {
  const char *p;

  do
    --*at;
  while (((unsigned char)**at & 0xc0) == 0x80);
  p = *at;
  return tnk__char_next(&p);
}

size_t tnk__char_put(char *out, uint32_t c) {
  return tnk__utf8_put((uint8_t *)out, c);
}

size_t tnk__chars_count(const char *text, size_t n) {
  size_t count = 0;

  for (size_t i = 0; i < n; i++)
    count += ((unsigned char)text[i] & 0xc0) != 0x80;
  return count;
}

size_t tnk__chars_place(const char *text, size_t n, size_t number) {
  size_t i = 0;

  for (; i < n; i++)
    if (((unsigned char)text[i] & 0xc0) != 0x80 && number-- == 0)
      break;
  return i;
}

size_t tnk__blank_prefix(const char *text, size_t n) {
  const char *p = text;
  const char *end = text + n;
  const char *next;

  while (p < end) {
    next = p;
    if (!tnk__char_is_blank(tnk__char_next(&next)))
      break;
    p = next;
  }
  return (size_t)(p - text);
}

size_t tnk__blank_suffix(const char *text, size_t n) {
  const char *p = text + n;
  const char *next;

  while (p > text) {
    next = p;
    if (!tnk__char_is_blank(tnk__char_prev(&next)))
      break;
    p = next;
  }
  return (size_t)(text + n - p);
}

size_t tnk__name_prefix(const char *text, size_t n) {
  const char *p = text;
  const char *end = text + n;
  const char *next;
  uint32_t c;

  while (p < end) {
    next = p;
    c = tnk__char_next(&next);
    if (c != '_' && !tnk__char_is(c, TNK__CHAR_ALPHA) &&
        (p == text || !tnk__char_is(c, TNK__CHAR_DECIMAL)))
      break;
    p = next;
  }
  return (size_t)(p - text);
}
