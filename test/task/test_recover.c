/* SPDX-License-Identifier: MIT */
#include "task/recover.h"

/*
 * What the server has lost is made again where the program has asked for it:
 * the session, samplers, and training clients from their last saved state.
 */

TEST(Q1_a_lost_session_is_made_again_and_its_training_restored) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[2];
  const mock_request_t *load;

  open_trained(&mend, options_of(&mend));
  mock_once(script->mock, "POST", poll_path, mock_hold, NULL);
  outcome_of(&outcomes[0], script_pass(script, 1));
  restart(script);
  outcome_fails(script, &outcomes[0], TNK_ESESSION);
  CHECK(strstr(outcomes[0].text,
               "model-0: the server lost this client's state, "
               "and is being restored; wait for "
               "tnk_training_ready()") != NULL);
  CHECK_INT(mend.n, 6);
  check_event(&mend, 0, TNK_RECOVERY_DETECTED, "session-0");
  check_event(&mend, 1, TNK_RECOVERY_STARTED, "session-0");
  check_event(&mend, 2, TNK_RECOVERY_COMPLETED, "session-1");
  check_event(&mend, 3, TNK_RECOVERY_DETECTED, "model-0");
  check_event(&mend, 4, TNK_RECOVERY_STARTED, "model-0");
  check_event(&mend, 5, TNK_RECOVERY_COMPLETED, "session-1:train:0");
  for (int i = 3; i < 6; i++) {
    CHECK(mend.events[i].has_training);
    CHECK_STR(mend.events[i].path, "tinker://run/save_weights");
    CHECK_INT(mend.events[i].n_steps, 2);
  }
  CHECK_STR(tnk_service_session_id(script->service), "session-1");
  load = mock_find(script->mock, "POST", load_path, 0);
  CHECK(strstr((const char *)load->body, "\"session_id\":\"session-1\"") !=
        NULL);
  CHECK(strstr((const char *)load->body, "\"optimizer\":true") != NULL);
  /* It goes on under the numbers of the new model. */
  script_ok(script, &outcomes[1], script_step(script));
  script_check_sent(script, script->n_sent - 1, "optim_step", 1);
  CHECK(strstr((const char *)mock_find(script->mock, "POST",
                                       "/api/v1/optim_step", 3)
                   ->body,
               "session-1:train:0") != NULL);
  outcome_drop_all(outcomes, 2);
  script_close(script);
}

TEST(Q1_nothing_is_made_again_unless_it_is_asked_for) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  outcome_t outcome;

  options.recovery = TNK_DEFAULT;
  open_trained(&mend, options);
  restart(script);
  CHECK_INT(mend.n, 0);
  CHECK_INT(mock_count(script->mock, "POST", session_path), 1);
  mock_json(script->mock, "POST", "/api/v1/optim_step", 404, "{}");
  script_fails(script, &outcome, script_step(script), TNK_ESESSION);
  outcome_drop(&outcome);
  script_close(script);
}

TEST(Q1_what_is_called_while_it_is_restored_is_refused) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[2];

  open_trained(&mend, options_of(&mend));
  mock_on(script->mock, "POST", load_path, mock_hold, NULL);
  restart(script);
  script_fails(script, &outcomes[0], script_step(script), TNK_ESESSION);
  check_ran(&outcomes[0], TNK_RAN_NO, "; later operations were not run");
  mock_release(script->mock, 200, "{\"request_id\":\"load_weights:0:0\"}");
  for (int i = 0; i < 4; i++)
    script_turns(script);
  script_ok(script, &outcomes[1], script_step(script));
  outcome_drop_all(outcomes, 2);
  script_close(script);
}

/* With the same options, and from step 0. */
TEST(Q1_a_model_that_was_never_saved_is_made_again) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  const mock_request_t *creates[2];
  outcome_t outcomes[3];

  script_open_with(script, options_of(&mend));
  lora.base_model = "base";
  lora.rank = 16;
  lora.seed = 77;
  script_made(script, tnk_service_create_lora(script->service, &lora));
  script_ok(script, &outcomes[0], script_step(script));
  restart(script);
  CHECK_INT(mend.n, 6);
  check_event(&mend, 3, TNK_RECOVERY_DETECTED, "model-0");
  CHECK_STR(mend.events[3].reason, "no state of it was ever saved");
  check_event(&mend, 5, TNK_RECOVERY_COMPLETED, "model-0");
  for (int i = 3; i < 6; i++) {
    CHECK_STR(mend.events[i].path, "");
    CHECK_INT(mend.events[i].n_steps, 0);
  }
  for (size_t i = 0; i < 2; i++) {
    creates[i] = mock_find(script->mock, "POST", "/api/v1/create_model", i);
    CHECK(strstr((const char *)creates[i]->body, "\"seed\":77") != NULL);
    CHECK(strstr((const char *)creates[i]->body, "\"rank\":16") != NULL);
  }
  script_ok(script, &outcomes[1], tnk_training_ready(script->training));
  CHECK_INT(tnk_promise_saved(outcomes[1].promise)->n_steps, 0);
  CHECK(tnk_promise_saved(outcomes[1].promise)->path == NULL);
  script_ok(script, &outcomes[2], script_step(script));
  script_check_sent(script, script->n_sent - 1, "optim_step", 1);
  outcome_drop_all(outcomes, 3);
  script_close(script);
}

/* ---- Waiting for it ---- */

TEST(Q4_ready_resolves_with_the_step_to_continue_from) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[3];
  tnk_promise_t *waiting;
  char text[256];

  open_trained(&mend, options_of(&mend));
  script_ok(script, &outcomes[0], tnk_training_ready(script->training));
  CHECK_INT(tnk_promise_saved(outcomes[0].promise)->n_steps, 3);
  mock_on(script->mock, "POST", load_path, mock_hold, NULL);
  restart(script);
  waiting = tnk_training_ready(script->training);
  outcome_of(&outcomes[1], tnk_promise_ref(waiting));
  tnk_promise_explain(waiting, text, sizeof(text));
  CHECK_STR(text, "ready: waits until model-0 is restored");
  script_turns(script);
  CHECK_INT(outcomes[1].n_done, 0);
  outcome_of(&outcomes[2], tnk_training_ready(script->training));
  mock_release(script->mock, 200, "{\"request_id\":\"load_weights:0:0\"}");
  for (int i = 1; i < 3; i++) {
    outcome_ok(script, &outcomes[i]);
    CHECK_INT(tnk_promise_saved(outcomes[i].promise)->n_steps, 2);
    CHECK_STR(tnk_promise_saved(outcomes[i].promise)->path,
              "tinker://run/save_weights");
  }
  tnk_promise_unref(waiting);
  outcome_drop_all(outcomes, 3);
  script_close(script);
}

typedef enum {
  BY_GIVING_UP,
  BY_CANCEL,
  BY_CLOSE,
  BY_GO_ON,
  N_ENDS
} ready_end_t;

TEST(Q4_ready_settles_however_a_recovery_ends) {
  static const int codes[N_ENDS] = {TNK_ESESSION, TNK_ECANCELED, TNK_ECLOSED,
                                    TNK_OK};

  for (int i = 0; i < N_ENDS; i++) {
    mend_t mend;
    script_t *script = &mend.script;
    tnk_promise_t *ready;
    outcome_t outcome;

    open_trained(&mend, options_of(&mend));
    mock_on(script->mock, "POST", load_path, mock_hold, NULL);
    restart(script);
    ready = tnk_training_ready(script->training);
    outcome_of(&outcome, tnk_promise_ref(ready));
    if (i == BY_GIVING_UP)
      mock_release(script->mock, 403, "{}");
    else if (i == BY_CANCEL)
      tnk_promise_cancel(ready);
    else if (i == BY_CLOSE)
      tnk_training_close(script->training, NULL, NULL);
    else
      CHECK_INT(tnk_training_go_on(script->training), TNK_OK);
    outcome_wait(script, &outcome);
    CHECK_INT(outcome.status, codes[i]);
    tnk_promise_unref(ready);
    outcome_drop(&outcome);
    script_close(script);
  }
}

/* The program has said that it trains on with the weights that are there. */
TEST(Q1_a_restore_that_ends_after_go_on_changes_nothing) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_training_info_t info = TNK_TRAINING_INFO_INIT;
  outcome_t outcome;

  open_trained(&mend, options_of(&mend));
  mock_json_once(script->mock, "POST", poll_path, 410, "{}");
  mock_on(script->mock, "POST", load_path, mock_hold, NULL);
  script_fails(script, &outcome, script_pass(script, 1), TNK_EEXPIRED);
  outcome_drop(&outcome);
  while (mock_n_held(script->mock) < 1)
    mock_turns(script->mock, 1);
  CHECK_INT(tnk_training_go_on(script->training), TNK_OK);
  mock_release(script->mock, 200, "{\"request_id\":\"load_weights:0:0\"}");
  for (int i = 0; i < 4; i++)
    script_turns(script);
  CHECK_INT(script->service->recovery.state, TNK__RECOVERY_IDLE);
  CHECK_INT(tnk_training_info(&info, script->training), TNK_OK);
  CHECK_STR(info.model_id, "model-0");
  script_ok(script, &outcome, script_step(script));
  script_check_sent(script, script->n_sent - 1, "optim_step", 6);
  outcome_drop(&outcome);
  script_close(script);
}

/* Nobody has told the program which step the weights are of. */
TEST(Q4_a_program_that_hears_of_nothing_has_to_ask) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  outcome_t outcomes[3];

  options.on_recovery = NULL;
  open_trained(&mend, options);
  restart(script);
  script_fails(script, &outcomes[0], script_step(script), TNK_ESESSION);
  CHECK(strstr(outcomes[0].text, "has been restored to step 2; "
                                 "tnk_training_ready() returns") != NULL);
  script_ok(script, &outcomes[1], tnk_training_ready(script->training));
  CHECK_INT(tnk_promise_saved(outcomes[1].promise)->n_steps, 2);
  script_ok(script, &outcomes[2], script_step(script));
  outcome_drop_all(outcomes, 3);
  script_close(script);
}

/* ---- Attempts ---- */

TEST(Q1_three_attempts_are_made_five_and_ten_seconds_apart) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  outcome_t outcome;

  options.max_retries = UINT32_MAX; /* of the calls themselves */
  open_trained(&mend, options);
  mock_json(script->mock, "POST", load_path, 503, "{}");
  restart(script);
  CHECK_INT(mend.n, 6);
  check_event(&mend, 5, TNK_RECOVERY_FAILED, "model-0");
  CHECK_INT(mend.events[5].retry_ms, 5000);
  CHECK_INT(mend.events[5].attempt, 1);
  script_later(script, 4999);
  CHECK_INT(mend.n, 6);
  script_later(script, 1);
  CHECK_INT(mend.n, 8);
  check_event(&mend, 7, TNK_RECOVERY_FAILED, "model-0");
  CHECK_INT(mend.events[7].retry_ms, 10000);
  script_later(script, 10000);
  CHECK_INT(mend.n, 10);
  check_event(&mend, 8, TNK_RECOVERY_STARTED, "model-0");
  CHECK_INT(mend.events[8].attempt, 3);
  check_event(&mend, 9, TNK_RECOVERY_EXHAUSTED, "model-0");
  script_later(script, 100000);
  CHECK_INT(mend.n, 10);
  script_fails(script, &outcome, script_step(script), TNK_ESESSION);
  outcome_drop(&outcome);
  script_close(script);
}

TEST(Q1_a_session_that_cannot_be_had_leaves_all_lost) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  outcome_t outcome;

  options.recovery_attempts = 1;
  open_trained(&mend, options);
  mock_json_once(script->mock, "POST", session_path, 403, "{}");
  restart(script);
  CHECK_INT(mend.n, 3);
  check_event(&mend, 2, TNK_RECOVERY_EXHAUSTED, "session-0");
  script_fails(script, &outcome, script_step(script), TNK_ESESSION);
  CHECK(strstr(outcome.text, "could not be restored") != NULL);
  outcome_drop(&outcome);
  script_close(script);
}

/* Sessions before this one are not known any more. */
static int n_known;

static void beat_of_known(mock_request_t *request, void *user) {
  const char *at = strstr((const char *)request->body, "session-");

  (void)user;
  CHECK(at != NULL);
  mock_reply_json(request, atoi(at + strlen("session-")) < n_known ? 404 : 200,
                  "{}");
}

/* The server is restarted again while the model is being restored: before its
 * answer, or in the pause after a failed attempt. The restore of the lost
 * session is worth nothing: a new session comes first, at once, and the model
 * is restored there, once. */
TEST(Q1_a_second_loss_ends_what_belongs_to_the_first) {
  for (int pauses = 0; pauses < 2; pauses++) {
    mend_t mend;
    script_t *script = &mend.script;
    tnk_service_options_t options = options_of(&mend);
    int n_completed = 0;
    outcome_t outcome;

    options.max_retries = UINT32_MAX;
    options.recovery_delay_ms = 3600000;
    options.recovery_max_delay_ms = 3600000;
    open_trained(&mend, options);
    mock_on(script->mock, "POST", load_path, mock_hold, NULL);
    restart(script);
    CHECK_INT(mock_count(script->mock, "POST", load_path), 1);
    if (pauses)
      mock_release(script->mock, 503, "{}");
    script_turns(script);
    n_known = 2;
    mock_on(script->mock, "POST", beat_path, beat_of_known, NULL);
    mock_json(script->mock, "POST", session_path, 200,
              "{\"session_id\":\"session-2\"}");
    mock_json(script->mock, "POST", "/api/v1/sessions/session-2/finish", 200,
              "{}");
    script_advance(script, 10000);
    script_turns(script);
    script_advance(script, 10000);
    script_turns(script);
    if (!pauses)
      mock_release(script->mock, 200, "{\"request_id\":\"load_weights:0:0\"}");
    for (int i = 0; i < 4; i++)
      script_turns(script);
    CHECK_INT(mock_count(script->mock, "POST", session_path), 3);
    CHECK_INT(mock_count(script->mock, "POST", load_path), 2);
    CHECK(strstr(
              (const char *)mock_find(script->mock, "POST", load_path, 1)->body,
              "session-2") != NULL);
    mock_release(script->mock, 200, "{\"request_id\":\"load_weights:0:0\"}");
    for (int i = 0; i < 4; i++)
      script_turns(script);
    for (int i = 0; i < mend.n; i++)
      n_completed += mend.events[i].kind == TNK_RECOVERY_COMPLETED &&
                     mend.events[i].has_training;
    CHECK_INT(n_completed, 1);
    outcome_of(&outcome, script_step(script));
    outcome_ok(script, &outcome);
    outcome_drop(&outcome);
    script_close(script);
  }
}

/* The sampler is lost too, and its turn comes after that of the model. */
TEST(Q5_after_failures_in_a_row_all_wait_for_one_attempt) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);

  options.max_retries = UINT32_MAX;
  options.recovery_breaker = 2;
  open_trained(&mend, options);
  script_sampler(script);
  mock_json(script->mock, "POST", load_path, 503, "{}");
  restart(script);
  check_event(&mend, 5, TNK_RECOVERY_FAILED, "model-0");
  CHECK_INT(mend.events[5].retry_ms, 5000);
  script_later(script, 5000);
  check_event(&mend, 7, TNK_RECOVERY_FAILED, "model-0");
  CHECK_INT(mend.events[7].retry_ms, 30000);
  script_later(script, 29999);
  CHECK_INT(mend.n, 8);
  script_later(script, 1);
  check_event(&mend, 9, TNK_RECOVERY_EXHAUSTED, "model-0");
  CHECK_INT(mend.n, 10);
  script_later(script, 29999);
  CHECK_INT(mend.n, 10);
  script_later(script, 1);
  check_event(&mend, 10, TNK_RECOVERY_STARTED, "sampler-0");
  check_event(&mend, 11, TNK_RECOVERY_COMPLETED, "sampler-0");
  CHECK_INT(script->service->recovery.breaker.n_failures, 0);
  script_close(script);
}

/* Each client has attempts of its own, and is told of from the first. */
TEST(Q3_a_client_that_closes_leaves_its_attempts_to_nobody) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  tnk_training_t *first;

  options.max_retries = UINT32_MAX;
  open_trained(&mend, options);
  first = script->training;
  script_train(script);
  train(&mend);
  mock_json(script->mock, "POST", load_path, 503, "{}");
  restart(script);
  CHECK_INT(mend.n, 6);
  check_event(&mend, 5, TNK_RECOVERY_FAILED, "model-0");
  tnk_training_close(first, NULL, NULL);
  script_later(script, 5000);
  CHECK_INT(mend.n, 9);
  check_event(&mend, 6, TNK_RECOVERY_DETECTED, "model-0");
  CHECK_INT(mend.events[6].attempt, 0);
  check_event(&mend, 7, TNK_RECOVERY_STARTED, "model-0");
  CHECK_INT(mend.events[7].attempt, 1);
  check_event(&mend, 8, TNK_RECOVERY_FAILED, "model-0");
  CHECK_INT(mend.events[8].retry_ms, 5000);
  script_close(script);
}

/* ---- Runs that are marked ---- */

static const char run_path[] = "/api/v1/training_runs/model-0";

static void mark(script_t *script, const char *corrupted) {
  char text[256];

  snprintf(text, sizeof(text),
           "{\"training_run_id\":\"model-0\",\"base_model\":\"base\","
           "\"model_owner\":\"me\",\"is_lora\":true,\"corrupted\":%s,"
           "\"last_request_time\":\"2026-01-02T03:04:05Z\"}",
           corrupted);
  mock_json(script->mock, "GET", run_path, 200, text);
}

TEST(Q2_a_run_that_is_marked_as_corrupted_is_restored) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcome;

  open_trained(&mend, options_of(&mend));
  mark(script, "false");
  script_later(script, 30000);
  CHECK_INT(mock_count(script->mock, "GET", run_path), 1);
  script_later(script, 29999);
  CHECK_INT(mock_count(script->mock, "GET", run_path), 1);
  CHECK_INT(mend.n, 0);
  mark(script, "true");
  script_later(script, 1);
  CHECK_INT(mock_count(script->mock, "GET", run_path), 2);
  CHECK_INT(mend.n, 3);
  check_event(&mend, 0, TNK_RECOVERY_DETECTED, "model-0");
  check_event(&mend, 2, TNK_RECOVERY_COMPLETED, "session-0:train:1");
  CHECK_INT(mend.events[2].n_steps, 2);
  script_ok(script, &outcome, script_step(script));
  outcome_drop(&outcome);
  script_close(script);
}

TEST(Q2_nobody_asks_for_runs_unless_recovery_is_asked_for) {
  for (int i = 0; i < 2; i++) {
    mend_t mend;
    script_t *script = &mend.script;
    tnk_service_options_t options = options_of(&mend);

    if (i == 0)
      options.recovery = TNK_DEFAULT;
    else
      options.recovery_poll_ms = UINT64_MAX;
    open_trained(&mend, options);
    script_later(script, 100000);
    CHECK_INT(mock_count(script->mock, "GET", run_path), 0);
    script_close(script);
  }
}

/* Other refusals may pass. */
TEST(Q2_a_server_without_runs_is_asked_once) {
  static const struct {
    int status;
    size_t n_asked;
  } rows[] = {{404, 1}, {405, 1}, {403, 4}, {400, 4}, {422, 4}};

  for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
    mend_t mend;
    script_t *script = &mend.script;

    open_trained(&mend, options_of(&mend));
    mock_json(script->mock, "GET", run_path, rows[row].status, "{}");
    for (int i = 0; i < 4; i++)
      script_later(script, 30000);
    CHECK_INT(mock_count(script->mock, "GET", run_path), rows[row].n_asked);
    CHECK_INT(mend.n, 0);
    script_close(script);
  }
}

/* The answer about a run comes when its client has been lost already. */
TEST(Q2_a_run_that_is_marked_while_it_is_restored_is_restored_once) {
  mend_t mend;
  script_t *script = &mend.script;
  script_held_t run = {.n = 0};
  script_held_t load = {.n = 0};
  outcome_t outcome;
  int n_detected = 0;

  open_trained(&mend, options_of(&mend));
  mock_on(script->mock, "GET", run_path, script_hold, &run);
  script_later(script, 30000);
  CHECK_INT(run.n, 1);
  script->log_text = "marks its run as corrupted";
  mock_on(script->mock, "POST", load_path, script_hold, &load);
  restart(script);
  CHECK_INT(load.n, 1);
  mock_reply_json(run.requests[0], 200,
                  "{\"training_run_id\":\"model-0\",\"base_model\":\"base\","
                  "\"model_owner\":\"me\",\"is_lora\":true,\"corrupted\":"
                  "true,\"last_request_time\":\"2026-01-02T03:04:05Z\"}");
  script_turns(script);
  mock_on(script->mock, "POST", load_path, script_accept, script);
  script_accept(load.requests[0], script);
  for (int i = 0; i < 4; i++)
    script_turns(script);
  script_ok(script, &outcome, script_step(script));
  outcome_drop(&outcome);
  for (int i = 0; i < mend.n; i++)
    n_detected += mend.events[i].kind == TNK_RECOVERY_DETECTED &&
                  mend.events[i].has_training;
  CHECK_INT(n_detected, 1);
  CHECK_INT(script->n_log_texts, 0);
  CHECK_INT(load.n, 1);
  CHECK_INT(mend.events[mend.n - 1].kind, TNK_RECOVERY_COMPLETED);
  script_close(script);
}

TEST(Q2_closing_while_a_run_is_asked_for) {
  mend_t mend;
  script_t *script = &mend.script;

  open_trained(&mend, options_of(&mend));
  mock_on(script->mock, "GET", run_path, mock_hold, NULL);
  script_later(script, 30000);
  CHECK(script->service->recovery.asked != NULL);
  script_close(script);
}

/* ---- A server that has lost its memory of a model ---- */

TEST(S0_3_a_forgotten_result_leads_to_the_last_saved_state) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[3];

  open_trained(&mend, options_of(&mend));
  mock_json_once(script->mock, "POST", poll_path, 410, "{}");
  script_fails(script, &outcomes[0], script_pass(script, 1), TNK_EEXPIRED);
  for (int i = 0; i < 4; i++)
    script_turns(script);
  CHECK_INT(mend.n, 3);
  check_event(&mend, 0, TNK_RECOVERY_DETECTED, "model-0");
  check_event(&mend, 2, TNK_RECOVERY_COMPLETED, "session-0:train:1");
  CHECK_INT(mend.events[2].n_steps, 2);
  CHECK_INT(mock_count(script->mock, "POST", session_path), 1);
  script_ok(script, &outcomes[1], script_step(script));
  /* A save counts on from there. */
  script_ok(script, &outcomes[2],
            tnk_training_save_state(script->training, "b", NULL));
  CHECK_INT(script->training->saved_tally.n_steps, 3);
  outcome_drop_all(outcomes, 3);
  script_close(script);
}

TEST(S0_3_a_program_that_goes_on_is_let) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcomes[2];

  script_open_with(script, options_of(&mend));
  mend.goes_on_at = 0;
  script_train(script);
  train(&mend);
  mock_json_once(script->mock, "POST", poll_path, 410, "{}");
  script_fails(script, &outcomes[0], script_pass(script, 1), TNK_EEXPIRED);
  for (int i = 0; i < 4; i++)
    script_turns(script);
  CHECK_INT(mend.n, 1);
  CHECK_INT(mock_count(script->mock, "POST", load_path), 0);
  script_ok(script, &outcomes[1], script_step(script));
  script_check_sent(script, script->n_sent - 1, "optim_step", 6);
  outcome_drop_all(outcomes, 2);
  script_close(script);
}

/* ---- Closing ---- */

TEST(S4_1_a_program_may_close_whenever_it_is_told) {
  for (int i = 0; i < 6; i++) {
    mend_t mend;
    script_t *script = &mend.script;

    script_open_with(script, options_of(&mend));
    mend.closes_at = i;
    script_train(script);
    train(&mend);
    restart(script);
    CHECK_INT(mend.n, i + 1);
    script_end(script);
  }
}

TEST(S4_1_closing_ends_a_recovery_at_any_time) {
  for (int i = 0; i < 3; i++) {
    mend_t mend;
    script_t *script = &mend.script;
    tnk_service_options_t options = options_of(&mend);

    options.max_retries = UINT32_MAX;
    open_trained(&mend, options);
    if (i == 0)
      mock_on(script->mock, "POST", load_path, mock_hold, NULL);
    else if (i == 1)
      mock_on(script->mock, "POST", "/api/v1/get_info", mock_hold, NULL);
    else
      mock_json(script->mock, "POST", load_path, 503, "{}");
    restart(script);
    CHECK_INT(script->service->recovery.state,
              i < 2 ? TNK__RECOVERY_RESTORING : TNK__RECOVERY_PAUSING);
    script_close(script);
  }
}

/* ---- Without memory ---- */

/* The client is there again in the end, or it is told that it is not. */
static int run_without(long n) {
  mend_t mend;
  script_t *script = &mend.script;
  outcome_t outcome;
  outcome_t sample;
  int is_back = 0;
  int did_fail;

  script_open_with(script, options_of(&mend));
  script_train(script);
  script_sampler(script);
  train(&mend);
  script_advance(script, 10000); /* a good heartbeat */
  mock_once(script->mock, "POST", poll_path, mock_hold, NULL);
  outcome_of(&sample, seeded(script, 7));
  while (mock_n_held(script->mock) == 0)
    mock_turns(script->mock, 1);
  test_alloc_fail_at(n);
  restart(script);
  for (int i = 0; i < 6; i++)
    script_later(script, 10000);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  for (int i = 0; i < mend.n; i++)
    is_back |= mend.events[i].kind == TNK_RECOVERY_COMPLETED &&
               mend.events[i].has_training;
  CHECK(mend.n > 0);
  outcome_of(&outcome, script_step(script));
  script_settle(script, &outcome);
  CHECK_INT(outcome.status, is_back ? TNK_OK : TNK_ESESSION);
  script_settle(script, &sample);
  if (!did_fail)
    CHECK_INT(sample.status, TNK_OK);
  outcome_drop(&outcome);
  outcome_drop(&sample);
  script_close(script);
  return !did_fail;
}

TEST_LIMIT(S3_26a_a_recovery_without_memory, 60) {
  long n = 0;

  while (!run_without(n))
    CHECK(++n < 1000);
  CHECK(n > 0);
}

/* ---- Creations while the session is lost ---- */

typedef struct {
  const char *path;
  int status;
  const char *says;
} refusal_t;

/* No session is known any more but "session-2". */
static void beat_of_third(mock_request_t *request, void *user) {
  int is_third = strstr((const char *)request->body, "session-2") != NULL;

  (void)user;
  mock_reply_json(request, is_third ? 200 : 404, "{}");
}

/* The server is restarted once more. */
static void restart_again(script_t *script) {
  mock_on(script->mock, "POST", beat_path, beat_of_third, NULL);
  mock_json(script->mock, "POST", session_path, 200,
            "{\"session_id\":\"session-2\"}");
  mock_json(script->mock, "POST", "/api/v1/sessions/session-2/finish", 200,
            "{}");
  for (int i = 0; i < 3; i++)
    script_later(script, 10000);
}

static tnk_promise_t *create(script_t *script, const char *path) {
  tnk_sampling_options_t sampler = TNK_SAMPLING_OPTIONS_INIT;
  tnk_restore_options_t restore = TNK_RESTORE_OPTIONS_INIT;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;

  sampler.base_model = lora.base_model = "base";
  restore.path = "tinker://run/weights/a";
  restore.classic = TNK_NO;
  if (path == sampler_path)
    return tnk_service_create_sampling(script->service, &sampler);
  if (path == load_path)
    return tnk_service_restore(script->service, &restore);
  return tnk_service_create_lora(script->service, &lora);
}

/* The server responds with 503 until it has lost the session `n_losses` times,
 * and then with a refusal. */
static void try_creation(const refusal_t *row, tnk_choice_t recovers,
                         int n_losses) {
  mend_t mend;
  script_t *script = &mend.script;
  tnk_service_options_t options = options_of(&mend);
  outcome_t outcome;
  size_t n;

  options.recovery = recovers;
  script_open_with(script, options);
  script_sampler(script);
  script_advance(script, 10000);
  n = mock_count(script->mock, "POST", row->path);
  mock_json(script->mock, "POST", row->path, 503, "{}");
  outcome_of(&outcome, create(script, row->path));
  while (mock_count(script->mock, "POST", row->path) == n)
    script_turns(script);
  restart(script);
  if (n_losses > 1)
    restart_again(script);
  if (recovers == TNK_YES)
    CHECK_INT(outcome.n_done, 0);
  mock_json(script->mock, "POST", row->path, row->status, row->says);
  script_advance(script, 30000);
  outcome_fails(script, &outcome, TNK_ESESSION);
  outcome_drop(&outcome);
  script_close(script);
}

/* A call that creates something names the session in which it began. It is
 * repeated while the server is down, and there is a new session by then. */
TEST(Q1_a_creation_that_names_the_earlier_session_has_lost_it) {
  static const refusal_t rows[] = {
      {sampler_path, 404, "{\"detail\":\"Session not found: session-0\"}"},
      {sampler_path, 410, "{}"},
      {sampler_path, 400, "{\"detail\":\"unknown session session-0\"}"},
      {"/api/v1/create_model", 404, "{\"detail\":\"Session not found\"}"},
      {"/api/v1/create_model", 422, "{\"detail\":\"no such session\"}"},
      {load_path, 404, "{\"detail\":\"Session not found\"}"},
  };
  static const tnk_choice_t recovers[] = {TNK_YES, TNK_NO};
  char context[64];

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (size_t k = 0; k < 2; k++)
      for (int n_losses = 1; n_losses <= 2; n_losses++) {
        snprintf(context, sizeof(context), "row %zu, %s, %d losses", i,
                 recovers[k] == TNK_YES ? "recovery" : "no recovery", n_losses);
        test_context(context);
        try_creation(&rows[i], recovers[k], n_losses);
      }
}

/* ---- An account without credit ---- */

static int n_events(const mend_t *mend, tnk_recovery_state_t kind) {
  int n = 0;

  for (int i = 0; i < mend->n; i++)
    n += mend->events[i].kind == kind;
  return n;
}

static const char info_path[] = "/api/v1/get_info";

/* A path that is asked during the recovery; and whether a state was saved. */
static const struct {
  const char *path;
  int is_saved;
} credit_rows[] = {
    {session_path, 1},
    {load_path, 1},
    {info_path, 1},
    {poll_path, 1},
    {"/api/v1/create_model", 0},
    {sampler_path, 1},
};

enum { N_CREDIT_ROWS = sizeof(credit_rows) / sizeof(credit_rows[0]) };

static void open_credit(mend_t *mend, size_t row, uint64_t max_pause_ms) {
  script_t *script = &mend->script;
  tnk_service_options_t options = options_of(mend);
  outcome_t outcome;

  options.max_billing_pause_ms = max_pause_ms;
  if (credit_rows[row].is_saved) {
    open_trained(mend, options);
  } else {
    script_open_with(script, options);
    script_train(script);
    script_ok(script, &outcome, script_step(script));
    outcome_drop(&outcome);
  }
  script_sampler(script);
}

/* The session, the model and the sampler. */
TEST(C7_recovery_waits_for_credit_whichever_request_is_refused) {
  for (size_t i = 0; i < N_CREDIT_ROWS; i++) {
    mend_t mend;
    script_t *script = &mend.script;

    open_credit(&mend, i, 0);
    mock_json_once(script->mock, "POST", credit_rows[i].path, 402, "{}");
    restart(script);
    script_later(script, 0);
    CHECK(n_events(&mend, TNK_RECOVERY_COMPLETED) < 3);
    script_later(script, 4999);
    CHECK(n_events(&mend, TNK_RECOVERY_COMPLETED) < 3);
    script_later(script, 1);
    CHECK_INT(n_events(&mend, TNK_RECOVERY_COMPLETED), 3);
    CHECK_INT(n_events(&mend, TNK_RECOVERY_STARTED), 3);
    CHECK_INT(n_events(&mend, TNK_RECOVERY_FAILED), 0);
    script_close(script);
  }
}

TEST(C7_recovery_ends_if_credit_is_missing_for_too_long) {
  for (size_t i = 0; i < N_CREDIT_ROWS; i++) {
    mend_t mend;
    script_t *script = &mend.script;

    open_credit(&mend, i, 12000);
    if (credit_rows[i].path == session_path)
      for (int n = 0; n < 10; n++)
        mock_json_once(script->mock, "POST", session_path, 402, "{}");
    else
      mock_json(script->mock, "POST", credit_rows[i].path, 402, "{}");
    restart(script);
    script_later(script, 0);
    script_later(script, 5000);
    script_later(script, 5000);
    CHECK_INT(n_events(&mend, TNK_RECOVERY_EXHAUSTED), 0);
    CHECK_INT(n_events(&mend, TNK_RECOVERY_FAILED), 0);
    CHECK(n_events(&mend, TNK_RECOVERY_COMPLETED) < 3);
    /* The last pause, and the pauses between three attempts. */
    for (int n = 0; n < 4; n++)
      script_later(script, 5000);
    /* A model is used without its info. */
    CHECK_INT(n_events(&mend, TNK_RECOVERY_EXHAUSTED) > 0,
              credit_rows[i].path != info_path);
    script_close(script);
  }
}

/* A user sees at once that nothing can begin. */
TEST(C7_without_credit_from_the_start_nothing_waits) {
  static const char *const paths[] = {"/api/v1/client/config", session_path,
                                      "/api/v1/create_model"};

  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
    mend_t mend;
    script_t *script = &mend.script;
    tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
    outcome_t outcome;

    lora.base_model = "base";
    script_open_with(script, options_of(&mend));
    mock_json(script->mock, "POST", paths[i], 402, "{}");
    script_fails(script, &outcome,
                 tnk_service_create_lora(script->service, &lora), TNK_EBILLING);
    CHECK_INT(mock_count(script->mock, "POST", paths[i]), 1);
    outcome_drop(&outcome);
    script_close(script);
  }
}
