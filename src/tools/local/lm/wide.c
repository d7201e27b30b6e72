/* SPDX-License-Identifier: MIT */
#include "tools/local/lm/math.h"

#if defined(__GNUC__) && defined(__x86_64__)

#include <string.h>

/*
 * Not every processor has vectors of eight floats. These functions are compiled
 * for them whatever the compiler's options are, and called only where they
 * exist. They add the same products in the same order as the portable loops,
 * without fused multiply-add, so every sum has the same bits.
 *
 * A vector is also one access for a sanitizer, which makes the model several
 * times faster in such a build.
 */
#define TNK__LM_AVX2 __attribute__((target("avx2")))

/* Like float, it may be anywhere in an array of floats. */
typedef float wide_t
    __attribute__((vector_size(8 * sizeof(float)), aligned(4), may_alias));

/* The sums of ROWS x COLS elements are in registers at once. DEPTH rows of b
 * with COLS columns stay in the cache. */
enum { WIDE = 8, ROWS = 4, COLS = 2 * WIDE, DEPTH = 128, MIN_PACKED = 8 };

/* c[ROWS x COLS] += a[ROWS x k] b[k x COLS] */
TNK__LM_AVX2 static void tile(float *c, size_t c_row, tnk__lm_view_t a,
                              const float *b, size_t b_row, size_t k) {
  wide_t *c0 = (wide_t *)c;
  wide_t *c1 = (wide_t *)(c + c_row);
  wide_t *c2 = (wide_t *)(c + 2 * c_row);
  wide_t *c3 = (wide_t *)(c + 3 * c_row);
  wide_t l0 = c0[0], l1 = c1[0], l2 = c2[0], l3 = c3[0];
  wide_t r0 = c0[1], r1 = c1[1], r2 = c2[1], r3 = c3[1];
  const float *x = a.at;
  size_t p;

  for (p = 0; p < k; p++, x += a.col, b += b_row) {
    const wide_t l = ((const wide_t *)b)[0], r = ((const wide_t *)b)[1];
    const float x0 = x[0], x1 = x[a.row], x2 = x[2 * a.row], x3 = x[3 * a.row];
    l0 += x0 * l;
    r0 += x0 * r;
    l1 += x1 * l;
    r1 += x1 * r;
    l2 += x2 * l;
    r2 += x2 * r;
    l3 += x3 * l;
    r3 += x3 * r;
  }
  c0[0] = l0;
  c0[1] = r0;
  c1[0] = l1;
  c1[1] = r1;
  c2[0] = l2;
  c2[1] = r2;
  c3[0] = l3;
  c3[1] = r3;
}

/* c[1 x n] += a[1 x k] b[k x n]. It reads b once and in order: a row that is
 * sampled needs all weights. */
TNK__LM_AVX2 static void row(float *c, tnk__lm_view_t a, const float *b,
                             size_t b_row, size_t n, size_t k) {
  size_t p;
  size_t j;

  for (p = 0; p + ROWS <= k; p += ROWS, b += ROWS * b_row) {
    const float *x = a.at + p * a.col;
    const float x0 = x[0], x1 = x[a.col], x2 = x[2 * a.col], x3 = x[3 * a.col];
    for (j = 0; j < n; j += WIDE) {
      wide_t *to = (wide_t *)(c + j);
      wide_t sum = *to + x0 * *(const wide_t *)(b + j);
      sum += x1 * *(const wide_t *)(b + b_row + j);
      sum += x2 * *(const wide_t *)(b + 2 * b_row + j);
      *to = sum + x3 * *(const wide_t *)(b + 3 * b_row + j);
    }
  }
  for (; p < k; p++, b += b_row)
    for (j = 0; j < n; j += WIDE)
      *(wide_t *)(c + j) += a.at[p * a.col] * *(const wide_t *)(b + j);
}

/* Rows of b may be a power of two apart, and a cache holds only a few such
 * rows. Therefore the columns of a tile are copied if there are many tiles. `k`
 * is at most DEPTH. */
static void tiles(float *c, size_t c_row, tnk__lm_view_t a, const float *b,
                  size_t b_row, size_t m, size_t n, size_t k) {
  float packed[DEPTH * COLS];
  size_t i;
  size_t j;
  size_t p;

  for (j = 0; j < n; j += COLS) {
    const float *panel = b + j;
    size_t panel_row = b_row;
    if (m >= MIN_PACKED) {
      for (p = 0; p < k; p++)
        memcpy(packed + p * COLS, panel + p * b_row, COLS * sizeof(*packed));
      panel = packed;
      panel_row = COLS;
    }
    for (i = 0; i + ROWS <= m; i += ROWS) {
      tnk__lm_view_t rows = {a.at + i * a.row, a.row, a.col};
      tile(c + i * c_row + j, c_row, rows, panel, panel_row, k);
    }
  }
}

size_t tnk__lm_gemm_wide(float *c, size_t c_row, tnk__lm_view_t a,
                         const float *b, size_t b_row, size_t m, size_t n,
                         size_t k) {
  const size_t whole = m - m % ROWS;
  size_t i;
  size_t p;

  if (!__builtin_cpu_supports("avx2"))
    return 0;
  n -= n % COLS;
  for (p = 0; n > 0 && whole > 0 && p < k; p += DEPTH) {
    tnk__lm_view_t part = {a.at + p * a.col, a.row, a.col};
    tiles(c, c_row, part, b + p * b_row, b_row, whole, n,
          k - p < DEPTH ? k - p : DEPTH);
  }
  for (i = whole; n > 0 && i < m; i++) {
    tnk__lm_view_t one = {a.at + i * a.row, a.row, a.col};
    row(c + i * c_row, one, b, b_row, n, k);
  }
  return n;
}

#else

size_t tnk__lm_gemm_wide(float *c, size_t c_row, tnk__lm_view_t a,
                         const float *b, size_t b_row, size_t m, size_t n,
                         size_t k) {
  (void)c, (void)c_row, (void)a, (void)b, (void)b_row;
  (void)m, (void)n, (void)k;
  return 0;
}

#endif
