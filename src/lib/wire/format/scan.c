/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/scan.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64 };

size_t tnk__scan_negative(const int32_t *values, size_t n) {
  size_t i = 0;

  for (; n - i >= BLOCK; i += BLOCK) {
    int32_t all = 0;
    /* The sign bit is set if any element has it. */
    for (size_t k = 0; k < BLOCK; k++)
      all |= values[i + k];
    if (all < 0)
      break;
  }
  while (i < n && values[i] >= 0)
    i++;
  return i;
}

size_t tnk__scan_no_id(const int64_t *values, size_t n) {
  size_t i = 0;

  for (; n - i >= BLOCK; i += BLOCK) {
    uint64_t all = 0;
    for (size_t k = 0; k < BLOCK; k++)
      all |= (uint64_t)values[i + k];
    if (all > INT32_MAX)
      break;
  }
  while (i < n && values[i] >= 0 && values[i] <= INT32_MAX)
    i++;
  return i;
}

/* If all bits of an exponent are set, the number is an infinity or NaN. Adding
 * one to the lowest bit of the exponent then carries into the sign bit. */
size_t tnk__scan_not_finite(const float *values, size_t n) {
  size_t i = 0;

  for (; n - i >= BLOCK; i += BLOCK) {
    uint32_t bits[BLOCK];
    uint32_t all = 0;
    memcpy(bits, values + i, sizeof(bits));
    for (size_t k = 0; k < BLOCK; k++)
      all |= (bits[k] & 0x7fffffffu) + 0x00800000u;
    if ((all & 0x80000000u) != 0)
      break;
  }
  while (i < n && isfinite(values[i]))
    i++;
  return i;
}
