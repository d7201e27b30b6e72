/* SPDX-License-Identifier: MIT */
/*
 * Links that fall silent, and links that break: what was accepted is waited
 * for, what was lost is repeated, and no step is taken twice.
 */
#include "link/samples.h"

static samples_t samples;

enum { N_STEPS = 20 };

/* Steps and passes in turn, all begun at once. */
static void start_training(outcome_t *outcomes) {
  for (int i = 0; i < N_STEPS; i += 2) {
    outcome_of(&outcomes[i], script_pass(&samples.road.script, 3));
    outcome_of(&outcomes[i + 1], script_step(&samples.road.script));
  }
}

/* Each number came, under one name. */
static void check_numbers(void) {
  const script_t *script = &samples.road.script;
  char calls[N_STEPS + 1][32];
  int n_distinct = 0;

  memset(calls, 0, sizeof(calls));
  for (size_t i = 0; i < script->n_sent; i++) {
    const script_sent_t *sent = &script->sent[i];
    CHECK(sent->seq >= 1 && sent->seq <= N_STEPS);
    n_distinct += calls[sent->seq][0] == '\0';
    if (calls[sent->seq][0] != '\0')
      CHECK_STR(sent->call, calls[sent->seq]);
    snprintf(calls[sent->seq], sizeof(calls[0]), "%s", sent->call);
  }
  CHECK_INT(n_distinct, N_STEPS);
}

/* So many samples, each of so long, and a training client while the link does
 * what it is told. */
static void live_with(int n_samples, uint64_t hold_ms, const char *const *words,
                      size_t n, uint64_t limit_ms) {
  outcome_t outcomes[N_STEPS];

  samples_open(&samples, hold_ms);
  script_train(&samples.road.script);
  road_tell(&samples.road, "delay 25");
  for (size_t i = 0; i < n; i++)
    road_tell(&samples.road, words[i]);
  start_training(outcomes);
  samples_run(&samples, n_samples, n_samples, limit_ms);
  for (int i = 0; i < N_STEPS; i++) {
    road_ok(&samples.road, &outcomes[i], limit_ms);
    outcome_drop(&outcomes[i]);
  }
  check_numbers();
  samples_close(&samples);
}

static void live_through(const char *const *words, size_t n,
                         uint64_t limit_ms) {
  live_with(500, 3000, words, n, limit_ms);
}

/* Everything is over 5 s after the end of the darkness. */
TEST_LIMIT(C5_link_dark_for_a_minute, 60) {
  static const char *const words[] = {"@200 pause", "@60200 go"};

  live_with(2000, 1000, words, 2, 65200);
}

TEST_LIMIT(C5_link_refused_for_a_minute, 60) {
  static const char *const words[] = {"@200 away", "@60200 back"};

  live_with(2000, 1000, words, 2, 65200);
}

TEST_LIMIT(link_dark_before_anything_was_accepted, 60) {
  static const char *const words[] = {"pause", "@20000 go"};

  live_through(words, 2, 60000);
}

TEST_LIMIT(link_broken_again_and_again_for_8_seconds, 60) {
  static char texts[16][24];
  const char *words[16];

  for (int i = 0; i < 16; i++) {
    snprintf(texts[i], sizeof(texts[i]), "@%d reset", 100 + 500 * i);
    words[i] = texts[i];
  }
  live_through(words, 16, 60000);
}

TEST_LIMIT(link_whose_connections_end_in_order_now_and_then, 60) {
  static const char *const words[] = {"@100 cut", "@400 cut", "@1000 cut",
                                      "@2500 cut"};

  live_through(words, 4, 30000);
}

/* What is under way is lost without a word; only time tells. */
TEST_LIMIT(link_whose_connections_die_in_silence, 60) {
  static const char *const words[] = {"@1000 silence"};

  live_through(words, 1, 70000);
}
