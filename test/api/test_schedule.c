/* SPDX-License-Identifier: MIT */
/* The learning rate of each step: tnk_schedule_rate(), tnk_default_rate(). */
#include <math.h>

#include "support/test.h"
#include "tnk/train.h"

static int is_near(double a, double b) {
  return fabs(a - b) < 1e-12;
}

/* Rates of schedules with a peak of 2 and 12 steps. */
TEST(each_decay_at_each_moment) {
  static const struct {
    tnk_decay_t decay;
    uint64_t n_warm_up, step;
    double rate;
  } rows[] = {
      /* The warm-up rises to the peak. */
      {TNK_DECAY_CONSTANT, 4, 0, 0.5},
      {TNK_DECAY_LINEAR, 4, 0, 0.5},
      {TNK_DECAY_COSINE, 4, 0, 0.5},
      {TNK_DECAY_CONSTANT, 4, 3, 2},
      {TNK_DECAY_LINEAR, 4, 3, 2},
      {TNK_DECAY_COSINE, 4, 3, 2},
      {TNK_DECAY_CONSTANT, 4, 4, 2},
      {TNK_DECAY_LINEAR, 4, 4, 2},
      {TNK_DECAY_COSINE, 4, 4, 2},
      /* Without a warm-up the first step has it. */
      {TNK_DECAY_CONSTANT, 0, 0, 2},
      {TNK_DECAY_LINEAR, 0, 0, 2},
      {TNK_DECAY_COSINE, 0, 0, 2},
      /* On the way. */
      {TNK_DECAY_LINEAR, 0, 3, 1.5},
      {TNK_DECAY_LINEAR, 4, 8, 1},
      {TNK_DECAY_LINEAR, 4, 11, 0.25},
      {TNK_DECAY_COSINE, 4, 6, 1 + 0.70710678118654752},
      {TNK_DECAY_COSINE, 4, 8, 1},
      /* After the last step. */
      {TNK_DECAY_CONSTANT, 4, 11, 2},
      {TNK_DECAY_CONSTANT, 4, 99, 2},
      {TNK_DECAY_LINEAR, 4, 12, 0},
      {TNK_DECAY_LINEAR, 4, 99, 0},
      {TNK_DECAY_COSINE, 4, 12, 0},
      {TNK_DECAY_COSINE, 4, 99, 0},
      /* The warm-up is the whole run, or longer. */
      {TNK_DECAY_LINEAR, 12, 11, 2},
      {TNK_DECAY_COSINE, 12, 12, 0},
      {TNK_DECAY_LINEAR, 24, 11, 1},
      {TNK_DECAY_LINEAR, 24, 24, 0},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    tnk_schedule_t schedule = TNK_SCHEDULE_INIT;

    schedule.decay = rows[i].decay;
    schedule.peak = 2;
    schedule.n_warm_up = rows[i].n_warm_up;
    schedule.n_steps = 12;
    if (!is_near(tnk_schedule_rate(&schedule, rows[i].step), rows[i].rate))
      test_fail(__FILE__, __LINE__, "row %zu: %.17g, expected %.17g", i,
                tnk_schedule_rate(&schedule, rows[i].step), rows[i].rate);
  }
}

TEST(an_invalid_schedule_has_no_rate) {
  static const tnk_schedule_t rows[] = {
      {.peak = 1, .n_steps = 1}, /* without a size */
      {.size = sizeof(tnk_schedule_t), .decay = (tnk_decay_t)3, .n_steps = 1},
      {.size = sizeof(tnk_schedule_t), .decay = (tnk_decay_t)-1, .n_steps = 1},
      {.size = sizeof(tnk_schedule_t), .peak = -1, .n_steps = 1},
      {.size = sizeof(tnk_schedule_t), .peak = NAN, .n_steps = 1},
      {.size = sizeof(tnk_schedule_t), .peak = INFINITY, .n_steps = 1},
      {.size = sizeof(tnk_schedule_t), .peak = 1, .n_steps = 1, .reserved = 1},
      {.size = sizeof(tnk_schedule_t), .decay = TNK_DECAY_LINEAR, .peak = 1},
      {.size = sizeof(tnk_schedule_t), .decay = TNK_DECAY_COSINE, .peak = 1},
  };
  tnk_schedule_t endless = TNK_SCHEDULE_INIT;

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    if (!isnan(tnk_schedule_rate(&rows[i], 0)))
      test_fail(__FILE__, __LINE__, "row %zu has a rate", i);
  CHECK(isnan(tnk_schedule_rate(NULL, 0)));
  endless.peak = 3;
  CHECK(is_near(tnk_schedule_rate(&endless, 1000000), 3));
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
      {NULL, 1e-4},
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    test_context(cases[i].model != NULL ? cases[i].model : "NULL");
    CHECK(is_near(tnk_default_rate(cases[i].model), cases[i].rate));
  }
}
