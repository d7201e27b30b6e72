/* SPDX-License-Identifier: MIT */
#include "tokenizers/split/split.h"
#include "tokenizers/split/scan.h"

/*
 * The expressions in which a word is a run of letters: GPT-2's, and the family
 * of cl100k. Alternatives are tried in the order of the expression. The first
 * match wins.
 */

/* Match ` ?[^\s\p{L}\p{N}]+` at p. Returns p if it does not match. */
static inline const uint8_t *symbols(const uint8_t *p, const uint8_t *end,
                                     unsigned letters) {
  const uint8_t *start = *p == ' ' ? p + 1 : p;
  const uint8_t *stop =
      tnk__scan_until(start, end, letters | TNK__C_NUMBER | TNK__C_SPACE);

  return stop == start ? p : stop;
}

static inline const uint8_t *cl100k(const uint8_t *p, const uint8_t *end,
                                    unsigned letters, unsigned digits) {
  const uint8_t *next, *stop;
  unsigned class;

  stop = tnk__scan_contraction(p, end, 1);
  if (stop != p)
    return stop;
  class = tnk__scan_class(p, &next);
  if (class & letters)
    return tnk__scan_run(next, end, letters, 0);
  if (class & TNK__C_NUMBER)
    return tnk__scan_digits(next, end, digits - 1);
  if (!tnk__is_newline(*p)) {
    stop = tnk__scan_run(next, end, letters, 0);
    if (stop != next)
      return stop;
  }
  stop = symbols(p, end, letters);
  if (stop == p)
    return tnk__scan_space(p, end, 1);
  while (stop < end && tnk__is_newline(*stop))
    stop++;
  return stop;
}

static const uint8_t *next_cl100k1(tnk__splitter_t *splitter, const uint8_t *p,
                                   const uint8_t *end) {
  (void)splitter;
  return cl100k(p, end, TNK__C_LETTER, 1);
}

static const uint8_t *next_cl100k3(tnk__splitter_t *splitter, const uint8_t *p,
                                   const uint8_t *end) {
  (void)splitter;
  return cl100k(p, end, TNK__C_LETTER, 3);
}

static const uint8_t *next_qwen35(tnk__splitter_t *splitter, const uint8_t *p,
                                  const uint8_t *end) {
  (void)splitter;
  return cl100k(p, end, TNK__C_LETTER | TNK__C_MARK, 1);
}

static const uint8_t *next_gpt2(tnk__splitter_t *splitter, const uint8_t *p,
                                const uint8_t *end) {
  const uint8_t *start, *stop;

  (void)splitter;
  stop = tnk__scan_contraction(p, end, 0);
  if (stop != p)
    return stop;
  start = *p == ' ' ? p + 1 : p;
  stop = tnk__scan_run(start, end, TNK__C_LETTER, 0);
  if (stop != start)
    return stop;
  stop = tnk__scan_run(start, end, TNK__C_NUMBER, 0);
  if (stop != start)
    return stop;
  stop = symbols(p, end, TNK__C_LETTER);
  return stop != p ? stop : tnk__scan_space(p, end, 0);
}

tnk__split_fn tnk__split_letters(tnk__shape_t shape) {
  switch (shape) {
  case TNK__SHAPE_GPT2:
    return next_gpt2;
  case TNK__SHAPE_CL100K1:
    return next_cl100k1;
  case TNK__SHAPE_CL100K3:
    return next_cl100k3;
  case TNK__SHAPE_QWEN35:
    return next_qwen35;
  default:
    return NULL;
  }
}
