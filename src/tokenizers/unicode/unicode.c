/* SPDX-License-Identifier: MIT */
#include "tokenizers/unicode/unicode.h"

/* The data is generated: gen_unicode.py writes tables.inc. */
#include "tokenizers/unicode/tables.inc"

/* The rows of odd_words: pairs of first and last code points, sorted. They list
 * the exceptions of \w: members that are not letters, marks or numbers, and
 * letters, marks or numbers that are not members. */
enum { N_ODD_WORDS = sizeof(odd_words) / sizeof(odd_words[0]) / 2 };

int tnk__is_word(uint32_t cp) {
  unsigned class = tnk__char_class(cp);
  int word = (class & (TNK__C_LETTER | TNK__C_MARK | TNK__C_NUMBER)) != 0;
  size_t low = 0, high = N_ODD_WORDS;

  while (low < high) { /* the first row that ends at or after cp */
    size_t mid = (low + high) / 2;

    if (odd_words[2 * mid + 1] < cp)
      low = mid + 1;
    else
      high = mid;
  }
  return word != (low < N_ODD_WORDS && odd_words[2 * low] <= cp);
}
