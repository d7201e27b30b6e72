/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CODEC_ORDER_H
#define TNK_TEST_CODEC_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Numbers on the wire have their lowest byte first. Change an array of n
 * numbers of `size` bytes each from this machine's order to that of the wire,
 * or back. */
static inline void order_swap(void *numbers, size_t n, size_t size) {
  static const uint16_t one = 1;
  uint8_t *p = numbers;

  if (*(const uint8_t *)&one == 1)
    return;
  for (; n > 0; n--, p += size)
    for (size_t i = 0; i < size / 2; i++) {
      uint8_t byte = p[i];

      p[i] = p[size - 1 - i];
      p[size - 1 - i] = byte;
    }
}

#endif
