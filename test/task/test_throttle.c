/* SPDX-License-Identifier: MIT */
#include "task/script.h"

/*
 * What a 429 does to all samples of a tenant. Submissions are held by the
 * server until the test answers them; time stands still until it is advanced.
 */
enum { MAX_SAMPLES = 128 };

static outcome_t outcomes[MAX_SAMPLES];

static void hold_samples(script_t *script) {
  mock_on(script->mock, "POST", "/api/v1/asample", mock_hold, NULL);
}

static size_t n_submitted(const script_t *script) {
  return mock_count(script->mock, "POST", "/api/v1/asample");
}

static void start_samples(script_t *script, int n) {
  for (int i = 0; i < n; i++)
    outcome_of(&outcomes[i], script_sample(script));
  mock_turns(script->mock, 40);
}

/* Answer the i-th submission, by number in order of their coming. */
static void refuse(script_t *script, size_t i, const char *headers) {
  mock_reply(mock_find(script->mock, "POST", "/api/v1/asample", i), 429,
             headers, "{}", 2);
}

static void accept_rest(script_t *script) {
  mock_on(script->mock, "POST", "/api/v1/asample", script_accept, script);
  mock_release(script->mock, 200, "{\"request_id\":\"asample:0:1\"}");
}

static void finish(script_t *script, int n) {
  accept_rest(script);
  for (int i = 0; i < n; i++) {
    while (outcomes[i].n_done == 0)
      script_advance(script, 1000);
    CHECK_INT(outcomes[i].status, TNK_OK);
    outcome_drop(&outcomes[i]);
  }
  script_close(script);
}

static void open_sampling(script_t *script) {
  script_open(script);
  script_sampler(script);
  hold_samples(script);
}

static long long seq_of(const script_t *script, size_t i) {
  return script_number(mock_find(script->mock, "POST", "/api/v1/asample", i),
                       "seq_id");
}

TEST(S3_12_nothing_is_sent_before_the_deadline) {
  script_t script;

  open_sampling(&script);
  start_samples(&script, 1);
  CHECK_INT(n_submitted(&script), 1);
  refuse(&script, 0, "Retry-After: 3\r\n");
  mock_turns(script.mock, 40);
  for (int i = 1; i < 5; i++)
    outcome_of(&outcomes[i], script_sample(&script));
  script_advance(&script, 2999);
  CHECK_INT(n_submitted(&script), 1);
  script_later(&script, 1);
  CHECK_INT(n_submitted(&script), 6);
  /* The one that was turned away is first in line, under its old number. */
  CHECK_INT(seq_of(&script, 0), 0);
  CHECK_INT(seq_of(&script, 1), 0);
  finish(&script, 5);
}

TEST(S3_15_without_a_wish_the_pause_is_a_second) {
  script_t script;

  open_sampling(&script);
  start_samples(&script, 1);
  refuse(&script, 0, NULL);
  mock_turns(script.mock, 40);
  script_advance(&script, 999);
  CHECK_INT(n_submitted(&script), 1);
  script_later(&script, 1);
  CHECK_INT(n_submitted(&script), 2);
  finish(&script, 1);
}

TEST(S4_3b_a_success_does_not_end_a_back_off) {
  script_t script;

  open_sampling(&script);
  start_samples(&script, 2);
  CHECK_INT(n_submitted(&script), 2);
  refuse(&script, 0, "Retry-After: 5\r\n");
  mock_turns(script.mock, 40);
  script_advance(&script, 1000);
  mock_reply_json(mock_find(script.mock, "POST", "/api/v1/asample", 1), 200,
                  "{\"request_id\":\"asample:1:1\"}");
  outcome_wait(&script, &outcomes[1]);
  script_advance(&script, 3999);
  CHECK_INT(n_submitted(&script), 2);
  script_later(&script, 1);
  CHECK_INT(n_submitted(&script), 3);
  finish(&script, 2);
}

TEST(S4_3_a_later_429_extends_the_wait) {
  script_t script;

  open_sampling(&script);
  start_samples(&script, 2);
  refuse(&script, 0, "Retry-After: 1\r\n");
  mock_turns(script.mock, 40);
  script_advance(&script, 500);
  refuse(&script, 1, "Retry-After: 5\r\n");
  mock_turns(script.mock, 40);
  script_advance(&script, 4999);
  CHECK_INT(n_submitted(&script), 2);
  script_later(&script, 1);
  CHECK_INT(n_submitted(&script), 4);
  finish(&script, 2);
}

TEST(S4_4_few_at_a_time_after_a_back_off) {
  script_t script;

  open_sampling(&script);
  start_samples(&script, 60);
  CHECK_INT(n_submitted(&script), 60);
  for (size_t i = 0; i < 60; i++)
    refuse(&script, i, "Retry-After: 2\r\n");
  mock_turns(script.mock, 60);
  script_later(&script, 2000);
  CHECK_INT(n_submitted(&script), 70);
  for (size_t i = 0; i < 10; i++) /* in order of their first arrival */
    CHECK_INT(seq_of(&script, 60 + i), (long long)i);
  /* One is accepted, one more goes out. */
  mock_reply_json(mock_find(script.mock, "POST", "/api/v1/asample", 60), 200,
                  "{\"request_id\":\"asample:0:1\"}");
  outcome_wait(&script, &outcomes[0]);
  mock_turns(script.mock, 40);
  CHECK_INT(n_submitted(&script), 71);
  /* 10 s after the deadline all of the rest go, and nobody overtakes. */
  script_advance(&script, 9999);
  CHECK_INT(n_submitted(&script), 71);
  script_later(&script, 1);
  CHECK_INT(n_submitted(&script), 120);
  for (size_t i = 0; i < 60; i++)
    CHECK_INT(seq_of(&script, 60 + i), (long long)i);
  finish(&script, 60);
}

TEST(S4_4_new_samples_do_not_overtake_the_limited) {
  script_t script;

  open_sampling(&script);
  start_samples(&script, 20);
  for (size_t i = 0; i < 20; i++)
    refuse(&script, i, "Retry-After: 2\r\n");
  mock_turns(script.mock, 60);
  script_later(&script, 2000);
  CHECK_INT(n_submitted(&script), 30);
  script_advance(&script, 9000);
  for (int i = 20; i < 25; i++)
    outcome_of(&outcomes[i], script_sample(&script));
  mock_turns(script.mock, 40);
  CHECK_INT(n_submitted(&script), 30);
  script_later(&script, 1000);
  CHECK_INT(n_submitted(&script), 45);
  for (size_t i = 0; i < 25; i++)
    CHECK_INT(seq_of(&script, 20 + i), (long long)i);
  finish(&script, 25);
}

TEST(S4_4_those_who_wait_for_bytes_are_limited_too) {
  script_t script;
  tnk__semaphore_t *few;

  script_open(&script);
  mock_json(script.mock, "POST", "/api/v1/client/config", 200,
            "{\"sample_dispatch_bytes_semaphore_size\":1}");
  script_sampler(&script);
  hold_samples(&script);
  few = &script.service->session.limits.sample_throttle;
  start_samples(&script, 30);
  CHECK_INT(n_submitted(&script), 1);
  CHECK_INT(few->n_held, 30);
  refuse(&script, 0, "Retry-After: 2\r\n");
  mock_turns(script.mock, 60);
  CHECK_INT(few->n_held, 10);
  CHECK_INT(n_submitted(&script), 1);
  script_later(&script, 2000);
  CHECK_INT(n_submitted(&script), 2);
  CHECK_INT(few->n_held, 10);
  finish(&script, 30);
}

/* ---- No credit ---- */

/* While the first one waits for credit, its only slot is the second one's. */
TEST(S3_14_a_sample_without_credit_keeps_no_slot) {
  static const long long order[] = {0, 1, 0};
  script_t script;
  outcome_t ends[2];

  script_open(&script);
  script_sampler(&script);
  tnk__semaphore_set_limit(&script.service->session.limits.sample_slots, 1);
  mock_json_once(script.mock, "POST", "/api/v1/asample", 402, "{}");
  for (int i = 0; i < 2; i++)
    outcome_of(&ends[i], script_sample(&script));
  script_turns(&script);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), 1);
  script_advance(&script, 4999);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), 1);
  script_advance(&script, 1);
  for (int i = 0; i < 2; i++)
    outcome_ok(&script, &ends[i]);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), 3);
  for (size_t i = 0; i < 3; i++)
    CHECK_INT(
        script_number(mock_find(script.mock, "POST", "/api/v1/asample", i),
                      "seq_id"),
        order[i]);
  outcome_drop_all(ends, 2);
  script_close(&script);
}

TEST(S3_14_samples_wait_for_credit_as_long_as_the_account_may) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_flags(&script, "{\"billing_exception_max_pause_duration_sec\":12}");
  script_sampler(&script);
  mock_json(script.mock, "POST", "/api/v1/asample", 402, "{}");
  outcome_of(&outcome, script_sample(&script));
  for (int i = 0; i < 12; i++)
    script_advance(&script, 1000);
  CHECK_INT(outcome.n_done, 0);
  for (int i = 0; i < 12 && outcome.n_done == 0; i++)
    script_advance(&script, 1000);
  outcome_fails(&script, &outcome, TNK_EBILLING);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), 4);
  outcome_drop(&outcome);
  script_close(&script);
}

static void expect_refusals(uint64_t max_pause_ms, int after_s, size_t n) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;

  options.max_billing_pause_ms = max_pause_ms;
  script_open_with(&script, options);
  script_sampler(&script);
  mock_json(script.mock, "POST", "/api/v1/asample", 402, "{}");
  outcome_of(&outcome, script_sample(&script));
  for (int i = 0; i < after_s && outcome.n_done == 0; i++)
    script_advance(&script, 1000);
  outcome_fails(&script, &outcome, TNK_EBILLING);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/asample"), n);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(P11_10_who_does_not_want_to_wait_for_credit_does_not) {
  expect_refusals(UINT64_MAX, 0, 1);
  expect_refusals(7000, 30, 3);
}

/* ---- Told ---- */

TEST(G6_why_samples_wait_is_told_once) {
  static const char busy[] = "{\"detail\":\"too many tokens a minute\"}";
  script_t script;

  open_sampling(&script);
  start_samples(&script, 3);
  script.log_text = "too many tokens a minute";
  for (size_t i = 0; i < 3; i++)
    mock_reply(mock_find(script.mock, "POST", "/api/v1/asample", i), 429,
               "Retry-After: 2\r\n", busy, strlen(busy));
  mock_turns(script.mock, 40);
  CHECK_INT(script.n_log_texts, 1);
  finish(&script, 3);
}

/* ---- Given up ---- */

/* On the real clock: the loop would be alive for half a minute. */
TEST_LIMIT(S3_6b_who_stops_waiting_for_a_back_off_keeps_no_loop_alive, 15) {
  script_t script;
  tnk_promise_t *promise;
  outcome_t outcome;

  script_open(&script);
  script_real_clock(&script);
  script_sampler(&script);
  hold_samples(&script);
  promise = script_sample(&script);
  outcome_of(&outcome, tnk_promise_ref(promise));
  mock_turns(script.mock, 40);
  refuse(&script, 0, "Retry-After: 30\r\n");
  mock_turns(script.mock, 40);
  tnk_promise_cancel(promise);
  outcome_fails(&script, &outcome, TNK_ECANCELED);
  CHECK_INT(script.service->root.context.timers.n_foreground, 0);
  uv_run(&script.uv, UV_RUN_DEFAULT);
  tnk_promise_unref(promise);
  outcome_drop(&outcome);
  script_close(&script);
}
