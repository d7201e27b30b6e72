#ifndef TNK_TEST_LOCAL_FAST_H
#define TNK_TEST_LOCAL_FAST_H

#include "api/service.h"
#include "support/test.h"

/* Time that flies for the client: pauses of seconds take milliseconds. It is
 * turns of the loop that make it go, so a slow machine makes nothing late. */
typedef struct {
  uv_timer_t timer;
  tnk_service_t *service;
  uint64_t speed; /* milliseconds that pass in one of the server's */
} fast_clock_t;

static inline void fast_on_tick(uv_timer_t *timer) {
  fast_clock_t *clock = timer->data;

  tnk__context_advance(&clock->service->root.context, clock->speed);
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
