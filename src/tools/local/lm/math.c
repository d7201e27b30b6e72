/* SPDX-License-Identifier: MIT */
#include "tools/local/lm/math.h"

#include <math.h>
#include <string.h>

enum { STEP = 4, LANES = 16 };

/*
 * Rows of c grow by four products at a time. This keeps every sum in the order
 * of k, and the inner loop reads adjacent memory. The second row uses each row
 * of b twice.
 */
static void two_rows(float *restrict c0, float *restrict c1, tnk__lm_view_t a,
                     const float *restrict b, size_t b_row, size_t n,
                     size_t k) {
  size_t p;
  size_t j;

  for (p = 0; p + STEP <= k; p += STEP) {
    const float *x = a.at + p * a.col;
    const float *y = x + a.row;
    const float x0 = x[0], x1 = x[a.col], x2 = x[2 * a.col], x3 = x[3 * a.col];
    const float y0 = y[0], y1 = y[a.col], y2 = y[2 * a.col], y3 = y[3 * a.col];
    const float *restrict b0 = b + p * b_row;
    const float *restrict b1 = b0 + b_row;
    const float *restrict b2 = b1 + b_row;
    const float *restrict b3 = b2 + b_row;
    for (j = 0; j < n; j++) {
      c0[j] = (((c0[j] + x0 * b0[j]) + x1 * b1[j]) + x2 * b2[j]) + x3 * b3[j];
      c1[j] = (((c1[j] + y0 * b0[j]) + y1 * b1[j]) + y2 * b2[j]) + y3 * b3[j];
    }
  }
  for (; p < k; p++) {
    const float x0 = a.at[p * a.col];
    const float y0 = a.at[p * a.col + a.row];
    const float *restrict b0 = b + p * b_row;
    for (j = 0; j < n; j++) {
      c0[j] += x0 * b0[j];
      c1[j] += y0 * b0[j];
    }
  }
}

static void one_row(float *restrict c, tnk__lm_view_t a,
                    const float *restrict b, size_t b_row, size_t n, size_t k) {
  size_t p;
  size_t j;

  for (p = 0; p + STEP <= k; p += STEP) {
    const float *x = a.at + p * a.col;
    const float x0 = x[0], x1 = x[a.col], x2 = x[2 * a.col], x3 = x[3 * a.col];
    const float *restrict b0 = b + p * b_row;
    const float *restrict b1 = b0 + b_row;
    const float *restrict b2 = b1 + b_row;
    const float *restrict b3 = b2 + b_row;
    for (j = 0; j < n; j++)
      c[j] = (((c[j] + x0 * b0[j]) + x1 * b1[j]) + x2 * b2[j]) + x3 * b3[j];
  }
  for (; p < k; p++) {
    const float x0 = a.at[p * a.col];
    const float *restrict b0 = b + p * b_row;
    for (j = 0; j < n; j++)
      c[j] += x0 * b0[j];
  }
}

void tnk__lm_gemm(float *c, size_t c_row, tnk__lm_view_t a, const float *b,
                  size_t b_row, size_t m, size_t n, size_t k, int add) {
  size_t done;
  size_t i;

  if (!add)
    for (i = 0; i < m; i++)
      memset(c + i * c_row, 0, n * sizeof(*c));
  done = tnk__lm_gemm_wide(c, c_row, a, b, b_row, m, n, k);
  if (done == n)
    return;
  c += done;
  b += done;
  n -= done;
  for (i = 0; i + 2 <= m; i += 2, a.at += 2 * a.row)
    two_rows(c + i * c_row, c + (i + 1) * c_row, a, b, b_row, n, k);
  if (i < m)
    one_row(c + i * c_row, a, b, b_row, n, k);
}

/* Add LANES partial sums pairwise. */
static float join(float *lane) {
  size_t half;
  size_t j;

  for (half = LANES / 2; half > 0; half /= 2)
    for (j = 0; j < half; j++)
      lane[j] += lane[j + half];
  return lane[0];
}

float tnk__lm_dot(const float *x, const float *y, size_t n) {
  float lane[LANES] = {0};
  size_t i;
  size_t j;

  for (i = 0; i + LANES <= n; i += LANES)
    for (j = 0; j < LANES; j++)
      lane[j] += x[i + j] * y[i + j];
  for (j = 0; i + j < n; j++)
    lane[j] += x[i + j] * y[i + j];
  return join(lane);
}

void tnk__lm_transpose(float *to, const float *from, size_t n_rows,
                       size_t n_cols) {
  size_t i;
  size_t j;

  for (i = 0; i < n_rows; i++)
    for (j = 0; j < n_cols; j++)
      to[j * n_rows + i] = from[i * n_cols + j];
}

/*
 * exp for x <= 0 with a relative error near 2^-23. It has no branches, so that
 * loops are vectorized, and does not use libm, so that its bits do not depend
 * on the system. x = i ln 2 + r, a polynomial for exp(r), and i is added to the
 * exponent.
 */
static inline float exp_negative(float x) {
  /* Also replaces NaN, which no integer can hold. */
  float y = x >= -87.0f ? x : -87.0f;
  int32_t i = (int32_t)(y * 1.44269504f - 0.5f);
  float f = (float)i;
  float r = (y - f * 0.693359375f) + f * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  union {
    int32_t i;
    float f;
  } two;

  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  two.i = (int32_t)((uint32_t)(i + 127) << 23);
  return p * two.f;
}

static float largest(const float *x, size_t n) {
  float lane[LANES];
  float max = x[0];
  size_t i = 0;
  size_t j;

  if (n >= LANES) {
    memcpy(lane, x, sizeof(lane));
    for (i = LANES; i + LANES <= n; i += LANES)
      for (j = 0; j < LANES; j++)
        lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (j = 0; j < LANES; j++)
      max = lane[j] > max ? lane[j] : max;
  }
  for (; i < n; i++)
    max = x[i] > max ? x[i] : max;
  return max;
}

float tnk__lm_exp_shifted(float *x, size_t n, float *max) {
  float lane[LANES] = {0};
  float top = largest(x, n);
  size_t i;
  size_t j;

  for (i = 0; i < n; i++)
    x[i] = exp_negative(x[i] - top);
  for (i = 0; i + LANES <= n; i += LANES)
    for (j = 0; j < LANES; j++)
      lane[j] += x[i + j];
  for (j = 0; i + j < n; j++)
    lane[j] += x[i + j];
  *max = top;
  return join(lane);
}

void tnk__lm_rms(float *y, float *scale, const float *x, size_t n_rows,
                 size_t d) {
  size_t i;
  size_t j;

  for (i = 0; i < n_rows; i++, x += d, y += d) {
    float mean = tnk__lm_dot(x, x, d) / (float)d;
    scale[i] = 1.0f / sqrtf(mean + 1e-6f);
    for (j = 0; j < d; j++)
      y[j] = x[j] * scale[i];
  }
}

void tnk__lm_rms_back(float *dx, const float *y, const float *scale,
                      const float *dy, size_t n_rows, size_t d) {
  size_t i;
  size_t j;

  for (i = 0; i < n_rows; i++, dx += d, y += d, dy += d) {
    float mean = tnk__lm_dot(y, dy, d) / (float)d;
    for (j = 0; j < d; j++)
      dx[j] += scale[i] * (dy[j] - y[j] * mean);
  }
}

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

tnk__lm_rng_t tnk__lm_rng(uint64_t seed, uint64_t stream) {
  tnk__lm_rng_t rng = {mix(seed + 0x9e3779b97f4a7c15u) ^ mix(~stream)};

  return rng;
}

static uint64_t rng_next(tnk__lm_rng_t *rng) {
  rng->state += 0x9e3779b97f4a7c15u;
  return mix(rng->state);
}

double tnk__lm_rng_unit(tnk__lm_rng_t *rng) {
  return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

float tnk__lm_rng_uniform(tnk__lm_rng_t *rng, float bound) {
  float unit = (float)(rng_next(rng) >> 40) * 0x1p-23f;

  return bound * (unit - 1.0f);
}
