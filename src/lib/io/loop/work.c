/* SPDX-License-Identifier: MIT */
/*
 * A job is idle, or with libuv from start() to on_done(). The context is held
 * during that time. Only `run` is on another thread; it always runs.
 */
#include "lib/io/loop/work.h"

#include "tnk/error.h"

static void on_run(uv_work_t *req) {
  tnk__work_t *work = req->data;

  work->run(work);
}

static void on_done(uv_work_t *req, int status) {
  tnk__work_t *work = req->data;
  tnk__context_t *context = work->context;

  (void)status; /* jobs are never canceled */
  context->n_working--;
  /* Release it after `done`. The end of the context may wait for `done`, which
   * still needs the context. */
  work->done(work);
  tnk__context_release(context);
}

int tnk__work_start(tnk__context_t *context, tnk__work_t *work,
                    void (*run)(tnk__work_t *self),
                    void (*done)(tnk__work_t *self)) {
  int err;

  work->context = context;
  work->run = run;
  work->done = done;
  work->req.data = work;
  err = uv_queue_work(context->uv, &work->req, on_run, on_done);
  if (err != 0)
    return err;
  tnk__context_hold(context);
  context->n_working++;
  return TNK_OK;
}
