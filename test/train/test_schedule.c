/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/schedule.h"

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
