/* SPDX-License-Identifier: MIT */
#include "task/kinds.h"

/*
 * A server that has lost its memory, or may have: it does not know results of
 * what it had accepted, or counts from where it was long ago. It is never
 * trained on in silence.
 */

static const char step_path[] = "/api/v1/optim_step";
static const char fb_path[] = "/api/v1/forward_backward";
static const char poll_path[] = "/api/v1/retrieve_future";

typedef struct {
  script_t script;
  int n;
  int goes_on;
  int closes;
  char client[64];
  char reason[512];
} memory_t;

static void on_notice(const char *client, tnk_queue_state_t state,
                      const char *reason, void *user) {
  memory_t *memory = user;

  if (state != TNK_QUEUE_MEMORY_LOST)
    return;
  memory->n++;
  snprintf(memory->client, sizeof(memory->client), "%s", client);
  snprintf(memory->reason, sizeof(memory->reason), "%s", reason);
  if (memory->goes_on)
    CHECK_INT(tnk_training_go_on(memory->script.training), TNK_OK);
  if (memory->closes)
    tnk_service_close(memory->script.service, script_closed, &memory->script);
}

static void memory_open(memory_t *memory) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  memset(memory, 0, sizeof(*memory));
  options.on_queue_state = on_notice;
  options.queue_state_user = memory;
  script_open_with(&memory->script, options);
  script_train(&memory->script);
}

/* Two operations go well, and the next is accepted and then forgotten. */
static void forget(memory_t *memory, int status, outcome_t *outcomes) {
  script_t *script = &memory->script;

  script_ok(script, &outcomes[0], script_pass(script, 1));
  script_ok(script, &outcomes[1], script_step(script));
  mock_json(script->mock, "POST", poll_path, status,
            "{\"detail\":\"no such future\"}");
  outcome_of(&outcomes[2], script_pass(script, 1));
  script_turns(script);
  for (int i = 0; i < 4 && outcomes[2].n_done == 0; i++)
    script_advance(script, 4000);
}

TEST(S0_3_a_server_that_forgets_what_it_has_accepted_is_not_trained_on) {
  static const int statuses[] = {404, 410};

  for (size_t i = 0; i < 2; i++) {
    memory_t memory;
    script_t *script = &memory.script;
    outcome_t outcomes[6];

    memory_open(&memory);
    forget(&memory, statuses[i], outcomes);
    outcome_fails(script, &outcomes[2], i == 0 ? TNK_ESESSION : TNK_EEXPIRED);
    check_ran(&outcomes[2], TNK_RAN_UNKNOWN, "; it may have been run");
    if (statuses[i] == 410)
      CHECK(strstr(outcomes[2].text,
                   "the service no longer has the result; submit a sample "
                   "again, or restore a saved state (HTTP 410): ") != NULL);
    CHECK_INT(memory.n, 1);
    CHECK_STR(memory.client, "model-0");
    CHECK(strstr(memory.reason,
                 "model-0: the server does not know the result of "
                 "forward_backward under number 3, which it had accepted (HTTP "
                 "4") != NULL);
    CHECK(strstr(memory.reason, "2 is the last number with a received result; "
                                "restore a saved state, or continue with "
                                "tnk_training_go_on()") != NULL);
    for (int k = 3; k < 5; k++) {
      script_fails(script, &outcomes[k], script_step(script), TNK_ESESSION);
      check_ran(&outcomes[k], TNK_RAN_NO, "; later operations were not run");
    }
    CHECK_INT(script->n_sent, 3);
    /* The program says so. */
    mock_on(script->mock, "POST", poll_path, script_result, script);
    CHECK_INT(tnk_training_go_on(script->training), TNK_OK);
    script_ok(script, &outcomes[5], script_step(script));
    script_check_sent(script, 3, "optim_step", 4);
    CHECK_INT(memory.n, 1);
    outcome_drop_all(outcomes, 6);
    script_close(script);
  }
}

/* What was called before the result came to be missed is not sent either. */
TEST(S0_3_what_waits_when_the_memory_is_lost_is_not_sent) {
  for (int goes_on = 0; goes_on < 2; goes_on++) {
    memory_t memory;
    script_t *script = &memory.script;
    script_held_t held = {.n = 0};
    outcome_t outcomes[5];

    memory_open(&memory);
    memory.goes_on = goes_on;
    mock_once(script->mock, "POST", step_path, script_hold, &held);
    mock_once(script->mock, "POST", poll_path, script_hold, &held);
    outcome_of(&outcomes[0], script_pass(script, 1));
    for (int k = 1; k < 4; k++)
      outcome_of(&outcomes[k], script_step(script));
    mock_wait_flag(script->mock, &held.n, 2);
    /* The pass is forgotten while the first step is on its way. */
    for (int k = 0; k < 2; k++)
      if (strcmp(held.requests[k]->path, poll_path) == 0)
        mock_reply_json(held.requests[k], 410, "{}");
    outcome_fails(script, &outcomes[0], TNK_EEXPIRED);
    for (int k = 0; k < 2; k++)
      if (strcmp(held.requests[k]->path, step_path) == 0)
        script_accept(held.requests[k], script);
    outcome_ok(script, &outcomes[1]);
    for (int k = 2; k < 4; k++)
      if (goes_on)
        outcome_ok(script, &outcomes[k]);
      else
        outcome_fails(script, &outcomes[k], TNK_ESESSION);
    CHECK_INT(script->n_sent, goes_on ? 4 : 2);
    CHECK_INT(script->n_errors, !goes_on);
    CHECK(script->training->failed == NULL || !goes_on);
    CHECK_INT(memory.n, 1);
    outcome_drop_all(outcomes, 4);
    script_close(script);
  }
}

TEST(S0_3_a_program_that_closes_when_the_memory_is_lost_is_let) {
  memory_t memory;
  outcome_t outcomes[3];

  memory_open(&memory);
  memory.closes = 1;
  forget(&memory, 410, outcomes);
  outcome_fails(&memory.script, &outcomes[2], TNK_EEXPIRED);
  CHECK_INT(memory.n, 1);
  script_end(&memory.script);
  outcome_drop_all(outcomes, 3);
}

/* That state is not there; the model is as it was. */
TEST(S0_3_a_state_that_is_not_there_is_no_loss_of_memory) {
  memory_t memory;
  script_t *script = &memory.script;
  outcome_t outcomes[2];

  memory_open(&memory);
  for (int i = 0; i < 4; i++)
    mock_json_once(script->mock, "POST", poll_path, 404, "{}");
  outcome_of(&outcomes[0], start_load(script));
  script_settle(script, &outcomes[0]);
  outcome_fails(script, &outcomes[0], TNK_ENOTFOUND);
  CHECK_INT(memory.n, 0);
  script_ok(script, &outcomes[1], script_step(script));
  outcome_drop_all(outcomes, 2);
  script_close(script);
}

/* ---- Numbers that were run long ago ---- */

static const char expects[] =
    "{\"detail\":\"Sequence conflict: expected 2, got 4\"}";

TEST(S4_14_a_server_that_counts_from_before_is_not_trained_on) {
  static const char *const paths[] = {fb_path, poll_path};

  for (size_t i = 0; i < 2; i++) {
    memory_t memory;
    script_t *script = &memory.script;
    outcome_t outcomes[6];

    memory_open(&memory);
    for (int k = 0; k < 3; k++)
      script_ok(script, &outcomes[k], script_step(script));
    mock_json_once(script->mock, "POST", paths[i], 409, expects);
    script_fails(script, &outcomes[3], script_pass(script, 1), TNK_ESESSION);
    CHECK_INT(script->training->tally.n_passes, 0); /* it does not count */
    check_ran(&outcomes[3], TNK_RAN_NO, "; it was not run");
    CHECK_INT(memory.n, 1);
    CHECK(strstr(memory.reason, "the server expects number 2, whose result was "
                                "received long ago") != NULL);
    script_fails(script, &outcomes[4], script_step(script), TNK_ESESSION);
    CHECK_INT(tnk_training_go_on(script->training), TNK_OK);
    script_ok(script, &outcomes[5], script_step(script));
    outcome_drop_all(outcomes, 6);
    script_close(script);
  }
}

/* It does not count what failed; nothing is lost. */
TEST(S4_14_a_number_that_failed_may_be_expected_again) {
  memory_t memory;
  script_t *script = &memory.script;
  outcome_t outcomes[3];

  memory_open(&memory);
  script_ok(script, &outcomes[0], script_step(script));
  mock_json_once(script->mock, "POST", poll_path, 422, "{\"detail\":\"nan\"}");
  script_fails(script, &outcomes[1], script_pass(script, 1), TNK_EFAILED);
  mock_json_once(script->mock, "POST", step_path, 409,
                 "{\"detail\":\"expected 2, got 3\"}");
  script_ok(script, &outcomes[2], script_step(script));
  script_check_sent(script, 2, "optim_step", 2);
  CHECK_INT(memory.n, 0);
  outcome_drop_all(outcomes, 3);
  script_close(script);
}

/* A repeat of a request that was run: its conflict comes as its result, when
 * results of later numbers have been received. */
TEST(S4_14_a_conflict_of_a_repeat_that_is_read_late_is_no_loss) {
  script_held_t held = {.n = 0};
  memory_t memory;
  script_t *script = &memory.script;
  outcome_t outcomes[4];
  char text[96];

  memory_open(&memory);
  mock_on(script->mock, "POST", poll_path, script_hold, &held);
  for (int i = 0; i < 3; i++)
    outcome_of(&outcomes[i], script_step(script));
  mock_wait_flag(script->mock, &held.n, 3);
  script_result(held.requests[1], script);
  script_result(held.requests[2], script);
  outcome_ok(script, &outcomes[1]);
  outcome_ok(script, &outcomes[2]);
  snprintf(text, sizeof(text),
           "{\"detail\":\"Sequence conflict: expected %lld, got %lld\"}",
           script->sent[0].seq + 1, script->sent[0].seq);
  mock_reply_json(held.requests[0], 409, text);
  script_settle(script, &outcomes[0]);
  outcome_fails(script, &outcomes[0], TNK_ECONFLICT);
  CHECK_INT(memory.n, 0);
  mock_on(script->mock, "POST", poll_path, script_result, script);
  script_ok(script, &outcomes[3], script_step(script));
  outcome_drop_all(outcomes, 4);
  script_close(script);
}
