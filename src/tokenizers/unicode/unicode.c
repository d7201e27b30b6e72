#include "tokenizers/unicode/unicode.h"

int tnk__is_word(uint32_t cp) {
  unsigned class = tnk__char_class(cp);
  int word = (class & (TNK__C_LETTER | TNK__C_MARK | TNK__C_NUMBER)) != 0;
  size_t low = 0, high = TNK__ODD_WORD_ROWS;

  while (low < high) { /* the first row that ends at cp or behind it */
    size_t mid = (low + high) / 2;

    if (tnk__odd_words[2 * mid + 1] < cp)
      low = mid + 1;
    else
      high = mid;
  }
  return word != (low < TNK__ODD_WORD_ROWS && tnk__odd_words[2 * low] <= cp);
}

size_t tnk__utf8_put(uint8_t *out, uint32_t cp) {
  if (cp < 0x80) {
    out[0] = (uint8_t)cp;
    return 1;
  }
  if (cp < 0x800) {
    out[0] = (uint8_t)(0xc0 | cp >> 6);
    out[1] = (uint8_t)(0x80 | (cp & 0x3f));
    return 2;
  }
  if (cp < 0x10000) {
    out[0] = (uint8_t)(0xe0 | cp >> 12);
    out[1] = (uint8_t)(0x80 | (cp >> 6 & 0x3f));
    out[2] = (uint8_t)(0x80 | (cp & 0x3f));
    return 3;
  }
  out[0] = (uint8_t)(0xf0 | cp >> 18);
  out[1] = (uint8_t)(0x80 | (cp >> 12 & 0x3f));
  out[2] = (uint8_t)(0x80 | (cp >> 6 & 0x3f));
  out[3] = (uint8_t)(0x80 | (cp & 0x3f));
  return 4;
}
