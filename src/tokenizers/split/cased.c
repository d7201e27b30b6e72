/* SPDX-License-Identifier: MIT */
#include "tokenizers/split/split.h"
#include "tokenizers/split/scan.h"

/*
 * The expressions that cut words where a capital letter follows a small one:
 * o200k and its descendants.
 *
 *   1. [^\r\n\p{L}\p{N}]? [UP]* [LO]+   and optionally a contraction
 *   2. [^\r\n\p{L}\p{N}]? [UP]+ [LO]*   the same
 *
 * UP has capital and caseless letters and marks. LO has small and caseless
 * letters and marks. Characters in both make alternative 1 backtrack.
 */
#define SHARED (TNK__C_OTHER | TNK__C_MARK)
#define UP (TNK__C_UPPER | SHARED)
#define LO (TNK__C_LOWER | SHARED)

typedef struct {
  unsigned digits;   /* maximum number of digits in a piece */
  int contractions;  /* 's and others belong to the word before them */
  int slash;         /* "/" belongs to the newlines after symbols */
  unsigned excluded; /* class that words do not contain: Han, or 0 */
} rules_t;

/* [UP]*[LO]+ at p, or NULL. */
static inline const uint8_t *word(const uint8_t *p, const uint8_t *end,
                                  unsigned excluded) {
  const uint8_t *behind_shared = NULL, *next;
  unsigned class;

  while (p < end) {
    class = tnk__scan_class(p, &next);
    if ((class & UP) == 0 || (class & excluded) != 0) {
      if ((class & TNK__C_LOWER) != 0)
        return tnk__scan_run(next, end, LO, excluded);
      break;
    }
    if (class & SHARED)
      behind_shared = next;
    p = next;
  }
  /* No small letter follows. Backtrack to the end of the last character that LO
   * can match. */
  return behind_shared;
}

static inline const uint8_t *words(const uint8_t *p, const uint8_t *end,
                                   const rules_t *rules) {
  const uint8_t *next, *stop = NULL;
  unsigned class = tnk__scan_class(p, &next);
  int prefix =
      (class & (TNK__C_LETTER | TNK__C_NUMBER)) == 0 && !tnk__is_newline(*p);

  if (prefix)
    stop = word(next, end, rules->excluded);
  if (stop == NULL && (class & (TNK__C_LETTER | TNK__C_MARK)))
    stop = word(p, end, rules->excluded);
  if (stop == NULL) {
    /* Alternative 2, as alternative 1 has not matched: capitals only. */
    const uint8_t *start = prefix ? next : p;

    stop = tnk__scan_run(start, end, UP, rules->excluded);
    if (stop == start)
      return p;
  }
  return rules->contractions ? tnk__scan_contraction(stop, end, 1) : stop;
}

static inline const uint8_t *cased(const uint8_t *p, const uint8_t *end,
                                   const rules_t *rules) {
  const uint8_t *start, *stop;
  unsigned class = tnk__scan_class(p, &stop);

  if (class & rules->excluded)
    return tnk__scan_run(stop, end, rules->excluded, 0);
  if (class & TNK__C_NUMBER)
    return tnk__scan_digits(stop, end, rules->digits - 1);
  stop = words(p, end, rules);
  if (stop != p)
    return stop;
  start = *p == ' ' ? p + 1 : p;
  stop =
      tnk__scan_until(start, end, TNK__C_LETTER | TNK__C_NUMBER | TNK__C_SPACE);
  if (stop == start)
    return tnk__scan_space(p, end, 1);
  while (stop < end &&
         (tnk__is_newline(*stop) || (rules->slash && *stop == '/')))
    stop++;
  return stop;
}

static const uint8_t *next_o200k(tnk__splitter_t *splitter, const uint8_t *p,
                                 const uint8_t *end) {
  static const rules_t rules = {3, 1, 1, 0};

  (void)splitter;
  return cased(p, end, &rules);
}

static const uint8_t *next_tekken(tnk__splitter_t *splitter, const uint8_t *p,
                                  const uint8_t *end) {
  static const rules_t rules = {1, 0, 1, 0};

  (void)splitter;
  return cased(p, end, &rules);
}

static const uint8_t *next_kimi(tnk__splitter_t *splitter, const uint8_t *p,
                                const uint8_t *end) {
  static const rules_t rules = {3, 1, 0, TNK__C_HAN};

  (void)splitter;
  return cased(p, end, &rules);
}

tnk__split_fn tnk__split_cased(tnk__shape_t shape) {
  switch (shape) {
  case TNK__SHAPE_O200K:
    return next_o200k;
  case TNK__SHAPE_TEKKEN:
    return next_tekken;
  case TNK__SHAPE_KIMI:
    return next_kimi;
  default:
    return NULL;
  }
}
