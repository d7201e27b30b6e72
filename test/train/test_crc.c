/* SPDX-License-Identifier: MIT */
#include "tools/tnk/text/crc.h"

#include <zlib.h>

#include "support/test.h"

enum { SIZE = 4096 };

static uint8_t bytes[SIZE];

static void fill(void) {
  uint32_t state = 1;

  for (size_t i = 0; i < SIZE; i++) {
    state = state * 1664525 + 1013904223;
    bytes[i] = (uint8_t)(state >> 24);
  }
}

TEST(a_known_sum) {
  CHECK(cli_crc32(0, "123456789", 9) == 0xcbf43926);
  CHECK(cli_crc32(0, NULL, 0) == 0);
}

/* Lengths around each block of the fast path, at each alignment. */
TEST(each_length_has_the_sum_of_zlib) {
  fill();
  for (size_t n = 0; n < 400; n++)
    for (size_t at = 0; at < 17; at++)
      CHECK(cli_crc32(0, bytes + at, n) ==
            crc32(crc32(0, NULL, 0), bytes + at, (uInt)n));
}

TEST(a_sum_is_continued_at_each_place) {
  fill();
  for (size_t n = 0; n <= SIZE; n += n < 300 ? 1 : 61) {
    const uint32_t first = cli_crc32(0, bytes, n);

    CHECK(cli_crc32(first, bytes + n, SIZE - n) ==
          crc32(crc32(0, NULL, 0), bytes, SIZE));
  }
}

/* One bit may not get lost on any of the ways through a block. */
TEST(each_bit_counts) {
  enum { LENGTH = 211 };
  uint32_t sum;

  fill();
  sum = cli_crc32(0, bytes, LENGTH);
  for (size_t bit = 0; bit < 8 * LENGTH; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    CHECK(cli_crc32(0, bytes, LENGTH) != sum);
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
}
