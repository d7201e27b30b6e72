/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LOCAL_FAST_H
#define TNK_TEST_LOCAL_FAST_H

#include <poll.h>

#include "lib/api/service.h"
#include "support/test.h"

/*
 * A fast clock for the client: pauses of seconds take milliseconds. The clock
 * stands still while the loop has something to do or a job of the client runs
 * on another thread. It stops at each timer that fires, so that the loop can
 * deal with what the timer has begun. So a timeout fires only where nothing
 * moves, however slow the machine is.
 *
 * The server must be on the same loop. Its own pauses take real time.
 */
typedef struct {
  uv_timer_t timer;
  tnk_service_t *service;
  uint64_t speed; /* milliseconds that pass in one real millisecond */
} fast_clock_t;

/* Whether there is nothing to do: no deferred call, no descriptor that is
 * ready, no job on another thread. */
static inline int fast_is_quiet(const uv_loop_t *uv,
                                const tnk__context_t *context) {
  struct pollfd fd = {.fd = uv_backend_fd(uv), .events = POLLIN};

  return context->n_working == 0 && uv_backend_timeout(uv) != 0 &&
         poll(&fd, 1, 0) == 0;
}

static inline void fast_on_tick(uv_timer_t *timer) {
  const fast_clock_t *clock = timer->data;
  tnk__context_t *context = &clock->service->root.context;
  const uint64_t end = context->fake_now + clock->speed;

  while (context->fake_now < end && fast_is_quiet(timer->loop, context)) {
    const tnk__timer_t *next = context->timers.root;
    const uint64_t due =
        next != NULL && next->due_ms < end ? next->due_ms : end;

    tnk__context_advance(context,
                         due > context->fake_now ? due - context->fake_now : 0);
  }
}

static inline void fast_start(fast_clock_t *clock, uv_loop_t *uv,
                              tnk_service_t *service, uint64_t speed) {
  clock->service = service;
  clock->speed = speed;
  tnk__context_fake_clock(&service->root.context, 1000000);
  CHECK_INT(uv_timer_init(uv, &clock->timer), 0);
  clock->timer.data = clock;
  uv_timer_start(&clock->timer, fast_on_tick, 1, 1);
}

/* Before the service is closed. */
static inline void fast_stop(fast_clock_t *clock) {
  uv_close((uv_handle_t *)&clock->timer, NULL);
}

#endif
