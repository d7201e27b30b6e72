/* SPDX-License-Identifier: MIT */
/*
 * Losses and regularizers: every gradient beside finite differences of its
 * value, and values worked out by hand.
 */
#include <math.h>
#include <string.h>

#include "support/test.h"
#include "tnk/rl.h"

enum { N = 37 };

static float logprobs[N];
static float reference[N];
static float advantages[N];
static float weights[N];
static float curvature[N];

/* A number from `low` to `high`. */
static float between(uint64_t *state, double low, double high) {
  const double unit = (double)(test_random(state) >> 11) / 9007199254740992.0;

  return (float)(low + (high - low) * unit);
}

/* Ratios of 0.6 to 1.6, none near the bounds of PPO or near 1, where a loss
 * has no slope. */
static void fill(void) {
  uint64_t state = 7;

  for (size_t i = 0; i < N; i++) {
    double ratio;

    do
      ratio = (double)between(&state, 0.6, 1.6);
    while (fabs(ratio - 0.8) < 0.03 || fabs(ratio - 1) < 0.03 ||
           fabs(ratio - 1.2) < 0.03);
    reference[i] = between(&state, -3, -0.5);
    logprobs[i] = reference[i] + (float)log(ratio);
    advantages[i] = between(&state, -2, 2);
    weights[i] = i % 5 == 0 ? 0 : between(&state, 0.2, 1);
    curvature[i] = 0;
  }
}

/* ---- Each loss as a function of one array ---- */

typedef double (*loss_fn)(float *gradient, const float *x);

static tnk_rl_tokens_t tokens_of(float *gradient, const float *x) {
  return (tnk_rl_tokens_t){.n = N,
                           .logprobs = x,
                           .reference = reference,
                           .weights = weights,
                           .gradient = gradient};
}

static double importance(float *gradient, const float *x) {
  const tnk_rl_tokens_t tokens = tokens_of(gradient, x);

  return tnk_rl_importance_sampling(&tokens, advantages, 0.5);
}

static double ppo(float *gradient, const float *x) {
  const tnk_rl_tokens_t tokens = tokens_of(gradient, x);

  return tnk_rl_ppo(&tokens, advantages, 0.8, 1.2, 0.5);
}

/* The ratio of the value counts as a constant: here it is one. */
static double cispo(float *gradient, const float *x) {
  tnk_rl_tokens_t tokens = tokens_of(gradient, x);
  float held[N];
  double sum = 0;

  if (gradient != NULL)
    return tnk_rl_cispo(&tokens, advantages, 0.8, 1.2, 0.5);
  tnk_rl_ratios(held, reference, logprobs, N);
  for (size_t i = 0; i < N; i++)
    sum -= 0.5 * (double)weights[i] * fmin(fmax((double)held[i], 0.8), 1.2) *
           (double)advantages[i] * (double)x[i];
  return sum;
}

static double dpo_chosen(float *gradient, const float *x) {
  const tnk_rl_tokens_t chosen = tokens_of(gradient, x);
  const tnk_rl_tokens_t rejected = tokens_of(NULL, advantages);

  return tnk_rl_dpo(&chosen, &rejected, 0.1, 3, NULL);
}

static double dpo_rejected(float *gradient, const float *x) {
  const tnk_rl_tokens_t chosen = tokens_of(NULL, advantages);
  const tnk_rl_tokens_t rejected = tokens_of(gradient, x);

  return tnk_rl_dpo(&chosen, &rejected, 0.1, 3, NULL);
}

static double k1(float *gradient, const float *x) {
  const tnk_rl_tokens_t tokens = tokens_of(gradient, x);

  return tnk_rl_kl_penalty(&tokens, TNK_KL_K1, 2);
}

static double k2(float *gradient, const float *x) {
  const tnk_rl_tokens_t tokens = tokens_of(gradient, x);

  return tnk_rl_kl_penalty(&tokens, TNK_KL_K2, 2);
}

static double k3(float *gradient, const float *x) {
  const tnk_rl_tokens_t tokens = tokens_of(gradient, x);

  return tnk_rl_kl_penalty(&tokens, TNK_KL_K3, 2);
}

static double forward(float *gradient, const float *x) {
  return tnk_rl_kl_exact(gradient, x, reference, N, TNK_KL_FORWARD, 2);
}

static double reverse(float *gradient, const float *x) {
  return tnk_rl_kl_exact(gradient, x, reference, N, TNK_KL_REVERSE, 2);
}

static double symmetric(float *gradient, const float *x) {
  return tnk_rl_kl_exact(gradient, x, reference, N, TNK_KL_SYMMETRIC, 2);
}

static double entropy(float *gradient, const float *x) {
  return tnk_rl_entropy_penalty(gradient, x, N, 1, -2);
}

static double warm_entropy(float *gradient, const float *x) {
  return tnk_rl_entropy_penalty(gradient, x, N, 1.7, 2);
}

static double l1(float *gradient, const float *x) {
  return tnk_rl_elastic_net(gradient, x, NULL, NULL, N, 0.5, 0);
}

static double l2(float *gradient, const float *x) {
  return tnk_rl_elastic_net(gradient, x, NULL, weights, N, 0, 0.5);
}

static double consistency(float *gradient, const float *x) {
  return tnk_rl_elastic_net(gradient, x, reference, weights, N, 0.3, 0.7);
}

static double centered(float *gradient, const float *x) {
  return tnk_rl_l2_centered(gradient, x, N, 0.5);
}

static double orthogonality(float *gradient, const float *x) {
  return tnk_rl_orthogonality(gradient, x, 4, 9, 0.1);
}

/* Of a loss whose gradient is the square of each logprob, so that the second
 * derivative is twice it. */
static double gradient_penalty(float *gradient, const float *x) {
  float slope[N];

  for (size_t i = 0; i < N; i++) {
    slope[i] = x[i] * x[i];
    curvature[i] = 2 * x[i] * slope[i];
  }
  return tnk_rl_gradient_penalty(gradient, slope, curvature, N, 1, 0.1);
}

static const struct {
  const char *name;
  loss_fn fn;
} losses[] = {
    {"importance_sampling", importance},
    {"ppo", ppo},
    {"cispo", cispo},
    {"dpo, chosen", dpo_chosen},
    {"dpo, rejected", dpo_rejected},
    {"k1", k1},
    {"k2", k2},
    {"k3", k3},
    {"forward", forward},
    {"reverse", reverse},
    {"symmetric", symmetric},
    {"entropy", entropy},
    {"entropy at another temperature", warm_entropy},
    {"l1", l1},
    {"l2", l2},
    {"consistency", consistency},
    {"centered", centered},
    {"orthogonality", orthogonality},
    {"gradient penalty", gradient_penalty},
};
enum { N_LOSSES = sizeof(losses) / sizeof(losses[0]) };

/* ---- Gradients ---- */

/* The step is a power of two, so that it is exact in float; the values are
 * summed up of floats, each right to 6e-8. */
static double slope_at(loss_fn fn, size_t i) {
  const float step = 1.0f / 128;
  float x[N];
  double up;

  memcpy(x, logprobs, sizeof(x));
  x[i] = logprobs[i] + step;
  const float above = x[i];
  up = fn(NULL, x);
  x[i] = logprobs[i] - step;
  return (up - fn(NULL, x)) / ((double)above - (double)x[i]);
}

TEST(rl_each_gradient_is_what_finite_differences_say) {
  fill();
  for (size_t j = 0; j < N_LOSSES; j++) {
    float gradient[N] = {0};
    double largest = 0;

    losses[j].fn(gradient, logprobs);
    for (size_t i = 0; i < N; i++) {
      const double expected = slope_at(losses[j].fn, i);

      if (fabs((double)gradient[i] - expected) > 1e-3 * (1 + fabs(expected)))
        test_fail(__FILE__, __LINE__, "%s: slope %zu is %g, expected %g",
                  losses[j].name, i, (double)gradient[i], expected);
      largest = fmax(largest, fabs(expected));
    }
    CHECK(largest > 1e-3); /* it has one */
  }
}

/* Terms are added up: a gradient that is there stays, and what has no gradient
 * to go to has its value all the same. */
TEST(rl_each_gradient_is_added_to_what_is_there) {
  fill();
  for (size_t j = 0; j < N_LOSSES; j++) {
    float alone[N] = {0};
    float both[N];
    const double value = losses[j].fn(alone, logprobs);

    for (size_t i = 0; i < N; i++)
      both[i] = 8;
    CHECK_NEAR(losses[j].fn(both, logprobs), value, 0);
    for (size_t i = 0; i < N; i++)
      CHECK_NEAR((double)both[i], 8 + (double)alone[i],
                 2e-6 * (1 + fabs((double)alone[i])));
    if (losses[j].fn != cispo)
      CHECK_NEAR(losses[j].fn(NULL, logprobs), value, 0);
  }
}

/* What weighs nothing may be anything, and is not touched. */
TEST(rl_what_weighs_nothing_has_no_slope) {
  fill();
  for (size_t i = 0; i < N; i += 5) {
    reference[i] = NAN;
    advantages[i] = INFINITY;
  }
  for (size_t j = 0; j < 8; j++) {
    float gradient[N] = {0};

    if (losses[j].fn == dpo_chosen || losses[j].fn == dpo_rejected ||
        losses[j].fn == cispo)
      continue; /* they use these arrays otherwise here */
    CHECK(isfinite(losses[j].fn(gradient, logprobs)));
    for (size_t i = 0; i < N; i++)
      CHECK(isfinite(gradient[i]) && (i % 5 != 0 || gradient[i] == 0));
  }
}

/* ---- Values ---- */

static const float q[2] = {-1, -2};
static const float p[2] = {-1.5f, -1};
static const float a[2] = {2, -1};
static const tnk_rl_tokens_t two = {.n = 2, .logprobs = p, .reference = q};

TEST(rl_surrogate_losses_of_two_tokens) {
  const double r0 = exp(-0.5);
  const double r1 = exp(1);

  CHECK_NEAR(tnk_rl_importance_sampling(&two, a, 1), -2 * r0 + r1, 1e-6);
  /* The first is below its bound and liked, the second above and not: neither
   * is clipped. */
  CHECK_NEAR(tnk_rl_ppo(&two, a, 0.8, 1.2, 1), -2 * r0 + r1, 1e-6);
  CHECK_NEAR(tnk_rl_ppo(&two, (const float[]){-2, 1}, 0.8, 1.2, 1),
             2 * 0.8 - 1.2, 1e-6);
  CHECK_NEAR(tnk_rl_cispo(&two, a, 0.8, 1.2, 0.5),
             0.5 * (-0.8 * 2 * -1.5 + 1.2 * -1), 1e-6);
}

TEST(rl_dpo_of_a_pair) {
  const tnk_rl_tokens_t other = {.n = 2, .logprobs = q, .reference = p};
  double margin = 0;

  /* The first has risen by 0.5, the second fallen by as much. */
  CHECK_NEAR(tnk_rl_dpo(&two, &other, 0.4, 1, &margin),
             -log(1 / (1 + exp(-0.4))), 1e-12);
  CHECK_NEAR(margin, 0.4, 1e-12);
  /* However far they are apart. */
  CHECK_NEAR(tnk_rl_dpo(&other, &two, 1e6, 1, &margin), 1e6, 1e-3);
  CHECK_NEAR(tnk_rl_dpo(&two, &other, 1e6, 1, NULL), 0, 1e-12);
}

TEST(rl_divergences_of_distributions) {
  static const float lp[] = {-0.6931471805599453f, -0.6931471805599453f};
  static const float lq[] = {-1.3862943611198906f, -0.2876820724517809f};
  const double forth = 0.5 * log(0.5 / 0.25) + 0.5 * log(0.5 / 0.75);
  const double back = 0.25 * log(0.25 / 0.5) + 0.75 * log(0.75 / 0.5);

  CHECK_NEAR(tnk_rl_kl_exact(NULL, lp, lq, 2, TNK_KL_FORWARD, 1), forth, 1e-6);
  CHECK_NEAR(tnk_rl_kl_exact(NULL, lp, lq, 2, TNK_KL_REVERSE, 1), back, 1e-6);
  CHECK_NEAR(tnk_rl_kl_exact(NULL, lp, lq, 2, TNK_KL_SYMMETRIC, 3),
             1.5 * (forth + back), 1e-6);
}

TEST(rl_entropy_of_logits) {
  static const float logits[] = {5, 5, -INFINITY};
  float gradient[3] = {0};

  CHECK_NEAR(tnk_rl_entropy_penalty(gradient, logits, 3, 2, 10), 10 * log(2),
             1e-12);
  for (int i = 0; i < 3; i++)
    CHECK_NEAR((double)gradient[i], 0, 1e-6);
}

TEST(rl_orthogonal_rows_cost_nothing) {
  static const float rows[] = {0.6f, 0.8f, 0, -0.8f, 0.6f, 0};
  static const float same[] = {1, 0, 1, 0};

  CHECK_NEAR(tnk_rl_orthogonality(NULL, rows, 2, 3, 1), 0, 1e-12);
  CHECK_NEAR(tnk_rl_orthogonality(NULL, same, 2, 2, 1), 2, 1e-12);
}

TEST(rl_sizes) {
  static const float values[] = {3, -4};

  CHECK_NEAR(tnk_rl_norm(values, 2), 5, 0);
  CHECK_NEAR(tnk_rl_elastic_net(NULL, values, NULL, NULL, 2, 1, 2), 57, 1e-5);
  CHECK_NEAR(tnk_rl_l2_centered(NULL, values, 2, 2), 49, 1e-12);
  CHECK_NEAR(tnk_rl_gradient_penalty(NULL, values, NULL, 2, 1, 0.5), 8, 0);
}

/* Their squares are more, and less, than single precision holds. */
TEST(rl_lengths_of_large_and_small_vectors) {
  static const float scales[] = {1e-30f, 1, 1e30f};
  float values[2000];

  for (size_t s = 0; s < 3; s++) {
    double sum = 0;

    for (size_t i = 0; i < 2000; i++) {
      values[i] = scales[s] * (float)((int)(i % 7) - 3);
      sum += (double)values[i] * (double)values[i];
    }
    CHECK_NEAR(tnk_rl_norm(values, 2000) / sqrt(sum), 1, 1e-7);
  }
}

TEST(rl_what_is_none_adds_nothing) {
  float gradient[2] = {0};
  tnk_rl_tokens_t tokens = two;

  tokens.gradient = gradient;
  CHECK(isnan(tnk_rl_kl_penalty(&tokens, (tnk_kl_t)7, 1)));
  CHECK(isnan(tnk_rl_kl_exact(gradient, p, q, 2, (tnk_kl_direction_t)7, 1)));
  CHECK(isnan(tnk_rl_entropy_penalty(gradient, p, 2, 0, 1)));
  CHECK(isnan(tnk_rl_entropy_penalty(gradient, p, 2, NAN, 1)));
  CHECK(gradient[0] == 0 && gradient[1] == 0);
  tokens.n = 0;
  CHECK(tnk_rl_ppo(&tokens, NULL, 0.8, 1.2, 1) == 0);
  CHECK(tnk_rl_norm(NULL, 0) == 0);
  CHECK(tnk_rl_l2_centered(gradient, NULL, 0, 1) == 0);
}

TEST(rl_what_is_not_finite_is_seen_in_losses) {
  static const float broken[2] = {NAN, -1};
  float gradient[2] = {0};
  tnk_rl_tokens_t tokens = two;

  tokens.gradient = gradient;
  tokens.logprobs = broken;
  CHECK(isnan(tnk_rl_ppo(&tokens, a, 0.8, 1.2, 1)));
  CHECK(isnan(gradient[0]) && !isnan(gradient[1]));
  CHECK(isnan(tnk_rl_elastic_net(NULL, broken, NULL, NULL, 2, 1, 1)));
}
