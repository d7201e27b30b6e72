/* SPDX-License-Identifier: MIT */
#include "ledger/bench.h"

TEST(a_save_is_announced_made_and_noted) {
  bench_t bench;
  outcome_t outcome;
  const tnk_ledger_entry_t *entry;

  bench_open(&bench);
  CHECK(tnk_ledger_last(bench.ledger) == NULL);
  outcome_of(&outcome, script_step(&bench.script));
  outcome_ok(&bench.script, &outcome);
  outcome_drop(&outcome);
  script_ok(&bench.script, &outcome,
            bench_save(&bench, "first", "{\"next\": 7}"));
  entry = tnk_promise_entry(outcome.promise);
  CHECK_STR(entry->name, "first");
  CHECK_STR(entry->state_path, "tinker://run/save_weights");
  CHECK_STR(entry->cursor, "{\"next\": 7}");
  CHECK_INT(entry->n_steps, 1);
  CHECK_INT(entry->batch, 1);
  CHECK(entry->sampler_path == NULL && entry->time_s > 0);
  CHECK_INT(tnk_ledger_count(bench.ledger), 1);
  CHECK_STR(tnk_ledger_last(bench.ledger)->name, "first");
  CHECK(tnk_ledger_entry(bench.ledger, 1) == NULL);
  CHECK(
      bench_has(&bench, "{\"name\":\"first\",\"epoch\":0,\"tnk\":\"intent\""));
  CHECK(bench_has(&bench, "{\"name\":\"first\",\"batch\":1,\"epoch\":0,"
                          "\"state_path\":\"tinker://run/save_weights\","
                          "\"tnk\":\"saved\""));
  outcome_drop(&outcome);
  bench_close(&bench);
}

static void check_heard(const bench_t *bench, const char *name) {
  const heard_t *heard = &bench->script.heard;
  size_t i = 0;

  while (i < heard->n && strcmp(heard->ops[i].name, name) != 0)
    i++;
  CHECK(i < heard->n);
  CHECK_STR(heard->ops[i].words, "queued decoded delivered");
}

TEST(observe_P4_calls_of_a_ledger_and_what_they_ask_for_are_told) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  script_ok(&bench.script, &outcome, bench_save(&bench, "first", NULL));
  check_heard(&bench, "ledger_open");
  check_heard(&bench, "ledger_save");
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(what_was_saved_is_known_to_the_next_program) {
  bench_t bench;
  outcome_t outcome;
  const tnk_ledger_entry_t *entry;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;

  bench_open(&bench);
  how.name = "n";
  how.cursor = "c \"1\"\n\xc3\xa9";
  how.batch = 40;
  how.epoch = 2;
  how.ttl_seconds = 3600;
  how.with_sampler = TNK_YES;
  how.is_final = TNK_YES;
  script_ok(&bench.script, &outcome,
            tnk_ledger_save(bench.ledger, bench.script.training, &how));
  outcome_drop(&outcome);
  bench_end(&bench);
  bench_begin(&bench);
  bench_open_ledger(&bench);
  entry = tnk_ledger_last(bench.ledger);
  CHECK(entry != NULL);
  CHECK_STR(entry->name, "n");
  CHECK_STR(entry->cursor, how.cursor);
  CHECK_STR(entry->sampler_path, "tinker://run/save_weights_for_sampler");
  CHECK_INT(entry->batch, 40);
  CHECK_INT(entry->epoch, 2);
  CHECK_INT(entry->is_final, 1);
  CHECK_INT(entry->expires_s, entry->time_s + 3600);
  CHECK(strstr(entry->json, "\"tnk\":\"saved\"") != NULL);
  /* The name carries the attempt, so that it does not exist yet. */
  script_ok(&bench.script, &outcome, bench_save(&bench, "n", NULL));
  CHECK_STR(tnk_promise_entry(outcome.promise)->name, "n-a2");
  outcome_drop(&outcome);
  script_ok(&bench.script, &outcome, bench_save(&bench, "n", NULL));
  CHECK_STR(tnk_promise_entry(outcome.promise)->name, "n-a2-2");
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(steps_in_flight_are_in_the_state_that_is_saved_behind_them) {
  bench_t bench;
  outcome_t steps[3];
  outcome_t saves[2];

  bench_open(&bench);
  outcome_of(&steps[0], script_step(&bench.script));
  outcome_of(&steps[1], script_step(&bench.script));
  outcome_of(&saves[0], bench_save(&bench, NULL, NULL));
  outcome_of(&steps[2], script_step(&bench.script));
  outcome_of(&saves[1], bench_save(&bench, NULL, NULL));
  for (int i = 0; i < 2; i++) {
    outcome_ok(&bench.script, &saves[i]);
    CHECK_INT(tnk_promise_entry(saves[i].promise)->n_steps, 2 + i);
  }
  for (int i = 0; i < 3; i++)
    outcome_ok(&bench.script, &steps[i]);
  script_check_sent(&bench.script, 2, "save_weights", 3);
  script_check_sent(&bench.script, 3, "optim_step", 4);
  CHECK(saves[0].order < saves[1].order);
  outcome_drop_all(steps, 3);
  outcome_drop_all(saves, 2);
  bench_close(&bench);
}

TEST(a_run_is_open_once) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  script_fails(&bench.script, &outcome,
               tnk_ledger_open(bench.script.service, bench.run, NULL),
               TNK_ECONFLICT);
  CHECK(strstr(outcome.text, "the run is open in another program") != NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}

static void on_closed(void *user) {
  ++*(int *)user;
}

TEST(a_ledger_that_is_closed_can_be_opened_again) {
  bench_t bench;
  outcome_t outcome;
  outcome_t save;
  int n_closed = 0;

  bench_open(&bench);
  outcome_of(&save, bench_save(&bench, "a", NULL));
  tnk_ledger_close(bench.ledger, on_closed, &n_closed);
  tnk_ledger_close(bench.ledger, on_closed, &n_closed);
  CHECK_INT(n_closed, 0);
  outcome_fails(&bench.script, &save, TNK_ECLOSED);
  outcome_drop(&save);
  mock_wait_flag(bench.script.mock, &n_closed, 1);
  script_fails(&bench.script, &outcome, bench_save(&bench, "b", NULL),
               TNK_ECLOSED);
  outcome_drop(&outcome);
  CHECK(tnk_promise_ledger(bench.opened.promise) == NULL);
  outcome_drop(&bench.opened);
  bench_open_ledger(&bench);
  bench_close(&bench);
}

TEST(arguments_are_checked) {
  bench_t bench;
  outcome_t outcome;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  char cursor[3000];

  bench_open(&bench);
  script_fails(&bench.script, &outcome, bench_save(&bench, "a/b", NULL),
               TNK_EINVAL);
  outcome_drop(&outcome);
  script_fails(&bench.script, &outcome, bench_save(&bench, "a", "\xff"),
               TNK_EINVAL);
  outcome_drop(&outcome);
  memset(cursor, 'x', sizeof(cursor));
  cursor[sizeof(cursor) - 1] = '\0';
  script_fails(&bench.script, &outcome, bench_save(&bench, "a", cursor),
               TNK_EINVAL);
  outcome_drop(&outcome);
  script_fails(&bench.script, &outcome,
               tnk_ledger_save(bench.ledger, NULL, &how), TNK_EINVAL);
  outcome_drop(&outcome);
  script_fails(&bench.script, &outcome,
               tnk_ledger_open(bench.script.service, "", NULL), TNK_EINVAL);
  outcome_drop(&outcome);
  CHECK(tnk_ledger_open(NULL, "a", NULL) == NULL);
  CHECK(tnk_ledger_save(NULL, bench.script.training, NULL) == NULL);
  bench_close(&bench);
}

TEST(a_folder_that_cannot_be_made_is_told) {
  bench_t bench;
  outcome_t outcome;

  bench_folder(&bench);
  bench_begin(&bench);
  script_fails(&bench.script, &outcome,
               tnk_ledger_open(bench.script.service, "/dev/null/x", NULL),
               TNK_EFILE);
  CHECK(strstr(outcome.text, "/dev/null/x/checkpoints.jsonl") != NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(a_save_that_the_service_refuses_leaves_no_entry) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  mock_json_once(bench.script.mock, "POST", "/api/v1/save_weights", 422,
                 "{\"detail\":\"quota\"}");
  script_fails(&bench.script, &outcome, bench_save(&bench, "a", NULL),
               TNK_EREQUEST);
  CHECK(strstr(outcome.text, "quota") != NULL);
  CHECK(bench_has(&bench, "\"tnk\":\"failed\""));
  CHECK_INT(tnk_ledger_count(bench.ledger), 0);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(a_state_is_noted_though_the_weights_to_sample_from_are_not_saved) {
  bench_t bench;
  outcome_t outcome;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;

  bench_open(&bench);
  mock_json_once(bench.script.mock, "POST", "/api/v1/save_weights_for_sampler",
                 422, "{\"detail\":\"quota\"}");
  how.with_sampler = TNK_YES;
  script_fails(&bench.script, &outcome,
               tnk_ledger_save(bench.ledger, bench.script.training, &how),
               TNK_EREQUEST);
  CHECK_INT(tnk_ledger_count(bench.ledger), 1);
  CHECK(tnk_ledger_last(bench.ledger)->sampler_path == NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(a_save_that_is_canceled_in_time_is_never_sent) {
  bench_t bench;
  outcome_t outcome;
  outcome_t step;
  tnk_promise_t *save;

  bench_open(&bench);
  save = tnk_promise_ref(bench_save(&bench, "a", NULL));
  outcome_of(&outcome, save);
  tnk_promise_cancel(save);
  tnk_promise_unref(save);
  outcome_fails(&bench.script, &outcome, TNK_ECANCELED);
  script_ok(&bench.script, &step, script_step(&bench.script));
  CHECK_INT(bench.script.n_sent, 1);
  script_check_sent(&bench.script, 0, "optim_step", 1);
  outcome_drop(&step);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* Its requests have failed before the disk has the intent. */
TEST(a_save_of_a_model_that_closes_at_once_ends_once) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  outcome_of(&outcome, bench_save(&bench, "a", NULL));
  tnk_training_close(bench.script.training, NULL, NULL);
  outcome_fails(&bench.script, &outcome, TNK_ECLOSED);
  CHECK_INT(bench.script.n_sent, 0);
  while (bench.ledger->pen.is_busy)
    script_turns(&bench.script);
  CHECK(bench_has(&bench, "\"tnk\":\"failed\""));
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(an_entry_outlives_its_ledger) {
  bench_t bench;
  outcome_t outcome;

  bench_open(&bench);
  script_ok(&bench.script, &outcome, bench_save(&bench, "a", "c"));
  bench_close(&bench);
  CHECK_STR(tnk_promise_entry(outcome.promise)->cursor, "c");
  outcome_drop(&outcome);
}
