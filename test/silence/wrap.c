/* SPDX-License-Identifier: MIT */
/* Counts the jobs that the library gives to libuv's thread pool, so that a test
 * knows when none is left. The linker puts __wrap_ in place of the calls. */
#include <stdlib.h>
#include <uv.h>

int __real_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work,
                         uv_after_work_cb after);
int __wrap_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work,
                         uv_after_work_cb after);

int silence_n_jobs;

enum { MAX_JOBS = 256 };

static struct {
  uv_work_t *req;
  uv_after_work_cb after;
} jobs[MAX_JOBS];

static void after_job(uv_work_t *req, int status) {
  for (int i = 0; i < MAX_JOBS; i++) {
    if (jobs[i].req != req)
      continue;
    jobs[i].req = NULL;
    silence_n_jobs--;
    jobs[i].after(req, status);
    return;
  }
  abort();
}

int __wrap_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work,
                         uv_after_work_cb after) {
  for (int i = 0; i < MAX_JOBS; i++) {
    if (jobs[i].req != NULL)
      continue;
    jobs[i].req = req;
    jobs[i].after = after;
    silence_n_jobs++;
    return __real_uv_queue_work(loop, req, work, after_job);
  }
  abort();
}
