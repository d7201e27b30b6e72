/*
 * A life of a ledger with each of its allocations failing in turn: what is
 * asked for succeeds or rejects with TNK_ENOMEM, nothing is left behind, and
 * the next program finds a ledger that is whole.
 */
#include "ledger/bench.h"

enum { MAX_ALLOCATIONS = 3000 };

static const char before[] =
    "{\"name\":\"a\",\"state_path\":\"tinker://model-0/weights/a\"}\n"
    "{\"name\":\"b\",\"tnk\":\"intent\",\"tnk_attempt\":1,\"tnk_save\":1,"
    "\"tnk_what\":1,\"tnk_run\":\"model-0\"}\n";

static void result(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "\"save_weights:") != NULL)
    mock_reply_json(request, 200, "{\"path\":\"tinker://model-0/weights/s\"}");
  else if (strstr((const char *)request->body, "\"load_weights:") != NULL)
    mock_reply_json(request, 200,
                    "{\"path\":\"tinker://x\",\"model_id\":\"model-1\"}");
  else
    script_result(request, user);
}

/* The pool has real time, which the clock must not run away from. */
static int bench_is_busy(const bench_t *bench) {
  const tnk__list_t *open = &bench->script.service->ledgers.open;

  for (tnk__list_t *node = open->next; node != open; node = node->next) {
    const tnk_ledger_t *ledger = tnk__container_of(node, tnk_ledger_t, link);
    if (ledger->is_reading || ledger->pen.is_busy)
      return 1;
  }
  return 0;
}

static int settled(bench_t *bench, tnk_promise_t *promise) {
  outcome_t outcome;
  int status;

  outcome_of(&outcome, promise);
  while (outcome.n_done == 0) {
    mock_turns(bench->script.mock, 20);
    /* What had no memory on its way is sent again after a while. */
    if (outcome.n_done == 0 && !bench_is_busy(bench))
      script_advance(&bench->script, 1000);
  }
  status = outcome.status;
  if (status != TNK_OK && status != TNK_ENOMEM)
    test_fail(__FILE__, __LINE__, "%s", outcome.text);
  outcome_drop(&outcome);
  return status;
}

static void live(bench_t *bench) {
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;
  tnk_promise_t *opened;
  tnk_ledger_t *ledger;

  options.every_steps = 1;
  options.n_rolling = 1;
  options.ttl_seconds = 600;
  opened = tnk_ledger_open(bench->script.service, bench->run, &options);
  how.with_sampler = TNK_YES;
  how.cursor = "c";
  if (settled(bench, tnk_promise_ref(opened)) == TNK_OK) {
    ledger = tnk_promise_ledger(opened);
    settled(bench, tnk_ledger_resume(ledger, NULL));
    settled(bench, tnk_ledger_save(ledger, bench->script.training, &how));
    /* The one before is deleted, if there is memory to ask for that. */
    how.with_sampler = TNK_NO;
    settled(bench, tnk_ledger_save(ledger, bench->script.training, &how));
    while (ledger->policy.sweep != NULL) {
      mock_turns(bench->script.mock, 20);
      if (ledger->policy.sweep != NULL && !bench_is_busy(bench))
        script_advance(&bench->script, 1000);
    }
  }
  tnk_promise_unref(opened);
}

/* Whether there were so many allocations. */
static int run(long n) {
  bench_t bench;
  int did_fail;

  bench_folder(&bench);
  bench_write(&bench, before);
  bench_begin(&bench);
  mock_on(bench.script.mock, "POST", "/api/v1/retrieve_future", result,
          &bench.script);
  mock_json(bench.script.mock, "DELETE", NULL, 200, "{}");
  mock_json(bench.script.mock, "GET",
            "/api/v1/training_runs/model-0/checkpoints", 200,
            "{\"checkpoints\":[{\"checkpoint_id\":\"weights/b\","
            "\"checkpoint_type\":\"training\",\"time\":\"2026-01-02T03:04:05Z\""
            ",\"tinker_path\":\"tinker://model-0/weights/b\"}]}");
  test_alloc_fail_at(n);
  live(&bench);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  script_close(&bench.script);
  bench_begin(&bench);
  bench_open_ledger(&bench);
  CHECK(tnk_ledger_last(bench.ledger) != NULL);
  bench_close(&bench);
  return did_fail;
}

TEST_LIMIT(each_allocation_fails_once, 60) {
  long n = 0;

  while (run(n))
    CHECK(++n < MAX_ALLOCATIONS);
  CHECK(n > 50);
}
