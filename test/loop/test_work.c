/* SPDX-License-Identifier: MIT */
#include "lib/io/loop/work.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "loop/fixture.h"
#include "tnk/error.h"

typedef struct {
  tnk__work_t work;
  uv_thread_t ran_on;
  int n_run;
  int n_done;
} job_t;

static void run(tnk__work_t *work) {
  job_t *job = tnk__container_of(work, job_t, work);

  job->ran_on = uv_thread_self();
  job->n_run++;
}

static void done(tnk__work_t *work) {
  job_t *job = tnk__container_of(work, job_t, work);

  job->n_done++;
}

TEST(a_job_runs_on_another_thread_and_ends_on_the_loops) {
  context_t context;
  job_t job;
  uv_thread_t self = uv_thread_self();

  memset(&job, 0, sizeof(job));
  context_open(&context);
  CHECK_INT(tnk__work_start(&context.loop, &job.work, run, done), TNK_OK);
  CHECK_INT(job.n_done, 0);
  uv_run(&context.uv, UV_RUN_DEFAULT);
  CHECK_INT(job.n_run, 1);
  CHECK_INT(job.n_done, 1);
  CHECK(!uv_thread_equal(&self, &job.ran_on));
  context_close(&context);
}

TEST(a_job_holds_a_closing_context_until_it_is_done) {
  context_t context;
  job_t job;

  memset(&job, 0, sizeof(job));
  context_open(&context);
  CHECK_INT(tnk__work_start(&context.loop, &job.work, run, done), TNK_OK);
  context_close(&context);
  CHECK_INT(job.n_done, 1);
}

static void done_and_free(tnk__work_t *work) {
  tnk__free(test_allocator(), tnk__container_of(work, job_t, work));
}

TEST(a_job_may_be_freed_by_its_own_end) {
  context_t context;
  job_t *job = tnk__calloc(test_allocator(), 1, sizeof(*job));

  context_open(&context);
  CHECK_INT(tnk__work_start(&context.loop, &job->work, run, done_and_free),
            TNK_OK);
  context_close(&context);
}
