/* SPDX-License-Identifier: MIT */
#include "lib/base/utf8.h"

#include <string.h>

/* The second byte distinguishes well-formed, overlong, surrogate and too large
 * characters, so its range depends on the lead byte. Later bytes are 80..BF. */
static size_t second_range(uint8_t lead, uint8_t *low, uint8_t *high) {
  *low = 0x80;
  *high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf)
    return 2;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (lead == 0xe0)
      *low = 0xa0;
    if (lead == 0xed)
      *high = 0x9f;
    return 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (lead == 0xf0)
      *low = 0x90;
    if (lead == 0xf4)
      *high = 0x8f;
    return 4;
  }
  return 0;
}

size_t tnk__utf8_check(const uint8_t *s, size_t n, size_t *bad, int *cut) {
  uint8_t low, high;
  size_t length, i;

  *cut = 0;
  *bad = 1;
  if (n == 0)
    return 0;
  if (s[0] < 0x80)
    return 1;
  length = second_range(s[0], &low, &high);
  if (length == 0)
    return 0;
  for (i = 1; i < length; i++) {
    if (i == n) {
      *cut = 1;
      break;
    }
    if (s[i] < low || s[i] > high)
      break;
    low = 0x80;
    high = 0xbf;
  }
  *bad = i;
  return i == length ? length : 0;
}

/* The position after the ASCII bytes at i. */
static size_t pass_ascii(const uint8_t *s, size_t n, size_t i) {
  uint64_t word;

  for (; n - i >= sizeof(word); i += sizeof(word)) {
    memcpy(&word, s + i, sizeof(word));
    if ((word & UINT64_C(0x8080808080808080)) != 0)
      break;
  }
  while (i < n && s[i] < 0x80)
    i++;
  return i;
}

size_t tnk__utf8_valid(const uint8_t *s, size_t n) {
  size_t i = 0, bad;
  int cut;

  while (i < n) {
    size_t length = 0;

    if (s[i] < 0x80) {
      i = pass_ascii(s, n, i);
      continue;
    }
    /* Most texts consist of two kinds: two bytes, and three bytes whose lead
     * byte has no special range for the second byte. */
    if (n - i >= 3) {
      if (s[i] >= 0xe1 && s[i] <= 0xec)
        length = (s[i + 1] & 0xc0) == 0x80 && (s[i + 2] & 0xc0) == 0x80 ? 3 : 0;
      else if (s[i] >= 0xc2 && s[i] <= 0xdf)
        length = (s[i + 1] & 0xc0) == 0x80 ? 2 : 0;
    }
    if (length == 0)
      length = tnk__utf8_check(s + i, n - i, &bad, &cut);
    if (length == 0)
      return i;
    i += length;
  }
  return n;
}

size_t tnk__utf8_char(const char *text, size_t n) {
  size_t bad;
  int cut;

  return tnk__utf8_check((const uint8_t *)text, n, &bad, &cut);
}

size_t tnk__utf8_put(uint8_t *out, uint32_t c) {
  if (c < 0x80) {
    out[0] = (uint8_t)c;
    return 1;
  }
  if (c < 0x800) {
    out[0] = (uint8_t)(0xc0 | c >> 6);
    out[1] = (uint8_t)(0x80 | (c & 0x3f));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = (uint8_t)(0xe0 | c >> 12);
    out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c & 0x3f));
    return 3;
  }
  out[0] = (uint8_t)(0xf0 | c >> 18);
  out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
  out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
  out[3] = (uint8_t)(0x80 | (c & 0x3f));
  return 4;
}

void tnk__utf8_repair(char *text) {
  size_t n = strlen(text);
  size_t step;

  for (size_t i = 0; i < n; i += step) {
    step = tnk__utf8_char(text + i, n - i);
    if (step == 0) {
      text[i] = '?';
      step = 1;
    }
  }
}
