/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_BASE_WORK_H
#define TNK_TOOLS_LOCAL_BASE_WORK_H

#include <uv.h>

#include "lib/base/list.h"

/*
 * Jobs on libuv's thread pool, in slices. After each slice a job is queued
 * behind all waiting jobs, so that many jobs share few threads fairly. There
 * are two lanes, served alternately, so that many samples do not slow down
 * training.
 */
enum { LOCAL_WORK_MAX_THREADS = 8 };

typedef struct local_job {
  tnk__list_t link;
  /* Runs on a thread: does one slice. Returns 1 when the job is finished. */
  int (*run)(struct local_job *job);
  /* Runs on the loop, once, after the last slice, or when the job was canceled
   * or the queue is closed. It may start the job again. */
  void (*done)(struct local_job *job);
  unsigned lane; /* 0: training, 1: sampling */
  int active;    /* started, and `done` has not run */
  int canceled;  /* stop after the current slice */
} local_job_t;

typedef struct local_work local_work_t;

typedef struct {
  uv_work_t uv;
  local_work_t *work;
  local_job_t *job; /* NULL: free slot */
  int finished;     /* written by the thread, read after it */
} local_slot_t;

struct local_work {
  uv_loop_t *loop;
  tnk__list_t ready[2];
  unsigned lane; /* next lane to serve */
  local_slot_t slots[LOCAL_WORK_MAX_THREADS];
  unsigned n_slots;
  unsigned n_busy;
  int closing;
  void (*closed)(local_work_t *work);
};

void local_work_init(local_work_t *work, uv_loop_t *loop, unsigned n_threads);
/* Close the queue: `done` runs for every remaining job, then `closed`. It runs
 * at once if no slice is running. */
void local_work_close(local_work_t *work, void (*closed)(local_work_t *work));
void local_job_start(local_work_t *work, local_job_t *job);
/* Cancel a job; `done` runs inside this call or after the current slice. */
void local_job_cancel(local_work_t *work, local_job_t *job);

#endif
