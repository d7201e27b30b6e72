/* SPDX-License-Identifier: MIT */
/*
 * When a save is due, how long it stays, and what is told of that.
 */
#include "ledger/bench.h"

#include <time.h>

#define DELETE_PATH "/api/v1/training_runs/model-0/checkpoints/weights/"

/* Each state has a path of its own: its number in the sequence. */
static void result(mock_request_t *request, void *user) {
  const char *id =
      strstr((const char *)request->body, "\"request_id\":\"save_weights:");
  char text[128];

  if (strstr((const char *)request->body, "\"load_weights:") != NULL) {
    mock_reply_json(request, 200,
                    "{\"path\":\"tinker://x\",\"model_id\":\"model-1\"}");
  } else if (id != NULL) {
    snprintf(text, sizeof(text), "{\"path\":\"tinker://model-0/weights/s%d\"}",
             atoi(id + strlen("\"request_id\":\"save_weights:")));
    mock_reply_json(request, 200, text);
  } else {
    script_result(request, user);
  }
}

static void open_again(bench_t *bench, const tnk_ledger_options_t *options) {
  bench_begin(bench);
  mock_on(bench->script.mock, "POST", "/api/v1/retrieve_future", result,
          &bench->script);
  mock_json(bench->script.mock, "DELETE", NULL, 200, "{}");
  script_ok(&bench->script, &bench->opened,
            tnk_ledger_open(bench->script.service, bench->run, options));
  bench->ledger = tnk_promise_ledger(bench->opened.promise);
}

static void open_with(bench_t *bench, const tnk_ledger_options_t *options) {
  bench_folder(bench);
  open_again(bench, options);
}

static void do_steps(bench_t *bench, int n) {
  outcome_t outcome;

  for (int i = 0; i < n; i++) {
    script_ok(&bench->script, &outcome, script_step(&bench->script));
    outcome_drop(&outcome);
  }
}

/* What the entry says lives as long as the ledger. */
static const tnk_ledger_entry_t *save(bench_t *bench,
                                      const tnk_ledger_save_t *how) {
  outcome_t outcome;

  script_ok(&bench->script, &outcome,
            tnk_ledger_save(bench->ledger, bench->script.training, how));
  outcome_drop(&outcome);
  return tnk_ledger_last(bench->ledger);
}

static int is_due(const bench_t *bench) {
  return tnk_ledger_due(bench->ledger, bench->script.training);
}

TEST(a_save_is_due_past_a_multiple_of_so_many_steps) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  outcome_t steps[3];
  bench_t bench;

  options.every_steps = 4;
  open_with(&bench, &options);
  CHECK(!is_due(&bench));
  do_steps(&bench, 3);
  CHECK(!is_due(&bench));
  /* As soon as the step is called: the save that is called next has it. */
  outcome_of(&steps[0], script_step(&bench.script));
  CHECK(is_due(&bench));
  CHECK_INT(save(&bench, NULL)->n_steps, 4);
  CHECK(!is_due(&bench));
  /* A save out of turn does not move the others. */
  outcome_of(&steps[1], script_step(&bench.script));
  outcome_of(&steps[2], script_step(&bench.script));
  save(&bench, NULL);
  do_steps(&bench, 1);
  CHECK(!is_due(&bench));
  do_steps(&bench, 1);
  CHECK(is_due(&bench));
  outcome_drop_all(steps, 3);
  bench_close(&bench);
}

TEST(a_save_is_due_after_a_time_if_there_is_anything_new) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  bench_t bench;

  options.every_seconds = 60;
  open_with(&bench, &options);
  script_advance(&bench.script, 60000);
  CHECK(!is_due(&bench));
  do_steps(&bench, 1);
  CHECK(is_due(&bench));
  save(&bench, NULL);
  do_steps(&bench, 1);
  CHECK(!is_due(&bench));
  script_advance(&bench.script, 59999);
  CHECK(!is_due(&bench));
  script_advance(&bench.script, 1);
  CHECK(is_due(&bench));
  bench_close(&bench);
}

TEST(without_a_policy_nothing_is_due_until_a_save_has_failed) {
  bench_t bench;
  outcome_t outcome;

  open_with(&bench, NULL);
  do_steps(&bench, 100);
  script_advance(&bench.script, 3600000);
  CHECK(!is_due(&bench));
  mock_json_once(bench.script.mock, "POST", "/api/v1/save_weights", 422,
                 "{\"detail\":\"quota\"}");
  script_fails(&bench.script, &outcome, bench_save(&bench, "a", NULL),
               TNK_EREQUEST);
  outcome_drop(&outcome);
  CHECK(is_due(&bench));
  save(&bench, NULL);
  CHECK(!is_due(&bench));
  CHECK(!tnk_ledger_due(NULL, bench.script.training));
  CHECK(!tnk_ledger_due(bench.ledger, NULL));
  bench_close(&bench);
}

TEST(steps_of_a_run_that_was_resumed_count) {
  static const char before[] =
      "{\"name\":\"a\",\"state_path\":\"tinker://model-0/weights/a\","
      "\"tnk\":\"saved\",\"tnk_attempt\":1,\"tnk_save\":1,\"tnk_steps\":7}\n";
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  outcome_t outcome;
  bench_t bench;

  options.every_steps = 5;
  bench_folder(&bench);
  bench_write(&bench, before);
  open_again(&bench, &options);
  mock_json(bench.script.mock, "GET",
            "/api/v1/training_runs/model-0/checkpoints", 404, "{}");
  script_ok(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL));
  bench.script.training = tnk_promise_training(outcome.promise);
  do_steps(&bench, 2);
  CHECK(!is_due(&bench));
  do_steps(&bench, 1);
  CHECK(is_due(&bench));
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(saves_stay_as_long_as_the_ledger_or_they_themselves_say) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  const tnk_ledger_entry_t *entry;
  bench_t bench;

  options.ttl_seconds = 600;
  options.n_rolling = 9;
  open_with(&bench, &options);
  entry = save(&bench, NULL);
  CHECK_INT(entry->expires_s, entry->time_s + 600);
  CHECK(entry->is_rolling);
  CHECK(strstr((const char *)mock_find(bench.script.mock, "POST",
                                       "/api/v1/save_weights", 0)
                   ->body,
               "\"ttl_seconds\":600") != NULL);
  how.ttl_seconds = 30;
  entry = save(&bench, &how);
  CHECK_INT(entry->expires_s, entry->time_s + 30);
  how.ttl_seconds = 0;
  how.is_rolling = TNK_NO;
  entry = save(&bench, &how);
  CHECK_INT(entry->expires_s, 0);
  CHECK(!entry->is_rolling);
  how.is_rolling = TNK_DEFAULT;
  how.is_final = TNK_YES;
  entry = save(&bench, &how);
  CHECK_INT(entry->expires_s, 0);
  CHECK(!entry->is_rolling && entry->is_final);
  bench_close(&bench);
}

/* ---- Rolling saves ---- */

static size_t n_deleted(const bench_t *bench) {
  return mock_count(bench->script.mock, "DELETE", NULL);
}

/* Until the ledger has said so to the disk. */
static void until_deleted(bench_t *bench, size_t n) {
  while (n_deleted(bench) < n || bench->ledger->policy.sweep != NULL)
    mock_turns(bench->script.mock, 1);
}

static int has_deleted(const bench_t *bench, const char *name) {
  char path[128];

  snprintf(path, sizeof(path), DELETE_PATH "%s", name);
  return mock_count(bench->script.mock, "DELETE", path) == 1;
}

TEST(so_many_rolling_saves_stay) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  bench_t bench;

  options.n_rolling = 2;
  open_with(&bench, &options);
  save(&bench, NULL);
  save(&bench, NULL);
  how.is_rolling = TNK_NO;
  save(&bench, &how);
  CHECK_INT(n_deleted(&bench), 0);
  save(&bench, NULL);
  until_deleted(&bench, 1);
  CHECK(has_deleted(&bench, "s1"));
  CHECK(tnk_ledger_entry(bench.ledger, 0)->is_deleted);
  CHECK(!tnk_ledger_entry(bench.ledger, 1)->is_deleted);
  CHECK(bench_has(&bench, "\"tnk\":\"deleted\""));
  /* The next program knows. */
  bench_end(&bench);
  open_again(&bench, &options);
  CHECK(tnk_ledger_entry(bench.ledger, 0)->is_deleted);
  CHECK_STR(tnk_ledger_last(bench.ledger)->state_path,
            "tinker://model-0/weights/s4");
  save(&bench, NULL);
  until_deleted(&bench, 1);
  CHECK(has_deleted(&bench, "s2"));
  how.is_rolling = TNK_DEFAULT;
  how.is_final = TNK_YES;
  save(&bench, &how);
  until_deleted(&bench, 3);
  CHECK_INT(n_deleted(&bench), 3);
  CHECK(
      !tnk_ledger_entry(bench.ledger, 2)->is_deleted); /* the one that stays */
  CHECK(tnk_ledger_last(bench.ledger)->is_final);
  bench_close(&bench);
}

TEST(a_state_replaces_others_though_its_weights_to_sample_from_are_not_saved) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  outcome_t outcome;
  bench_t bench;

  options.n_rolling = 1;
  open_with(&bench, &options);
  save(&bench, NULL);
  mock_json_once(bench.script.mock, "POST", "/api/v1/save_weights_for_sampler",
                 422, "{\"detail\":\"quota\"}");
  how.with_sampler = TNK_YES;
  script_fails(&bench.script, &outcome,
               tnk_ledger_save(bench.ledger, bench.script.training, &how),
               TNK_EREQUEST);
  outcome_drop(&outcome);
  CHECK(is_due(&bench));
  until_deleted(&bench, 1);
  CHECK(has_deleted(&bench, "s1"));
  bench_close(&bench);
}

TEST(a_state_that_cannot_be_deleted_is_let_be) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  bench_t bench;

  options.n_rolling = 1;
  open_with(&bench, &options);
  mock_json_once(bench.script.mock, "DELETE", DELETE_PATH "s1", 403,
                 "{\"detail\":\"no\"}");
  save(&bench, NULL);
  save(&bench, NULL);
  until_deleted(&bench, 1);
  CHECK(!tnk_ledger_entry(bench.ledger, 0)->is_deleted);
  save(&bench, NULL);
  until_deleted(&bench, 2);
  CHECK(has_deleted(&bench, "s1") && has_deleted(&bench, "s2"));
  CHECK(tnk_ledger_entry(bench.ledger, 1)->is_deleted);
  CHECK_INT(bench.script.n_warnings, 0);
  bench_close(&bench);
}

TEST(a_ledger_closes_while_it_deletes) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  bench_t bench;

  options.n_rolling = 1;
  open_with(&bench, &options);
  mock_on(bench.script.mock, "DELETE", NULL, mock_hold, NULL);
  save(&bench, NULL);
  save(&bench, NULL);
  while (n_deleted(&bench) == 0)
    mock_turns(bench.script.mock, 1);
  tnk_ledger_close(bench.ledger, NULL, NULL);
  script_turns(&bench.script);
  bench_close(&bench);
}

#define SAVED(name, number, more)                                              \
  "{\"name\":\"" name "\"," more "\"tnk_attempt\":1,\"tnk_save\":" number      \
  ",\"tnk\":\"saved\",\"state_path\":\"tinker://model-0/weights/" name "\"}\n"
#define ROLLING(name, number) SAVED(name, number, "\"rolling\":true,")
#define FINAL(name, number) SAVED(name, number, "\"final\":true,")
#define INTENT(name, number)                                                   \
  "{\"name\":\"" name "\",\"tnk\":\"intent\",\"tnk_attempt\":1,"               \
  "\"rolling\":true,\"tnk_save\":" number                                      \
  ",\"tnk_what\":1,\"tnk_run\":\"model-0\"}\n"
#define LOST(name, number, rolling)                                            \
  "{\"name\":\"" name                                                          \
  "\",\"tnk\":\"failed\",\"tnk_attempt\":1,\"rolling\":" rolling               \
  ",\"tnk_save\":" number ",\"tnk_what\":1,\"tnk_run\":\"model-0\"}\n"
#define DELETED(name, number)                                                  \
  "{\"name\":\"" name "\",\"tnk\":\"deleted\",\"tnk_attempt\":1,"              \
  "\"tnk_save\":" number "}\n"

static const struct {
  const char *lines;
  uint64_t n_rolling;
  const char *deleted; /* names of one letter */
} left_rows[] = {
    {ROLLING("a", "1") ROLLING("b", "2") FINAL("c", "3"), 2, "ab"},
    {ROLLING("a", "1") ROLLING("b", "2") FINAL("c", "3") DELETED("a", "1"), 2,
     "b"},
    {ROLLING("a", "1") FINAL("b", "2") DELETED("a", "1"), 2, ""},
    {ROLLING("a", "1") SAVED("b", "2", "") FINAL("c", "3"), 2, "a"},
    /* A program that does not delete states. */
    {ROLLING("a", "1") FINAL("b", "2"), 0, ""},
    /* The run has not ended, or continues. */
    {ROLLING("a", "1") ROLLING("b", "2") ROLLING("c", "3"), 2, ""},
    {ROLLING("a", "1") FINAL("b", "2") ROLLING("c", "3"), 2, ""},
    {"", 2, ""},
    /* The run has continued without saves that may be complete by now. */
    {LOST("a", "1", "true") FINAL("b", "2"), 2, "a"},
    {LOST("a", "1", "true") ROLLING("b", "2") FINAL("c", "3"), 2, "ab"},
    {LOST("a", "1", "true") FINAL("b", "2") DELETED("a", "1"), 2, ""},
    /* The result of the first save did not arrive. */
    {INTENT("a", "1") INTENT("b", "2") ROLLING("b", "2") FINAL("c", "3"), 2,
     "ab"},
    {INTENT("a", "1") INTENT("b", "2") ROLLING("a", "1") ROLLING("b", "2"), 2,
     ""},
    {LOST("a", "1", "false") FINAL("b", "2"), 2, ""},
    {LOST("a", "1", "true") ROLLING("b", "2"), 2, ""},
    {LOST("a", "1", "true") FINAL("b", "2"), 0, ""},
};

#undef SAVED
#undef ROLLING
#undef FINAL
#undef INTENT
#undef LOST
#undef DELETED

/* The program that ended the run was killed before it had deleted them. */
TEST(what_a_finished_run_has_left_is_deleted_by_the_next_program) {
  for (size_t i = 0; i < sizeof(left_rows) / sizeof(left_rows[0]); i++) {
    tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
    const size_t n = strlen(left_rows[i].deleted);
    bench_t bench;

    options.n_rolling = left_rows[i].n_rolling;
    bench_folder(&bench);
    bench_write(&bench, left_rows[i].lines);
    open_again(&bench, &options);
    until_deleted(&bench, n);
    script_turns(&bench.script);
    CHECK_INT(n_deleted(&bench), n);
    for (size_t k = 0; k < n; k++)
      CHECK(has_deleted(&bench, (char[]){left_rows[i].deleted[k], '\0'}));
    bench_close(&bench);
  }
}

/* Lines of others may say anything. */
TEST(only_saves_of_ours_are_deleted) {
  static const char before[] =
      "{\"name\":\"a\",\"rolling\":true,"
      "\"state_path\":\"tinker://model-0/weights/a\"}\n"
      "{\"name\":\"b\",\"rolling\":true,\"tnk_attempt\":1,\"tnk_save\":1,"
      "\"tnk\":\"saved\",\"state_path\":\"tinker://mod?el/weights/b\"}\n";
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  bench_t bench;

  options.n_rolling = 1;
  bench_folder(&bench);
  bench_write(&bench, before);
  open_again(&bench, &options);
  save(&bench, NULL);
  until_deleted(&bench, 0);
  CHECK_INT(n_deleted(&bench), 0);
  bench_close(&bench);
}

TEST(a_state_that_was_deleted_is_not_gone_on_from) {
  static const char before[] =
      "{\"name\":\"a\",\"rolling\":true,\"tnk_attempt\":1,\"tnk_save\":1,"
      "\"tnk\":\"saved\",\"state_path\":\"tinker://model-0/weights/a\"}\n"
      "{\"name\":\"b\",\"rolling\":true,\"tnk_attempt\":1,\"tnk_save\":2,"
      "\"tnk\":\"saved\",\"state_path\":\"tinker://model-0/weights/b\"}\n"
      "{\"name\":\"b\",\"tnk\":\"deleted\",\"tnk_attempt\":1,\"tnk_save\":2}\n";
  outcome_t outcome;
  bench_t bench;

  bench_folder(&bench);
  bench_write(&bench, before);
  open_again(&bench, NULL);
  CHECK_STR(tnk_ledger_last(bench.ledger)->name, "a");
  mock_json(bench.script.mock, "GET",
            "/api/v1/training_runs/model-0/checkpoints", 404, "{}");
  script_ok(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL));
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "a");
  CHECK_INT(mock_count(bench.script.mock, "POST", "/api/v1/load_weights"), 1);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* ---- Warnings ---- */

/* The number in front of " s, ..."; dates are real, and may be late by some. */
static long seconds_before(const bench_t *bench, const char *words) {
  const char *from = strstr(bench->script.last_log, "expires in ");

  CHECK(from != NULL && strstr(from, words) != NULL);
  return strtol(from + strlen("expires in "), NULL, 10);
}

TEST(a_state_that_expires_before_the_next_save_is_told) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  bench_t bench;
  long left_s;

  options.every_steps = 1;
  options.ttl_seconds = 1000;
  open_with(&bench, &options);
  save(&bench, NULL);
  script_advance(&bench.script, 700 * 1000);
  save(&bench, NULL);
  CHECK_INT(bench.script.n_warnings, 0);
  script_advance(&bench.script, 700 * 1000);
  CHECK_INT(bench.script.n_warnings, 0);
  script_advance(&bench.script, 50 * 1000);
  CHECK_INT(bench.script.n_warnings, 1);
  CHECK(strstr(bench.script.last_log, "/weights/s2, the last state") != NULL);
  left_s = seconds_before(&bench, " s, and nothing was saved since");
  CHECK(left_s > 200 && left_s <= 250);
  script_advance(&bench.script, 1000 * 1000);
  CHECK_INT(bench.script.n_warnings, 1);
  bench_close(&bench);
}

TEST(saves_that_come_too_rarely_are_told) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  bench_t bench;
  long left_s;

  open_with(&bench, &options);
  save(&bench, NULL);
  script_advance(&bench.script, 500 * 1000);
  how.ttl_seconds = 400;
  save(&bench, &how);
  CHECK_INT(bench.script.n_warnings, 1);
  left_s = seconds_before(&bench, " s, and saves come 500 s apart");
  CHECK(left_s > 350 && left_s <= 400);
  bench_close(&bench);
}

TEST(a_state_that_a_run_goes_on_from_is_watched_too) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  outcome_t outcome;
  char before[300];
  bench_t bench;

  snprintf(before, sizeof(before),
           "{\"name\":\"a\",\"state_path\":\"tinker://model-0/weights/a\","
           "\"tnk\":\"saved\",\"tnk_attempt\":1,\"tnk_save\":1,"
           "\"tnk_time\":%lld,\"tnk_ttl\":1000}\n",
           (long long)time(NULL));
  bench_folder(&bench);
  bench_write(&bench, before);
  open_again(&bench, &options);
  mock_json(bench.script.mock, "GET",
            "/api/v1/training_runs/model-0/checkpoints", 404, "{}");
  script_ok(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL));
  CHECK_INT(bench.script.n_warnings, 0);
  script_advance(&bench.script, 750 * 1000);
  CHECK_INT(bench.script.n_warnings, 1);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(policies_that_cannot_be_are_refused) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  outcome_t outcome;
  bench_t bench;

  open_with(&bench, NULL);
  options.every_seconds = 3600;
  options.ttl_seconds = 600;
  script_fails(&bench.script, &outcome,
               tnk_ledger_open(bench.script.service, bench.dir, &options),
               TNK_EINVAL);
  CHECK(strstr(outcome.text, "saves expire after 600 s") != NULL);
  outcome_drop(&outcome);
  options.every_seconds = UINT64_MAX / 2;
  options.ttl_seconds = 0;
  script_fails(&bench.script, &outcome,
               tnk_ledger_open(bench.script.service, bench.dir, &options),
               TNK_EINVAL);
  outcome_drop(&outcome);
  how.is_final = TNK_YES;
  how.is_rolling = TNK_YES;
  script_fails(&bench.script, &outcome,
               tnk_ledger_save(bench.ledger, bench.script.training, &how),
               TNK_EINVAL);
  outcome_drop(&outcome);
  bench_close(&bench);
}
