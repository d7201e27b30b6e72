/* SPDX-License-Identifier: MIT */
#include "tokenizers/split/split.h"

#include <string.h>

#include "tokenizers/unicode/unicode.h"

/* ---- The known expressions ---- */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define PREFIX "[^\\r\\n\\p{L}\\p{N}]?"
#define CL100K(digits)                                                         \
  CONTRACTIONS "|" PREFIX "\\p{L}+|" digits                                    \
               "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES
#define CASED(not, contractions, digits, tail)                                 \
  PREFIX                                                                       \
  "[" UPPER not "]*[" LOWER not "]+" contractions "|" PREFIX                   \
                                "[" UPPER not "]+[" LOWER not "]"              \
                                                              "*" contractions \
                                                              "|" digits "| "  \
                                                              "?[^\\s\\p{"     \
                                                              "L}\\p{N}]"      \
                                                              "+" tail SPACES

static const struct {
  tnk__shape_t shape;
  const char *pattern;
} known[] = {
    {TNK__SHAPE_CL100K1, CL100K("\\p{N}")},
    {TNK__SHAPE_CL100K3, CL100K("\\p{N}{1,3}")},
    {TNK__SHAPE_QWEN35,
     CONTRACTIONS "|" PREFIX "[\\p{L}\\p{M}]+|\\p{N}"
                  "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACES},
    {TNK__SHAPE_O200K,
     CASED("", CONTRACTIONS "?", "\\p{N}{1,3}", "[\\r\\n/]*")},
    {TNK__SHAPE_TEKKEN, CASED("", "", "\\p{N}", "[\\r\\n/]*")},
    {TNK__SHAPE_KIMI, "[\\p{Han}]+|" CASED("&&[^\\p{Han}]", CONTRACTIONS "?",
                                           "\\p{N}{1,3}", "[\\r\\n]*")},
    {TNK__SHAPE_CL100K_END,
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+"
     "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"},
    {TNK__SHAPE_GPT2,
     "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$"
     "|\\s+(?!\\S)|\\s"},
    {TNK__SHAPE_GPT2,
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
     "|\\s+(?!\\S)|\\s+"},
};

/* The brackets of the third expression contain real newlines, not escapes. */
static const char *const deepseek[3] = {
    "\\p{N}{1,3}",
    "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-"
    "\xe3\x83\xbf]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
};

tnk__shape_t tnk__split_find(const char *pattern, size_t n) {
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (strlen(known[i].pattern) == n &&
        memcmp(known[i].pattern, pattern, n) == 0)
      return known[i].shape;
  return TNK__SHAPE_NONE;
}

tnk__shape_t tnk__split_find3(const char *const *patterns, const size_t *n) {
  for (size_t i = 0; i < 3; i++)
    if (strlen(deepseek[i]) != n[i] ||
        memcmp(deepseek[i], patterns[i], n[i]) != 0)
      return TNK__SHAPE_NONE;
  return TNK__SHAPE_DEEPSEEK;
}

/* ---- Parts of the scanners ----
 *
 * All take a range of valid UTF-8 and return a position in it.
 */

static inline int is_newline(uint8_t byte) {
  return byte == '\n' || byte == '\r';
}

/* The class of the character at p, and its end. */
static inline unsigned scan_class(const uint8_t *p, const uint8_t **next) {
  if (*p < 0x80) {
    *next = p + 1;
    return tnk__class_block[*p];
  }
  *next = p + tnk__utf8_length(*p);
  return tnk__char_class(tnk__utf8_get(p));
}

/* The end of a run of characters that have a class of `any` and none of
 * `none`. */
static inline const uint8_t *scan_run(const uint8_t *p, const uint8_t *end,
                                      unsigned any, unsigned none) {
  while (p < end) {
    const uint8_t *next;
    unsigned class = scan_class(p, &next);

    if ((class & any) == 0 || (class & none) != 0)
      break;
    p = next;
  }
  return p;
}

/* The end of a run of characters that have no class of `none`. */
static inline const uint8_t *scan_until(const uint8_t *p, const uint8_t *end,
                                        unsigned none) {
  while (p < end) {
    const uint8_t *next;

    if ((scan_class(p, &next) & none) != 0)
      break;
    p = next;
  }
  return p;
}

/* \p{N}{1,most} */
static inline const uint8_t *scan_digits(const uint8_t *p, const uint8_t *end,
                                         unsigned most) {
  for (unsigned i = 0; i < most && p < end; i++) {
    const uint8_t *next;

    if ((scan_class(p, &next) & TNK__C_NUMBER) == 0)
      break;
    p = next;
  }
  return p;
}

/* Match '(s|t|re|ve|m|ll|d) at p. Returns p if it does not match. With case
 * folding the long s, U+017F, matches s. No other character outside ASCII folds
 * to one of these letters. */
static inline const uint8_t *scan_contraction(const uint8_t *p,
                                              const uint8_t *end, int fold) {
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
static inline const uint8_t *scan_space(const uint8_t *p, const uint8_t *end,
                                        int newlines) {
  const uint8_t *start = p, *last = p, *after_newline = NULL;

  while (p < end) {
    const uint8_t *next;

    if ((scan_class(p, &next) & TNK__C_SPACE) == 0)
      break;
    if (is_newline(*p))
      after_newline = next;
    last = p;
    p = next;
  }
  if (newlines && after_newline != NULL)
    return after_newline;
  return p == end || last == start ? p : last;
}

/* ---- Words are runs of letters ---- */

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
      scan_until(start, end, letters | TNK__C_NUMBER | TNK__C_SPACE);

  return stop == start ? p : stop;
}

static inline const uint8_t *cl100k(const uint8_t *p, const uint8_t *end,
                                    unsigned letters, unsigned digits) {
  const uint8_t *next, *stop;
  unsigned class;

  stop = scan_contraction(p, end, 1);
  if (stop != p)
    return stop;
  class = scan_class(p, &next);
  if (class & letters)
    return scan_run(next, end, letters, 0);
  if (class & TNK__C_NUMBER)
    return scan_digits(next, end, digits - 1);
  if (!is_newline(*p)) {
    stop = scan_run(next, end, letters, 0);
    if (stop != next)
      return stop;
  }
  stop = symbols(p, end, letters);
  if (stop == p)
    return scan_space(p, end, 1);
  while (stop < end && is_newline(*stop))
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

/* `\s++$` comes before `\s*[\r\n]`, so white space at the end of the segment
 * is not cut after a newline. */
static const uint8_t *next_cl100k_end(tnk__splitter_t *splitter,
                                      const uint8_t *p, const uint8_t *end) {
  const uint8_t *stop = scan_run(p, end, TNK__C_SPACE, 0);

  (void)splitter;
  return stop == end ? end : cl100k(p, end, TNK__C_LETTER, 3);
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
  stop = scan_contraction(p, end, 0);
  if (stop != p)
    return stop;
  start = *p == ' ' ? p + 1 : p;
  stop = scan_run(start, end, TNK__C_LETTER, 0);
  if (stop != start)
    return stop;
  stop = scan_run(start, end, TNK__C_NUMBER, 0);
  if (stop != start)
    return stop;
  stop = symbols(p, end, TNK__C_LETTER);
  return stop != p ? stop : scan_space(p, end, 0);
}

/* Digits are cut off first. Their neighbors end there, as at the end of the
 * text. The reference takes these classes from a newer version of Unicode than
 * those of the expressions: it has 13 more. */
static int is_digit(const uint8_t *p) {
  uint32_t cp = tnk__utf8_get(p);

  return (tnk__char_class(cp) & TNK__C_NUMBER) != 0 ||
         (cp >= 0x11de0 && cp <= 0x11de9) || (cp >= 0x16ff4 && cp <= 0x16ff6);
}

static const uint8_t *digits_or(tnk__splitter_t *splitter, const uint8_t *p,
                                const uint8_t *end, int run) {
  if (splitter->region == NULL || p >= splitter->region) {
    const uint8_t *stop = p;

    while (stop < end && is_digit(stop)) {
      stop += tnk__utf8_length(*stop);
      if (!run)
        break;
    }
    if (stop != p)
      return stop;
    while (stop < end && !is_digit(stop))
      stop += tnk__utf8_length(*stop);
    splitter->region = stop;
  }
  return next_gpt2(splitter, p, splitter->region);
}

static const uint8_t *next_digits(tnk__splitter_t *splitter, const uint8_t *p,
                                  const uint8_t *end) {
  return digits_or(splitter, p, end, 0);
}

static const uint8_t *next_numbers(tnk__splitter_t *splitter, const uint8_t *p,
                                   const uint8_t *end) {
  return digits_or(splitter, p, end, 1);
}

/* ---- Words end before a capital letter ---- */

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
    class = scan_class(p, &next);
    if ((class & UP) == 0 || (class & excluded) != 0) {
      if ((class & TNK__C_LOWER) != 0)
        return scan_run(next, end, LO, excluded);
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
  unsigned class = scan_class(p, &next);
  int prefix =
      (class & (TNK__C_LETTER | TNK__C_NUMBER)) == 0 && !is_newline(*p);

  if (prefix)
    stop = word(next, end, rules->excluded);
  if (stop == NULL && (class & (TNK__C_LETTER | TNK__C_MARK)))
    stop = word(p, end, rules->excluded);
  if (stop == NULL) {
    /* Alternative 2, as alternative 1 has not matched: capitals only. */
    const uint8_t *start = prefix ? next : p;

    stop = scan_run(start, end, UP, rules->excluded);
    if (stop == start)
      return p;
  }
  return rules->contractions ? scan_contraction(stop, end, 1) : stop;
}

static inline const uint8_t *cased(const uint8_t *p, const uint8_t *end,
                                   const rules_t *rules) {
  const uint8_t *start, *stop;
  unsigned class = scan_class(p, &stop);

  if (class & rules->excluded)
    return scan_run(stop, end, rules->excluded, 0);
  if (class & TNK__C_NUMBER)
    return scan_digits(stop, end, rules->digits - 1);
  stop = words(p, end, rules);
  if (stop != p)
    return stop;
  start = *p == ' ' ? p + 1 : p;
  stop = scan_until(start, end, TNK__C_LETTER | TNK__C_NUMBER | TNK__C_SPACE);
  if (stop == start)
    return scan_space(p, end, 1);
  while (stop < end && (is_newline(*stop) || (rules->slash && *stop == '/')))
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

/* ---- DeepSeek ---- */

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

    if (scan_class(p, &next) & TNK__C_NUMBER)
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
  unsigned class = scan_class(p, &next);

  if (*p < 0x80 && (class & TNK__C_PUNCT) && next < end &&
      is_ascii_letter(*next)) {
    while (next < end && is_ascii_letter(*next))
      next++;
    return next;
  }
  if (class & LETTERS)
    return scan_run(next, end, LETTERS, 0);
  if ((class & TNK__C_PUNCT) == 0 && !is_newline(*p)) {
    stop = scan_run(next, end, LETTERS, 0);
    if (stop != next)
      return stop;
  }
  start = *p == ' ' ? next : p;
  stop = scan_run(start, end, TNK__C_PUNCT, 0);
  if (stop != start) {
    while (stop < end && is_newline(*stop))
      stop++;
    return stop;
  }
  return class & TNK__C_SPACE ? scan_space(p, end, 1) : p;
}

static const uint8_t *next_deepseek(tnk__splitter_t *splitter, const uint8_t *p,
                                    const uint8_t *end) {
  const uint8_t *next, *stop;

  if (splitter->region == NULL || p >= splitter->region) {
    if (scan_class(p, &next) & TNK__C_NUMBER)
      return scan_digits(next, end, 2);
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

/* ---- The scanner of a shape ---- */

static const uint8_t *next_whole(tnk__splitter_t *splitter, const uint8_t *p,
                                 const uint8_t *end) {
  (void)splitter;
  (void)p;
  return end;
}

void tnk__split_init(tnk__splitter_t *splitter, tnk__shape_t shape) {
  static const tnk__split_fn scanners[] = {
      [TNK__SHAPE_NONE] = next_whole,
      [TNK__SHAPE_GPT2] = next_gpt2,
      [TNK__SHAPE_CL100K1] = next_cl100k1,
      [TNK__SHAPE_CL100K3] = next_cl100k3,
      [TNK__SHAPE_QWEN35] = next_qwen35,
      [TNK__SHAPE_O200K] = next_o200k,
      [TNK__SHAPE_TEKKEN] = next_tekken,
      [TNK__SHAPE_KIMI] = next_kimi,
      [TNK__SHAPE_DEEPSEEK] = next_deepseek,
      [TNK__SHAPE_CL100K_END] = next_cl100k_end,
      [TNK__SHAPE_DIGITS] = next_digits,
      [TNK__SHAPE_NUMBERS] = next_numbers};

  splitter->region = NULL;
  splitter->next = scanners[shape];
}

static const uint8_t *next_mark(tnk__splitter_t *splitter, const uint8_t *p,
                                const uint8_t *end) {
  const size_t n = splitter->n_mark;

  for (p++; (size_t)(end - p) >= n; p++) {
    p = memchr(p, splitter->mark[0], (size_t)(end - p) - n + 1);
    if (p == NULL)
      return end;
    if (memcmp(p, splitter->mark, n) == 0)
      return p;
  }
  return end;
}

void tnk__split_before(tnk__splitter_t *splitter, const uint8_t *mark,
                       size_t n_mark) {
  splitter->region = NULL;
  splitter->mark = mark;
  splitter->n_mark = n_mark;
  splitter->next = next_mark;
}
