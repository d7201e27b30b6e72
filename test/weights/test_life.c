/* SPDX-License-Identifier: MIT */
/*
 * Downloads that end early: canceled and closed after each number of turns of
 * the loop, and without memory at each place.
 */
#include "weights/bench.h"

static void open_life(bench_t *bench) {
  bench_open_adapter(bench);
  bench->files[0].cut_at = 900000;
  bench_write(bench, "out/mine", "mine");
}

static tnk_promise_t *start_life(bench_t *bench) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;

  options.force = TNK_YES;
  return bench_start(bench, &options);
}

static void turn(bench_t *bench) {
  if (bench_is_idle(bench))
    tnk__context_advance(&bench->script.service->root.context, 100);
  else
    uv_run(&bench->script.uv, UV_RUN_ONCE);
}

/* That the directory is the old one, or the new one, whole. */
static int check_either(const bench_t *bench) {
  if (bench_exists(bench, "out/mine")) {
    bench_check_file(bench, "out/mine", "mine", 4);
    return 0;
  }
  for (size_t i = 0; i < bench->n_files; i++) {
    char name[200];
    snprintf(name, sizeof(name), "out/%s", bench->files[i].name);
    bench_check_file(bench, name, bench->files[i].data, bench->files[i].n);
  }
  return 1;
}

/* 1: it was over before. */
static int cancel_after(int n_turns) {
  bench_t bench;
  outcome_t outcome;
  tnk_promise_t *promise;
  int was_done;

  open_life(&bench);
  promise = start_life(&bench);
  outcome_of(&outcome, tnk_promise_ref(promise));
  for (int i = 0; i < n_turns && outcome.n_done == 0; i++)
    turn(&bench);
  was_done = outcome.n_done > 0;
  tnk_promise_cancel(promise);
  bench_wait(&bench, &outcome);
  CHECK(outcome.status == TNK_ECANCELED || outcome.status == TNK_OK);
  bench_settle(&bench);
  CHECK_INT(check_either(&bench), outcome.status == TNK_OK);
  outcome_drop(&outcome);
  tnk_promise_unref(promise);
  bench_get(&bench, &outcome, NULL);
  outcome_drop(&outcome);
  bench_close(&bench);
  return was_done;
}

TEST(P11_10_a_cancel_is_clean_at_any_time) {
  int n = 0;

  while (!cancel_after(n))
    CHECK((n += 1 + n / 16) < 5000);
  CHECK(n > 20);
}

static int close_after(int n_turns) {
  bench_t bench;
  outcome_t outcome;
  int was_done;

  open_life(&bench);
  outcome_of(&outcome, start_life(&bench));
  for (int i = 0; i < n_turns && outcome.n_done == 0; i++)
    turn(&bench);
  was_done = outcome.n_done > 0;
  tnk_service_close(bench.script.service, script_closed, &bench.script);
  mock_wait_flag(bench.script.mock, &bench.script.is_closed, 1);
  CHECK_INT(outcome.n_done, 1);
  CHECK(outcome.status == TNK_ECLOSED || outcome.status == TNK_OK);
  outcome_drop(&outcome);
  check_either(&bench);
  mock_close(bench.store);
  script_end(&bench.script);
  bench_end(&bench);
  return was_done;
}

TEST(P11_10_the_end_of_the_service_is_clean_at_any_time) {
  int n = 0;

  while (!close_after(n))
    CHECK((n += 1 + n / 16) < 5000);
  CHECK(n > 20);
}

static int without_memory(long n) {
  bench_t bench;
  outcome_t outcome;
  int did_fail;

  open_life(&bench);
  test_alloc_fail_at(n);
  outcome_of(&outcome, start_life(&bench));
  bench_wait(&bench, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  if (outcome.status != TNK_OK && (outcome.status != TNK_ENOMEM || !did_fail))
    test_fail(__FILE__, __LINE__, "allocation %ld: %s", n, outcome.text);
  CHECK_INT(check_either(&bench), outcome.status == TNK_OK);
  outcome_drop(&outcome);
  bench_settle(&bench);
  bench_close(&bench);
  return !did_fail;
}

TEST_LIMIT(P11_10_each_allocation_may_fail, 60) {
  long n = 0;

  while (!without_memory(n))
    CHECK(++n < 2000);
  CHECK(n > 50);
}
