/* SPDX-License-Identifier: MIT */
#include "lib/policy/batch.h"

#include "support/test.h"

static tnk__verdict_t verdict(tnk__outcome_t outcome) {
  return tnk__classify(
      &(tnk__attempt_t){.call = TNK__CALL_POLL, .outcome = outcome});
}

static int failed(tnk__batch_t *batch, tnk__outcome_t outcome,
                  uint64_t server_ms, uint64_t now_ms) {
  tnk__verdict_t v = verdict(outcome);

  tnk__batch_sent(batch, now_ms);
  return tnk__batch_failed(batch, &v, outcome, server_ms, now_ms, 0);
}

static uint64_t wait_ms(const tnk__batch_t *batch, uint64_t now_ms) {
  return tnk__batch_wait_ms(batch, TNK__BATCH_POLL, now_ms);
}

TEST(P8_6_who_waits_comes_before_what_is_reported) {
  tnk__batch_t batch;

  tnk__batch_init(&batch);
  CHECK_INT(tnk__batch_need(&batch, 0, 0), TNK__BATCH_NOTHING);
  CHECK_INT(tnk__batch_need(&batch, 0, 3), TNK__BATCH_FLUSH);
  CHECK_INT(tnk__batch_need(&batch, 1, 3), TNK__BATCH_POLL);
  CHECK_INT(wait_ms(&batch, 5000), 0);
  CHECK_INT(tnk__batch_wait_ms(&batch, TNK__BATCH_FLUSH, 5000), 1000);
}

TEST(P8_6_news_is_followed_at_once) {
  tnk__batch_t batch;
  uint64_t now = 1000;

  tnk__batch_init(&batch);
  for (int i = 0; i < 20; i++) {
    tnk__batch_sent(&batch, now);
    tnk__batch_answered(&batch, i, 1, now);
    CHECK_INT(batch.cursor, i);
    CHECK_INT(wait_ms(&batch, now), 0);
  }
}

/* A server whose cursor always moves is asked about once a second. */
TEST(P8_6_a_moving_cursor_does_not_spin) {
  tnk__batch_t batch;
  uint64_t now = 1000;
  int n = 0;

  tnk__batch_init(&batch);
  for (; now < 61000; n++) {
    tnk__batch_sent(&batch, now);
    tnk__batch_answered(&batch, 7 + n, 0, now);
    now += wait_ms(&batch, now);
  }
  CHECK(n >= 60 && n <= 65);
}

TEST(P8_6_a_poll_that_was_held_is_followed_at_once) {
  tnk__batch_t batch;

  tnk__batch_init(&batch);
  tnk__batch_sent(&batch, 0);
  tnk__batch_answered(&batch, 0, 0, 30000);
  CHECK_INT(wait_ms(&batch, 30000), 0);
}

TEST(P8_6_a_smaller_cursor_is_taken) {
  tnk__batch_t batch;

  tnk__batch_init(&batch);
  tnk__batch_answered(&batch, 9, 1, 0);
  tnk__batch_answered(&batch, 4, 1, 0);
  CHECK_INT(batch.cursor, 4);
}

TEST(P8_6_what_may_pass_is_asked_again) {
  static const tnk__outcome_t passing[] = {
      TNK__OUTCOME_408,  TNK__OUTCOME_409,       TNK__OUTCOME_429,
      TNK__OUTCOME_5XX,  TNK__OUTCOME_400_EMPTY, TNK__OUTCOME_UNSENT,
      TNK__OUTCOME_LOST, TNK__OUTCOME_TIMEOUT,   TNK__OUTCOME_TRUNCATED};

  for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
    tnk__batch_t batch;

    tnk__batch_init(&batch);
    batch.cursor = 5;
    CHECK_INT(failed(&batch, passing[i], 0, 0), 1);
    CHECK(wait_ms(&batch, 0) >= 100);
    CHECK_INT(batch.cursor, 5);
    CHECK_INT(tnk__batch_need(&batch, 1, 0), TNK__BATCH_POLL);
  }
}

TEST(P8_6_anything_else_turns_it_off) {
  static const tnk__outcome_t terminal[] = {
      TNK__OUTCOME_401, TNK__OUTCOME_403,       TNK__OUTCOME_404,
      TNK__OUTCOME_405, TNK__OUTCOME_410,       TNK__OUTCOME_413,
      TNK__OUTCOME_422, TNK__OUTCOME_3XX,       TNK__OUTCOME_MALFORMED,
      TNK__OUTCOME_4XX, TNK__OUTCOME_UNTRUSTED, TNK__OUTCOME_TOO_BIG};

  for (size_t i = 0; i < sizeof(terminal) / sizeof(terminal[0]); i++) {
    tnk__batch_t batch;

    tnk__batch_init(&batch);
    CHECK_INT(failed(&batch, terminal[i], 0, 0), 0);
    CHECK_INT(tnk__batch_need(&batch, 1, 1), TNK__BATCH_NOTHING);
  }
}

TEST(P8_6_three_400s_without_a_success_between) {
  tnk__batch_t batch;

  tnk__batch_init(&batch);
  for (int i = 0; i < 3; i++)
    CHECK_INT(failed(&batch, TNK__OUTCOME_400, 0, 0), 1);
  tnk__batch_answered(&batch, 0, 0, 0);
  for (int i = 0; i < 3; i++)
    CHECK_INT(failed(&batch, TNK__OUTCOME_400, 0, 0), 1);
  CHECK_INT(failed(&batch, TNK__OUTCOME_400, 0, 0), 0);
  CHECK_INT(batch.is_off, 1);
}

TEST(P8_6_the_servers_wish_counts) {
  tnk__batch_t batch;

  tnk__batch_init(&batch);
  CHECK_INT(failed(&batch, TNK__OUTCOME_429, 7000, 1000), 1);
  CHECK_INT(wait_ms(&batch, 1000), 7000);
  CHECK_INT(wait_ms(&batch, 6000), 2000);
  CHECK_INT(tnk__batch_wait_ms(&batch, TNK__BATCH_FLUSH, 1000), 7000);
}

TEST(P8_6_reports_are_dropped_after_three_failures) {
  tnk__batch_t batch;

  tnk__batch_init(&batch);
  CHECK_INT(tnk__batch_drops_reports(&batch), 0);
  CHECK_INT(tnk__batch_drops_reports(&batch), 0);
  tnk__batch_answered(&batch, 1, 0, 0);
  CHECK_INT(tnk__batch_drops_reports(&batch), 0);
  CHECK_INT(tnk__batch_drops_reports(&batch), 0);
  CHECK_INT(tnk__batch_drops_reports(&batch), 1);
  CHECK_INT(tnk__batch_drops_reports(&batch), 0);
}

TEST(P8_6_silence_is_checked_after_one_to_two_minutes) {
  CHECK_INT(tnk__batch_check_ms(0), 60000);
  CHECK_INT(tnk__batch_check_ms(0.5), 90000);
  CHECK(tnk__batch_check_ms(0.999999) < 120000);
}
