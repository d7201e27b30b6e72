/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_LOOP_WORK_H
#define TNK_LIB_IO_LOOP_WORK_H

#include "lib/io/loop/context.h"

/*
 * A job on libuv's thread pool, embedded in its owner. The owner, and
 * everything that `run` accesses, must stay valid until `done`. `done` is
 * called exactly once, on the loop's thread. The context is held until then.
 */
typedef struct tnk__work {
  uv_work_t req;
  tnk__context_t *context;
  void (*run)(struct tnk__work *self);
  void (*done)(struct tnk__work *self);
} tnk__work_t;

/* Start a job. Returns TNK_OK or an error. After an error neither function is
 * called. */
int tnk__work_start(tnk__context_t *context, tnk__work_t *work,
                    void (*run)(tnk__work_t *self),
                    void (*done)(tnk__work_t *self));

#endif
