#include "loop/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "loop/fixture.h"
#include "tnk/error.h"

typedef struct {
  tnk__work_t work;
  uv_thread_t ran_on;
  int n_run;
  int n_done;
  int canceled;
} job_t;

static void run(tnk__work_t *work) {
  job_t *job = tnk__container_of(work, job_t, work);

  job->ran_on = uv_thread_self();
  job->n_run++;
}

static void done(tnk__work_t *work, int canceled) {
  job_t *job = tnk__container_of(work, job_t, work);

  job->n_done++;
  job->canceled = canceled;
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
  CHECK_INT(job.canceled, 0);
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

static uv_sem_t gate;

static void run_behind_gate(tnk__work_t *work) {
  (void)work;
  uv_sem_wait(&gate);
}

/* All threads of the pool are kept busy, so the last job is still queued when
 * it is cancelled. */
TEST(a_job_that_has_not_begun_is_skipped_and_still_done_once) {
  enum { N = 4 };
  context_t context;
  job_t busy[N];
  job_t late;
  int i;

  CHECK_INT(setenv("UV_THREADPOOL_SIZE", "4", 1), 0);
  memset(busy, 0, sizeof(busy));
  memset(&late, 0, sizeof(late));
  CHECK_INT(uv_sem_init(&gate, 0), 0);
  context_open(&context);
  for (i = 0; i < N; i++)
    CHECK_INT(
        tnk__work_start(&context.loop, &busy[i].work, run_behind_gate, done),
        TNK_OK);
  CHECK_INT(tnk__work_start(&context.loop, &late.work, run, done), TNK_OK);
  tnk__work_cancel(&late.work);
  CHECK_INT(late.n_done, 0);
  for (i = 0; i < N; i++)
    uv_sem_post(&gate);
  context_close(&context);
  CHECK_INT(late.n_run, 0);
  CHECK_INT(late.n_done, 1);
  CHECK_INT(late.canceled, 1);
  for (i = 0; i < N; i++)
    CHECK_INT(busy[i].n_done, 1);
  uv_sem_destroy(&gate);
}

static void done_and_free(tnk__work_t *work, int canceled) {
  (void)canceled;
  tnk__free(test_allocator(), tnk__container_of(work, job_t, work));
}

TEST(a_job_may_be_freed_by_its_own_end) {
  context_t context;
  job_t *job = tnk__calloc(test_allocator(), 1, sizeof(*job));

  context_open(&context);
  CHECK_INT(tnk__work_start(&context.loop, &job->work, run, done_and_free),
            TNK_OK);
  tnk__work_cancel(&job->work);
  context_close(&context);
}
