/* SPDX-License-Identifier: MIT */
#include "tokenizers/split/split.h"
#include "tokenizers/split/scan.h"

/*
 * Three expressions in sequence. Each is applied to the pieces of the previous
 * one, matched or not. The first cuts off groups of up to three digits, the
 * second runs of three Chinese and Japanese blocks. For the third expression
 * the end of such a piece is the end of the text. Text without a match, such as
 * digits, is a separate piece.
 */
#define LETTERS (TNK__C_LETTER | TNK__C_MARK)

/* The second expression lists code points instead of a script. */
static int is_cjk(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x3040 && c <= 0x30ff);
}

static const uint8_t *cjk_run(const uint8_t *p, const uint8_t *end) {
  while (p < end && *p >= 0xe3 && is_cjk(tnk__utf8_get(p)))
    p += 3;
  return p;
}

static const uint8_t *region_end(const uint8_t *p, const uint8_t *end) {
  while (p < end) {
    const uint8_t *next;

    if (tnk__scan_class(p, &next) & TNK__C_NUMBER)
      break;
    if (*p >= 0xe3 && is_cjk(tnk__utf8_get(p)))
      break;
    p = next;
  }
  return p;
}

static int is_ascii_letter(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Match the third expression at p. Returns p if it does not match. */
static const uint8_t *match(const uint8_t *p, const uint8_t *end) {
  const uint8_t *next, *start, *stop;
  unsigned class = tnk__scan_class(p, &next);

  if (*p < 0x80 && (class & TNK__C_PUNCT) && next < end &&
      is_ascii_letter(*next)) {
    while (next < end && is_ascii_letter(*next))
      next++;
    return next;
  }
  if (class & LETTERS)
    return tnk__scan_run(next, end, LETTERS, 0);
  if ((class & TNK__C_PUNCT) == 0 && !tnk__is_newline(*p)) {
    stop = tnk__scan_run(next, end, LETTERS, 0);
    if (stop != next)
      return stop;
  }
  start = *p == ' ' ? next : p;
  stop = tnk__scan_run(start, end, TNK__C_PUNCT, 0);
  if (stop != start) {
    while (stop < end && tnk__is_newline(*stop))
      stop++;
    return stop;
  }
  return class & TNK__C_SPACE ? tnk__scan_space(p, end, 1) : p;
}

const uint8_t *tnk__split_deepseek(tnk__splitter_t *splitter, const uint8_t *p,
                                   const uint8_t *end) {
  const uint8_t *next, *stop;

  if (splitter->region == NULL || p >= splitter->region) {
    if (tnk__scan_class(p, &next) & TNK__C_NUMBER)
      return tnk__scan_digits(next, end, 2);
    splitter->region = cjk_run(p, end);
    if (splitter->region == p)
      splitter->region = region_end(p, end);
  }
  stop = match(p, splitter->region);
  if (stop != p)
    return stop;
  do /* a gap, up to the next match */
    stop += tnk__utf8_length(*stop);
  while (stop < splitter->region && match(stop, splitter->region) == stop);
  return stop;
}
