#ifndef TNK_LIB_IO_LOOP_WORK_H
#define TNK_LIB_IO_LOOP_WORK_H

#include "lib/io/loop/context.h"

/*
 * A job on libuv's thread pool, embedded in its owner. The owner, and all that
 * `run` reads or writes, must stay until `done`, which is called exactly once
 * on the loop thread. The context is held meanwhile.
 */
typedef struct tnk__work {
  uv_work_t req;
  tnk__context_t *context;
  void (*run)(struct tnk__work *self);
  void (*done)(struct tnk__work *self);
} tnk__work_t;

/* Start a job. Returns TNK_OK, or a code and then neither function is
 * called. */
int tnk__work_start(tnk__context_t *context, tnk__work_t *work,
                    void (*run)(tnk__work_t *self),
                    void (*done)(tnk__work_t *self));

#endif
