/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "lm_help.h"
#include "tools/local/lm/state.h"

/* Three positions: ratios e^0.1, e^-0.5 and e^0.5. */
static const float p[3] = {-1.0f, -2.0f, -0.5f};
static const float q[3] = {-1.1f, -1.5f, -1.0f};
static const float a[3] = {1.0f, 2.0f, -3.0f};

static tnk__lm_datum_t three(void) {
  tnk__lm_datum_t d = {
      .n_tokens = 3, .n_targets = 1, .logprobs = q, .advantages = a};

  return d;
}

/* The loss; `slope` receives all slopes. */
static double loss_and_slopes(const tnk__lm_loss_t *loss,
                              const tnk__lm_datum_t *d, const float *logprobs,
                              float *slope) {
  tnk__lm_terms_t terms = tnk__lm_terms(loss, d, logprobs);
  size_t i;

  for (i = 0; i < d->n_tokens * d->n_targets; i++)
    slope[i] = tnk__lm_slope(&terms, i);
  return terms.sum;
}

static void check(const char *name, const tnk__lm_datum_t *d, double value,
                  double s0, double s1, double s2) {
  tnk__lm_loss_t loss = lm_loss(name);
  float slope[3];

  CHECK_NEAR(loss_and_slopes(&loss, d, p, slope), value, 1e-5);
  CHECK_NEAR(slope[0], s0, 1e-5);
  CHECK_NEAR(slope[1], s1, 1e-5);
  CHECK_NEAR(slope[2], s2, 1e-5);
}

TEST(values_and_slopes) {
  tnk__lm_datum_t d = three();
  const double r0 = exp(0.1);
  const double r1 = exp(-0.5);
  const double r2 = exp(0.5);

  check("cross_entropy", &d, 3.5, -1, -1, -1);
  check("importance_sampling", &d, -(r0 - 0 + 2 * r1 - 3 * r2), -r0, -2 * r1,
        3 * r2);
  /* Inside; low with a gain: open; high with a loss: open. */
  check("ppo", &d, -(r0 + 2 * r1 - 3 * r2), -r0, -2 * r1, 3 * r2);
  check("cispo", &d, -(r0 * -1 + r1 * -2 * 2 + r2 * -0.5 * -3), -r0, -2 * r1,
        3 * r2);
  check("dro", &d,
        -(-1 - 0.025 * 0.01) - (-4 - 0.025 * 0.25) - (1.5 - 0.025 * 0.25),
        -(1 - 0.05 * 0.1), -(2 + 0.05 * 0.5), -(-3 - 0.05 * 0.5));
  /* The ratio counts up to 1; the rest holds the model near the sampler. */
  check("stable_reinforce", &d,
        -(-1.0 + 2 * r1 * -2.0 - 3 * -0.5) +
            0.005 * (0.1 * 0.1 + 0.5 * 0.5 + 0.5 * 0.5),
        -1 + 0.01 * 0.1, -2 * r1 - 0.01 * 0.5, 3 + 0.01 * 0.5);
}

TEST(ppo_stops_where_it_has_gone_far_enough) {
  tnk__lm_datum_t d = three();
  const float other[3] = {-1.0f, -2.0f, 3.0f};

  d.advantages = other;
  check("ppo", &d, -(-exp(0.1) - 2 * 0.8 + 3 * 1.2), exp(0.1), 0, 0);
}

TEST(bounds_of_a_position_come_first) {
  tnk__lm_datum_t d = three();
  const float low[3] = {0, 0, 0};
  const float high[3] = {1, 1, 1};

  d.clip_low = low;
  d.clip_high = high;
  check("ppo", &d, -(1 + 2 * exp(-0.5) - 3 * exp(0.5)), 0, -2 * exp(-0.5),
        3 * exp(0.5));
  check("cispo", &d, -(-1 - 4 * exp(-0.5) + 1.5), -1, -2 * exp(-0.5), 3);
}

TEST(gspo_has_one_ratio) {
  tnk__lm_datum_t d = three();
  const float mask[3] = {1, 0, 1};
  const double all = exp(0.1 / 3);
  const double s = exp(0.3);

  check("gspo", &d, 0, -all, -2 * all, 3 * all);
  /* The mean of 0.1 and 0.5 is beyond 1.2: only the loss moves. */
  d.mask = mask;
  check("gspo", &d, -(1.2 + 2 * 1.2 - 3 * s), 0, 0, 3 * s);
}

TEST(weights_scale_every_loss) {
  static const char *const names[] = {
      "cross_entropy", "importance_sampling", "ppo", "cispo", "dro", "gspo"};
  const float weights[3] = {2, 0, 2};
  size_t i;

  for (i = 0; i < 6; i++) {
    tnk__lm_loss_t loss = lm_loss(names[i]);
    tnk__lm_datum_t d = three();
    float plain[3];
    float slope[3];
    loss_and_slopes(&loss, &d, p, plain);
    d.weights = weights;
    loss_and_slopes(&loss, &d, p, slope);
    CHECK_NEAR(slope[0], 2 * plain[0], 1e-6);
    CHECK_NEAR(slope[1], 0, 0);
    CHECK_NEAR(slope[2], 2 * plain[2], 1e-6);
  }
}

TEST(several_targets_a_position) {
  tnk__lm_loss_t loss = lm_loss(NULL);
  const float logprobs[4] = {-1, -2, -3, -4};
  const float weights[4] = {1, 0.5f, 0, 2};
  tnk__lm_datum_t d = {.n_tokens = 2, .n_targets = 2, .weights = weights};
  float slope[4];

  CHECK_NEAR(loss_and_slopes(&loss, &d, logprobs, slope), 10, 1e-9);
  CHECK_NEAR(slope[1], -0.5, 0);
  CHECK_NEAR(slope[2], 0, 0);
  CHECK_NEAR(slope[3], -2, 0);
}
