/* SPDX-License-Identifier: MIT */
/*
 * What a run has used: with its saves, each minute, and at the end.
 */
#include "ledger/bench.h"

static void open_again(bench_t *bench, const tnk_ledger_options_t *options) {
  bench_begin(bench);
  script_ok(&bench->script, &bench->opened,
            tnk_ledger_open(bench->script.service, bench->run, options));
  bench->ledger = tnk_promise_ledger(bench->opened.promise);
}

static void open_with(bench_t *bench, const tnk_ledger_options_t *options) {
  bench_folder(bench);
  open_again(bench, options);
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

static void count_closed(void *user) {
  ++*(int *)user;
}

TEST(what_a_run_has_used_is_kept_with_its_saves) {
  tnk_totals_t totals = TNK_TOTALS_INIT;
  tnk_budget_t budget = TNK_BUDGET_INIT;
  tnk_totals_t own = TNK_TOTALS_INIT;
  const tnk_ledger_entry_t *entry;
  outcome_t outcome;
  uint64_t n_requests;
  bench_t bench;

  open_with(&bench, NULL);
  script_ok(&bench.script, &outcome, script_pass(&bench.script, 3));
  outcome_drop(&outcome);
  entry = save(&bench, NULL);
  CHECK(entry->used != NULL);
  CHECK(entry->used->n_trained_tokens > 0);
  n_requests = entry->used->n_requests;
  own = *entry->used;
  bench_end(&bench);
  open_again(&bench, NULL);
  CHECK_INT(tnk_ledger_last(bench.ledger)->used->n_trained_tokens,
            own.n_trained_tokens);
  CHECK_INT(tnk_service_run_totals(&totals, bench.script.service), TNK_OK);
  CHECK_INT(totals.n_trained_tokens, own.n_trained_tokens);
  CHECK(totals.n_requests > n_requests);
  /* A budget that does not say what was used before goes on from there. */
  budget.max_tokens = 1000000;
  CHECK_INT(tnk_service_set_budget(bench.script.service, &budget, NULL, 0),
            TNK_OK);
  script_ok(&bench.script, &outcome, script_pass(&bench.script, 3));
  outcome_drop(&outcome);
  CHECK_INT(save(&bench, NULL)->used->n_trained_tokens,
            2 * own.n_trained_tokens);
  own.n_trained_tokens = 5;
  budget.before = &own;
  CHECK_INT(tnk_service_set_budget(bench.script.service, &budget, NULL, 0),
            TNK_OK);
  CHECK_INT(tnk_service_run_totals(&totals, bench.script.service), TNK_OK);
  CHECK(totals.n_trained_tokens <
        2 * tnk_ledger_last(bench.ledger)->used->n_trained_tokens);
  bench_close(&bench);
}

static uint64_t run_tokens(const bench_t *bench) {
  tnk_totals_t totals = TNK_TOTALS_INIT;

  CHECK_INT(tnk_service_run_totals(&totals, bench->script.service), TNK_OK);
  return totals.n_trained_tokens;
}

static void pass(bench_t *bench) {
  outcome_t outcome;

  script_ok(&bench->script, &outcome, script_pass(&bench->script, 3));
  outcome_drop(&outcome);
}

static void close_ledger(bench_t *bench) {
  int is_closed = 0;

  tnk_ledger_close(bench->ledger, count_closed, &is_closed);
  mock_wait_flag(bench->script.mock, &is_closed, 1);
}

TEST(what_was_used_after_the_last_save_is_noted_at_the_end) {
  uint64_t of_one;
  bench_t bench;
  char *before;
  char *after;

  open_with(&bench, NULL);
  pass(&bench);
  of_one = run_tokens(&bench);
  CHECK(of_one > 0);
  (void)save(&bench, NULL);
  pass(&bench);
  bench_end(&bench); /* closes the service */
  CHECK(bench_has(&bench, "\"tnk\":\"used\""));
  open_again(&bench, NULL);
  CHECK_INT(run_tokens(&bench), 2 * of_one);
  CHECK_INT(tnk_ledger_count(bench.ledger), 1);
  /* A run of which nothing was saved, and a ledger that is closed before. */
  pass(&bench);
  close_ledger(&bench);
  pass(&bench);
  bench_end(&bench);
  before = bench_read(&bench);
  open_again(&bench, NULL);
  CHECK_INT(run_tokens(&bench), 3 * of_one);
  CHECK_INT(bench.ledger->attempt, 3);
  /* Whoever uses nothing adds nothing, nor does a save whose line has it. */
  bench_end(&bench);
  after = bench_read(&bench);
  CHECK_STR(after, before);
  free(before);
  free(after);
  open_again(&bench, NULL);
  (void)save(&bench, NULL);
  close_ledger(&bench);
  after = bench_read(&bench);
  CHECK(strstr(strrchr(after, '{'), "\"tnk\":\"saved\"") != NULL);
  free(after);
  bench_close(&bench);
}

/* And what is to be written then. */
static void a_minute_later(bench_t *bench) {
  script_later(&bench->script, 60000);
  while (bench->ledger->pen.is_busy)
    mock_turns(bench->script.mock, 1);
}

/* A program that is killed loses a minute of it. */
TEST(what_is_used_is_noted_each_minute) {
  uint64_t of_one;
  bench_t bench;
  char *before;
  char *after;

  open_with(&bench, NULL);
  pass(&bench);
  of_one = run_tokens(&bench);
  a_minute_later(&bench);
  CHECK(bench_has(&bench, "\"tnk\":\"used\""));
  before = bench_read(&bench);
  a_minute_later(&bench);
  after = bench_read(&bench);
  CHECK_STR(after, before); /* nothing has been used since */
  free(after);
  pass(&bench);
  a_minute_later(&bench);
  after = bench_read(&bench);
  CHECK(strlen(after) > strlen(before));
  free(before);
  bench_end(&bench);
  before = bench_read(&bench);
  CHECK_STR(before, after); /* the end has nothing to add */
  free(before);
  free(after);
  open_again(&bench, NULL);
  CHECK_INT(run_tokens(&bench), 2 * of_one);
  bench_close(&bench);
}

/* A pass that is under way when the service closes is counted as doubtful. */
TEST(what_is_in_doubt_at_the_end_is_noted) {
  tnk_totals_t totals = TNK_TOTALS_INIT;
  outcome_t outcome;
  bench_t bench;

  open_with(&bench, NULL);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", mock_hold,
          NULL);
  outcome_of(&outcome, script_pass(&bench.script, 3));
  while (mock_n_held(bench.script.mock) < 1)
    mock_turns(bench.script.mock, 1);
  bench_end(&bench);
  CHECK_INT(outcome.status, TNK_ECLOSED);
  outcome_drop(&outcome);
  open_again(&bench, NULL);
  CHECK_INT(tnk_service_run_totals(&totals, bench.script.service), TNK_OK);
  CHECK(totals.n_doubtful_tokens > 0);
  bench_close(&bench);
}

/* A program that was killed in a save had used what the intent says. */
TEST(an_intent_tells_what_was_used) {
  bench_t bench;

  bench_folder(&bench);
  bench_write(&bench,
              "{\"name\":\"a\",\"tnk\":\"intent\",\"tnk_attempt\":1,"
              "\"tnk_save\":1,\"tnk_trained_tokens\":77,\"tnk_requests\":9}\n");
  bench_begin(&bench);
  bench_open_ledger(&bench);
  CHECK_INT(run_tokens(&bench), 77);
  CHECK_INT(bench.ledger->n_intents, 1);
  bench_close(&bench);
}
