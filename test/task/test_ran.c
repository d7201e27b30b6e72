/* SPDX-License-Identifier: MIT */
/*
 * What an error says of whether the operation was run. The truth is in what
 * the server has seen when the promise is rejected, and in what it answers.
 */
#include "task/kinds.h"

#define NOT_RUN "; it was not run"
#define MAYBE "; it may have been run"
#define RUN "; the service has run it or will"
#define PART "; a part of it was run"

static const char poll_path[] = "/api/v1/retrieve_future";

static const char *path_of(script_t *script, const script_kind_t *kind) {
  snprintf(script->last_log, sizeof(script->last_log), "/api/v1/%s",
           kind->call);
  return script->last_log;
}

/* ---- Given up ---- */

typedef enum { UNSENT, HELD, ACCEPTED, N_STAGES } stage_t;

/* Bring it to where the server holds its submission, or its poll. */
static tnk_promise_t *bring(script_t *script, const script_kind_t *kind,
                            stage_t stage) {
  tnk_promise_t *promise;

  if (stage == HELD)
    mock_on(script->mock, "POST", path_of(script, kind), mock_hold, NULL);
  else
    mock_on(script->mock, "POST", poll_path, mock_hold, NULL);
  promise = kind->start(script);
  if (stage != UNSENT)
    script_turns(script);
  return promise;
}

static const struct {
  tnk_ran_t ran;
  const char *ending;
} of_stage[] = {[UNSENT] = {TNK_RAN_NO, NOT_RUN},
                [HELD] = {TNK_RAN_UNKNOWN, MAYBE},
                [ACCEPTED] = {TNK_RAN_YES, RUN}};

static int is_custom(const script_kind_t *kind) {
  return strcmp(kind->name, "forward_backward_custom") == 0;
}

/* The first pass of a custom loss changes nothing. */
static void check_stage(const outcome_t *outcome, const script_kind_t *kind,
                        stage_t stage) {
  if (is_custom(kind))
    stage = UNSENT;
  check_ran(outcome, of_stage[stage].ran, of_stage[stage].ending);
}

TEST_LIMIT(S1_7_canceled_operations_say_whether_they_were_run, 20) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    const script_kind_t *kind = &script_kinds[i];
    if (kind->owner == OWNER_SERVICE)
      continue;
    for (stage_t stage = UNSENT; stage < N_STAGES; stage++) {
      script_t script;
      outcome_t outcome;
      tnk_promise_t *promise;

      script_open_for(&script, kind, NULL);
      promise = bring(&script, kind, stage);
      outcome_of(&outcome, tnk_promise_ref(promise));
      tnk_promise_cancel(promise);
      tnk_promise_unref(promise);
      outcome_fails(&script, &outcome, TNK_ECANCELED);
      check_stage(&outcome, kind, stage);
      outcome_drop(&outcome);
      script_close(&script);
    }
  }
}

TEST_LIMIT(S1_7_a_deadline_says_what_the_operation_says, 20) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    const script_kind_t *kind = &script_kinds[i];
    if (kind->owner == OWNER_SERVICE)
      continue;
    for (stage_t stage = UNSENT; stage < N_STAGES; stage++) {
      script_t script;
      outcome_t outcome;

      script_open_for(&script, kind, NULL);
      outcome_of(&outcome, tnk_with_timeout(bring(&script, kind, stage), 0));
      script_advance(&script, 0);
      outcome_fails(&script, &outcome, TNK_ETIMEDOUT);
      check_stage(&outcome, kind, stage);
      outcome_drop(&outcome);
      script_close(&script);
    }
  }
}

TEST(S1_7_a_closed_client_says_it_of_each_operation) {
  script_t script;
  outcome_t outcomes[3];

  script_open(&script);
  script_train(&script);
  mock_on(script.mock, "POST", poll_path, mock_hold, NULL);
  mock_on(script.mock, "POST", "/api/v1/forward_backward", mock_hold, NULL);
  outcome_of(&outcomes[ACCEPTED], script_step(&script));
  outcome_of(&outcomes[HELD], script_pass(&script, 1));
  outcome_of(&outcomes[UNSENT], script_step(&script));
  script_turns(&script);
  tnk_training_close(script.training, NULL, NULL);
  for (stage_t stage = UNSENT; stage < N_STAGES; stage++) {
    outcome_fails(&script, &outcomes[stage], TNK_ECLOSED);
    check_ran(&outcomes[stage], of_stage[stage].ran, of_stage[stage].ending);
  }
  outcome_drop_all(outcomes, 3);
  script_close(&script);
}

/* ---- Refused, lost, failed ---- */

typedef struct {
  int at_poll; /* else to the submission */
  int n_lost;  /* attempts before, the first of them on a kept connection */
  int status;
  const char *answer;
  int code;
  tnk_ran_t ran;
  const char *ending;
} fate_t;

static const char exists[] = "{\"detail\":\"already exists\"}";
static const char state[] = "{\"detail\":\"not now\"}";
static const char number[] = "{\"detail\":\"expected 9, got 1\"}";

static const fate_t fates[] = {
    {0, 0, 422, "{}", TNK_EREQUEST, TNK_RAN_NO, NOT_RUN},
    {0, 0, 401, "{}", TNK_EAUTH, TNK_RAN_NO, NOT_RUN},
    {0, 1, 422, "{}", TNK_EREQUEST, TNK_RAN_NO, NOT_RUN},
    {0, 1, 401, "{}", TNK_EAUTH, TNK_RAN_UNKNOWN, MAYBE},
    {0, 2, 422, "{}", TNK_EREQUEST, TNK_RAN_NO, NOT_RUN},
    {0, 2, 401, "{}", TNK_EAUTH, TNK_RAN_UNKNOWN, MAYBE},
    {0, 0, 400, state, TNK_EREQUEST, TNK_RAN_NO, NOT_RUN},
    {0, 1, 400, state, TNK_EREQUEST, TNK_RAN_UNKNOWN, MAYBE},
    {0, 2, 400, state, TNK_EREQUEST, TNK_RAN_UNKNOWN, MAYBE},
    {0, 0, 404, state, TNK_ESESSION, TNK_RAN_NO, NOT_RUN},
    {0, 1, 404, state, TNK_ESESSION, TNK_RAN_UNKNOWN, MAYBE},
    {0, 2, 404, state, TNK_ESESSION, TNK_RAN_UNKNOWN, MAYBE},
    {0, 0, 200, "<html>", TNK_EPROTO, TNK_RAN_UNKNOWN, MAYBE},
    {0, 0, 503, "{}", TNK_ESERVER, TNK_RAN_UNKNOWN, MAYBE},
    {1, 0, 404, "{}", TNK_ESESSION, TNK_RAN_UNKNOWN, MAYBE},
    {1, 0, 401, "{}", TNK_EAUTH, TNK_RAN_YES, RUN},
    {1, 0, 200, "<html>", TNK_EPROTO, TNK_RAN_YES, RUN},
    {1, 0, 409, number, TNK_ECONFLICT, TNK_RAN_NO, NOT_RUN},
    {1, 2, 409, number, TNK_ECONFLICT, TNK_RAN_UNKNOWN, MAYBE},
    {1, 0, 409, exists, TNK_ECONFLICT, TNK_RAN_UNKNOWN, MAYBE},
    {1, 0, 422, "{\"detail\":\"nan\"}", TNK_EFAILED, TNK_RAN_UNKNOWN, "nan"},
    {1, 0, 200, "{\"error\":\"nan\",\"category\":\"user\"}", TNK_EFAILED,
     TNK_RAN_UNKNOWN, "nan [request optim_step:1:0]"},
};

static void meet_fate(const char *path, tnk_promise_t *(*start)(script_t *),
                      const fate_t *fate) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_train(&script);
  for (int k = 0; k < fate->n_lost; k++)
    mock_once(script.mock, "POST", path, mock_reset, NULL);
  mock_json(script.mock, "POST", fate->at_poll ? poll_path : path, fate->status,
            fate->answer);
  outcome_of(&outcome, start(&script));
  script_settle(&script, &outcome);
  outcome_fails(&script, &outcome, fate->code);
  check_ran(&outcome, fate->ran, fate->ending);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST_LIMIT(S1_7_failures_say_whether_the_operation_was_run, 20) {
  for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++)
    meet_fate("/api/v1/optim_step", script_step, &fates[i]);
}

/* A name that exists may be our own, if anything of ours was sent before. */
TEST_LIMIT(S4_14_a_name_that_exists_is_no_proof, 20) {
  static const fate_t rows[] = {
      {0, 0, 409, exists, TNK_ECONFLICT, TNK_RAN_NO, NOT_RUN},
      {0, 1, 409, exists, TNK_ECONFLICT, TNK_RAN_UNKNOWN, MAYBE},
      {0, 2, 409, exists, TNK_ECONFLICT, TNK_RAN_UNKNOWN, MAYBE},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    meet_fate("/api/v1/save_weights", start_save, &rows[i]);
    meet_fate("/api/v1/save_weights_for_sampler", start_save_sampler, &rows[i]);
    meet_fate("/api/v1/save_weights_for_sampler", start_ephemeral, &rows[i]);
  }
}

/* One chunk is in, the next is refused: half a batch of gradients. */
TEST(S3_26c_a_pass_of_which_a_part_was_run_says_so) {
  static const char *const flags[] = {
      "{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":false}",
      "{\"fwdbwd_max_chunk_len\":1}"};
  static const char path[] = "/api/v1/forward_backward";

  for (size_t i = 0; i < 2; i++) {
    script_t script;
    outcome_t outcome;

    script_open(&script);
    script_flags(&script, flags[i]);
    script_train(&script);
    mock_once(script.mock, "POST", path, script_accept, &script);
    mock_json_once(script.mock, "POST", path, 422, "{}");
    outcome_of(&outcome, script_pass(&script, 3));
    outcome_fails(&script, &outcome, TNK_EREQUEST);
    check_ran(&outcome, TNK_RAN_PARTLY, PART);
    outcome_drop(&outcome);
    script_close(&script);
  }
}

TEST(S1_7_arguments_that_are_refused_need_no_word) {
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_train(&script);
  outcome_of(&outcome, script_pass(&script, 0));
  outcome_fails(&script, &outcome, TNK_EINVAL);
  CHECK_INT(tnk_promise_error(outcome.promise)->ran, TNK_RAN_NO);
  CHECK(strstr(outcome.text, "run") == NULL);
  outcome_drop(&outcome);
  script_close(&script);
}

TEST(S1_7_what_was_made_or_not_is_told_too) {
  static const struct {
    const char *path;
    int status;
    tnk_ran_t ran;
    const char *ending;
  } rows[] = {{"/api/v1/create_model", 422, TNK_RAN_NO, NOT_RUN},
              {"/api/v1/create_session", 401, TNK_RAN_NO, NOT_RUN},
              {"/api/v1/retrieve_future", 401, TNK_RAN_YES, RUN}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    script_t script;
    outcome_t outcome;

    script_open(&script);
    mock_json(script.mock, "POST", rows[i].path, rows[i].status, "{}");
    outcome_of(&outcome, start_lora(&script));
    outcome_wait(&script, &outcome);
    check_ran(&outcome, rows[i].ran, rows[i].ending);
    outcome_drop(&outcome);
    script_close(&script);
  }
}
