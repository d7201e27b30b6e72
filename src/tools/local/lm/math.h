/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_MATH_H
#define TNK_TOOLS_LOCAL_LM_MATH_H

#include <stddef.h>
#include <stdint.h>

/*
 * The arithmetic of the model. Each output element is summed in one fixed
 * order, independent of the number of rows. So a row has the same bits in a
 * pass, a prefill or a single decoding step. Compilers can vectorize the code
 * without reordering any sum.
 */

/* A matrix in memory: element (i, j) is at[i * row + j * col]. */
typedef struct {
  const float *at;
  size_t row;
  size_t col;
} tnk__lm_view_t;

/* c[m x n] = (add ? c : 0) + a[m x k] * b[k x n]. b and c must not overlap;
 * their rows are b_row and c_row floats apart. */
void tnk__lm_gemm(float *c, size_t c_row, tnk__lm_view_t a, const float *b,
                  size_t b_row, size_t m, size_t n, size_t k, int add);
/* c += a * b for the first columns, with the processor's vectors. Returns their
 * number, a multiple of 16: all but the last columns, or 0. */
size_t tnk__lm_gemm_wide(float *c, size_t c_row, tnk__lm_view_t a,
                         const float *b, size_t b_row, size_t m, size_t n,
                         size_t k);
/* Sum of x[i] * y[i]. */
float tnk__lm_dot(const float *x, const float *y, size_t n);
/* to[j * n_rows + i] = from[i * n_cols + j] */
void tnk__lm_transpose(float *to, const float *from, size_t n_rows,
                       size_t n_cols);

/* Replace x by exp(x - max) in place. Returns the sum; *max receives the
 * maximum. */
float tnk__lm_exp_shifted(float *x, size_t n, float *max);

/* Normalize rows of d floats to a root mean square of 1; `scale` receives the
 * factor of each row. */
void tnk__lm_rms(float *y, float *scale, const float *x, size_t n_rows,
                 size_t d);
/* dx += the gradient of the normalization, given y, scale and dy. */
void tnk__lm_rms_back(float *dx, const float *y, const float *scale,
                      const float *dy, size_t n_rows, size_t d);

/* Pseudo-random numbers with integer arithmetic, equal on all machines. */
typedef struct {
  uint64_t state;
} tnk__lm_rng_t;

/* Different (seed, stream) pairs give independent streams. */
tnk__lm_rng_t tnk__lm_rng(uint64_t seed, uint64_t stream);
/* In [0, 1), a multiple of 2^-53. */
double tnk__lm_rng_unit(tnk__lm_rng_t *rng);
/* Uniform in [-bound, bound). */
float tnk__lm_rng_uniform(tnk__lm_rng_t *rng, float bound);

#endif
