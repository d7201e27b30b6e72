/* SPDX-License-Identifier: MIT */
#include "tnk/rl.h"

#include <math.h>
#include <string.h>

#include "lib/base/options.h"
#include "lib/rl/lanes.h"
#include "tnk/error.h"

static double weight_at(const float *weights, size_t i) {
  return weights != NULL ? (double)weights[i] : 1;
}

/* ---- Advantages ---- */

/* If all are equal, the standard deviation is 0, apart from rounding. */
static int are_equal(const float *values, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (!(values[i] == values[0]))
      return 0;
  return isfinite(values[0]) != 0;
}

static double scale_of(const float *rewards, size_t n, double mean,
                       tnk_advantage_t kind) {
  if (kind == TNK_ADVANTAGE_LEAVE_ONE_OUT)
    return n > 1 ? (double)n / (double)(n - 1) : 0;
  if (kind == TNK_ADVANTAGE_CENTERED)
    return 1;
  return 1 / sqrt(tnk__lanes_squares(rewards, n, mean) / (double)n);
}

static void advance(float *advantages, const float *rewards, size_t n,
                    tnk_advantage_t kind) {
  double count;
  const double mean = tnk__lanes_sum(rewards, NULL, n, &count) / (double)n;

  if (are_equal(rewards, n))
    memset(advantages, 0, n * sizeof(*advantages));
  else
    tnk__lanes_shift(advantages, rewards, n, mean,
                     scale_of(rewards, n, mean, kind));
}

int tnk_rl_group_advantages(float *advantages, const float *rewards, size_t n,
                            size_t group_size, tnk_advantage_t kind) {
  if (group_size == 0 || n % group_size != 0 ||
      (n > 0 && (advantages == NULL || rewards == NULL)) ||
      (kind != TNK_ADVANTAGE_CENTERED && kind != TNK_ADVANTAGE_NORMALIZED &&
       kind != TNK_ADVANTAGE_LEAVE_ONE_OUT))
    return TNK_EINVAL;
  for (size_t at = 0; at < n; at += group_size)
    advance(advantages + at, rewards + at, group_size, kind);
  return TNK_OK;
}

void tnk_rl_discounted_sums(float *sums, const float *rewards, size_t n,
                            double discount) {
  double sum = 0;

  for (size_t i = n; i-- > 0;) {
    sum = (double)rewards[i] + discount * sum;
    sums[i] = (float)sum;
  }
}

/* ---- Divergence ---- */

static double log_ratio_at(const float *sampled, const float *trained,
                           size_t i) {
  return (double)trained[i] - (double)sampled[i];
}

static int is_kind(tnk_kl_t kind) {
  return kind == TNK_KL_K1 || kind == TNK_KL_K2 || kind == TNK_KL_K3;
}

double tnk_rl_kl(const float *sampled, const float *trained,
                 const float *weights, size_t n, tnk_kl_t kind) {
  double total = 0;
  double sum;

  if (!is_kind(kind))
    return NAN;
  sum = tnk__lanes_kl(sampled, trained, weights, n, kind, &total);
  return sum / total;
}

void tnk_rl_kl_tokens(float *out, const float *sampled, const float *trained,
                      size_t n, tnk_kl_t kind) {
  if (is_kind(kind)) {
    tnk__lanes_kl_tokens(out, sampled, trained, n, kind);
    return;
  }
  for (size_t i = 0; i < n; i++)
    out[i] = NAN;
}

/* ---- Ratios ---- */

void tnk_rl_ratios(float *ratios, const float *sampled, const float *trained,
                   size_t n) {
  tnk__lanes_ratios(ratios, sampled, trained, n);
}

/* Weighted sums over tokens. */
typedef struct {
  size_t n;
  double weight, r, abs_r, k2, k3, ratio;
  double max_abs_r, min_r, max_r;
  double squares; /* sum of weight times squared ratio */
} sums_t;

/* The larger one; NaN if either is NaN. */
static double larger(double a, double b) {
  return isnan(a) || a >= b ? a : b;
}

static void add(sums_t *sums, double r, double weight) {
  const double ratio = exp(r);

  sums->n++;
  sums->max_abs_r = larger(sums->max_abs_r, fabs(r));
  sums->min_r = -larger(-sums->min_r, -r);
  sums->max_r = larger(sums->max_r, r);
  sums->weight += weight;
  sums->r += weight * r;
  sums->abs_r += weight * fabs(r);
  sums->k2 += weight * r * r / 2;
  sums->k3 += weight * (expm1(r) - r);
  sums->ratio += weight * ratio;
  sums->squares += weight * ratio * weight * ratio;
}

/* Variance about the mean, which takes a second pass. */
static double variance(const float *sampled, const float *trained,
                       const float *weights, size_t n, const sums_t *sums) {
  const double mean = sums->ratio / sums->weight;
  double sum = 0;

  for (size_t i = 0; i < n; i++) {
    const double weight = weight_at(weights, i);
    double by;

    if (weight == 0)
      continue;
    by = exp(log_ratio_at(sampled, trained, i)) - mean;
    sum += weight * by * by;
  }
  return sum / sums->weight;
}

int tnk_rl_drift(tnk_drift_t *out, const float *sampled, const float *trained,
                 const float *weights, size_t n) {
  tnk_drift_t own = TNK_DRIFT_INIT;
  sums_t sums = {.max_abs_r = -1, .min_r = INFINITY, .max_r = -INFINITY};

  if (out == NULL)
    return TNK_EINVAL;
  for (size_t i = 0; i < n; i++)
    if (weight_at(weights, i) != 0)
      add(&sums, log_ratio_at(sampled, trained, i), weight_at(weights, i));
  own.n = sums.n;
  own.log_ratio = sums.r / sums.weight;
  own.abs_log_ratio = sums.abs_r / sums.weight;
  own.max_abs_log_ratio = sums.n > 0 ? sums.max_abs_r : NAN;
  own.k2 = sums.k2 / sums.weight;
  own.k3 = sums.k3 / sums.weight;
  own.ratio = sums.ratio / sums.weight;
  own.min_ratio = sums.n > 0 ? exp(sums.min_r) : NAN;
  own.max_ratio = sums.n > 0 ? exp(sums.max_r) : NAN;
  own.ratio_variance = variance(sampled, trained, weights, n, &sums);
  own.effective_tokens =
      sums.n > 0 ? sums.ratio * sums.ratio / sums.squares : 0;
  return TNK__FILL(tnk_drift_t, out, &own);
}

/* Relative to the largest weight, which becomes 1, so that nothing
 * overflows. */
double tnk_rl_effective_sample_size(const float *log_weights, size_t n) {
  const double max = tnk__lanes_max(log_weights, n);
  double sum = 0;
  double squares = 0;

  if (max == -INFINITY) /* Or all are NaN. */
    return tnk__lanes_sum(log_weights, NULL, n, &squares) <= 0 ? 0 : NAN;
  tnk__lanes_exp_sums(log_weights, n, max, &sum, &squares);
  return sum * sum / squares;
}

/* ---- Entropy ---- */

double tnk_rl_sampled_entropy(const float *sampled, const float *weights,
                              size_t n) {
  double total = 0;
  const double sum = tnk__lanes_sum(sampled, weights, n, &total);

  return -sum / total;
}

double tnk_rl_entropy(const float *logprobs, size_t n) {
  return -tnk__lanes_entropy(logprobs, n);
}
