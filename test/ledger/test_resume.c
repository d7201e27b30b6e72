/* SPDX-License-Identifier: MIT */
#include "ledger/bench.h"

#define LIST "/api/v1/training_runs/model-0/checkpoints"
#define LOAD "/api/v1/load_weights"
#define SAVE "/api/v1/save_weights"

/* States are restored in one call. */
static void result(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "\"load_weights:") != NULL)
    mock_reply_json(request, 200,
                    "{\"path\":\"tinker://x\",\"model_id\":\"model-1\"}");
  else
    script_result(request, user);
}

static void begin(bench_t *bench, const char *file) {
  bench_folder(bench);
  if (file != NULL)
    bench_write(bench, file);
  bench_begin(bench);
  mock_on(bench->script.mock, "POST", "/api/v1/retrieve_future", result,
          &bench->script);
  bench_open_ledger(bench);
}

#define SAVED(name, save, steps)                                               \
  "{\"name\":\"" name "\",\"batch\":" steps ",\"state_path\":"                 \
  "\"tinker://model-0/weights/" name "\",\"tnk\":\"saved\","                   \
  "\"tnk_attempt\":1,\"tnk_save\":" save ",\"tnk_steps\":" steps               \
  ",\"tnk_cursor\":\"at " name "\"}\n"
#define INTENT(name, save, steps)                                              \
  "{\"name\":\"" name "\",\"tnk\":\"intent\",\"tnk_attempt\":1,"               \
  "\"tnk_save\":" save ",\"tnk_what\":3,\"tnk_run\":\"model-0\","              \
  "\"tnk_steps\":" steps ",\"tnk_cursor\":\"at " name "\"}\n"
#define THERE(name, kind, type, metadata)                                      \
  "{\"checkpoint_id\":\"" kind "/" name "\",\"checkpoint_type\":\"" type       \
  "\",\"time\":\"2026-01-02T03:04:05Z\",\"tinker_path\":"                      \
  "\"tinker://model-0/" kind "/" name "\",\"user_metadata\":{" metadata "}}"
#define STATE(name) THERE(name, "weights", "training", "")

static void list(bench_t *bench, const char *checkpoints) {
  char text[2000];

  CHECK(snprintf(text, sizeof(text), "{\"checkpoints\":[%s]}", checkpoints) <
        (int)sizeof(text));
  mock_json(bench->script.mock, "GET", LIST, 200, text);
}

static int loads(const bench_t *bench, size_t i, const char *text) {
  const mock_request_t *request =
      mock_find(bench->script.mock, "POST", LOAD, i);

  CHECK(request != NULL);
  return strstr((const char *)request->body, text) != NULL;
}

static void resume(bench_t *bench, outcome_t *outcome) {
  script_ok(&bench->script, outcome, tnk_ledger_resume(bench->ledger, NULL));
  CHECK(tnk_promise_training(outcome->promise) != NULL);
  CHECK(tnk_ledger_resumed(bench->ledger) != NULL);
}

TEST(a_run_goes_on_from_its_last_state_with_the_optimizer) {
  bench_t bench;
  outcome_t outcome;
  outcome_t saved;
  outcome_t step;

  begin(&bench, SAVED("a", "1", "10") SAVED("b", "2", "20"));
  list(&bench, STATE("a") "," STATE("b"));
  CHECK(tnk_ledger_resumed(bench.ledger) == NULL);
  resume(&bench, &outcome);
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->cursor, "at b");
  CHECK(loads(&bench, 0, "\"path\":\"tinker://model-0/weights/b\""));
  CHECK(loads(&bench, 0, "\"optimizer\":true"));
  /* Counting goes on. */
  bench.script.training = tnk_promise_training(outcome.promise);
  outcome_of(&step, script_step(&bench.script));
  script_ok(&bench.script, &saved, bench_save(&bench, "c", NULL));
  CHECK_INT(tnk_promise_entry(saved.promise)->n_steps, 21);
  CHECK_STR(tnk_promise_entry(saved.promise)->name, "c-a2");
  outcome_ok(&bench.script, &step);
  outcome_drop(&step);
  outcome_drop(&saved);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(weights_alone_are_restored_when_that_is_asked_for) {
  bench_t bench;
  outcome_t outcome;
  tnk_ledger_resume_t how = TNK_LEDGER_RESUME_INIT;

  begin(&bench, SAVED("a", "1", "10"));
  list(&bench, STATE("a"));
  how.with_optimizer = TNK_NO;
  script_ok(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, &how));
  CHECK(loads(&bench, 0, "\"optimizer\":false"));
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(what_a_killed_program_had_saved_is_noted_and_gone_on_from) {
  bench_t bench;
  outcome_t outcome;
  const tnk_ledger_entry_t *entry;

  begin(&bench,
        SAVED("a", "1", "10") INTENT("b", "2", "20") INTENT("c", "3", "30"));
  list(&bench,
       STATE("a") "," THERE("b", "weights", "training",
                            "\"tnk_save\":\"1.2\",\"tnk_steps\":\"19\"") "," //
       THERE("b", "sampler_weights", "sampler", ""));
  resume(&bench, &outcome);
  entry = tnk_ledger_resumed(bench.ledger);
  CHECK_STR(entry->state_path, "tinker://model-0/weights/b");
  CHECK_STR(entry->sampler_path, "tinker://model-0/sampler_weights/b");
  CHECK_STR(entry->cursor, "at b");
  CHECK_INT(entry->n_steps, 19); /* the checkpoint knows better */
  outcome_drop(&outcome);
  bench_end(&bench);
  bench_begin(&bench);
  bench_open_ledger(&bench);
  CHECK_STR(tnk_ledger_last(bench.ledger)->name, "b");
  CHECK_INT(tnk_ledger_last(bench.ledger)->batch, 19);
  CHECK_INT(bench.ledger->n_intents, 0);
  bench_close(&bench);
}

#define ROLLING(name, save, steps)                                             \
  "{\"name\":\"" name "\",\"rolling\":true,\"batch\":" steps                   \
  ",\"state_path\":\"tinker://model-0/weights/" name "\",\"tnk\":\"saved\","   \
  "\"tnk_attempt\":1,\"tnk_save\":" save ",\"tnk_steps\":" steps "}\n"

/* The program was killed before it noted the save that ended the run, or a
 * later rolling one. The end deletes all rolling saves. */
/* The names of the entries with a state, in their order. */
static void check_entries(const bench_t *bench, const char *names) {
  char found[16] = "";

  for (size_t i = 0; i < tnk_ledger_count(bench->ledger); i++)
    if (tnk_ledger_entry(bench->ledger, i)->state_path != NULL)
      strncat(found, tnk_ledger_entry(bench->ledger, i)->name, 1);
  CHECK_STR(found, names);
}

TEST(all_saves_that_were_under_way_are_noted) {
#define OTHER(name, save)                                                      \
  "{\"name\":\"" name "\",\"tnk\":\"intent\",\"tnk_attempt\":1,"               \
  "\"tnk_save\":" save ",\"tnk_what\":1,\"tnk_run\":\"model-9\"}\n"
#define UNDER_WAY                                                              \
  INTENT("b", "2", "20") INTENT("c", "3", "30") INTENT("d", "4", "40")
  static const struct {
    const char *file;
    const char *there; /* names of one letter */
    const char *noted; /* in the order of the file; the last one is resumed */
  } rows[] = {
      {SAVED("a", "1", "10") UNDER_WAY, "abcd", "abcd"},
      {SAVED("a", "1", "10") UNDER_WAY, "abd", "abd"},
      {SAVED("a", "1", "10") UNDER_WAY, "ad", "ad"},
      {SAVED("a", "1", "10") UNDER_WAY, "abc", "abc"},
      {SAVED("a", "1", "10") UNDER_WAY, "ab", "ab"},
      {SAVED("a", "1", "10") UNDER_WAY, "a", "a"},
      {UNDER_WAY, "bcd", "bcd"},
      /* A save of a model that was lost has another history. */
      {SAVED("a", "1", "10") OTHER("b", "2") INTENT("c", "3", "30"), "abc",
       "ac"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char listed[2000] = "", last[2] = "";
    size_t n = 0;
    bench_t bench;
    outcome_t outcome;

    begin(&bench, rows[i].file);
    for (const char *at = rows[i].there; *at != '\0'; at++)
      n += (size_t)snprintf(
          listed + n, sizeof(listed) - n,
          "%s{\"checkpoint_id\":\"weights/%c\",\"checkpoint_type\":"
          "\"training\",\"time\":\"2026-01-02T03:04:05Z\",\"tinker_path\":"
          "\"tinker://model-0/weights/%c\",\"user_metadata\":{}}",
          n > 0 ? "," : "", *at, *at);
    list(&bench, listed);
    resume(&bench, &outcome);
    last[0] = rows[i].noted[strlen(rows[i].noted) - 1];
    CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, last);
    check_entries(&bench, rows[i].noted);
    outcome_drop(&outcome);
    /* The next program knows. */
    bench_end(&bench);
    bench_begin(&bench);
    bench_open_ledger(&bench);
    check_entries(&bench, rows[i].noted);
    CHECK_INT(bench.ledger->n_intents, 0);
    bench_close(&bench);
  }
#undef OTHER
#undef UNDER_WAY
}

TEST(the_end_of_a_run_that_is_found_deletes_the_rolling_saves) {
  static const struct {
    const char *intent;
    size_t n_deleted;
  } rows[] = {{"\"final\":true", 2}, {"\"rolling\":true", 0}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    char file[2000];
    outcome_t outcome;
    bench_t bench;

    snprintf(file, sizeof(file),
             ROLLING("a", "1", "10") ROLLING(
                 "b", "2", "20") "{\"name\":\"c\",%s,\"tnk\":\"intent\","
                                 "\"tnk_attempt\":1,\"tnk_save\":3,"
                                 "\"tnk_what\":3,\"tnk_run\":\"model-0\","
                                 "\"tnk_steps\":30}\n",
             rows[i].intent);
    begin(&bench, file);
    list(&bench, STATE("a") "," STATE("b") "," //
         THERE("c", "weights", "training", "\"tnk_save\":\"1.3\""));
    resume(&bench, &outcome);
    CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "c");
    CHECK_INT(tnk_ledger_resumed(bench.ledger)->is_final, i == 0);
    while (bench.ledger->policy.sweep != NULL)
      mock_turns(bench.script.mock, 1);
    CHECK_INT(mock_count(bench.script.mock, "DELETE", NULL), rows[i].n_deleted);
    outcome_drop(&outcome);
    bench_close(&bench);
  }
}

/* Another model's, or another save under that name, is not ours. */
TEST(an_intent_that_came_to_nothing_is_passed_over) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, SAVED("a", "1", "10") INTENT("b", "2", "20"));
  list(&bench, STATE("a") "," THERE("b", "weights", "training",
                                    "\"tnk_save\":\"7.2\""));
  resume(&bench, &outcome);
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "a");
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* Resume from the save `name`; NULL: there is none. */
static void again(bench_t *bench, outcome_t *outcome, const char *name) {
  if (name != NULL) {
    resume(bench, outcome);
    CHECK_STR(tnk_ledger_resumed(bench->ledger)->name, name);
  } else {
    script_fails(&bench->script, outcome,
                 tnk_ledger_resume(bench->ledger, NULL), TNK_ENOTFOUND);
  }
  outcome_drop(outcome);
}

/* The service can complete a save after the run has gone on without it. */
TEST(an_intent_that_was_passed_over_is_never_gone_on_from) {
  static const char *const files[] = {
      SAVED("a", "1", "10") INTENT("b", "2", "20"), INTENT("b", "2", "20"),
      SAVED("a", "1", "10") INTENT("b", "2", "20") INTENT("c", "3", "30")};
  static const char *const names[] = {"a", NULL, "b"};

  for (size_t i = 0; i < 3; i++) {
    bench_t bench;
    outcome_t outcome;

    begin(&bench, files[i]);
    list(&bench, i == 2 ? STATE("a") "," STATE("b") : STATE("a"));
    again(&bench, &outcome, names[i]);
    bench_end(&bench);
    bench_begin(&bench);
    mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", result,
            &bench.script);
    bench_open_ledger(&bench);
    CHECK_INT(bench.ledger->n_intents, 0);
    list(&bench, STATE("a") "," STATE("b") "," STATE("c"));
    again(&bench, &outcome, names[i]);
    bench_close(&bench);
  }
}

TEST(a_state_that_is_gone_is_passed_over_and_told) {
  for (int is_listed = 0; is_listed < 2; is_listed++) {
    bench_t bench;
    outcome_t outcome;

    begin(&bench, SAVED("a", "1", "10") SAVED("b", "2", "20"));
    list(&bench, STATE("a"));
    if (is_listed) {
      list(&bench, STATE("a") "," STATE("b"));
      mock_json_once(bench.script.mock, "POST", LOAD, 404,
                     "{\"detail\":\"no such checkpoint\"}");
    }
    resume(&bench, &outcome);
    CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "a");
    CHECK(strstr(bench.script.last_log, "weights/b no longer exists") != NULL);
    outcome_drop(&outcome);
    bench_close(&bench);
  }
}

TEST(a_service_that_lists_nothing_is_asked_for_the_state_itself) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, SAVED("a", "1", "10"));
  mock_json(bench.script.mock, "GET", LIST, 404, "{\"detail\":\"no\"}");
  resume(&bench, &outcome);
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "a");
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(a_service_out_of_order_is_no_reason_to_go_further_back) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, SAVED("a", "1", "10") SAVED("b", "2", "20"));
  list(&bench, STATE("a") "," STATE("b"));
  mock_json(bench.script.mock, "POST", LOAD, 403, "{\"detail\":\"no\"}");
  script_fails(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL),
               TNK_EAUTH);
  CHECK_INT(mock_count(bench.script.mock, "POST", LOAD), 1);
  CHECK(tnk_ledger_resumed(bench.ledger) == NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* What it cannot list may be younger than all that the file has. */
TEST(a_list_that_is_out_of_order_is_no_reason_to_go_back_either) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, SAVED("a", "1", "10") INTENT("b", "2", "20"));
  mock_json(bench.script.mock, "GET", LIST, 500, "{\"detail\":\"no\"}");
  outcome_of(&outcome, tnk_ledger_resume(bench.ledger, NULL));
  while (outcome.n_done == 0)
    script_advance(&bench.script, 10000);
  CHECK_INT(outcome.status, TNK_ESERVER);
  CHECK_INT(mock_count(bench.script.mock, "POST", LOAD), 0);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(a_list_that_is_refused_is_no_reason_to_go_back_either) {
  static const int refusals[] = {403, 429};

  for (size_t i = 0; i < 2; i++) {
    bench_t bench;
    outcome_t outcome;

    begin(&bench, SAVED("a", "1", "10") INTENT("b", "2", "20"));
    mock_json(bench.script.mock, "GET", LIST, refusals[i],
              "{\"detail\":\"no\"}");
    outcome_of(&outcome, tnk_ledger_resume(bench.ledger, NULL));
    while (outcome.n_done == 0)
      script_advance(&bench.script, 10000);
    CHECK_INT(outcome.status, i == 0 ? TNK_EAUTH : TNK_ERATE);
    CHECK_INT(mock_count(bench.script.mock, "POST", LOAD), 0);
    outcome_drop(&outcome);
    bench_close(&bench);
  }
}

/* Lists that do not say all there is prove nothing. */
TEST(a_state_that_a_part_of_a_list_lacks_is_asked_for_itself) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, SAVED("a", "1", "10") SAVED("b", "2", "20"));
  mock_json(bench.script.mock, "GET", LIST, 200,
            "{\"checkpoints\":[" STATE("a") "],\"cursor\":{\"offset\":0,"
                                            "\"limit\":1,\"total_count\":2}}");
  resume(&bench, &outcome);
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "b");
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(without_a_state_the_run_begins) {
  bench_t bench;
  outcome_t outcome;

  begin(&bench, NULL);
  script_fails(&bench.script, &outcome, tnk_ledger_resume(bench.ledger, NULL),
               TNK_ENOTFOUND);
  CHECK(strstr(outcome.text, "there is no state to resume from") != NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(a_run_whose_directory_is_lost_is_found_by_its_name) {
  bench_t bench;
  outcome_t outcome;
  tnk_totals_t totals = TNK_TOTALS_INIT;
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;

  bench_folder(&bench);
  bench_begin(&bench);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", result,
          &bench.script);
  mock_json(
      bench.script.mock, "GET", "/api/v1/checkpoints", 200,
      "{\"checkpoints\":["                                           //
      THERE("z", "weights", "training", "\"tnk_run\":\"other\"") "," //
      THERE("y-a3", "weights", "training",
            "\"tnk_run\":\"mine\",\"tnk_save\":\"3.4\",\"tnk_steps\":\"40\","
            "\"tnk_cursor\":\"c\",\"tnk_epoch\":\"2\",\"tnk_used\":"
            "\"1,2,3,400,5,6,7,8,9,10,11\"") "," //
      THERE(
          "x", "weights", "training",
          "\"tnk_run\":\"mine\",\"tnk_save\":\"2.9\"") "],"
                                                       "\"cursor\":{\"offset\":"
                                                       "0,\"limit\":100,"
                                                       "\"total_count\":3}}");
  options.run = "mine";
  script_ok(&bench.script, &bench.opened,
            tnk_ledger_open(bench.script.service, bench.run, &options));
  bench.ledger = tnk_promise_ledger(bench.opened.promise);
  resume(&bench, &outcome);
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "y-a3");
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->cursor, "c");
  CHECK_INT(tnk_ledger_resumed(bench.ledger)->n_steps, 40);
  CHECK_INT(tnk_ledger_resumed(bench.ledger)->epoch, 2);
  outcome_drop(&outcome);
  CHECK_INT(tnk_service_run_totals(&totals, bench.script.service), TNK_OK);
  CHECK_INT(totals.n_trained_tokens, 400);
  CHECK_INT(totals.n_doubtful_tokens, 6);
  /* It is the fourth attempt, and its checkpoints tell the name as well. */
  script_ok(&bench.script, &outcome, bench_save(&bench, "n", "d"));
  CHECK_STR(tnk_promise_entry(outcome.promise)->name, "n-a4");
  {
    const mock_request_t *request =
        mock_find(bench.script.mock, "POST", SAVE, 0);
    CHECK(strstr((const char *)request->body, "\"tnk_run\":\"mine\"") != NULL);
    CHECK(strstr((const char *)request->body, "\"tnk_cursor\":\"d\"") != NULL);
    CHECK(strstr((const char *)request->body, "\"tnk_save\":\"4.1\"") != NULL);
    CHECK(strstr((const char *)request->body, "\"tnk_steps\":\"0\"") != NULL);
    CHECK(strstr((const char *)request->body, "\"tnk_passes\":\"0\"") != NULL);
    CHECK(strstr((const char *)request->body,
                 "\"tnk_used\":\"1,2,3,400,5,6,7,8,") != NULL);
  }
  outcome_drop(&outcome);
  bench_close(&bench);
}

static void begin_lost(bench_t *bench) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;

  bench_folder(bench);
  bench_begin(bench);
  mock_on(bench->script.mock, "POST", "/api/v1/retrieve_future", result,
          &bench->script);
  options.run = "mine";
  script_ok(&bench->script, &bench->opened,
            tnk_ledger_open(bench->script.service, bench->run, &options));
  bench->ledger = tnk_promise_ledger(bench->opened.promise);
}

#define MINE(name, save)                                                       \
  THERE(name, "weights", "training",                                           \
        "\"tnk_run\":\"mine\",\"tnk_save\":\"" save "\"")
#define OF_ALL ",\"cursor\":{\"offset\":0,\"limit\":100,\"total_count\":2}}"

TEST(of_a_run_whose_directory_is_lost_an_older_state_does_too) {
  for (int is_left = 0; is_left < 2; is_left++) {
    bench_t bench;
    outcome_t outcome;

    begin_lost(&bench);
    mock_json(
        bench.script.mock, "GET", "/api/v1/checkpoints", 200,
        "{\"checkpoints\":[" MINE("b", "1.2") "," MINE("a", "1.1") "]" OF_ALL);
    if (is_left)
      mock_json_once(bench.script.mock, "POST", LOAD, 404, "{}");
    else
      mock_json(bench.script.mock, "POST", LOAD, 404, "{}");
    outcome_of(&outcome, tnk_ledger_resume(bench.ledger, NULL));
    while (outcome.n_done == 0)
      script_later(&bench.script, 1000);
    CHECK_INT(outcome.status, is_left ? TNK_OK : TNK_ENOTFOUND);
    CHECK_INT(mock_count(bench.script.mock, "POST", LOAD), 2);
    CHECK(loads(&bench, 0, "weights/b"));
    CHECK(loads(&bench, 1, "weights/a"));
    outcome_drop(&outcome);
    bench_close(&bench);
  }
}

/* One a page. */
static void list_one(mock_request_t *request, void *user) {
  const char *offset = strstr(request->target, "offset=");
  const int at = offset != NULL ? atoi(offset + strlen("offset=")) : 0;
  const int n = *(int *)user;
  char text[600];

  snprintf(text, sizeof(text),
           "{\"checkpoints\":[{\"checkpoint_id\":\"weights/s%d\","
           "\"checkpoint_type\":\"training\",\"time\":"
           "\"2026-01-02T03:04:05Z\",\"tinker_path\":"
           "\"tinker://model-0/weights/s%d\",\"user_metadata\":"
           "{\"tnk_run\":\"%s\",\"tnk_save\":\"1.1\"}}],\"cursor\":"
           "{\"offset\":%d,\"limit\":1,\"total_count\":%d}}",
           at, at, at == n - 1 ? "mine" : "other", at, n);
  mock_reply_json(request, 200, text);
}

TEST(a_run_is_found_behind_thousands_of_checkpoints) {
  bench_t bench;
  outcome_t outcome;
  int n = 40;

  begin_lost(&bench);
  mock_on(bench.script.mock, "GET", "/api/v1/checkpoints", list_one, &n);
  resume(&bench, &outcome);
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "s39");
  outcome_drop(&outcome);
  bench_close(&bench);
}

/* Whoever writes such things, the next one is to be counted. */
TEST(an_attempt_beyond_all_counting_is_none) {
  bench_t bench;
  outcome_t outcome;

  begin_lost(&bench);
  mock_json(bench.script.mock, "GET", "/api/v1/checkpoints", 200,
            "{\"checkpoints\":[" MINE("b", "9223372036854775807.1") "," MINE(
                "a", "2.1") "]" OF_ALL);
  resume(&bench, &outcome);
  CHECK_STR(tnk_ledger_resumed(bench.ledger)->name, "a");
  CHECK_INT(bench.ledger->attempt, 3);
  outcome_drop(&outcome);
  bench_close(&bench);
}

TEST(where_a_service_has_no_list_of_all_the_run_begins) {
  static const int refusals[] = {404, 405, 501};

  for (size_t i = 0; i < 3; i++) {
    bench_t bench;
    outcome_t outcome;

    begin_lost(&bench);
    mock_json(bench.script.mock, "GET", "/api/v1/checkpoints", refusals[i],
              "{}");
    outcome_of(&outcome, tnk_ledger_resume(bench.ledger, NULL));
    while (outcome.n_done == 0)
      script_later(&bench.script, 10000);
    CHECK_INT(outcome.status, TNK_ENOTFOUND);
    outcome_drop(&outcome);
    bench_close(&bench);
  }
}

TEST(our_own_name_with_our_own_content_is_a_success) {
  for (int is_there = 0; is_there < 2; is_there++) {
    bench_t bench;
    outcome_t outcome;
    outcome_t step;

    begin(&bench, NULL);
    list(&bench, is_there ? STATE("a") : STATE("b"));
    mock_json(bench.script.mock, "POST", SAVE, 409,
              "{\"detail\":\"Checkpoint 'a' already exists\"}");
    outcome_of(&step, script_step(&bench.script));
    outcome_of(&outcome, bench_save(&bench, "a", NULL));
    while (outcome.n_done == 0)
      script_later(&bench.script, 1000);
    CHECK_INT(outcome.status, is_there ? TNK_OK : TNK_ECONFLICT);
    if (is_there) {
      CHECK_STR(tnk_promise_entry(outcome.promise)->state_path,
                "tinker://model-0/weights/a");
      CHECK_INT(tnk_promise_entry(outcome.promise)->n_steps, 1);
    }
    outcome_ok(&bench.script, &step);
    outcome_drop(&step);
    outcome_drop(&outcome);
    bench_close(&bench);
  }
}

TEST(a_resume_can_be_canceled_and_ends_with_its_ledger) {
  bench_t bench;
  outcome_t outcome;
  tnk_promise_t *promise;

  begin(&bench, SAVED("a", "1", "10"));
  promise = tnk_promise_ref(tnk_ledger_resume(bench.ledger, NULL));
  outcome_of(&outcome, promise);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  outcome_fails(&bench.script, &outcome, TNK_ECANCELED);
  outcome_drop(&outcome);
  outcome_of(&outcome, tnk_ledger_resume(bench.ledger, NULL));
  tnk_ledger_close(bench.ledger, NULL, NULL);
  outcome_fails(&bench.script, &outcome, TNK_ECLOSED);
  outcome_drop(&outcome);
  bench_close(&bench);
}
