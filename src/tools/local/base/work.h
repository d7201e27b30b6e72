#ifndef TNK_TOOLS_LOCAL_BASE_WORK_H
#define TNK_TOOLS_LOCAL_BASE_WORK_H

#include <uv.h>

#include "lib/base/list.h"

/*
 * Jobs on libuv's thread pool, a slice at a time, one after the other: after
 * each slice the job goes behind all others that wait, so many jobs share few
 * threads fairly and none keeps a thread for long. There are two lanes, served
 * alternately, so that a crowd of samples does not slow training down.
 */
enum { LOCAL_WORK_MAX_THREADS = 8 };

typedef struct local_job {
  tnk__list_t link;
  /* On a thread: do a slice; 1 when there is nothing more to do. */
  int (*run)(struct local_job *job);
  /* On the loop, once, after the last slice, or when the job was cancelled or
   * the queue is closed. The job may be started anew from here. */
  void (*done)(struct local_job *job);
  unsigned lane; /* 0: training, 1: sampling */
  int active;    /* started, and `done` has not run */
  int cancelled; /* stop after the slice that runs */
} local_job_t;

typedef struct local_work local_work_t;

typedef struct {
  uv_work_t uv;
  local_work_t *work;
  local_job_t *job; /* NULL: the slot is free */
  int finished;     /* written by the thread, read after it */
} local_slot_t;

struct local_work {
  uv_loop_t *loop;
  tnk__list_t ready[2];
  unsigned lane; /* to be served next */
  local_slot_t slots[LOCAL_WORK_MAX_THREADS];
  unsigned n_slots;
  unsigned n_busy;
  int closing;
  void (*closed)(local_work_t *work);
};

void local_work_init(local_work_t *work, uv_loop_t *loop, unsigned n_threads);
/* Close: every job still there gets its `done`; then `closed` runs, at once
 * when no slice is running. */
void local_work_close(local_work_t *work, void (*closed)(local_work_t *work));
void local_job_start(local_work_t *work, local_job_t *job);
/* Cancel a job; `done` follows, from here or after the slice that runs. */
void local_job_cancel(local_work_t *work, local_job_t *job);

#endif
