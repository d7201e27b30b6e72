/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_BASE_TIMERS_H
#define TNK_TOOLS_LOCAL_BASE_TIMERS_H

#include <uv.h>

#include "lib/base/list.h"

/*
 * Many one-shot timers on one libuv timer. They are sorted by deadline and
 * inserted from the end: nearly all polls wait equally long, so a new timer is
 * nearly always the last.
 */
typedef struct local_timer {
  tnk__list_t link;
  uint64_t due_ms;
  void (*fn)(struct local_timer *self);
} local_timer_t;

typedef struct {
  uv_timer_t uv;
  tnk__list_t active;
} local_timers_t;

int local_timers_open(local_timers_t *timers, uv_loop_t *loop);
/* Close: no timer fires afterwards; `closed` runs when libuv has released the
 * handle. */
void local_timers_close(local_timers_t *timers, uv_close_cb closed);

void local_timer_init(local_timer_t *timer);
/* Fire once after `delay_ms`; a running timer is restarted. */
void local_timer_start(local_timers_t *timers, local_timer_t *timer,
                       uint64_t delay_ms, void (*fn)(local_timer_t *self));
/* Stop a timer: it does not fire. */
void local_timer_stop(local_timer_t *timer);

#endif
