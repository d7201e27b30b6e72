/* SPDX-License-Identifier: MIT */
/* This file consists of loops, and GCC's -O2 vectorizes few of them. */
#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include "lib/rl/lanes.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 128 };

/* Each run passes through many small functions, so they are inlined. */
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* Returns whether two arrays do not overlap. */
static int are_apart(const float *a, const float *b, size_t n) {
  const uintptr_t from = (uintptr_t)a;
  const uintptr_t other = (uintptr_t)b;

  return from + n * sizeof(*a) <= other || other + n * sizeof(*b) <= from;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_KINDS 1
#endif

/* The variant for every processor of this architecture. Without a hardware
 * instruction a fused multiply-add would be a function call. */
#define IS_NARROW
#define NAME(name) name##_any
#define TARGET
#define FMA(a, b, c) ((a) * (b) + (c))
#define FMAF(a, b, c) ((a) * (b) + (c))
#include "lib/rl/lanes_body.h"

#ifdef HAS_KINDS
#define IS_NARROW
#define NAME(name) name##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define FMA(a, b, c) fma(a, b, c)
#define FMAF(a, b, c) fmaf(a, b, c)
#include "lib/rl/lanes_body.h"

#define NAME(name) name##_avx512
#define TARGET                                                                 \
  __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")))
#define FMA(a, b, c) fma(a, b, c)
#define FMAF(a, b, c) fmaf(a, b, c)
#include "lib/rl/lanes_body.h"

#define PICK(name)                                                             \
  (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && \
           __builtin_cpu_supports("avx512bw")                                  \
       ? name##_avx512                                                         \
   : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")           \
       ? name##_avx2                                                           \
       : name##_any)
/* Loops that are bound by memory are one percent slower with the widest
 * vectors. */
#define PICK_NARROW(name)                                                      \
  (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")             \
       ? name##_avx2                                                           \
       : name##_any)
#else
#define PICK(name) name##_any
#define PICK_NARROW(name) name##_any
#endif

double tnk__lanes_kl(const float *sampled, const float *trained,
                     const float *weights, size_t n, tnk_kl_t kind,
                     double *total) {
  return PICK(kl)(sampled, trained, weights, n, kind, total);
}

void tnk__lanes_kl_tokens(float *out, const float *sampled,
                          const float *trained, size_t n, tnk_kl_t kind) {
  size_t at = 0;

  if (kind == TNK_KL_K1 && are_apart(out, sampled, n) &&
      are_apart(out, trained, n))
    at = PICK_NARROW(differences)(out, sampled, trained, n);
  PICK(kl_tokens)(out + at, sampled + at, trained + at, n - at, kind);
}

void tnk__lanes_ratios(float *out, const float *sampled, const float *trained,
                       size_t n) {
  PICK(ratios)(out, sampled, trained, n);
}

double tnk__lanes_sum(const float *values, const float *weights, size_t n,
                      double *total) {
  return PICK(sum)(values, weights, n, total);
}

double tnk__lanes_squares(const float *values, size_t n, double center) {
  return PICK(squares)(values, n, center);
}

void tnk__lanes_shift(float *out, const float *values, size_t n, double center,
                      double scale) {
  PICK(shift)(out, values, n, center, scale);
}

void tnk__lanes_exp_sums(const float *values, size_t n, double max, double *sum,
                         double *squares) {
  PICK(exp_sums)(values, n, max, sum, squares);
}

double tnk__lanes_max(const float *values, size_t n) {
  return PICK(max)(values, n);
}

double tnk__lanes_entropy(const float *logprobs, size_t n) {
  return PICK(entropy)(logprobs, n);
}

double tnk__lanes_surrogate(const tnk_rl_tokens_t *tokens,
                            const float *advantages, double low, double high,
                            double scale, tnk__surrogate_t kind) {
  return PICK(surrogate)(tokens, advantages, low, high, scale, kind);
}

double tnk__lanes_elastic(float *gradient, const float *values,
                          const float *reference, const float *weights,
                          size_t n, double l1, double l2) {
  return PICK(elastic)(gradient, values, reference, weights, n, l1, l2);
}

double tnk__lanes_penalty(const tnk_rl_tokens_t *tokens, tnk_kl_t kind,
                          double scale) {
  return PICK(penalty)(tokens, kind, scale);
}

double tnk__lanes_centered(float *gradient, const float *values, size_t n,
                           double center, double scale) {
  return PICK(centered)(gradient, values, n, center, scale);
}
