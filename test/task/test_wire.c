/* SPDX-License-Identifier: MIT */
/* What operations make of a wire that is slow, limited, or fails. */
#include "task/script.h"

/* ---- Lanes of polls ---- */

static void hold_samples(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "asample") == NULL)
    script_result(request, user);
}

/* The polls of samples may take long, and there may be as many as can be held.
 * The result of a step is ready at once, and has a place of its own. */
TEST(polls_of_samples_do_not_hold_up_a_step) {
  enum { N = 6 };
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  outcome_t samples[N];
  outcome_t step;
  script_t script;

  options.max_polls = 2;
  script_open_with(&script, options);
  script_train(&script);
  script_sampler(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", hold_samples,
          &script);
  for (int i = 0; i < N; i++)
    outcome_of(&samples[i], script_sample(&script));
  script_turns(&script);
  script_turns(&script);
  CHECK_INT(mock_n_held(script.mock), 2);
  script_ok(&script, &step, script_step(&script));
  CHECK_INT(mock_n_held(script.mock), 2);
  outcome_drop(&step);
  tnk_service_close(script.service, script_closed, &script);
  script_turns(&script);
  for (int i = 0; i < N; i++)
    CHECK_INT(samples[i].status, TNK_ECLOSED);
  outcome_drop_all(samples, N);
  script_end(&script);
}

/* ---- What is told ---- */

TEST(who_waits_is_told_how_the_last_polls_failed) {
  outcome_t step;
  tnk_promise_t *p;
  script_t script;
  char text[512];

  script_open_train(&script);
  mock_json(script.mock, "POST", "/api/v1/retrieve_future", 503, "{}");
  p = script_step(&script);
  outcome_of(&step, tnk_promise_ref(p));
  script_turns(&script);
  for (int i = 0; i < 3; i++)
    script_advance(&script, 1000);
  tnk_promise_explain(p, text, sizeof(text));
  CHECK(strstr(text, "of its result follows in ") != NULL);
  CHECK(strstr(text, " polls failed (HTTP 503)") != NULL);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", script_result, NULL);
  script_advance(&script, 1000);
  outcome_ok(&script, &step);
  outcome_drop(&step);
  tnk_promise_unref(p);
  script_close(&script);
}

/* The time-out of an upload says how far it came. */
TEST(a_time_out_says_how_much_was_sent) {
  enum { N_TOKENS = 4 << 20 };
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  int32_t *tokens = calloc(N_TOKENS, sizeof(*tokens));
  int64_t *targets = calloc(N_TOKENS, sizeof(*targets));
  tnk_datum_t datum = {.input = {.tokens = tokens, .n_tokens = N_TOKENS},
                       .targets = targets};
  outcome_t pass;
  script_t script;

  mock_only_http1("who reads nothing answers no PING, and is given up before");
  CHECK(tokens != NULL && targets != NULL);
  options.max_retries = UINT32_MAX; /* none */
  script_open_with(&script, options);
  script_train(&script);
  mock_set_reading(script.mock, 0);
  outcome_of(&pass,
             tnk_training_forward_backward(script.training, &datum, 1, NULL));
  mock_turns(script.mock, 200);
  script_advance(&script, 76000);
  outcome_fails(&script, &pass, TNK_ETIMEDOUT);
  CHECK(strstr(pass.text, "no byte of the request went out for") != NULL);
  CHECK(strstr(pass.text, " MB were sent") != NULL);
  outcome_drop(&pass);
  mock_set_reading(script.mock, 1);
  script_close(&script);
  free(tokens);
  free(targets);
}

/* ---- Slots ---- */

static int n_refusals;

static void refuse_64(mock_request_t *request, void *user) {
  if (n_refusals++ < 64)
    mock_reply_json(request, 503, "{}");
  else
    script_accept(request, user);
}

/* Those that were refused pause, and the others are submitted meanwhile. */
TEST(a_sample_that_pauses_holds_no_slot) {
  enum { N = 80 };
  static outcome_t samples[N];
  script_t script;

  script_open(&script);
  script_sampler(&script);
  mock_on(script.mock, "POST", "/api/v1/asample", refuse_64, &script);
  for (int i = 0; i < N; i++)
    outcome_of(&samples[i], script_sample(&script));
  for (int i = 0; i < 20; i++)
    script_turns(&script);
  CHECK_INT(n_refusals, N);
  for (int i = 64; i < N; i++)
    CHECK_INT(samples[i].status, TNK_OK);
  CHECK_INT(samples[0].n_done, 0);
  CHECK_INT(script.service->session.limits.sample_slots.n_held, 0);
  for (int i = 0; i < 4; i++)
    script_advance(&script, 500);
  for (int i = 0; i < N; i++) {
    outcome_ok(&script, &samples[i]);
    outcome_drop(&samples[i]);
  }
  script_close(&script);
}

/* The refused ones wait for slots again, in the order of their calls. */
TEST(a_sample_that_waits_for_a_slot_again_says_so) {
  enum { N = 70 };
  static outcome_t samples[N];
  static tnk_promise_t *first;
  char text[300];
  script_t script;

  script_open(&script);
  script_sampler(&script);
  mock_json_once(script.mock, "POST", "/api/v1/asample", 503, "{}");
  first = script_sample(&script);
  outcome_of(&samples[0], tnk_promise_ref(first));
  script_turns(&script);
  mock_on(script.mock, "POST", "/api/v1/asample", mock_hold, NULL);
  for (int i = 1; i < N; i++)
    outcome_of(&samples[i], script_sample(&script));
  script_turns(&script);
  script_advance(&script, 1000);
  tnk_promise_explain(first, text, sizeof(text));
  CHECK(strstr(text, "waits for one of the 64 slots for submissions, with 0 "
                     "ahead of it") != NULL);
  tnk_promise_cancel(first);
  outcome_fails(&script, &samples[0], TNK_ECANCELED);
  tnk_promise_unref(first);
  tnk_service_close(script.service, script_closed, &script);
  script_turns(&script);
  outcome_drop_all(samples, N);
  script_end(&script);
}

/* ---- Fresh connections ---- */

static void cut_step(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_cut(request, 200, NULL, "{\"request_id\":\"x\"}", 18, 60);
}

TEST(after_a_cut_answer_a_fresh_connection_is_taken) {
  outcome_t step;
  script_t script;
  size_t n;

  script_open_train(&script);
  for (int i = 0; i < 2; i++)
    mock_once(script.mock, "POST", "/api/v1/optim_step", cut_step, NULL);
  /* Two questions at once leave two connections. */
  tnk_promise_unref(tnk_service_health(script.service));
  tnk_promise_unref(tnk_service_health(script.service));
  script_turns(&script);
  n = mock_n_connections(script.mock);
  CHECK(n >= 2);
  outcome_of(&step, script_step(&script));
  for (int i = 0; i < 6; i++)
    script_advance(&script, 1000);
  outcome_ok(&script, &step);
  for (size_t i = 1; i < 3; i++)
    CHECK(mock_find(script.mock, "POST", "/api/v1/optim_step", i)->connection >=
          n);
  outcome_drop(&step);
  script_close(&script);
}
