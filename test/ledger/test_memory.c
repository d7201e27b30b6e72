/* SPDX-License-Identifier: MIT */
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
  CHECK_INT(bench.ledger->n_bad, 0);
  CHECK(!bench.ledger->pen.file.was_mended);
  bench_close(&bench);
  return did_fail;
}

TEST_LIMIT(each_allocation_fails_once, 60) {
  long n = 0;

  while (run(n))
    CHECK(++n < MAX_ALLOCATIONS);
  CHECK(n > 50);
}

/* ---- Texts that have no memory ---- */

enum { N_LINES = 4, LONG = 8000 };

typedef struct {
  tnk__pen_line_t pen_line;
  tnk__buf_t text;
  int n_done;
  int cause;
} written_t;

static void on_written(tnk__pen_line_t *pen_line, int cause) {
  written_t *written = tnk__container_of(pen_line, written_t, pen_line);

  written->n_done++;
  written->cause = cause;
}

/* A save's line; a failed one ends in the middle of a member. */
static void write_at(bench_t *bench, written_t *written, int i, int fails,
                     size_t length) {
  const tnk_allocator_t *alloc = &bench->script.service->root.context.alloc;
  tnk__ledger_line_t line = tnk__ledger_blank;
  char cursor[LONG + 1];
  char path[64];

  memset(cursor, 'c', length);
  cursor[length] = '\0';
  snprintf(path, sizeof(path), "tinker://r/weights/%d", i);
  line.name = path + strlen("tinker://r/weights/");
  line.event = TNK__LEDGER_SAVED;
  line.attempt = 1;
  line.save = i + 1;
  line.state_path = path;
  line.cursor = cursor;
  memset(written, 0, sizeof(*written));
  tnk__buf_init(&written->text, alloc, 64 * 1024);
  CHECK_INT(tnk__ledger_write(&written->text, &line), TNK_OK);
  if (fails) {
    written->text.len /= 2;
    written->text.err = TNK_ENOMEM;
  }
  tnk__pen_line_init(&written->pen_line, on_written);
}

static void write_all(bench_t *bench, written_t lines[N_LINES]) {
  for (int i = 0; i < N_LINES; i++)
    tnk__pen_write(&bench->ledger->pen, &lines[i].pen_line, &lines[i].text);
  while (bench->ledger->pen.is_busy)
    mock_turns(bench->script.mock, 1);
}

/* What the next program reads is what was promised, whole. */
static void check_lines(bench_t *bench, written_t lines[N_LINES]) {
  size_t n = 0;
  char path[64];

  bench_end(bench);
  bench_begin(bench);
  bench_open_ledger(bench);
  CHECK_INT(bench->ledger->n_bad, 0);
  CHECK(!bench->ledger->pen.file.was_mended);
  for (int i = 0; i < N_LINES; i++) {
    CHECK_INT(lines[i].n_done, 1);
    if (lines[i].cause != 0)
      continue;
    snprintf(path, sizeof(path), "tinker://r/weights/%d", i);
    CHECK(n < tnk_ledger_count(bench->ledger));
    CHECK_STR(tnk_ledger_entry(bench->ledger, n++)->state_path, path);
  }
  CHECK_INT(tnk_ledger_count(bench->ledger), n);
}

/* The first line is written alone, the others together: every set of them. */
TEST(a_half_line_is_never_written) {
  for (unsigned failing = 0; failing < 1u << N_LINES; failing++) {
    written_t lines[N_LINES];
    bench_t bench;

    bench_open(&bench);
    for (int i = 0; i < N_LINES; i++)
      write_at(&bench, &lines[i], i, (failing >> i & 1) != 0, 10);
    write_all(&bench, lines);
    for (int i = 0; i < N_LINES; i++) {
      CHECK_INT(lines[i].cause, (failing >> i & 1) != 0 ? UV_ENOMEM : 0);
      tnk__buf_deinit(&lines[i].text);
    }
    check_lines(&bench, lines);
    bench_close(&bench);
  }
}

/* The batch itself has no memory, for the line alone or for those that follow.
 */
TEST(a_batch_without_memory_is_not_written_in_part) {
  for (int n = 0; n < 2; n++) {
    written_t lines[N_LINES];
    bench_t bench;
    outcome_t outcome;
    int n_failed = 0;

    bench_open(&bench);
    for (int i = 0; i < N_LINES; i++)
      write_at(&bench, &lines[i], i, 0, i == 0 && n > 0 ? 10 : LONG);
    test_alloc_fail_at(n == 0 ? 0 : 1);
    write_all(&bench, lines);
    CHECK(test_alloc_did_fail());
    test_alloc_fail_at(-1);
    for (int i = 0; i < N_LINES; i++) {
      n_failed += lines[i].cause == UV_ENOMEM;
      tnk__buf_deinit(&lines[i].text);
    }
    CHECK(n_failed > 0);
    /* The ledger works on. */
    script_ok(&bench.script, &outcome, bench_save(&bench, "next", NULL));
    outcome_drop(&outcome);
    CHECK(bench_has(&bench, "\"name\":\"next\""));
    bench_close(&bench);
  }
}
