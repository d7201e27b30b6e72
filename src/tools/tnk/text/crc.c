/* SPDX-License-Identifier: MIT */
/*
 * CRC-32 by folding, after Gopal et al., "Fast CRC Computation for Generic
 * Polynomials Using PCLMULQDQ Instruction" (Intel, 2009), in the order of bits
 * of zlib. The checksum of packed data took a tenth of a step of tnk train.
 */
#include "tools/tnk/text/crc.h"

#include <zlib.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_FOLD
#include <emmintrin.h>
#include <wmmintrin.h>
#endif

/* zlib counts in 32 bits. */
static uint32_t plain(uint32_t sum, const uint8_t *bytes, size_t n) {
  const size_t most = (size_t)1 << 30;

  for (; n > most; n -= most, bytes += most)
    sum = (uint32_t)crc32(sum, bytes, (uInt)most);
  return (uint32_t)crc32(sum, bytes, (uInt)n);
}

#ifdef HAS_FOLD

enum { LANES = 4, BLOCK = 16, FEWEST = LANES * BLOCK };

#define FOLD __attribute__((target("pclmul,sse2")))

static __m128i load(const uint8_t *bytes) {
  return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

/* Move `sum` ahead to `next`, by the distance of the two constants. */
FOLD static __m128i fold(__m128i sum, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(sum, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(sum, by, 0x11);

  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* The remainder of 128 bits: first of 96, then of 64, and that of these by
 * Barrett's method. */
FOLD static uint32_t reduce(__m128i sum, __m128i by_block) {
  const __m128i half = _mm_set_epi64x(0, 0x163cd6124);
  const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  const __m128i low = _mm_set_epi32(0, -1, 0, -1);
  __m128i part = _mm_clmulepi64_si128(sum, by_block, 0x10);

  sum = _mm_xor_si128(_mm_srli_si128(sum, 8), part);
  part = _mm_clmulepi64_si128(_mm_and_si128(sum, low), half, 0x00);
  sum = _mm_xor_si128(_mm_srli_si128(sum, 4), part);
  part = _mm_clmulepi64_si128(_mm_and_si128(sum, low), polynomial, 0x10);
  part = _mm_clmulepi64_si128(_mm_and_si128(part, low), polynomial, 0x00);
  return (uint32_t)_mm_cvtsi128_si32(
      _mm_srli_si128(_mm_xor_si128(sum, part), 4));
}

/* `n` is a multiple of BLOCK, and at least FEWEST. */
FOLD static uint32_t folded(uint32_t sum, const uint8_t *bytes, size_t n) {
  const __m128i by_all = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_block = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i lane[LANES];

  for (size_t i = 0; i < LANES; i++)
    lane[i] = load(bytes + i * BLOCK);
  lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128((int)~sum));
  bytes += FEWEST;
  n -= FEWEST;
  for (; n >= FEWEST; n -= FEWEST, bytes += FEWEST)
    for (size_t i = 0; i < LANES; i++)
      lane[i] = fold(lane[i], by_all, load(bytes + i * BLOCK));
  for (size_t i = 1; i < LANES; i++)
    lane[0] = fold(lane[0], by_block, lane[i]);
  for (; n > 0; n -= BLOCK, bytes += BLOCK)
    lane[0] = fold(lane[0], by_block, load(bytes));
  return ~reduce(lane[0], by_block);
}

uint32_t cli_crc32(uint32_t sum, const void *bytes, size_t n) {
  const size_t whole = n - n % BLOCK;

  if (whole < FEWEST || !__builtin_cpu_supports("pclmul"))
    return plain(sum, bytes, n);
  return plain(folded(sum, bytes, whole), (const uint8_t *)bytes + whole,
               n % BLOCK);
}

#else

uint32_t cli_crc32(uint32_t sum, const void *bytes, size_t n) {
  return plain(sum, bytes, n);
}

#endif
