/* SPDX-License-Identifier: MIT */
/* Numbers for reinforcement learning: values worked out elsewhere. */
#include <math.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tnk/rl.h"

enum { N = 4 };

static const float sampled[N] = {-0.5f, -1.0f, -2.0f, -0.25f};
static const float trained[N] = {-0.75f, -0.5f, -2.0f, -1.25f};
static const float weights[N] = {1, 2, 0, 0.5f};
static const float rewards[N] = {1, 2, 3, 6};

static void check_values(const float *got, const double *expected, size_t n) {
  for (size_t i = 0; i < n; i++)
    CHECK_NEAR((double)got[i], expected[i], 1e-6);
}

/* ---- Advantages and sums ---- */

TEST(rl_advantages_of_a_group) {
  static const double centered[] = {-2, -1, 0, 3};
  static const double normalized[] = {-1.0690449676496976, -0.5345224838248488,
                                      0, 1.6035674514745464};
  static const double left_out[] = {-2.6666666666666665, -1.3333333333333333, 0,
                                    4};
  float out[N];

  CHECK_INT(tnk_rl_group_advantages(out, rewards, N, N, TNK_ADVANTAGE_CENTERED),
            TNK_OK);
  check_values(out, centered, N);
  CHECK_INT(
      tnk_rl_group_advantages(out, rewards, N, N, TNK_ADVANTAGE_NORMALIZED),
      TNK_OK);
  check_values(out, normalized, N);
  CHECK_INT(
      tnk_rl_group_advantages(out, rewards, N, N, TNK_ADVANTAGE_LEAVE_ONE_OUT),
      TNK_OK);
  check_values(out, left_out, N);
}

TEST(rl_groups_do_not_see_each_other_and_may_be_written_over) {
  static const double expected[] = {-0.5, 0.5, -1.5, 1.5};
  float values[N];

  memcpy(values, rewards, sizeof(values));
  CHECK_INT(
      tnk_rl_group_advantages(values, values, N, 2, TNK_ADVANTAGE_CENTERED),
      TNK_OK);
  check_values(values, expected, N);
}

/* Equal rewards teach nothing, however they are rounded: no division by what is
 * left of them. */
TEST(rl_groups_of_equal_rewards_have_no_advantages) {
  static const tnk_advantage_t kinds[] = {TNK_ADVANTAGE_CENTERED,
                                          TNK_ADVANTAGE_NORMALIZED,
                                          TNK_ADVANTAGE_LEAVE_ONE_OUT};
  static const float equal[] = {0.1f, 0.1f, 0.1f};
  float out[3];

  for (size_t i = 0; i < 3; i++)
    for (size_t size = 1; size <= 3; size += 2) {
      CHECK_INT(tnk_rl_group_advantages(out, equal, 3, size, kinds[i]), TNK_OK);
      for (size_t j = 0; j < 3; j++)
        CHECK(out[j] == 0);
    }
}

TEST(rl_sizes_of_groups_that_are_none_are_refused) {
  float out[N] = {7};

  CHECK_INT(tnk_rl_group_advantages(out, rewards, 3, 2, TNK_ADVANTAGE_CENTERED),
            TNK_EINVAL);
  CHECK_INT(tnk_rl_group_advantages(out, rewards, N, 0, TNK_ADVANTAGE_CENTERED),
            TNK_EINVAL);
  CHECK_INT(tnk_rl_group_advantages(out, rewards, N, N, (tnk_advantage_t)9),
            TNK_EINVAL);
  CHECK_INT(
      tnk_rl_group_advantages(NULL, rewards, N, N, TNK_ADVANTAGE_CENTERED),
      TNK_EINVAL);
  CHECK_INT(tnk_rl_group_advantages(NULL, NULL, 0, 3, TNK_ADVANTAGE_CENTERED),
            TNK_OK);
  CHECK(out[0] == 7);
}

TEST(rl_what_is_not_finite_is_seen) {
  float values[2] = {NAN, 1};
  const float zero[2] = {0, 0};
  tnk_drift_t drift = TNK_DRIFT_INIT;
  float out[2];

  CHECK_INT(
      tnk_rl_group_advantages(out, values, 2, 2, TNK_ADVANTAGE_NORMALIZED),
      TNK_OK);
  CHECK(isnan(out[0]) && isnan(out[1]));
  for (int i = 0; i < 2; i++) {
    CHECK_INT(tnk_rl_drift(&drift, zero, values, NULL, 2), TNK_OK);
    CHECK(isnan(drift.max_abs_log_ratio) && isnan(drift.min_ratio) &&
          isnan(drift.max_ratio) && isnan(drift.k3));
    CHECK(isnan(tnk_rl_effective_sample_size(values, 2)));
    values[0] = 1;
    values[1] = NAN;
  }
}

TEST(rl_discounted_sums) {
  static const double half[] = {1 + 0.5 * (2 + 0.5 * (3 + 0.5 * 6)),
                                2 + 0.5 * (3 + 0.5 * 6), 3 + 0.5 * 6, 6};
  static const double all[] = {12, 11, 9, 6};
  float out[N];

  tnk_rl_discounted_sums(out, rewards, N, 0.5);
  check_values(out, half, N);
  memcpy(out, rewards, sizeof(out));
  tnk_rl_discounted_sums(out, out, N, 1);
  check_values(out, all, N);
  tnk_rl_discounted_sums(out, rewards, N, 0);
  CHECK(memcmp(out, rewards, sizeof(out)) == 0);
}

/* ---- Divergence ---- */

TEST(rl_estimators_of_divergence) {
  static const float far[] = {-100, 0};

  CHECK_NEAR(tnk_rl_kl(sampled, trained, NULL, N, TNK_KL_K1), 0.1875, 1e-12);
  CHECK_NEAR(tnk_rl_kl(sampled, trained, NULL, N, TNK_KL_K2), 0.1640625, 1e-12);
  CHECK_NEAR(tnk_rl_kl(sampled, trained, NULL, N, TNK_KL_K3),
             0.13635037373574385, 1e-8);
  CHECK_NEAR(tnk_rl_kl(sampled, trained, weights, N, TNK_KL_K1),
             -0.07142857142857142, 1e-12);
  CHECK_NEAR(tnk_rl_kl(sampled, trained, weights, N, TNK_KL_K2),
             0.15178571428571427, 1e-12);
  CHECK_NEAR(tnk_rl_kl(sampled, trained, weights, N, TNK_KL_K3),
             0.14576658430210926, 1e-8);
  CHECK(isnan(tnk_rl_kl(sampled, trained, NULL, N, (tnk_kl_t)7)));
  CHECK_NEAR(tnk_rl_kl(&far[0], &far[1], NULL, 1, TNK_KL_K3) / exp(100), 1,
             1e-9); /* more than single precision holds */
  CHECK(isnan(tnk_rl_kl(sampled, trained, NULL, 0, TNK_KL_K1)));
}

/* k1 and k3 have the divergence as their mean over what is drawn from q. */
TEST(rl_estimators_have_no_bias) {
  static const double q[] = {0.5, 0.25, 0.25};
  static const double p[] = {0.25, 0.25, 0.5};
  double exact = 0;
  double k1 = 0;
  double k3 = 0;

  for (size_t i = 0; i < 3; i++) {
    const float lq = (float)log(q[i]);
    const float lp = (float)log(p[i]);

    exact += q[i] * log(q[i] / p[i]);
    k1 += q[i] * tnk_rl_kl(&lq, &lp, NULL, 1, TNK_KL_K1);
    k3 += q[i] * tnk_rl_kl(&lq, &lp, NULL, 1, TNK_KL_K3);
  }
  CHECK_NEAR(k1, exact, 1e-6);
  CHECK_NEAR(k3, exact, 1e-6);
}

/* k3 is about r^2 / 2 then, and must not be what rounding leaves. */
TEST(rl_a_small_divergence_keeps_its_digits) {
  const float q = -1e-6f;
  const float p = 0;
  const double r = (double)1e-6f;

  CHECK_NEAR(tnk_rl_kl(&q, &p, NULL, 1, TNK_KL_K3), r * r / 2, 1e-16);
  CHECK(tnk_rl_kl(&q, &p, NULL, 1, TNK_KL_K3) > 0);
}

TEST(rl_divergence_of_each_token) {
  static const double k2[] = {0.03125, 0.125, 0, 0.5};
  float out[N];

  tnk_rl_kl_tokens(out, sampled, trained, N, TNK_KL_K2);
  check_values(out, k2, N);
  memcpy(out, trained, sizeof(out));
  tnk_rl_kl_tokens(out, sampled, out, N, TNK_KL_K2);
  check_values(out, k2, N);
}

/* ---- Ratios and drift ---- */

TEST(rl_ratios) {
  static const double expected[] = {0.7788007830714049, 1.6487212707001282, 1,
                                    0.36787944117144233};
  float out[N];

  tnk_rl_ratios(out, sampled, trained, N);
  check_values(out, expected, N);
}

TEST(rl_drift) {
  tnk_drift_t drift = TNK_DRIFT_INIT;

  CHECK_INT(tnk_rl_drift(&drift, sampled, trained, weights, N), TNK_OK);
  CHECK_INT(drift.n, 3);
  CHECK_NEAR(drift.log_ratio, 0.07142857142857142, 1e-12);
  CHECK_NEAR(drift.abs_log_ratio, 0.5, 1e-12);
  CHECK_NEAR(drift.max_abs_log_ratio, 1, 1e-12);
  CHECK_NEAR(drift.k2, 0.15178571428571427, 1e-12);
  CHECK_NEAR(drift.k3, 0.14576658430210926, 1e-12);
  CHECK_NEAR(drift.ratio, 1.2171951557306806, 1e-12);
  CHECK_NEAR(drift.min_ratio, 0.36787944117144233, 1e-12);
  CHECK_NEAR(drift.max_ratio, 1.6487212707001282, 1e-12);
  CHECK_NEAR(drift.ratio_variance, 0.26436794093691557, 1e-12);
  CHECK_NEAR(drift.effective_tokens, 1.5763384298660932, 1e-12);
}

TEST(rl_no_drift) {
  static const float none[N] = {0};
  tnk_drift_t drift = TNK_DRIFT_INIT;

  CHECK_INT(tnk_rl_drift(&drift, sampled, sampled, NULL, N), TNK_OK);
  CHECK_INT(drift.n, N);
  CHECK(drift.log_ratio == 0 && drift.k3 == 0 && drift.ratio == 1);
  CHECK(drift.min_ratio == 1 && drift.max_ratio == 1);
  CHECK_NEAR(drift.effective_tokens, N, 0);
  /* Nothing counts. */
  CHECK_INT(tnk_rl_drift(&drift, sampled, trained, none, N), TNK_OK);
  CHECK_INT(drift.n, 0);
  CHECK(isnan(drift.ratio) && isnan(drift.max_ratio) &&
        isnan(drift.max_abs_log_ratio));
  CHECK(drift.effective_tokens == 0);
  CHECK_INT(tnk_rl_drift(NULL, sampled, trained, NULL, N), TNK_EINVAL);
  drift.size = 3;
  CHECK_INT(tnk_rl_drift(&drift, sampled, trained, NULL, N), TNK_EINVAL);
}

/* What a mask leaves out may be anything. */
TEST(rl_what_weighs_nothing_is_not_looked_at) {
  static const float mask[] = {1, 0};
  static const float q[] = {-1, NAN};
  static const float p[] = {-1, -INFINITY};
  tnk_drift_t drift = TNK_DRIFT_INIT;

  CHECK(tnk_rl_kl(q, p, mask, 2, TNK_KL_K3) == 0);
  CHECK(tnk_rl_sampled_entropy(q, mask, 2) == 1);
  CHECK_INT(tnk_rl_drift(&drift, q, p, mask, 2), TNK_OK);
  CHECK(drift.ratio == 1 && drift.ratio_variance == 0);
}

TEST(rl_effective_sample_size) {
  static const float equal[] = {5, 5, 5};
  static const float some[] = {0, -1, -2};
  static const float large[] = {3000, 2999, 2998, -INFINITY};
  static const float nothing[] = {-INFINITY, -INFINITY};

  CHECK_NEAR(tnk_rl_effective_sample_size(equal, 3), 3, 1e-12);
  CHECK_NEAR(tnk_rl_effective_sample_size(some, 3), 1.9586986534143886, 1e-7);
  CHECK_NEAR(tnk_rl_effective_sample_size(large, 4), 1.9586986534143886, 1e-7);
  CHECK(tnk_rl_effective_sample_size(nothing, 2) == 0);
  CHECK(tnk_rl_effective_sample_size(NULL, 0) == 0);
}

TEST(rl_entropy) {
  static const float logprobs[] = {-0.6931471805599453f, -1.3862943611198906f,
                                   -2.0794415416798357f, -2.0794415416798357f,
                                   -INFINITY};

  CHECK_NEAR(tnk_rl_entropy(logprobs, 5), 1.2130075659799042, 1e-6);
  CHECK(tnk_rl_entropy(logprobs, 2) < 1.2130075659799042);
  CHECK_NEAR(tnk_rl_sampled_entropy(sampled, NULL, N), 0.9375, 1e-12);
  CHECK_NEAR(tnk_rl_sampled_entropy(sampled, weights, N),
             (0.5 + 2 + 0.125) / 3.5, 1e-12);
}
