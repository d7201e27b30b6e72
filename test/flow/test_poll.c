/* SPDX-License-Identifier: MIT */
#include "lib/policy/poll.h"

#include "lib/policy/billing.h"
#include "support/test.h"

static tnk__poll_t poll;
static uint64_t now_ms;

/* One poll that is answered after held_ms; returns the delay to the next. */
static uint64_t step(tnk__poll_event_t event, uint64_t held_ms,
                     uint64_t server_ms) {
  uint64_t delay_ms = 99;

  tnk__poll_sent(&poll, now_ms);
  now_ms += held_ms;
  CHECK_INT(tnk__poll_next(&poll, event, server_ms, now_ms, 0, &delay_ms), 1);
  now_ms += delay_ms;
  return delay_ms;
}

TEST(iterations_count_from_zero) {
  tnk__poll_init(&poll);
  for (uint64_t i = 0; i < 5; i++)
    CHECK_INT(tnk__poll_sent(&poll, i), i);
}

TEST(a_held_answer_is_polled_again_at_once) {
  tnk__poll_init(&poll);
  CHECK_INT(step(TNK__POLL_PENDING, 30000, 0), 0);
  CHECK_INT(step(TNK__POLL_PENDING, 1000, 0), 0);
  CHECK_INT(step(TNK__POLL_408_JSON, 2000, 0), 0);
  CHECK_INT(step(TNK__POLL_TIMEOUT, 45000, 0), 0);
}

TEST(early_answers_are_spaced_from_100_ms_to_1_s) {
  static const uint64_t distance[] = {100, 200, 400, 800, 1000, 1000, 1000};
  static const tnk__poll_event_t events[] = {
      TNK__POLL_PENDING, TNK__POLL_408_JSON, TNK__POLL_5XX, TNK__POLL_TIMEOUT};

  for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
    tnk__poll_init(&poll);
    for (size_t i = 0; i < 7; i++)
      CHECK_INT(step(events[e], 0, 0), distance[i]);
  }
}

TEST(the_distance_counts_from_the_last_poll) {
  tnk__poll_init(&poll);
  CHECK_INT(step(TNK__POLL_5XX, 40, 0), 60);
  CHECK_INT(step(TNK__POLL_5XX, 150, 0), 50);
  CHECK_INT(step(TNK__POLL_5XX, 999, 0), 0);
  CHECK_INT(step(TNK__POLL_PENDING, 39, 0), 761);
}

/* Also by a server that holds no poll for longer than a moment. */
TEST(P8_2_not_yet_after_a_short_hold_is_polled_again_at_once) {
  tnk__poll_init(&poll);
  for (int i = 0; i < 100; i++)
    CHECK_INT(step(i % 2 ? TNK__POLL_408_JSON : TNK__POLL_PENDING, 40, 0), 0);
  CHECK_INT(step(TNK__POLL_PENDING, 39, 0), 61);
}

TEST(one_held_answer_resets_the_distance) {
  tnk__poll_init(&poll);
  step(TNK__POLL_PENDING, 0, 0);
  step(TNK__POLL_PENDING, 0, 0);
  step(TNK__POLL_PENDING, 1000, 0);
  CHECK_INT(step(TNK__POLL_PENDING, 0, 0), 100);
}

TEST(a_server_that_never_holds_is_polled_once_a_second) {
  uint64_t start_ms;

  tnk__poll_init(&poll);
  start_ms = now_ms;
  for (int i = 0; i < 1000; i++)
    step(TNK__POLL_5XX, 1, 0);
  CHECK(now_ms - start_ms > 990000);
}

TEST(S1_10_a_servers_wish_is_honored) {
  tnk__poll_init(&poll);
  CHECK_INT(step(TNK__POLL_5XX, 0, 5000), 5000);
  CHECK_INT(step(TNK__POLL_PENDING, 30000, 250), 250);
  CHECK_INT(step(TNK__POLL_429, 0, 7000), 7000);
  CHECK_INT(step(TNK__POLL_LOST, 0, 6000), 6000);
}

TEST(S1_10_a_servers_wish_makes_no_spin) {
  static const tnk__poll_event_t events[] = {TNK__POLL_PENDING, TNK__POLL_5XX,
                                             TNK__POLL_429, TNK__POLL_LOST};

  for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
    tnk__poll_init(&poll);
    CHECK_INT(step(events[e], 0, 1), 100);
    CHECK_INT(step(events[e], 0, 1), 200);
  }
}

TEST(429_and_lost_connections_back_off_together) {
  static const uint64_t delays[] = {1000,  2000,  4000, 8000,
                                    16000, 30000, 30000};

  tnk__poll_init(&poll);
  for (size_t i = 0; i < 7; i++)
    CHECK_INT(step(i % 2 ? TNK__POLL_LOST : TNK__POLL_429, 10, 0), delays[i]);
}

TEST(S1_10_a_poll_that_broke_is_repeated_at_once_but_no_second_time) {
  tnk__poll_init(&poll);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(step(TNK__POLL_LOST, 5000, 0), 0);
    CHECK_INT(step(TNK__POLL_LOST, 5000, 0), 1000);
    CHECK_INT(step(TNK__POLL_LOST, 5000, 0), 2000);
    step(TNK__POLL_PENDING, 5000, 0);
  }
  tnk__poll_init(&poll);
  CHECK_INT(step(TNK__POLL_LOST, 10, 0), 90); /* nor does that spin */
}

TEST(any_answer_ends_the_back_off_of_429) {
  static const tnk__poll_event_t events[] = {TNK__POLL_PENDING,
                                             TNK__POLL_408_JSON, TNK__POLL_5XX,
                                             TNK__POLL_400, TNK__POLL_METADATA};

  for (size_t e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
    tnk__poll_init(&poll);
    step(TNK__POLL_429, 10, 0);
    step(TNK__POLL_429, 10, 0);
    step(events[e], 2000, 0);
    CHECK_INT(step(TNK__POLL_429, 10, 0), 1000);
  }
}

TEST(a_pause_and_a_timeout_leave_the_back_off_alone) {
  tnk__poll_init(&poll);
  step(TNK__POLL_429, 10, 0);
  CHECK_INT(step(TNK__POLL_PAUSED, 10, 0), TNK__BILLING_DELAY_MS);
  CHECK_INT(step(TNK__POLL_TIMEOUT, 45000, 0), 0);
  CHECK_INT(step(TNK__POLL_429, 10, 0), 2000);
}

TEST(the_fourth_400_is_the_last) {
  uint64_t delay_ms;

  tnk__poll_init(&poll);
  for (int i = 0; i < TNK__POLL_MAX_400; i++)
    step(TNK__POLL_400, 10, 0);
  CHECK_INT(tnk__poll_next(&poll, TNK__POLL_400, 0, now_ms, 0, &delay_ms), 0);
  CHECK_INT(delay_ms, 0);
}

TEST(P8_2_a_result_that_is_not_known_is_asked_for_three_times_more) {
  uint64_t delay_ms;

  tnk__poll_init(&poll);
  for (int round = 0; round < 2; round++) {
    CHECK_INT(step(TNK__POLL_404, 10, 0), 1000);
    CHECK_INT(step(TNK__POLL_404, 10, 0), 2000);
    CHECK_INT(step(TNK__POLL_404, 10, 6000), 6000);
    if (round == 0) /* it is known after all */
      step(TNK__POLL_PENDING, 10, 0);
  }
  CHECK_INT(tnk__poll_next(&poll, TNK__POLL_404, 0, now_ms, 0, &delay_ms), 0);
}

/* One that has changed its mind may change it again. */
TEST(a_proxys_refusals_are_survived_for_two_minutes) {
  uint64_t delay_ms;
  uint64_t start_ms;

  tnk__poll_init(&poll);
  for (int round = 0; round < 2; round++) {
    start_ms = now_ms;
    for (int i = 0; i < TNK__POLL_MAX_REFUSED; i++)
      CHECK(step(TNK__POLL_REFUSED, 10, 0) >= 1000);
    CHECK(now_ms - start_ms > 100000);
    if (round == 0)
      step(TNK__POLL_PENDING, 10, 0);
  }
  CHECK_INT(tnk__poll_next(&poll, TNK__POLL_REFUSED, 0, now_ms, 0, &delay_ms),
            0);
}

TEST(the_back_off_has_jitter) {
  uint64_t delay_ms;

  tnk__poll_init(&poll);
  tnk__poll_sent(&poll, now_ms);
  CHECK_INT(tnk__poll_next(&poll, TNK__POLL_429, 0, now_ms, 0.5, &delay_ms), 1);
  CHECK_INT(delay_ms, 875);
}

TEST(only_a_408_with_json_forgives_400s) {
  uint64_t delay_ms;

  tnk__poll_init(&poll);
  step(TNK__POLL_400, 10, 0);
  step(TNK__POLL_400, 10, 0);
  step(TNK__POLL_408_JSON, 10, 0);
  step(TNK__POLL_400, 10, 0);
  step(TNK__POLL_PENDING, 10, 0);
  step(TNK__POLL_400, 10, 0);
  step(TNK__POLL_5XX, 10, 0);
  step(TNK__POLL_400, 10, 0);
  CHECK_INT(tnk__poll_next(&poll, TNK__POLL_400, 0, now_ms, 0, &delay_ms), 0);
}

TEST(metadata_is_followed_at_once) {
  tnk__poll_init(&poll);
  CHECK_INT(step(TNK__POLL_METADATA, 0, 0), 0);
}

TEST(a_clock_that_stands_still_or_back_is_harmless) {
  uint64_t delay_ms;

  tnk__poll_init(&poll);
  tnk__poll_sent(&poll, 1000);
  CHECK_INT(tnk__poll_next(&poll, TNK__POLL_PENDING, 0, 900, 0, &delay_ms), 1);
  CHECK_INT(delay_ms, 100);
}

TEST(S3_2a_events_of_outcomes) {
  static const struct {
    tnk__outcome_t outcome;
    int has_json;
    tnk__poll_event_t event;
  } rows[] = {
      {TNK__OUTCOME_2XX, 1, TNK__POLL_PENDING},
      {TNK__OUTCOME_400, 1, TNK__POLL_400},
      {TNK__OUTCOME_400_EMPTY, 0, TNK__POLL_LOST},
      {TNK__OUTCOME_402, 1, TNK__POLL_PAUSED},
      {TNK__OUTCOME_408, 0, TNK__POLL_PENDING},
      {TNK__OUTCOME_408, 1, TNK__POLL_408_JSON},
      {TNK__OUTCOME_429, 1, TNK__POLL_429},
      {TNK__OUTCOME_5XX, 1, TNK__POLL_5XX},
      {TNK__OUTCOME_UNSENT, 0, TNK__POLL_LOST},
      {TNK__OUTCOME_LOST, 0, TNK__POLL_LOST},
      {TNK__OUTCOME_TRUNCATED, 0, TNK__POLL_LOST},
      {TNK__OUTCOME_TIMEOUT, 0, TNK__POLL_TIMEOUT},
      {TNK__OUTCOME_REFUSED, 0, TNK__POLL_REFUSED},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    CHECK_INT(tnk__poll_event(rows[i].outcome, rows[i].has_json),
              rows[i].event);
}
