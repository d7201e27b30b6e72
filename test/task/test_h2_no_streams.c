/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2: a server that allows no streams, from the start or from some time on.
 * Every promise settles within the limits of the caller: the timeout of an
 * attempt times the number of attempts, or patience_ms.
 */
#include "support/mock_http2.h"
#include "task/script.h"

enum { TIMEOUT_MS = 5000, RETRIES = 2, PATIENCE_MS = 20000, STEP_MS = 500 };
/* What is done in one promise: the session, the client and the operation. */
enum { LIMIT_MS = 3 * (PATIENCE_MS + (RETRIES + 1) * (TIMEOUT_MS + 2000)) };

static void open_impatient(script_t *script) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.timeout_ms = TIMEOUT_MS;
  options.max_retries = RETRIES;
  options.patience_ms = PATIENCE_MS;
  CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
  script_open_with(script, options);
}

static void check_settles(script_t *script, const char *name,
                          outcome_t *outcome) {
  const uint64_t began = tnk__context_now_ms(&script->service->root.context);
  uint64_t ms = 0;

  while (outcome->n_done == 0 && ms <= LIMIT_MS) {
    script_advance(script, STEP_MS);
    ms = tnk__context_now_ms(&script->service->root.context) - began;
  }
  if (outcome->n_done == 0)
    test_fail(__FILE__, __LINE__, "%s does not settle", name);
  printf("# %s after %llu ms: %s\n", name, (unsigned long long)ms,
         outcome->text);
  CHECK(outcome->status == TNK_ECONN || outcome->status == TNK_ETIMEDOUT);
  CHECK(strstr(outcome->text, "the server allows no streams") != NULL);
  outcome_drop(outcome);
}

/* The farewell finds no stream either. */
static void close_in_time(script_t *script) {
  uint64_t ms = 0;

  tnk_service_close(script->service, script_closed, script);
  mock_turns(script->mock, 20);
  while (!script->is_closed && ms <= LIMIT_MS) {
    tnk__context_advance(&script->service->root.context, STEP_MS);
    mock_turns(script->mock, 20);
    ms += STEP_MS;
  }
  printf("# closed after %llu ms\n", (unsigned long long)ms);
  script_end(script);
}

TEST_LIMIT(a_server_without_streams_settles_all_at_the_start, 30) {
  enum { N = 4 };
  static const char *const names[N] = {"capabilities", "runs", "training",
                                       "sampling"};
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampling_options_t sampling = TNK_SAMPLING_OPTIONS_INIT;
  outcome_t outcomes[N];
  script_t script;

  open_impatient(&script);
  mock_setting(script.mock, MOCK_MAX_STREAMS, 0);
  lora.base_model = sampling.base_model = "base";
  outcome_of(&outcomes[0], tnk_service_capabilities(script.service));
  outcome_of(&outcomes[1], tnk_rest_list_runs(script.service, NULL));
  outcome_of(&outcomes[2], tnk_service_create_lora(script.service, &lora));
  outcome_of(&outcomes[3],
             tnk_service_create_sampling(script.service, &sampling));
  for (int i = 0; i < N; i++)
    check_settles(&script, names[i], &outcomes[i]);
  CHECK_INT(mock_n_requests(script.mock), 0);
  close_in_time(&script);
}

TEST_LIMIT(a_server_that_takes_streams_away_settles_all, 30) {
  enum { N = 4 };
  static const char *const names[N] = {"capabilities", "runs", "step",
                                       "sample"};
  outcome_t outcomes[N];
  script_t script;

  open_impatient(&script);
  script_train(&script);
  script_sampler(&script);
  mock_setting(script.mock, MOCK_MAX_STREAMS, 0);
  script_turns(&script);
  outcome_of(&outcomes[0], tnk_service_capabilities(script.service));
  outcome_of(&outcomes[1], tnk_rest_list_runs(script.service, NULL));
  outcome_of(&outcomes[2], script_step(&script));
  outcome_of(&outcomes[3], script_sample(&script));
  for (int i = 0; i < N; i++)
    check_settles(&script, names[i], &outcomes[i]);
  CHECK_INT(script.n_sent, 0);
  close_in_time(&script);
}
