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
