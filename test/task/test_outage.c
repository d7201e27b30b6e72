/* SPDX-License-Identifier: MIT */
#include "task/script.h"

/*
 * Nothing answers for a while: what is repeated and for how long, who is told,
 * and how soon everything goes on.
 */

static const char step_path[] = "/api/v1/optim_step";

typedef struct {
  int n_out;
  int n_back;
  int n_others;
  char client[64];
  char out[256];
  char back[256];
  char other[512]; /* the last one */
} notices_t;

static void on_notice(const char *client, tnk_queue_state_t state,
                      const char *reason, void *user) {
  notices_t *notices = user;

  if (state == TNK_QUEUE_UNREACHABLE) {
    notices->n_out++;
    snprintf(notices->client, sizeof(notices->client), "%s", client);
    snprintf(notices->out, sizeof(notices->out), "%s", reason);
  } else if (state == TNK_QUEUE_ACTIVE) {
    notices->n_back++;
    snprintf(notices->back, sizeof(notices->back), "%s", reason);
  } else {
    notices->n_others++;
    snprintf(notices->other, sizeof(notices->other), "%s", reason);
  }
}

static void open_told(script_t *script, notices_t *notices,
                      uint64_t patience_ms) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  memset(notices, 0, sizeof(*notices));
  options.on_queue_state = on_notice;
  options.queue_state_user = notices;
  options.patience_ms = patience_ms;
  script_open_with(script, options);
}

/* Every request from now on is lost, or no longer. */
static void black_out(script_t *script, int is_out) {
  mock_on_head(script->mock, is_out ? mock_reset : NULL, NULL);
}

static void refuse(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 503, "", "", 0);
}

static void pass_time(script_t *script, uint64_t ms, uint64_t step_ms) {
  for (uint64_t t = 0; t < ms; t += step_ms)
    script_advance(script, step_ms);
}

/* ---- Patience ---- */

TEST(C5_a_step_refused_for_290_s_is_done_with_the_default_options) {
  script_t script;
  outcome_t step;

  script_open_train(&script);
  mock_on(script.mock, NULL, step_path, refuse, NULL);
  outcome_of(&step, script_step(&script));
  script_turns(&script);
  pass_time(&script, 290000, 5000);
  CHECK_INT(step.n_done, 0);
  CHECK(mock_count(script.mock, NULL, step_path) > 11);
  mock_on(script.mock, NULL, step_path, script_accept, &script);
  pass_time(&script, 10000, 5000);
  outcome_ok(&script, &step);
  script_check_sent(&script, 0, "optim_step", 1);
  outcome_drop(&step);
  script_close(&script);
}

TEST(C5_a_step_refused_for_longer_fails_300_s_after_its_first_refusal) {
  script_t script;
  outcome_t step;

  script_open_train(&script);
  mock_on(script.mock, NULL, step_path, refuse, NULL);
  outcome_of(&step, script_step(&script));
  script_turns(&script);
  pass_time(&script, 299000, 1000);
  CHECK_INT(step.n_done, 0);
  script_advance(&script, 1000);
  outcome_fails(&script, &step, TNK_ESERVER);
  outcome_drop(&step);
  script_close(&script);
}

/* Two passes, each with a step behind it. */
enum { N_WORKS = 4 };

static void begin_work(script_t *script, outcome_t *outcomes) {
  for (int i = 0; i < N_WORKS; i += 2) {
    outcome_of(&outcomes[i], script_pass(script, 1));
    outcome_of(&outcomes[i + 1], script_step(script));
  }
  script_turns(script);
}

/* All of it is done, in order, and came in once. */
static void check_work(script_t *script, outcome_t *outcomes) {
  for (int i = 0; i < N_WORKS; i++) {
    CHECK_INT(outcomes[i].n_done, 1);
    outcome_ok(script, &outcomes[i]);
    script_check_sent(script, (size_t)i,
                      i % 2 == 0 ? "forward_backward" : "optim_step", i + 1);
  }
  CHECK_INT(script->n_sent, N_WORKS);
  outcome_drop_all(outcomes, N_WORKS);
}

TEST_LIMIT(C5_six_hours_of_503_lose_nothing_for_who_has_the_patience, 60) {
  script_t script;
  notices_t notices;
  outcome_t outcomes[N_WORKS];

  open_told(&script, &notices, UINT64_MAX);
  script_train(&script);
  mock_on_head(script.mock, refuse, NULL); /* whatever comes */
  begin_work(&script, outcomes);
  pass_time(&script, 6 * 3600 * 1000, 10000);
  CHECK_INT(notices.n_out, 1);
  CHECK(strstr(notices.out, "HTTP 503") != NULL);
  CHECK_INT(notices.n_back, 0);
  black_out(&script, 0);
  pass_time(&script, 120000, 10000);
  check_work(&script, outcomes);
  CHECK_INT(notices.n_back, 1);
  CHECK(strstr(notices.back, "answers again after 6 h") != NULL);
  CHECK_INT(notices.n_out, 1);
  CHECK_INT(notices.n_others, 0);
  script_close(&script);
}

/* One call that cannot be served is no outage of the service. */
TEST_LIMIT(C5_six_hours_of_503_for_steps_alone_are_told_of_their_client, 60) {
  script_t script;
  notices_t notices;
  outcome_t outcomes[N_WORKS];

  open_told(&script, &notices, UINT64_MAX);
  script_train(&script);
  mock_on(script.mock, NULL, "/api/v1/forward_backward", refuse, NULL);
  mock_on(script.mock, NULL, step_path, refuse, NULL);
  begin_work(&script, outcomes);
  pass_time(&script, 6 * 3600 * 1000, 10000);
  CHECK_INT(notices.n_out, 0);
  CHECK_INT(notices.n_others, 9); /* after a minute, two, four ... 256 */
  CHECK(strstr(notices.other, "no progress for 4 h 16 min") != NULL);
  CHECK(strstr(notices.other, "the one before failed (HTTP 503)") != NULL);
  mock_on(script.mock, NULL, "/api/v1/forward_backward", script_accept,
          &script);
  mock_on(script.mock, NULL, step_path, script_accept, &script);
  pass_time(&script, 120000, 10000);
  check_work(&script, outcomes);
  script_close(&script);
}

/* Nobody waits for a heartbeat. */
TEST(C5_refusals_of_heartbeats_alone_are_no_outage) {
  script_t script;
  notices_t notices;

  open_told(&script, &notices, 0);
  script_train(&script);
  mock_on_head(script.mock, refuse, NULL);
  pass_time(&script, 600000, 10000);
  CHECK_INT(notices.n_out + notices.n_others, 0);
  black_out(&script, 0);
  script_close(&script);
}

/* The service goes away, and what is in front of it says so before it is
 * back. */
TEST(C5_lost_requests_and_then_503_are_one_stretch) {
  script_t script;
  notices_t notices;
  outcome_t step;

  open_told(&script, &notices, UINT64_MAX);
  script_train(&script);
  black_out(&script, 1);
  outcome_of(&step, script_step(&script));
  script_turns(&script);
  pass_time(&script, 60000, 500);
  CHECK_INT(notices.n_out, 1);
  mock_on_head(script.mock, refuse, NULL);
  pass_time(&script, 300000, 500);
  CHECK_INT(notices.n_out, 1);
  CHECK_INT(notices.n_back, 0);
  black_out(&script, 0);
  pass_time(&script, 120000, 500);
  outcome_ok(&script, &step);
  CHECK_INT(notices.n_out, 1);
  CHECK_INT(notices.n_back, 1);
  CHECK_INT(notices.n_others, 0);
  outcome_drop(&step);
  script_close(&script);
}

/* Waiting for credit is no failure that patience ends. */
TEST(C5_a_pause_of_the_account_uses_up_no_patience) {
  script_t script;
  notices_t notices;
  outcome_t step;

  open_told(&script, &notices, 20000);
  script_train(&script);
  mock_json(script.mock, NULL, step_path, 402, "{}");
  outcome_of(&step, script_step(&script));
  script_turns(&script);
  pass_time(&script, 600000, 5000);
  CHECK_INT(step.n_done, 0);
  /* Its patience begins with the first failure of another kind. */
  mock_on(script.mock, NULL, step_path, refuse, NULL);
  pass_time(&script, 15000, 1000);
  CHECK_INT(step.n_done, 0);
  pass_time(&script, 15000, 1000);
  outcome_fails(&script, &step, TNK_ESERVER);
  outcome_drop(&step);
  script_close(&script);
}

/* ---- Nothing answers at all ---- */

TEST_LIMIT(C5_six_hours_of_lost_requests_lose_nothing_and_are_told_once, 60) {
  script_t script;
  notices_t notices;
  outcome_t outcomes[N_WORKS];
  size_t n_before;
  size_t n;

  open_told(&script, &notices, 24 * 3600 * 1000);
  script_train(&script);
  black_out(&script, 1);
  n_before = mock_n_connections(script.mock);
  begin_work(&script, outcomes);
  pass_time(&script, 6 * 3600 * 1000, 2000);
  /* Two operations of a client are under way; one attempt in two seconds, and
   * those of their own schedules. */
  n = mock_n_connections(script.mock) - n_before;
  CHECK(n > 10000 && n < 17000);
  CHECK_INT(notices.n_out, 1);
  CHECK_INT(notices.n_back, 0);
  CHECK_STR(notices.client, "127.0.0.1");
  CHECK(strstr(notices.out, "no answer for ") != NULL);
  CHECK(strstr(notices.out, "one attempt follows every 2 s") != NULL);
  black_out(&script, 0);
  pass_time(&script, 5000, 100);
  check_work(&script, outcomes);
  CHECK_INT(notices.n_out, 1);
  CHECK_INT(notices.n_back, 1);
  CHECK_INT(notices.n_others, 0);
  CHECK(strstr(notices.back, "answers again after ") != NULL);
  script_close(&script);
}

/* Nobody is there to connect to: the system itself says so. */
TEST_LIMIT(C5_six_hours_of_refused_connections_lose_nothing_and_are_told_once,
           60) {
  script_t script;
  notices_t notices;
  outcome_t outcomes[N_WORKS];
  size_t n_before;

  open_told(&script, &notices, 24 * 3600 * 1000);
  script_train(&script);
  mock_stop_listening(script.mock);
  mock_close_idle(script.mock, 1);
  script_turns(&script);
  n_before = mock_n_requests(script.mock);
  begin_work(&script, outcomes);
  pass_time(&script, 6 * 3600 * 1000, 2000);
  CHECK_INT(mock_n_requests(script.mock), n_before);
  CHECK_INT(notices.n_out, 1);
  CHECK(strstr(notices.out, "onnect") != NULL);
  mock_listen_again(script.mock);
  pass_time(&script, 5000, 100);
  check_work(&script, outcomes);
  CHECK_INT(notices.n_out, 1);
  CHECK_INT(notices.n_back, 1);
  CHECK_INT(notices.n_others, 0);
  script_close(&script);
}

/* Whatever is sent is taken, and nothing ever comes back. */
TEST_LIMIT(C5_six_hours_of_silence_lose_nothing_and_are_told_once, 60) {
  script_t script;
  notices_t notices;
  outcome_t outcomes[N_WORKS];
  size_t n_before;
  size_t n_silent;

  open_told(&script, &notices, 24 * 3600 * 1000);
  script_train(&script);
  mock_on(script.mock, NULL, NULL, mock_hold, NULL);
  n_before = mock_n_requests(script.mock);
  begin_work(&script, outcomes);
  pass_time(&script, 6 * 3600 * 1000, 10000);
  n_silent = mock_n_requests(script.mock) - n_before;
  CHECK(n_silent > 100); /* attempts, of which each was given up */
  CHECK_INT(notices.n_out, 1);
  script_routes(&script);
  pass_time(&script, 120000, 1000);
  check_work(&script, outcomes);
  CHECK_INT(notices.n_out, 1);
  CHECK_INT(notices.n_back, 1);
  CHECK_INT(notices.n_others, 0);
  script_close(&script);
}

/* Submissions, and polls of what was accepted. */
TEST(S1_7_the_end_of_a_minute_of_nothing_lets_everything_go_within_5_s) {
  enum { N = 60 };
  script_t script;
  notices_t notices;
  outcome_t outcomes[N + 2];

  open_told(&script, &notices, 0);
  script_train(&script);
  script_sampler(&script);
  mock_on(script.mock, NULL, "/api/v1/retrieve_future", mock_hold, NULL);
  for (int i = 0; i < N / 2; i++)
    outcome_of(&outcomes[i], script_sample(&script));
  script_turns(&script);
  mock_wait(script.mock, mock_n_requests(script.mock));
  black_out(&script, 1);
  while (mock_n_held(script.mock) > 0) { /* cut what is held */
    mock_close_idle(script.mock, 1);
    mock_release(script.mock, 500, "{}");
    script_turns(&script);
  }
  mock_on(script.mock, NULL, "/api/v1/retrieve_future", script_result, &script);
  for (int i = N / 2; i < N; i++)
    outcome_of(&outcomes[i], script_sample(&script));
  outcome_of(&outcomes[N], script_pass(&script, 1));
  outcome_of(&outcomes[N + 1], script_step(&script));
  script_turns(&script);
  pass_time(&script, 60000, 500);
  CHECK_INT(notices.n_out, 1);
  black_out(&script, 0);
  pass_time(&script, 5000, 100);
  for (int i = 0; i < N + 2; i++) {
    CHECK_INT(outcomes[i].n_done, 1);
    outcome_ok(&script, &outcomes[i]);
  }
  CHECK_INT(notices.n_back, 1);
  outcome_drop_all(outcomes, N + 2);
  script_close(&script);
}

/* A cancel, which no promise waits for: it goes ahead of its schedule too. */
TEST(C5_the_probe_goes_out_for_what_nobody_waits_for) {
  script_t script;
  notices_t notices;
  outcome_t sample;
  tnk_promise_t *promise;
  size_t n;

  open_told(&script, &notices, 0);
  mock_json(script.mock, "POST", "/api/v1/client/dynamic_config", 200,
            "{\"sample_cancel_enabled\":true}");
  mock_json(script.mock, "POST", "/api/v1/cancel_future", 200, "{}");
  mock_on(script.mock, NULL, "/api/v1/retrieve_future", mock_hold, NULL);
  script_sampler(&script);
  promise = script_sample(&script);
  outcome_of(&sample, tnk_promise_ref(promise));
  script_turns(&script);
  black_out(&script, 1);
  tnk_promise_cancel(promise);
  outcome_fails(&script, &sample, TNK_ECANCELED);
  pass_time(&script, 8000, 500);
  CHECK_INT(notices.n_out, 1);
  n = mock_n_connections(script.mock);
  pass_time(&script, 8000, 500);
  n = mock_n_connections(script.mock) - n;
  CHECK(n >= 4); /* its schedule alone would make two */
  n = mock_count(script.mock, NULL, "/api/v1/cancel_future");
  black_out(&script, 0);
  pass_time(&script, 3000, 500);
  CHECK_INT(mock_count(script.mock, NULL, "/api/v1/cancel_future"), n + 1);
  CHECK_INT(notices.n_back, 1);
  tnk_promise_unref(promise);
  outcome_drop(&sample);
  script_close(&script);
}

TEST(G2_an_operation_in_an_outage_says_so) {
  script_t script;
  notices_t notices;
  outcome_t step;
  tnk_promise_t *promise;
  char text[1024];

  open_told(&script, &notices, 0);
  script_train(&script);
  black_out(&script, 1);
  promise = script_step(&script);
  outcome_of(&step, tnk_promise_ref(promise));
  script_turns(&script);
  pass_time(&script, 21000, 500);
  tnk_promise_explain(promise, text, sizeof(text));
  CHECK(strstr(text, "; nothing has answered for 2") != NULL);
  CHECK(strstr(text, "one attempt goes ahead every 2 s") != NULL);
  black_out(&script, 0);
  pass_time(&script, 5000, 100);
  outcome_ok(&script, &step);
  outcome_drop(&step);
  tnk_promise_unref(promise);
  script_close(&script);
}

/* Canceled and closed while it waits in the row. */
TEST(S4_1_an_outage_holds_nobody_who_is_canceled_or_closed) {
  script_t script;
  notices_t notices;
  outcome_t outcomes[3];

  open_told(&script, &notices, 0);
  script_train(&script);
  script_sampler(&script);
  black_out(&script, 1);
  for (int i = 0; i < 3; i++) {
    tnk_promise_t *promise = script_sample(&script);

    outcome_of(&outcomes[i], tnk_promise_ref(promise));
    script_turns(&script);
    pass_time(&script, 5000, 500);
    if (i < 2)
      tnk_promise_cancel(promise);
    tnk_promise_unref(promise);
  }
  outcome_fails(&script, &outcomes[0], TNK_ECANCELED);
  outcome_fails(&script, &outcomes[1], TNK_ECANCELED);
  pass_time(&script, 6000, 500);
  black_out(&script, 0); /* for the report of the session's end */
  script_close(&script);
  CHECK_INT(outcomes[2].n_done, 1);
  outcome_drop_all(outcomes, 3);
}
