/* SPDX-License-Identifier: MIT */
/*
 * Somebody between the client and the server grants few connections. Polls hold
 * them for as long as samples take, and submissions must come through.
 */
#include "link/samples.h"

static samples_t samples;

/* 2,000 samples of three seconds each through 50 connections: all of them are
 * submitted at once, however the others are refused, and none fails. */
static void run_2000(const char *words) {
  samples_open(&samples, 3000);
  road_tell(&samples.road, words);
  printf("# %s:\n", words);
  samples_run(&samples, 2000, 2000, 12000);
  CHECK(samples.last_made_ms < 3000);
  CHECK(road_counts(&samples.road)->n_most_open <= 50);
  samples_close(&samples);
}

TEST_LIMIT(link_limit_of_50_connections_that_are_closed, 60) {
  run_2000("limit 50 close");
}

TEST_LIMIT(link_limit_of_50_connections_that_are_reset, 60) {
  run_2000("limit 50 reset");
}

TEST_LIMIT(link_limit_of_50_connections_that_are_refused, 60) {
  run_2000("limit 50 refuse");
}

TEST_LIMIT(link_limit_of_50_connections_that_are_told_503, 60) {
  run_2000("limit 50 503");
}

/* Nobody says so, but those that were made later are not served either. */
TEST_LIMIT(link_limit_of_50_connections_and_others_are_let_wait, 60) {
  samples_open(&samples, 3000);
  road_tell(&samples.road, "limit 50 wait");
  samples_run(&samples, 2000, 2000, 30000);
  CHECK(road_counts(&samples.road)->n_most_open <= 50);
  samples_close(&samples);
}

/* Polls of what takes long hold all that is served. */
TEST_LIMIT(link_limit_of_20_connections_let_wait_and_long_polls, 60) {
  samples_open(&samples, 20000);
  road_tell(&samples.road, "limit 20 wait");
  samples_run(&samples, 500, 500, 60000);
  CHECK(samples.last_made_ms < 10000);
  samples_close(&samples);
}

/* On a connection of its own, which is new. */
enum { SLOW = 20 };

static void accept_slowly(mock_request_t *request, void *user) {
  samples_t *all = user;

  if (script_number(request, "seq_id") != SLOW) {
    samples_accept(request, user);
    return;
  }
  all->ready_ms[SLOW] = samples_now(all) + 13000;
  all->n_made++;
  mock_reply_json_after(request, 10000, 200,
                        "{\"request_id\":\"asample:20:0\"}");
}

/* One for all, so that none shows that others would be served. */
static void accept_all_slowly(mock_request_t *request, void *user) {
  const long long seq = script_number(request, "seq_id");
  samples_t *all = user;
  char text[64];

  CHECK(seq >= 0 && seq < SAMPLES_MAX && all->ready_ms[seq] == 0);
  all->ready_ms[seq] = samples_now(all) + 10000;
  all->n_made++;
  snprintf(text, sizeof(text), "{\"request_id\":\"asample:%lld:0\"}", seq);
  mock_reply_json_after(request, 10000, 200, text);
}

/* One that takes long is not taken for one that nobody serves. */
TEST_LIMIT(link_a_slow_submission_is_waited_for, 60) {
  static const mock_handler_t handlers[] = {accept_slowly, accept_all_slowly};

  for (size_t i = 0; i < 2; i++) {
    tnk_stats_t stats = TNK_STATS_INIT;
    samples_open(&samples, 3000);
    mock_on(samples.road.script.mock, "POST", "/api/v1/asample", handlers[i],
            &samples);
    samples_run(&samples, i == 0 ? 400 : 40, 40, 60000);
    tnk_service_stats(&stats, samples.road.script.service);
    CHECK_INT((int)stats.n_retries, 0);
    samples_close(&samples);
  }
}

TEST_LIMIT(link_limit_of_3_connections, 60) {
  samples_open(&samples, 500);
  road_tell(&samples.road, "limit 3 close");
  samples_run(&samples, 100, 100, 12000);
  samples_close(&samples);
}

/* Polls of what takes long do not keep the places of what is quick. */
TEST_LIMIT(link_limit_of_5_connections_and_polls_take_turns, 60) {
  uint64_t took;

  samples_open(&samples, 300000);
  road_tell(&samples.road, "limit 5 close");
  samples.n_all = 30;
  while (samples.n_started < 10)
    samples_start(&samples);
  road_until(&samples.road, &samples.n_made, 10, 1000);
  samples.latency_ms = 500;
  while (samples.n_started < 30)
    samples_start(&samples);
  took = road_until(&samples.road, &samples.n_settled, 20, 60000);
  printf("# 20 quick samples beside 10 slow ones in %llu ms\n",
         (unsigned long long)took);
  road_until(&samples.road, &samples.n_settled, 30, 310000);
  CHECK_INT(samples.n_failed, 0);
  samples_close(&samples);
}

/* The limit falls while hundreds of polls are held, and rises again. */
TEST_LIMIT(link_limit_that_changes_under_load, 60) {
  samples_open(&samples, 2000);
  road_tell(&samples.road, "@1000 limit 20 close");
  road_tell(&samples.road, "@1000 reset");
  road_tell(&samples.road, "@20000 limit 0");
  samples_run(&samples, 5000, 500, 60000);
  samples_close(&samples);
}

/* Polls of samples hold all that is granted when training begins. */
TEST_LIMIT(link_limit_leaves_room_for_training, 60) {
  enum { N_STEPS = 5 };
  outcome_t step;

  samples_open(&samples, 20000);
  script_train(&samples.road.script);
  road_tell(&samples.road, "limit 50 close");
  samples.n_all = 1000;
  while (samples.n_started < samples.n_all)
    samples_start(&samples);
  road_run(&samples.road, 5000);
  CHECK_INT(samples.n_settled, 0);
  for (int i = 0; i < N_STEPS; i++) {
    outcome_of(&step, script_step(&samples.road.script));
    CHECK(road_ok(&samples.road, &step, 30000) <= 2500);
    outcome_drop(&step);
  }
  road_until(&samples.road, &samples.n_settled, samples.n_all, 60000);
  CHECK_INT(samples.n_failed, 0);
  samples_close(&samples);
}
