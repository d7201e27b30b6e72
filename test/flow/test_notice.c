/* SPDX-License-Identifier: MIT */
#include "lib/policy/billing.h"
#include "lib/policy/queue_state.h"
#include "support/test.h"

#define GRACE_MS 900000 /* of training and of the creation of models */

static tnk__queue_notice_t notice;

static int due(tnk_queue_state_t state, uint64_t now_ms) {
  return tnk__queue_notice_due(&notice, state, now_ms);
}

TEST(S4_10b_first_report_is_told_at_once_then_every_60_s) {
  tnk__queue_notice_init(&notice, 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 0), 1);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 1), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 59999), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 60000), 1);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 119999), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 120000), 1);
}

TEST(S4_10b_another_state_within_60_s_is_not_told) {
  tnk__queue_notice_init(&notice, 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 10), 1);
  CHECK_INT(due(TNK_QUEUE_PAUSED_RATE_LIMIT, 20), 0);
  CHECK_INT(due(TNK_QUEUE_UNKNOWN, 60009), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_RATE_LIMIT, 60010), 1);
}

TEST(S4_10b_active_is_silent) {
  tnk__queue_notice_init(&notice, 0);
  CHECK_INT(due(TNK_QUEUE_ACTIVE, 0), 0);
  CHECK_INT(due(TNK_QUEUE_ACTIVE, 100000), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 100001), 1);
}

TEST(S4_10b_two_clients_are_told_apart) {
  tnk__queue_notice_t a, b;

  tnk__queue_notice_init(&a, 0);
  tnk__queue_notice_init(&b, 0);
  CHECK_INT(tnk__queue_notice_due(&a, TNK_QUEUE_PAUSED_CAPACITY, 0), 1);
  CHECK_INT(tnk__queue_notice_due(&b, TNK_QUEUE_PAUSED_CAPACITY, 1), 1);
}

TEST(S4_10_training_waits_15_minutes_of_one_state) {
  tnk__queue_notice_init(&notice, GRACE_MS);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 5), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, GRACE_MS + 4), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, GRACE_MS + 5), 1);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, GRACE_MS + 60004), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, GRACE_MS + 60005), 1);
}

TEST(S4_10_any_change_of_state_begins_the_15_minutes_anew) {
  tnk__queue_notice_init(&notice, GRACE_MS);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 0), 0);
  CHECK_INT(due(TNK_QUEUE_ACTIVE, 800000), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 800001), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 800000 + GRACE_MS), 0);
  CHECK_INT(due(TNK_QUEUE_PAUSED_CAPACITY, 800001 + GRACE_MS), 1);
}

TEST(S1_13a_names_of_queue_states) {
  CHECK_INT(tnk__queue_state_parse("active"), TNK_QUEUE_ACTIVE);
  CHECK_INT(tnk__queue_state_parse("paused_capacity"),
            TNK_QUEUE_PAUSED_CAPACITY);
  CHECK_INT(tnk__queue_state_parse("paused_rate_limit"),
            TNK_QUEUE_PAUSED_RATE_LIMIT);
  CHECK_INT(tnk__queue_state_parse("ACTIVE"), TNK_QUEUE_UNKNOWN);
  CHECK_INT(tnk__queue_state_parse(""), TNK_QUEUE_UNKNOWN);
  CHECK_INT(tnk__queue_state_parse("paused"), TNK_QUEUE_UNKNOWN);
  CHECK_INT(tnk__queue_state_parse(NULL), TNK_QUEUE_UNKNOWN);
}

TEST(S4_10b_the_servers_reason_goes_first) {
  CHECK_STR(tnk__queue_reason(TNK__QUEUE_TRAINING, TNK_QUEUE_PAUSED_CAPACITY,
                              "lunch"),
            "lunch");
  CHECK_STR(tnk__queue_reason(TNK__QUEUE_TRAINING, TNK_QUEUE_ACTIVE, NULL),
            "unknown");
  CHECK_STR(
      tnk__queue_reason(TNK__QUEUE_SAMPLING, TNK_QUEUE_PAUSED_RATE_LIMIT, ""),
      "the limit of concurrent sampler weights is reached");
  CHECK_STR(
      tnk__queue_reason(TNK__QUEUE_TRAINING, TNK_QUEUE_PAUSED_RATE_LIMIT, NULL),
      "the limit of concurrent training clients is reached");
  CHECK_STR(
      tnk__queue_reason(TNK__QUEUE_SAMPLING, TNK_QUEUE_PAUSED_CAPACITY, NULL),
      tnk__queue_reason(TNK__QUEUE_TRAINING, TNK_QUEUE_PAUSED_CAPACITY, NULL));
}

/* ---- The pause of an account without credit ---- */

static tnk__billing_t billing;

TEST(billing_pauses_until_the_servers_limit) {
  tnk__billing_init(&billing, 20000);
  CHECK_INT(tnk__billing_refused(&billing, 7), TNK__BILLING_PAUSE_AND_WARN);
  CHECK_INT(tnk__billing_refused(&billing, 5007), TNK__BILLING_PAUSE);
  CHECK_INT(tnk__billing_refused(&billing, 20007), TNK__BILLING_PAUSE);
  CHECK_INT(tnk__billing_refused(&billing, 20008), TNK__BILLING_STOP);
}

TEST(billing_warns_once_a_minute) {
  tnk__billing_init(&billing, 3600000);
  CHECK_INT(tnk__billing_refused(&billing, 0), TNK__BILLING_PAUSE_AND_WARN);
  CHECK_INT(tnk__billing_refused(&billing, 60000), TNK__BILLING_PAUSE);
  CHECK_INT(tnk__billing_refused(&billing, 60001), TNK__BILLING_PAUSE_AND_WARN);
  CHECK_INT(tnk__billing_refused(&billing, 120000), TNK__BILLING_PAUSE);
}

TEST(billing_forgets_an_incident_after_300_quiet_seconds) {
  tnk__billing_init(&billing, 10000);
  CHECK_INT(tnk__billing_refused(&billing, 0), TNK__BILLING_PAUSE_AND_WARN);
  CHECK_INT(tnk__billing_refused(&billing, 300000), TNK__BILLING_STOP);
  CHECK_INT(tnk__billing_refused(&billing, 300001),
            TNK__BILLING_PAUSE_AND_WARN);
  CHECK_INT(tnk__billing_refused(&billing, 305000), TNK__BILLING_PAUSE);
}

TEST(billing_without_patience_stops_at_the_second) {
  tnk__billing_init(&billing, 0);
  CHECK_INT(tnk__billing_refused(&billing, 1), TNK__BILLING_PAUSE_AND_WARN);
  CHECK_INT(tnk__billing_refused(&billing, 2), TNK__BILLING_STOP);
}
