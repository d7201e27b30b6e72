/* SPDX-License-Identifier: MIT */
#include "tools/local/base/work.h"

/*
 * A job is idle, ready (linked), running (in a slot) or over (`done` has been
 * called, and it is idle again). Only the loop's thread moves jobs.
 */

#define JOB(node) ((local_job_t *)(void *)(node)) /* link is first */

static void finish(local_job_t *job) {
  job->active = 0;
  job->done(job);
}

static void on_thread(uv_work_t *uv) {
  local_slot_t *slot = uv->data;

  slot->finished = slot->job->run(slot->job);
}

static void dispatch(local_work_t *work);

static void on_slice(uv_work_t *uv, int status) {
  local_slot_t *slot = uv->data;
  local_work_t *work = slot->work;
  local_job_t *job = slot->job;

  slot->job = NULL;
  if (slot->finished || status != 0 || job->canceled || work->closing)
    finish(job);
  else
    tnk__list_append(&work->ready[job->lane], &job->link);
  /* Counted as busy until here. If `done` closes the queue, this function
   * reports that it is closed. */
  work->n_busy--;
  if (work->closing && work->n_busy == 0)
    work->closed(work);
  else
    dispatch(work);
}

static local_slot_t *free_slot(local_work_t *work) {
  for (unsigned i = 0; i < work->n_slots; i++)
    if (work->slots[i].job == NULL)
      return &work->slots[i];
  return NULL;
}

static tnk__list_t *next_ready(local_work_t *work) {
  tnk__list_t *node = tnk__list_pop(&work->ready[work->lane]);

  /* Switching from an empty lane is harmless: the other lane is tried next. */
  work->lane ^= 1;
  return node != NULL ? node : tnk__list_pop(&work->ready[work->lane]);
}

static void dispatch(local_work_t *work) {
  local_slot_t *slot;

  while (!work->closing && (slot = free_slot(work)) != NULL) {
    tnk__list_t *node = next_ready(work);

    if (node == NULL)
      return;
    slot->job = JOB(node);
    slot->finished = 0;
    if (uv_queue_work(work->loop, &slot->uv, on_thread, on_slice) != 0) {
      slot->job = NULL;
      tnk__list_prepend(&work->ready[JOB(node)->lane], node);
      return;
    }
    work->n_busy++;
  }
}

void local_work_init(local_work_t *work, uv_loop_t *loop, unsigned n_threads) {
  *work = (local_work_t){.loop = loop, .n_slots = n_threads};
  if (work->n_slots < 1 || work->n_slots > LOCAL_WORK_MAX_THREADS)
    work->n_slots = work->n_slots < 1 ? 1 : LOCAL_WORK_MAX_THREADS;
  tnk__list_init(&work->ready[0]);
  tnk__list_init(&work->ready[1]);
  for (unsigned i = 0; i < work->n_slots; i++) {
    work->slots[i].work = work;
    work->slots[i].uv.data = &work->slots[i];
  }
}

void local_job_start(local_work_t *work, local_job_t *job) {
  tnk__list_init(&job->link);
  job->active = 1;
  job->canceled = 0;
  if (work->closing) {
    finish(job);
    return;
  }
  tnk__list_append(&work->ready[job->lane], &job->link);
  dispatch(work);
}

void local_job_cancel(local_work_t *work, local_job_t *job) {
  (void)work;
  if (!job->active || job->canceled)
    return;
  job->canceled = 1;
  if (tnk__list_empty(&job->link))
    return; /* in a slot */
  tnk__list_remove(&job->link);
  finish(job);
}

void local_work_close(local_work_t *work, void (*closed)(local_work_t *work)) {
  tnk__list_t *node;

  work->closing = 1;
  work->closed = closed;
  while ((node = next_ready(work)) != NULL || (node = next_ready(work)) != NULL)
    finish(JOB(node));
  if (work->n_busy == 0)
    closed(work);
}
