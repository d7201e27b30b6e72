#include "tnk/rl.h"

#include <math.h>

#include "base/options.h"
#include "tnk/error.h"

static double weight_at(const float *weights, size_t i) {
  return weights != NULL ? (double)weights[i] : 1;
}

/* ---- Advantages ---- */

static double mean_of(const float *values, size_t n) {
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double)values[i];
  return sum / (double)n;
}

/* All equal: the standard deviation is 0, or what rounding makes of it. */
static int are_equal(const float *values, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (!(values[i] == values[0]))
      return 0;
  return isfinite(values[0]) != 0;
}

static double scale_of(const float *rewards, size_t n, double mean,
                       tnk_advantage_t kind) {
  double sum = 0;

  if (kind == TNK_ADVANTAGE_LEAVE_ONE_OUT)
    return n > 1 ? (double)n / (double)(n - 1) : 0;
  if (kind == TNK_ADVANTAGE_CENTERED)
    return 1;
  for (size_t i = 0; i < n; i++) {
    double by = (double)rewards[i] - mean;

    sum += by * by;
  }
  return 1 / sqrt(sum / (double)n);
}

static void advance(float *advantages, const float *rewards, size_t n,
                    tnk_advantage_t kind) {
  const double mean = mean_of(rewards, n);
  const int is_flat = are_equal(rewards, n);
  const double scale = is_flat ? 0 : scale_of(rewards, n, mean, kind);

  for (size_t i = 0; i < n; i++)
    advantages[i] = is_flat ? 0 : (float)(((double)rewards[i] - mean) * scale);
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

static double estimate(double r, tnk_kl_t kind) {
  switch (kind) {
  case TNK_KL_K1:
    return -r;
  case TNK_KL_K2:
    return r * r / 2;
  case TNK_KL_K3:
    return expm1(r) - r; /* for small r the difference of large numbers */
  }
  return NAN;
}

double tnk_rl_kl(const float *sampled, const float *trained,
                 const float *weights, size_t n, tnk_kl_t kind) {
  double sum = 0;
  double total = 0;

  for (size_t i = 0; i < n; i++) {
    const double weight = weight_at(weights, i);

    if (weight == 0)
      continue; /* whatever stands there */
    sum += weight * estimate(log_ratio_at(sampled, trained, i), kind);
    total += weight;
  }
  return sum / total;
}

void tnk_rl_kl_tokens(float *out, const float *sampled, const float *trained,
                      size_t n, tnk_kl_t kind) {
  for (size_t i = 0; i < n; i++)
    out[i] = (float)estimate(log_ratio_at(sampled, trained, i), kind);
}

/* ---- Ratios ---- */

void tnk_rl_ratios(float *ratios, const float *sampled, const float *trained,
                   size_t n) {
  for (size_t i = 0; i < n; i++)
    ratios[i] = (float)exp(log_ratio_at(sampled, trained, i));
}

/* Sums over tokens by their weights. */
typedef struct {
  size_t n;
  double weight, r, abs_r, k2, k3, ratio;
  double max_abs_r, min_r, max_r;
  double squares; /* of weight times ratio */
} sums_t;

/* The larger one; NaN where either is. */
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
  sums->k2 += weight * estimate(r, TNK_KL_K2);
  sums->k3 += weight * estimate(r, TNK_KL_K3);
  sums->ratio += weight * ratio;
  sums->squares += weight * ratio * weight * ratio;
}

/* About the mean, which takes a second look. */
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

/* Relative to the largest, so that it is 1 and nothing overflows. */
double tnk_rl_effective_sample_size(const float *log_weights, size_t n) {
  double max = -INFINITY;
  double sum = 0;
  double squares = 0;

  for (size_t i = 0; i < n; i++)
    if (!((double)log_weights[i] <= max))
      max = (double)log_weights[i];
  if (max == -INFINITY)
    return 0;
  for (size_t i = 0; i < n; i++) {
    const double weight = exp((double)log_weights[i] - max);

    sum += weight;
    squares += weight * weight;
  }
  return sum * sum / squares;
}

/* ---- Entropy ---- */

double tnk_rl_sampled_entropy(const float *sampled, const float *weights,
                              size_t n) {
  double sum = 0;
  double total = 0;

  for (size_t i = 0; i < n; i++) {
    const double weight = weight_at(weights, i);

    if (weight == 0)
      continue;
    sum -= weight * (double)sampled[i];
    total += weight;
  }
  return sum / total;
}

double tnk_rl_entropy(const float *logprobs, size_t n) {
  double sum = 0;

  /* p log p goes to 0 with p. */
  for (size_t i = 0; i < n; i++)
    if (logprobs[i] != -INFINITY)
      sum -= exp((double)logprobs[i]) * (double)logprobs[i];
  return sum;
}
