/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/stale.h"

#include "support/test.h"
#include "tnk/error.h"

/* Versions 1, 2, 4 and 5 of the gateway have the weights of 0, 1, 2 and 3
 * steps. Version 3 is of someone else. */
static rl_history_t make(void) {
  static const uint32_t versions[] = {1, 2, 4, 5};
  rl_history_t history = {0};

  for (uint64_t i = 0; i < 4; i++)
    CHECK(rl_history_add(&history, versions[i], i) == TNK_OK);
  return history;
}

TEST(the_age_is_the_distance_in_steps) {
  static const struct {
    uint32_t version;
    uint64_t n_done, age;
  } rows[] = {
      {1, 0, 0}, {1, 1, 1},        {1, 3, 3},        {2, 1, 0},
      {4, 3, 1}, {5, 3, 0},        {0, 3, RL_STALE}, {3, 3, RL_STALE},
      {2, 9, 8}, {6, 3, RL_STALE}, {5, 2, RL_STALE}, {UINT32_MAX, 3, RL_STALE},
  };
  rl_history_t history = make();

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    CHECK(rl_history_age(&history, rows[i].version, rows[i].n_done) ==
          rows[i].age);
  rl_history_free(&history);
}

/* The steps that were lost are made again with other weights. Their number
 * alone does not say which ones a sample is from. */
TEST(lost_steps_are_never_young_again) {
  static const struct {
    uint32_t version;
    uint64_t age; /* after step 2 was made again */
  } rows[] = {{1, 2}, {2, 1}, {4, RL_STALE}, {5, RL_STALE}, {6, 1}, {7, 0}};
  rl_history_t history = make();

  rl_history_rewind(&history, 1);
  CHECK(rl_history_add(&history, 6, 1) == TNK_OK);
  CHECK(rl_history_add(&history, 7, 2) == TNK_OK);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    CHECK(rl_history_age(&history, rows[i].version, 2) == rows[i].age);
  rl_history_free(&history);
}

TEST(the_oldest_answer_decides_about_an_episode) {
  static const struct {
    uint32_t versions[3];
    uint64_t max, sum;
  } rows[] = {
      {{5, 5, 5}, 0, 0},        {{4, 5, 5}, 1, 1}, {{5, 4, 1}, 3, 4},
      {{1, 3, 5}, RL_STALE, 3}, {{1, 1, 1}, 3, 9}, {{0, 4, 4}, RL_STALE, 2},
  };
  rl_history_t history = make();

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    rl_mix_t mix = {0};
    rl_age_t age = {0};

    for (size_t k = 0; k < 3; k++)
      CHECK(rl_mix_add(&mix, rows[i].versions[k]) == TNK_OK);
    rl_mix_age(&mix, &age, &history, 3);
    CHECK(age.n == 3 && age.max == rows[i].max && age.sum == rows[i].sum);
    rl_mix_free(&mix);
  }
  rl_history_free(&history);
}

TEST(many_versions_and_many_answers) {
  rl_history_t history = {0};
  rl_mix_t mix = {0};
  rl_age_t age = {0};

  for (uint32_t i = 1; i <= 1000; i++)
    CHECK(rl_history_add(&history, i, i - 1) == TNK_OK);
  for (uint32_t i = 1; i <= 1000; i++)
    for (uint32_t k = 0; k < i % 3; k++)
      CHECK(rl_mix_add(&mix, i) == TNK_OK);
  rl_mix_age(&mix, &age, &history, 999);
  CHECK(age.n == 1000 && age.max == 999);
  rl_mix_free(&mix);
  rl_history_free(&history);
}

TEST(nothing_has_no_age) {
  rl_history_t history = {0};
  rl_mix_t mix = {0};
  rl_age_t age = {0};

  rl_mix_age(&mix, &age, &history, 7);
  CHECK(age.n == 0 && age.max == 0 && age.sum == 0);
  CHECK(rl_history_age(&history, 1, 7) == RL_STALE);
  rl_history_rewind(&history, 0);
}
