/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_SPLIT_SCAN_H
#define TNK_TOKENIZERS_SPLIT_SCAN_H

#include "tokenizers/unicode/unicode.h"

/*
 * Shared parts of the scanners. All take a range of valid UTF-8 and return a
 * position in it.
 */

static inline int tnk__is_newline(uint8_t byte) {
  return byte == '\n' || byte == '\r';
}

/* The class of the character at p, and its end. */
static inline unsigned tnk__scan_class(const uint8_t *p, const uint8_t **next) {
  if (*p < 0x80) {
    *next = p + 1;
    return tnk__class_block[*p];
  }
  *next = p + tnk__utf8_length(*p);
  return tnk__char_class(tnk__utf8_get(p));
}

/* The end of a run of characters that have a class of `any` and none of
 * `none`. */
static inline const uint8_t *tnk__scan_run(const uint8_t *p, const uint8_t *end,
                                           unsigned any, unsigned none) {
  while (p < end) {
    const uint8_t *next;
    unsigned class = tnk__scan_class(p, &next);

    if ((class & any) == 0 || (class & none) != 0)
      break;
    p = next;
  }
  return p;
}

/* The end of a run of characters that have no class of `none`. */
static inline const uint8_t *
tnk__scan_until(const uint8_t *p, const uint8_t *end, unsigned none) {
  while (p < end) {
    const uint8_t *next;

    if ((tnk__scan_class(p, &next) & none) != 0)
      break;
    p = next;
  }
  return p;
}

/* \p{N}{1,most} */
static inline const uint8_t *
tnk__scan_digits(const uint8_t *p, const uint8_t *end, unsigned most) {
  for (unsigned i = 0; i < most && p < end; i++) {
    const uint8_t *next;

    if ((tnk__scan_class(p, &next) & TNK__C_NUMBER) == 0)
      break;
    p = next;
  }
  return p;
}

/* Match '(s|t|re|ve|m|ll|d) at p. Returns p if it does not match. With case
 * folding the long s, U+017F, matches s. No other character outside ASCII folds
 * to one of these letters. */
static inline const uint8_t *
tnk__scan_contraction(const uint8_t *p, const uint8_t *end, int fold) {
  uint8_t bit = fold ? 0x20 : 0;
  uint8_t a, b;

  if (end - p < 2 || *p != '\'')
    return p;
  a = p[1] | bit;
  if (a == 's' || a == 't' || a == 'm' || a == 'd')
    return p + 2;
  if (end - p < 3)
    return p;
  if (fold && p[1] == 0xc5 && p[2] == 0xbf)
    return p + 3;
  b = p[2] | bit;
  if (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l'))
    return p + 3;
  return p;
}

/* End of the piece that starts with white space at p. With `newlines`, the
 * piece ends after the last newline of the run, if there is one. Otherwise it
 * is the whole run at the end of the segment, or the run without its last
 * character. A run of one character is always a piece. */
static inline const uint8_t *tnk__scan_space(const uint8_t *p,
                                             const uint8_t *end, int newlines) {
  const uint8_t *start = p, *last = p, *after_newline = NULL;

  while (p < end) {
    const uint8_t *next;

    if ((tnk__scan_class(p, &next) & TNK__C_SPACE) == 0)
      break;
    if (tnk__is_newline(*p))
      after_newline = next;
    last = p;
    p = next;
  }
  if (newlines && after_newline != NULL)
    return after_newline;
  return p == end || last == start ? p : last;
}

#endif
