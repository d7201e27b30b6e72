/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/schedule.h"
#include "tools/tnk/learn/kl.h"

#include <math.h>

#include "support/test.h"

static double rate(learn_decay_t decay, uint64_t warm_up, uint64_t step) {
  const learn_schedule_t schedule = {
      .decay = decay, .peak = 2, .n_warm_up = warm_up, .n_steps = 12};

  return learn_schedule_rate(&schedule, step);
}

static int is_near(double a, double b) {
  return fabs(a - b) < 1e-12;
}

TEST(warm_up_rises_to_the_peak) {
  for (int decay = LEARN_CONSTANT; decay <= LEARN_COSINE; decay++) {
    CHECK(is_near(rate((learn_decay_t)decay, 4, 0), 0.5));
    CHECK(is_near(rate((learn_decay_t)decay, 4, 3), 2));
    CHECK(is_near(rate((learn_decay_t)decay, 4, 4), 2));
    CHECK(is_near(rate((learn_decay_t)decay, 0, 0), 2));
  }
}

TEST(constant_stays) {
  CHECK(is_near(rate(LEARN_CONSTANT, 4, 11), 2));
  CHECK(is_near(rate(LEARN_CONSTANT, 4, 99), 2));
}

TEST(linear_decays_to_nothing) {
  CHECK(is_near(rate(LEARN_LINEAR, 0, 3), 1.5));
  CHECK(is_near(rate(LEARN_LINEAR, 4, 8), 1));
  CHECK(is_near(rate(LEARN_LINEAR, 4, 11), 0.25));
  CHECK(is_near(rate(LEARN_LINEAR, 4, 12), 0));
  CHECK(is_near(rate(LEARN_LINEAR, 4, 99), 0));
}

TEST(cosine_decays_to_nothing) {
  CHECK(is_near(rate(LEARN_COSINE, 4, 6), 1 + sqrt(0.5)));
  CHECK(is_near(rate(LEARN_COSINE, 4, 8), 1));
  CHECK(is_near(rate(LEARN_COSINE, 4, 12), 0));
  CHECK(is_near(rate(LEARN_COSINE, 4, 99), 0));
}

TEST(warm_up_may_be_the_whole_run) {
  CHECK(is_near(rate(LEARN_LINEAR, 12, 11), 2));
  CHECK(is_near(rate(LEARN_COSINE, 12, 12), 0));
}

TEST(default_depends_on_the_size_in_the_name) {
  static const struct {
    const char *model;
    double rate;
  } cases[] = {
      {"tnk/byte-lm", 0.01},
      {"meta-llama/Llama-3.2-1B", 5e-4},
      {"Qwen/Qwen3-0.6B", 5e-4},
      {"Qwen/Qwen3-8B", 3e-4},
      {"meta-llama/Llama-3.1-8B-Instruct", 3e-4},
      {"Qwen/Qwen3-30B-A3B", 2e-4},
      {"Qwen/Qwen3-235B-A22B-Instruct-2507", 1e-4},
      {"openai/gpt-oss-120b", 1e-4},
      {"openai/gpt-oss-20b", 2e-4},
      /* No size. */
      {"moonshotai/Kimi-K2-Thinking", 1e-4},
      {"a/model-4bit", 1e-4},
      {"a/model-x8B", 1e-4},
      {"", 1e-4},
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    test_context(cases[i].model);
    CHECK(is_near(learn_default_rate(cases[i].model), cases[i].rate));
  }
}

/* ---- Advantages from a teacher ---- */

/* Computed by hand from
 * a(t) = -coefficient * (sampled(t) - teacher(t)) + discount * a(t + 1). */
TEST(advantages_are_the_penalty_for_leaving_the_teacher) {
  static const float sampled[] = {-1, -2, -0.5f};
  static const float teacher[] = {-3, -1, -0.5f};
  static const struct {
    size_t n;
    double coefficient, discount;
    float advantages[3];
    double sum;
  } rows[] = {
      /* Likelier to the student than to the teacher: less of it. */
      {3, 1, 0, {-2, 1, 0}, 1},
      {3, 2, 0, {-4, 2, 0}, 1},
      {3, 0.5, 0, {-1, 0.5f, 0}, 1},
      /* -2 + 0.5 * 1; the last one has no later token. */
      {3, 1, 0.5, {-1.5f, 1, 0}, 1},
      {3, 1, 1, {-1, 1, 0}, 1},
      {2, 2, 0.25, {-3.5f, 2, 9}, 1},
      /* No mean is subtracted from a single token. */
      {1, 1, 1, {-2, 9, 9}, 2},
      {0, 1, 1, {9, 9, 9}, 0},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    float got[3] = {9, 9, 9};
    const double sum =
        learn_kl_advantages(got, sampled, teacher, rows[i].n,
                            rows[i].coefficient, rows[i].discount);

    CHECK(fabs(sum - rows[i].sum) < 1e-12);
    for (size_t t = 0; t < 3; t++)
      CHECK(got[t] == rows[i].advantages[t]);
  }
}

TEST(seeds_differ_and_are_those_of_every_machine) {
  uint64_t seen[64];

  for (uint64_t i = 0; i < 64; i++) {
    seen[i] = learn_seed(i / 32, i % 32);
    CHECK(seen[i] < 1 << 30);
    for (uint64_t j = 0; j < i; j++)
      CHECK(seen[j] != seen[i]);
  }
  CHECK(learn_seed(7, 3) == learn_seed(7, 3));
}
