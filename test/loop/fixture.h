/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LOOP_CONTEXT_H
#define TNK_TEST_LOOP_CONTEXT_H

#include <uv.h>

#include "lib/io/loop/context.h"
#include "support/test.h"
#include "tnk/error.h"

/* A context on a loop of its own, with a logger that counts warnings. */
typedef struct {
  uv_loop_t uv;
  tnk__context_t loop;
  int n_warnings;
  int n_errors;
  int is_closed;
} context_t;

static inline void context_log(tnk_log_level_t level, const char *subject,
                               const char *message, size_t length, void *user) {
  context_t *context = user;

  (void)subject;
  (void)message;
  (void)length;
  context->n_warnings += level == TNK_LOG_WARN;
  context->n_errors += level == TNK_LOG_ERROR;
}

static inline void context_open(context_t *context) {
  const tnk_logger_t logger = {TNK_LOG_WARN, context_log, context};

  *context = (context_t){.is_closed = 0};
  CHECK_INT(uv_loop_init(&context->uv), 0);
  CHECK_INT(tnk__context_open(&context->loop, &context->uv, test_allocator(),
                              &logger),
            TNK_OK);
}

static inline void context_closed(void *user) {
  context_t *context = user;

  context->is_closed++;
}

/* One turn that does not wait. */
static inline void context_turn(context_t *context) {
  uv_run(&context->uv, UV_RUN_NOWAIT);
}

static inline void context_close(context_t *context) {
  tnk__context_close(&context->loop, context_closed, context);
  CHECK_INT(context->is_closed, 0);
  uv_run(&context->uv, UV_RUN_DEFAULT);
  CHECK_INT(context->is_closed, 1);
  CHECK_INT(uv_loop_close(&context->uv), 0);
}

/* Until the machine's clock has gone on by some milliseconds. */
static inline void let_time_pass(void) {
  const uint64_t end = uv_hrtime() + 5000000;

  while (uv_hrtime() < end)
    ;
}

#endif
