/* SPDX-License-Identifier: MIT */
#include "tools/local/base/work.h"

#include "support/test.h"

/* Jobs in slices. */

typedef struct {
  local_work_t work;
  local_job_t job;
  int n_done;
  int n_closed;
} bench_t;

static int run(local_job_t *job) {
  (void)job;
  return 1;
}

static void on_closed(local_work_t *work) {
  ((bench_t *)(void *)work)->n_closed++;
}

/* Whoever is told of an end may end everything. */
static void close_all(local_job_t *job) {
  bench_t *bench = (bench_t *)(void *)((char *)job - offsetof(bench_t, job));

  bench->n_done++;
  local_work_close(&bench->work, on_closed);
}

TEST(closed_once_from_the_end_of_a_job) {
  uv_loop_t loop;
  bench_t bench = {.job = {.run = run, .done = close_all}};

  CHECK_INT(uv_loop_init(&loop), 0);
  local_work_init(&bench.work, &loop, 1);
  local_job_start(&bench.work, &bench.job);
  uv_run(&loop, UV_RUN_DEFAULT);
  CHECK_INT(bench.n_done, 1);
  CHECK_INT(bench.n_closed, 1);
  CHECK_INT(uv_loop_close(&loop), 0);
}
