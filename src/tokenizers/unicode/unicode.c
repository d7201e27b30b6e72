/* SPDX-License-Identifier: MIT */
#include "tokenizers/unicode/unicode.h"

int tnk__is_word(uint32_t cp) {
  unsigned class = tnk__char_class(cp);
  int word = (class & (TNK__C_LETTER | TNK__C_MARK | TNK__C_NUMBER)) != 0;
  size_t low = 0, high = TNK__ODD_WORD_ROWS;

  while (low < high) { /* the first row that ends at or after cp */
    size_t mid = (low + high) / 2;

    if (tnk__odd_words[2 * mid + 1] < cp)
      low = mid + 1;
    else
      high = mid;
  }
  return word != (low < TNK__ODD_WORD_ROWS && tnk__odd_words[2 * low] <= cp);
}
