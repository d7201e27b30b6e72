/* SPDX-License-Identifier: MIT */
/* Losses and regularizers: values, and slopes that are added to a gradient. */
#include "tnk/rl.h"

#include <math.h>

#include "lib/rl/lanes.h"

static double weight_at(const tnk_rl_tokens_t *tokens, size_t i) {
  return tokens->weights != NULL ? (double)tokens->weights[i] : 1;
}

static void add_at(float *gradient, size_t i, double slope) {
  if (gradient != NULL)
    gradient[i] = (float)((double)gradient[i] + slope);
}

/* ---- Policies ---- */

double tnk_rl_importance_sampling(const tnk_rl_tokens_t *tokens,
                                  const float *advantages, double scale) {
  return tnk__lanes_surrogate(tokens, advantages, 0, INFINITY, scale,
                              TNK__SURROGATE_RATIO);
}

double tnk_rl_ppo(const tnk_rl_tokens_t *tokens, const float *advantages,
                  double low, double high, double scale) {
  return tnk__lanes_surrogate(tokens, advantages, low, high, scale,
                              TNK__SURROGATE_PPO);
}

double tnk_rl_cispo(const tnk_rl_tokens_t *tokens, const float *advantages,
                    double low, double high, double scale) {
  return tnk__lanes_surrogate(tokens, advantages, low, high, scale,
                              TNK__SURROGATE_CISPO);
}

/* ---- Preferences ---- */

/* Returns how much more likely the sequence is for the model than for the
 * reference, as a logarithm. */
static double rise_of(const tnk_rl_tokens_t *tokens) {
  double total;

  return -tnk__lanes_kl(tokens->reference, tokens->logprobs, tokens->weights,
                        tokens->n, TNK_KL_K1, &total);
}

static void add_weights(const tnk_rl_tokens_t *tokens, double slope) {
  for (size_t i = 0; i < tokens->n; i++)
    add_at(tokens->gradient, i, slope * weight_at(tokens, i));
}

double tnk_rl_dpo(const tnk_rl_tokens_t *chosen,
                  const tnk_rl_tokens_t *rejected, double beta, double scale,
                  double *margin) {
  const double d = beta * (rise_of(chosen) - rise_of(rejected));
  /* log(1 + exp(-d)) and its slope; the exponential cannot overflow. */
  const double small = exp(-fabs(d));
  const double slope = -scale * beta * (d > 0 ? small : 1) / (1 + small);

  add_weights(chosen, slope);
  add_weights(rejected, -slope);
  if (margin != NULL)
    *margin = d;
  return scale * (log1p(small) + (d > 0 ? 0 : -d));
}

/* ---- Divergence ---- */

double tnk_rl_kl_penalty(const tnk_rl_tokens_t *tokens, tnk_kl_t kind,
                         double scale) {
  if (kind != TNK_KL_K1 && kind != TNK_KL_K2 && kind != TNK_KL_K3)
    return NAN;
  return tnk__lanes_penalty(tokens, kind, scale);
}

double tnk_rl_kl_exact(float *gradient, const float *logprobs,
                       const float *reference, size_t n,
                       tnk_kl_direction_t direction, double scale) {
  /* Weights of the two directions. */
  const double forth = direction == TNK_KL_FORWARD     ? 1
                       : direction == TNK_KL_SYMMETRIC ? 0.5
                                                       : 0;
  double sum = 0;

  if (direction != TNK_KL_FORWARD && direction != TNK_KL_REVERSE &&
      direction != TNK_KL_SYMMETRIC)
    return NAN;
  for (size_t i = 0; i < n; i++) {
    const double by = (double)logprobs[i] - (double)reference[i];
    const double p = forth * exp((double)logprobs[i]);
    const double q = (1 - forth) * exp((double)reference[i]);

    sum += (p - q) * by;
    add_at(gradient, i, scale * (p * (by + 1) - q));
  }
  return scale * sum;
}

/* ---- Entropy ---- */

/* The logarithm of the sum of exp(logit / temperature). */
static double log_sum(const float *logits, size_t n, double temperature) {
  const double max = tnk__lanes_max(logits, n) / temperature;
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += exp((double)logits[i] / temperature - max);
  return max + log(sum);
}

double tnk_rl_entropy_penalty(float *gradient, const float *logits, size_t n,
                              double temperature, double scale) {
  double all;
  double entropy = 0;

  if (!(temperature > 0))
    return NAN;
  all = log_sum(logits, n, temperature);
  for (size_t i = 0; i < n; i++) {
    const double log_p = (double)logits[i] / temperature - all;

    if (logits[i] != -INFINITY) /* p log p approaches 0 as p does */
      entropy -= exp(log_p) * log_p;
  }
  for (size_t i = 0; i < n && gradient != NULL; i++) {
    const double log_p = (double)logits[i] / temperature - all;

    if (logits[i] != -INFINITY)
      add_at(gradient, i,
             -scale * exp(log_p) * (log_p + entropy) / temperature);
  }
  return scale * entropy;
}

/* ---- Sizes ---- */

double tnk_rl_elastic_net(float *gradient, const float *values,
                          const float *reference, const float *weights,
                          size_t n, double l1, double l2) {
  return tnk__lanes_elastic(gradient, values, reference, weights, n, l1, l2);
}

/* The mean depends on each value, but the distances to it sum up to 0. */
double tnk_rl_l2_centered(float *gradient, const float *values, size_t n,
                          double scale) {
  double total;
  const double mean = tnk__lanes_sum(values, NULL, n, &total) / (double)n;

  if (n == 0)
    return 0;
  return gradient != NULL
             ? tnk__lanes_centered(gradient, values, n, mean, scale)
             : scale * tnk__lanes_squares(values, n, mean);
}

static double dot(const float *a, const float *b, size_t n) {
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double)a[i] * (double)b[i];
  return sum;
}

/* The slope of row i is 4 sum over j of (x_i x_j - [i = j]) x_j: two equal
 * elements, each with the factor 2 of its square. */
double tnk_rl_orthogonality(float *gradient, const float *values, size_t n_rows,
                            size_t n_columns, double scale) {
  double sum = 0;

  for (size_t i = 0; i < n_rows; i++)
    for (size_t j = 0; j < n_rows; j++) {
      const float *other = values + j * n_columns;
      const double by =
          dot(values + i * n_columns, other, n_columns) - (i == j ? 1 : 0);

      sum += by * by;
      for (size_t k = 0; k < n_columns && gradient != NULL; k++)
        add_at(gradient, i * n_columns + k, 4 * scale * by * (double)other[k]);
    }
  return scale * sum;
}

double tnk_rl_gradient_penalty(float *gradient, const float *slope,
                               const float *curvature, size_t n, double target,
                               double scale) {
  const double length = tnk_rl_norm(slope, n);
  const double by = length - target;

  for (size_t i = 0; i < n && gradient != NULL && length > 0; i++)
    add_at(gradient, i, 2 * scale * by / length * (double)curvature[i]);
  return scale * by * by;
}

double tnk_rl_norm(const float *values, size_t n) {
  return sqrt(tnk__lanes_squares(values, n, 0));
}
