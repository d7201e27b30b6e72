/* SPDX-License-Identifier: MIT */
#include "script.h"

/*
 * A time of failures: how often the program is told, and what patience allows.
 * test_wake_kinds.c has what the first good response wakes.
 */

typedef enum { STEP, QUERY } kind_t;
typedef enum { RESET, REFUSED, S503, S503_ASKED, N_FAILURES } failure_t;

enum { MIN = 60000, ASKED_S = 40 };

typedef struct {
  script_t script;
  failure_t failure;
  int n_out;
  int n_back;
  int n_others;
  char reason[512];
  outcome_t outcome;
} wake_t;

static void on_notice(const char *client, tnk_queue_state_t state,
                      const char *reason, void *user) {
  wake_t *t = user;

  (void)client;
  t->n_out += state == TNK_QUEUE_UNREACHABLE;
  t->n_back += state == TNK_QUEUE_ACTIVE;
  t->n_others += state != TNK_QUEUE_UNREACHABLE && state != TNK_QUEUE_ACTIVE;
  if (state == TNK_QUEUE_UNREACHABLE)
    snprintf(t->reason, sizeof(t->reason), "%s", reason);
}

static void open_wake(wake_t *t, uint64_t patience_ms) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  memset(t, 0, sizeof(*t));
  options.on_queue_state = on_notice;
  options.queue_state_user = t;
  options.patience_ms = patience_ms;
  script_open_with(&t->script, options);
}

static void refuse(mock_request_t *request, void *user) {
  const wake_t *t = user;
  char headers[64] = "";

  if (t->failure == S503_ASKED)
    snprintf(headers, sizeof(headers), "Retry-After: %d\r\n", ASKED_S);
  mock_reply(request, 503, headers, "", 0);
}

static void fail_all(wake_t *t, failure_t failure) {
  t->failure = failure;
  if (failure == REFUSED) {
    mock_stop_listening(t->script.mock);
    mock_close_idle(t->script.mock, 1);
  } else {
    mock_on_head(t->script.mock, failure == RESET ? mock_reset : refuse, t);
  }
  script_turns(&t->script);
}

static void fail_no_more(wake_t *t) {
  if (t->failure == REFUSED)
    mock_listen_again(t->script.mock);
  else
    mock_on_head(t->script.mock, NULL, NULL);
}

static void pass_time(wake_t *t, uint64_t ms, uint64_t step_ms) {
  for (uint64_t at = 0; at < ms; at += step_ms)
    script_advance(&t->script, step_ms);
}

static void start(wake_t *t, kind_t kind) {
  script_t *script = &t->script;

  if (kind == STEP)
    outcome_of(&t->outcome, script_step(script));
  else
    outcome_of(&t->outcome, tnk_service_capabilities(script->service));
}

static void begin_failing(wake_t *t, kind_t kind, failure_t failure) {
  fail_all(t, failure);
  start(t, kind);
  script_turns(&t->script);
}

/* A request that always fails beside good responses is woken once in a row, and
 * then keeps its own pace. */
TEST(C5_one_request_that_always_fails_is_not_repeated_at_the_pace_of_others) {
  wake_t t;
  outcome_t other;
  size_t n;

  open_wake(&t, UINT64_MAX);
  script_train(&t.script);
  mock_on(t.script.mock, NULL, "/api/v1/optim_step", refuse, &t);
  start(&t, STEP);
  script_turns(&t.script);
  for (int i = 0; i < 300; i++) { /* five minutes of a good one each second */
    script_ok(&t.script, &other, tnk_service_health(t.script.service));
    outcome_drop(&other);
    script_advance(&t.script, 1000);
  }
  n = mock_count(t.script.mock, NULL, "/api/v1/optim_step");
  CHECK(n >= 10 && n <= 18); /* its schedule alone makes 14 or a few more */
  mock_on(t.script.mock, NULL, "/api/v1/optim_step", script_accept, &t.script);
  pass_time(&t, 40000, 1000);
  outcome_ok(&t.script, &t.outcome);
  outcome_drop(&t.outcome);
  script_close(&t.script);
}

/* ---- What is told ---- */

/* An outage of ten minutes is told by one warning, and its end by another;
 * heartbeats that fail alone are told once. */
TEST(C5_heartbeats_add_no_warning_to_an_outage) {
  static const char *const words = "no heartbeat has succeeded";

  for (int failure = 0; failure < N_FAILURES; failure++) {
    wake_t t;

    open_wake(&t, UINT64_MAX);
    script_train(&t.script);
    t.script.log_text = words;
    t.script.n_warnings = 0;
    begin_failing(&t, STEP, (failure_t)failure);
    pass_time(&t, 10 * MIN, 1000);
    CHECK_INT(t.n_out, 1);
    CHECK_INT(t.n_others, 0);
    CHECK_INT(t.script.n_log_texts, 0);
    CHECK_INT(t.script.n_warnings, 1);
    fail_no_more(&t);
    pass_time(&t, (ASKED_S + 10) * 1000, 1000);
    outcome_ok(&t.script, &t.outcome);
    CHECK_INT(t.n_back, 1);
    CHECK_INT(t.script.n_warnings, 2);
    outcome_drop(&t.outcome);
    script_close(&t.script);
  }
}

TEST(SX_2_heartbeats_that_fail_alone_are_told_once_a_stretch) {
  wake_t t;

  open_wake(&t, 0);
  script_train(&t.script);
  t.script.log_text = "no heartbeat has succeeded";
  for (int i = 1; i <= 2; i++) {
    mock_on(t.script.mock, NULL, "/api/v1/session_heartbeat", refuse, &t);
    pass_time(&t, 10 * MIN, 1000);
    CHECK_INT(t.script.n_log_texts, i);
    mock_json(t.script.mock, "POST", "/api/v1/session_heartbeat", 200, "{}");
    pass_time(&t, MIN, 1000);
  }
  script_close(&t.script);
}

/* ---- A server that is not there ---- */

/* A wrong port, or a server that has not started yet: told at once. */
TEST(C5_a_refused_connection_at_the_start_is_told_at_once) {
  wake_t t;

  open_wake(&t, 0);
  fail_all(&t, REFUSED);
  start(&t, QUERY);
  script_turns(&t.script);
  CHECK_INT(t.n_out, 1);
  CHECK(strstr(t.reason, "connection refused") != NULL);
  CHECK(strstr(t.reason, "there was no response from there yet") != NULL);
  CHECK_INT(t.script.n_warnings, 1);
  pass_time(&t, 4 * MIN, 500); /* far beyond ten repeats */
  CHECK_INT(t.outcome.n_done, 0);
  CHECK_INT(t.n_out, 1);
  fail_no_more(&t);
  pass_time(&t, 3000, 100);
  outcome_ok(&t.script, &t.outcome);
  CHECK_INT(t.n_back, 1);
  outcome_drop(&t.outcome);
  script_close(&t.script);
}

/* ---- Patience ---- */

static const uint64_t patiences[] = {300, 15000, 60000};

TEST(C5_a_server_that_is_not_there_is_given_up_when_patience_ends) {
  for (size_t i = 0; i < sizeof(patiences) / sizeof(*patiences); i++) {
    wake_t t;
    const uint64_t step_ms = patiences[i] / 10;

    open_wake(&t, patiences[i]);
    fail_all(&t, REFUSED);
    start(&t, QUERY);
    script_turns(&t.script);
    pass_time(&t, patiences[i] - step_ms, step_ms);
    CHECK_INT(t.outcome.n_done, 0);
    pass_time(&t, 2 * step_ms, step_ms);
    outcome_fails(&t.script, &t.outcome, TNK_ECONN);
    CHECK_INT(t.n_out, 1);
    outcome_drop(&t.outcome);
    fail_no_more(&t);
    script_close(&t.script);
  }
}

/* The last attempt begins when patience ends, and nothing answers it. */
TEST(C5_patience_counts_from_the_first_failure_whatever_the_last_attempt_does) {
  for (size_t i = 0; i < sizeof(patiences) / sizeof(*patiences); i++) {
    wake_t t;

    open_wake(&t, patiences[i]);
    script_train(&t.script);
    fail_all(&t, RESET);
    start(&t, STEP);
    script_turns(&t.script);
    mock_on_head(t.script.mock, NULL, NULL);
    mock_on(t.script.mock, NULL, "/api/v1/optim_step", mock_hold, NULL);
    pass_time(&t, patiences[i] * 9 / 10, patiences[i] / 10);
    CHECK_INT(t.outcome.n_done, 0);
    pass_time(&t, patiences[i] / 5 + 2500, 100);
    CHECK_INT(t.outcome.n_done, 1);
    outcome_fails(&t.script, &t.outcome, TNK_ETIMEDOUT);
    outcome_drop(&t.outcome);
    script_close(&t.script);
  }
}
