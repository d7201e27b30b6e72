/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_RL_LANES_H
#define TNK_LIB_RL_LANES_H

#include <stddef.h>

#include "tnk/rl.h"

/*
 * The array loops that are worth optimizing. Each is compiled from lanes_body.h
 * for several generations of processors. Each call selects the newest that the
 * machine supports, so the last digits of a result depend on the machine. If
 * weights are NULL, all are 1. Elements with weight 0 may have any value.
 */

/* Weighted sum of the estimates; *total is the sum of the weights. */
double tnk__lanes_kl(const float *sampled, const float *trained,
                     const float *weights, size_t n, tnk_kl_t kind,
                     double *total);
/* The estimate for each token; `out` may be one of the inputs. */
void tnk__lanes_kl_tokens(float *out, const float *sampled,
                          const float *trained, size_t n, tnk_kl_t kind);
/* exp(trained - sampled); `out` may be one of the inputs. */
void tnk__lanes_ratios(float *out, const float *sampled, const float *trained,
                       size_t n);
/* Weighted sum of the values; *total is the sum of the weights. */
double tnk__lanes_sum(const float *values, const float *weights, size_t n,
                      double *total);
/* Sum of (value - center)^2. */
double tnk__lanes_squares(const float *values, size_t n, double center);
/* (value - center) * scale; `out` may be `values`. */
void tnk__lanes_shift(float *out, const float *values, size_t n, double center,
                      double scale);
/* Sums of exp(value - max) and of its square. */
void tnk__lanes_exp_sums(const float *values, size_t n, double max, double *sum,
                         double *squares);
/* The largest value, ignoring NaN; -INFINITY for an empty array. */
double tnk__lanes_max(const float *values, size_t n);
/* Sum of p log p, from log-probabilities. */
double tnk__lanes_entropy(const float *logprobs, size_t n);

typedef enum {
  TNK__SURROGATE_RATIO, /* importance sampling */
  TNK__SURROGATE_PPO,
  TNK__SURROGATE_CISPO
} tnk__surrogate_t;

/* A surrogate loss over tokens, see rl.h. */
double tnk__lanes_surrogate(const tnk_rl_tokens_t *tokens,
                            const float *advantages, double low, double high,
                            double scale, tnk__surrogate_t kind);
/* A penalty by estimates of KL(model, reference), see rl.h. */
double tnk__lanes_penalty(const tnk_rl_tokens_t *tokens, tnk_kl_t kind,
                          double scale);
/* Scaled sum of (value - center)^2. Its slope, with a constant center, is added
 * to `gradient`, which must not be NULL. */
double tnk__lanes_centered(float *gradient, const float *values, size_t n,
                           double center, double scale);
/* Sum of l1 |by| + l2 by^2 of the distances to `reference`, or to 0 if it is
 * NULL. Its slope is added to `gradient`, which may be NULL. */
double tnk__lanes_elastic(float *gradient, const float *values,
                          const float *reference, const float *weights,
                          size_t n, double l1, double l2);

#endif
