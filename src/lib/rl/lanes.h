#ifndef TNK_LIB_RL_LANES_H
#define TNK_LIB_RL_LANES_H

#include <stddef.h>

#include "tnk/rl.h"

/*
 * The loops over arrays that are worth making fast. Each is compiled for
 * several generations of processors, out of lanes_body.h, and the newest that
 * this machine has is taken at each call; so the last digits of a result
 * depend on the machine. Where weights are NULL all are 1; what weighs nothing
 * may be anything.
 */

/* Sum of the estimates, each times its weight; *total is the weights' sum. */
double tnk__lanes_kl(const float *sampled, const float *trained,
                     const float *weights, size_t n, tnk_kl_t kind,
                     double *total);
/* The estimate of each token; `out` may be one of the others. */
void tnk__lanes_kl_tokens(float *out, const float *sampled,
                          const float *trained, size_t n, tnk_kl_t kind);
/* exp(trained - sampled); `out` may be one of the others. */
void tnk__lanes_ratios(float *out, const float *sampled, const float *trained,
                       size_t n);
/* Sum of the values, each times its weight; *total is the weights' sum. */
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
/* The largest value, NaN aside; -INFINITY of nothing. */
double tnk__lanes_max(const float *values, size_t n);
/* Sum of p log p; of log-probabilities. */
double tnk__lanes_entropy(const float *logprobs, size_t n);

typedef enum {
  TNK__SURROGATE_RATIO, /* importance sampling */
  TNK__SURROGATE_PPO,
  TNK__SURROGATE_CISPO
} tnk__surrogate_t;

/* A surrogate loss of tokens, see rl.h. */
double tnk__lanes_surrogate(const tnk_rl_tokens_t *tokens,
                            const float *advantages, double low, double high,
                            double scale, tnk__surrogate_t kind);
/* A penalty of estimates of KL(model, reference), see rl.h. */
double tnk__lanes_penalty(const tnk_rl_tokens_t *tokens, tnk_kl_t kind,
                          double scale);
/* Sum of (value - center)^2 times the scale; its slope, as if the center were
 * a constant, is added to `gradient`, which is not NULL. */
double tnk__lanes_centered(float *gradient, const float *values, size_t n,
                           double center, double scale);
/* Sum of l1 |by| + l2 by^2 of the distances to `reference`, or to 0; its slope
 * is added to `gradient`, which may be NULL. */
double tnk__lanes_elastic(float *gradient, const float *values,
                          const float *reference, const float *weights,
                          size_t n, double l1, double l2);

#endif
