/* SPDX-License-Identifier: MIT */
#include "ledger/bench.h"
#include "task/recover.h"

/*
 * Saves of which nobody has heard what became of them, and a file that is not
 * ours alone.
 */

#define LIST "/api/v1/training_runs/model-0/checkpoints"
#define LOAD "/api/v1/load_weights"
#define SAVE "/api/v1/save_weights"
#define STATE(name, metadata)                                                  \
  "{\"checkpoint_id\":\"weights/" name "\",\"checkpoint_type\":\"training\","  \
  "\"time\":\"2026-01-02T03:04:05Z\",\"tinker_path\":"                         \
  "\"tinker://model-0/weights/" name "\",\"user_metadata\":{" metadata "}}"

/* States are restored in one call; what `user` says is saved elsewhere. */
static void result(mock_request_t *request, void *user) {
  const char *body = (const char *)request->body;
  const char *saved = user;

  if (strstr(body, "\"load_weights:") != NULL)
    mock_reply_json(request, 200,
                    "{\"path\":\"tinker://x\",\"model_id\":\"model-1\"}");
  else if (strstr(body, "\"save_weights:") != NULL && saved != NULL)
    mock_reply_json(request, 200, saved);
  else
    script_result(request, NULL);
}

static void begin(bench_t *bench, char *saved) {
  bench_open(bench);
  mock_on(bench->script.mock, "POST", "/api/v1/retrieve_future", result, saved);
}

static void list(bench_t *bench, const char *checkpoints) {
  char text[1000];

  snprintf(text, sizeof(text), "{\"checkpoints\":[%s]}", checkpoints);
  mock_json(bench->script.mock, "GET", LIST, 200, text);
}

static void append(const bench_t *bench, const char *text) {
  FILE *file = fopen(bench->file, "a");

  CHECK(file != NULL);
  CHECK(fputs(text, file) >= 0);
  CHECK_INT(fclose(file), 0);
}

static void ends_with(bench_t *bench, outcome_t *outcome, int status) {
  while (outcome->n_done == 0)
    script_later(&bench->script, 10000);
  CHECK_INT(outcome->status, status);
}

/* The service has the state; every answer is lost. */
static void save_unheard(bench_t *bench) {
  outcome_t outcome;

  mock_json(bench->script.mock, "POST", SAVE, 500, "{}");
  outcome_of(&outcome, bench_save(bench, "a", "at a"));
  ends_with(bench, &outcome, TNK_ESERVER);
  CHECK_INT(tnk_promise_error(outcome.promise)->ran, TNK_RAN_UNKNOWN);
  outcome_drop(&outcome);
  mock_on(bench->script.mock, "POST", SAVE, script_accept, &bench->script);
}

TEST(a_name_that_a_save_may_have_is_not_given_again) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, NULL);
  save_unheard(&bench);
  script_ok(&bench.script, &outcome, bench_save(&bench, "b", NULL));
  CHECK_STR(tnk_promise_entry(outcome.promise)->name, "b");
  outcome_drop(&outcome);
  script_ok(&bench.script, &outcome, bench_save(&bench, "a", NULL));
  CHECK_STR(tnk_promise_entry(outcome.promise)->name, "a-a1-3");
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(this_program_too_goes_on_from_a_save_that_it_has_not_heard_of) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, NULL);
  save_unheard(&bench);
  CHECK(tnk_ledger_last(bench.ledger) == NULL);
  list(&bench, STATE("a", "\"tnk_save\":\"1.1\",\"tnk_steps\":\"7\""));
  script_ok(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL));
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "a");
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->cursor, "at a");
  CHECK_INT(tnk_ledger_resumed(bench.ledger)->n_steps, 7);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(a_save_that_is_canceled_when_the_service_has_it_is_looked_for) {
  bench_t bench;
  outcome_t outcome;
  tnk_promise_t *promise;

  begin(&bench, NULL);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", mock_hold,
          NULL);
  promise = tnk_promise_ref(bench_save(&bench, "a", NULL));
  outcome_of(&outcome, promise);
  while (mock_n_held(bench.script.mock) < 1)
    mock_turns(bench.script.mock, 1);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  outcome_fails(&bench.script, &outcome, TNK_ECANCELED);
  outcome_drop(&outcome);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", result, NULL);
  list(&bench, STATE("a", "\"tnk_save\":\"1.1\""));
  script_ok(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL));
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "a");
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* The state is saved and its path cannot be read; the weights to sample from
 * are saved. A line that ended the save would end the search for the state. */
TEST(a_state_that_may_be_there_stays_announced) {
  static char nothing[] = "{}";
  bench_t bench;
  outcome_t outcome;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;

  begin(&bench, nothing);
  how.name = "a";
  how.with_sampler = TNK_YES;
  script_fails(&bench.script, &outcome,
               tnk_ledger_save(bench.ledger, bench.script.training, &how),
               TNK_EPROTO);
  outcome_drop(&outcome);
  CHECK(!bench_has(&bench, "\"tnk\":\"saved\""));
  bench_end(&bench);
  bench_begin(&bench);
  bench_open_ledger(&bench);
  CHECK_INT(bench.ledger->n_intents, 1);
  bench_close(&bench);
}

TEST(a_save_that_the_disk_has_not_noted_is_found_again) {
  bench_t bench;
  outcome_t outcome;
  char *text;

  begin(&bench, NULL);
  mock_on(bench.script.mock, "POST", SAVE, mock_hold, NULL);
  outcome_of(&outcome, bench_save(&bench, "a", NULL));
  while (mock_n_held(bench.script.mock) < 1)
    mock_turns(bench.script.mock, 1);
  text = bench_read(&bench);
  append(&bench, "{\"name\":\"theirs\"}\n");
  mock_release(bench.script.mock, 200, "{\"request_id\":\"save_weights:0:0\"}");
  outcome_fails(&bench.script, &outcome, TNK_ECONFLICT);
  CHECK(strstr(outcome.text, "saved, but not recorded there: "
                             "tinker://run/save_weights") != NULL);
  outcome_drop(&outcome);
  CHECK(bench_has(&bench, "theirs"));
  bench_write(&bench, text);
  free(text);
  list(&bench, STATE("a", "\"tnk_save\":\"1.1\""));
  script_ok(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL));
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "a");
  CHECK(bench_has(&bench, "\"tnk\":\"saved\""));
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* Nothing that is written into it would be found. */
TEST(a_file_that_has_been_removed_is_no_place_for_a_save) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, NULL);
  CHECK_INT(unlink(bench.file), 0);
  script_fails(&bench.script, &outcome, bench_save(&bench, "a", NULL),
               TNK_EFILE);
  CHECK_INT(tnk_promise_error(outcome.promise)->cause, UV_ENOENT);
  CHECK(strstr(outcome.text, "nothing was saved") != NULL);
  CHECK_INT(bench.script.n_sent, 0);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* Two machines that do not see each other's locks. */
TEST(a_file_into_which_somebody_else_writes_is_let_be) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, NULL);
  script_ok(&bench.script, &outcome, bench_save(&bench, "a", NULL));
  outcome_drop(&outcome);
  append(&bench, "{\"name\":\"theirs\"}\n");
  script_fails(&bench.script, &outcome, bench_save(&bench, "b", NULL),
               TNK_ECONFLICT);
  CHECK(strstr(outcome.text, "open in another program") != NULL);
  CHECK_INT(bench.script.n_sent, 1);
  CHECK(bench_has(&bench, "theirs"));
  CHECK(!bench_has(&bench, "\"b\""));
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* What it waits for is no save and has no name. */
TEST(a_save_may_be_called_while_a_run_is_gone_on_with) {
  static char saved[] = "{\"path\":\"tinker://model-0/weights/a\"}";
  bench_t bench;
  outcome_t outcomes[2];

  begin(&bench, saved);
  script_ok(&bench.script, &outcomes[0], bench_save(&bench, "a", NULL));
  outcome_drop(&outcomes[0]);
  mock_on(bench.script.mock, "GET", LIST, mock_hold, NULL);
  outcome_of(&outcomes[0], tnk_ledger_resume(bench.ledger, NULL));
  while (mock_n_held(bench.script.mock) < 1)
    mock_turns(bench.script.mock, 1);
  outcome_of(&outcomes[1], bench_save(&bench, "b", NULL));
  script_turns(&bench.script);
  mock_release(bench.script.mock, 404, "{}");
  outcome_ok(&bench.script, &outcomes[0]);
  outcome_ok(&bench.script, &outcomes[1]);
  CHECK_STR(tnk_promise_entry(outcomes[1].promise)->name, "b");
  outcome_drop_all(outcomes, 2);
  bench_close(&bench);
}

/* A run that was gone on with, and whose model the server then loses. */
TEST(Q1_steps_of_earlier_programs_count_after_a_recovery_too) {
  mend_t mend;
  bench_t bench;
  script_t *script = &bench.script;
  outcome_t outcome;
  tnk_promise_t *resumed;

  bench_folder(&bench);
  bench_write(&bench, "{\"name\":\"a\",\"batch\":10,\"state_path\":"
                      "\"tinker://run/weights/a\",\"tnk\":\"saved\","
                      "\"tnk_attempt\":1,\"tnk_save\":1,\"tnk_steps\":10,"
                      "\"tnk_passes\":30}\n");
  script_open_with(script, options_of(&mend));
  mock_on(script->mock, "POST", poll_path, result, NULL);
  bench_open_ledger(&bench);
  resumed = tnk_promise_ref(tnk_ledger_resume(bench.ledger, NULL));
  script_ok(script, &outcome, resumed);
  outcome_drop(&outcome);
  script->training = tnk_promise_training(resumed);
  tnk_promise_unref(resumed);
  script_ok(script, &outcome, script_step(script));
  outcome_drop(&outcome);
  mock_json_once(script->mock, "POST", poll_path, 410, "{}");
  script_fails(script, &outcome, script_pass(script, 1), TNK_EEXPIRED);
  outcome_drop(&outcome);
  for (int i = 0; i < 4; i++)
    script_turns(script);
  CHECK_INT(mend.n, 3);
  check_event(&mend, 2, TNK_RECOVERY_COMPLETED, "model-1");
  CHECK_INT(mend.events[2].n_steps, 10);
  script_ok(script, &outcome, script_step(script));
  outcome_drop(&outcome);
  script_ok(script, &outcome, bench_save(&bench, "b", NULL));
  CHECK_INT(tnk_promise_entry(outcome.promise)->n_steps, 11);
  CHECK_INT(tnk_promise_entry(outcome.promise)->n_passes, 30);
  outcome_drop(&outcome);
  bench_close(&bench);
}
