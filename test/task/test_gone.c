/* SPDX-License-Identifier: MIT */
#include "task/kinds.h"

/*
 * Answers that need not be the last word: a result that is not known, and a 400
 * of something before the service.
 */

static const char poll_path[] = "/api/v1/retrieve_future";
static const char step_path[] = "/api/v1/optim_step";
static const char unknown[] = "{\"detail\":\"Future not found\"}";

static size_t n_polls(const script_t *script) {
  return mock_count(script->mock, "POST", poll_path);
}

TEST(P8_2_a_result_that_another_machine_knows_is_found) {
  script_t script;
  outcome_t outcome;
  size_t n_before;

  script_open_train(&script);
  n_before = n_polls(&script);
  for (int i = 0; i < 3; i++)
    mock_json_once(script.mock, "POST", poll_path, 404, unknown);
  outcome_of(&outcome, script_step(&script));
  script_turns(&script);
  CHECK_INT(n_polls(&script) - n_before, 1);
  script_settle(&script, &outcome);
  outcome_ok(&script, &outcome);
  CHECK_INT(n_polls(&script) - n_before, 4);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(P8_2_a_result_that_is_not_known_four_times_is_lost) {
  script_t script;
  outcome_t outcome;
  size_t n_before;

  script_open_train(&script);
  n_before = n_polls(&script);
  mock_json(script.mock, "POST", poll_path, 404, unknown);
  outcome_of(&outcome, script_step(&script));
  script_turns(&script);
  script_advance(&script, 1000);
  script_advance(&script, 2000);
  CHECK_INT(outcome.n_done, 0);
  script_advance(&script, 4000);
  outcome_fails(&script, &outcome, TNK_ESESSION);
  CHECK_INT(n_polls(&script) - n_before, 4);
  outcome_drop(&outcome);
  script_close(&script);
}

/* A server that has accepted a model and does not know it has lost its memory,
 * unless it says that it does not have what was asked for. */
TEST(P8_2_a_model_that_is_not_known_four_times_is_lost) {
  static const struct {
    const char *says;
    int status;
  } rows[] = {
      {unknown, TNK_ESESSION},
      {"{\"detail\":\"Future not found: create_model:0:0\"}", TNK_ESESSION},
      {"{}", TNK_ESESSION},
      {"{\"detail\":\"there is no base model big-7b\"}", TNK_ENOTFOUND},
  };
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  options.base_model = "big-7b";
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    script_t script;
    outcome_t outcome;

    script_open(&script);
    mock_json(script.mock, "POST", poll_path, 404, rows[i].says);
    outcome_of(&outcome, tnk_service_create_lora(script.service, &options));
    while (n_polls(&script) == 0)
      script_turns(&script);
    script_turns(&script);
    script_advance(&script, 1000);
    script_advance(&script, 2000);
    CHECK_INT(outcome.n_done, 0);
    script_advance(&script, 4000);
    outcome_fails(&script, &outcome, rows[i].status);
    CHECK_INT(n_polls(&script), 4);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

static void reply_empty(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 400, "", "", 0);
}

/* Of a submission and of a poll. Over HTTP/2 all are on one connection, and the
 * first new one is for the repeat. */
TEST(B10_an_empty_400_is_repeated_on_a_new_connection) {
  static const char *const paths[] = {step_path, poll_path};

  for (size_t i = 0; i < 2; i++) {
    script_t script;
    outcome_t outcome;
    size_t n_before;
    size_t n_connections;
    size_t n_open;

    script_open_train(&script);
    for (int k = 0; k < 2; k++) { /* some are kept */
      outcome_of(&outcome, script_step(&script));
      outcome_ok(&script, &outcome);
      outcome_drop(&outcome);
    }
    n_before = mock_count(script.mock, "POST", paths[i]);
    mock_once(script.mock, "POST", paths[i], reply_empty, NULL);
    n_open = mock_n_open(script.mock);
    outcome_of(&outcome, script_step(&script));
    script_turns(&script);
    if (!mock_over_http2()) /* it is used for nothing more */
      mock_wait_open(script.mock, n_open - 1);
    n_connections = mock_n_connections(script.mock);
    script_settle(&script, &outcome);
    outcome_ok(&script, &outcome);
    CHECK_INT(mock_count(script.mock, "POST", paths[i]), n_before + 2);
    CHECK(mock_n_connections(script.mock) > n_connections);
    outcome_drop(&outcome);
    script_close(&script);
  }
}
