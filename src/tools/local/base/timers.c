/* SPDX-License-Identifier: MIT */
/*
 * A timer is either stopped (linked to itself) or in `active`. When it fires,
 * it is briefly in a list of on_fire() and can be stopped there too.
 */
#include "tools/local/base/timers.h"

#include "lib/base/alloc.h"

#define TIMER(node) tnk__container_of(node, local_timer_t, link)

static void on_fire(uv_timer_t *uv);

/* Sleep until the first deadline. If the first timer was stopped, one early
 * wake-up follows, which arms the next one. */
static void arm(local_timers_t *timers) {
  tnk__list_t *first = tnk__list_first(&timers->active);
  uint64_t now = uv_now(timers->uv.loop);
  uint64_t due;

  if (first == NULL || uv_is_closing((uv_handle_t *)&timers->uv))
    return;
  due = TIMER(first)->due_ms;
  uv_timer_start(&timers->uv, on_fire, due > now ? due - now : 0, 0);
}

static void on_fire(uv_timer_t *uv) {
  local_timers_t *timers = tnk__container_of(uv, local_timers_t, uv);
  uint64_t now = uv_now(uv->loop);
  tnk__list_t due;

  /* Due timers are moved to a separate list, because a callback may start
   * timers. */
  tnk__list_init(&due);
  for (;;) {
    tnk__list_t *first = tnk__list_first(&timers->active);

    if (first == NULL || TIMER(first)->due_ms > now)
      break;
    tnk__list_remove(first);
    tnk__list_append(&due, first);
  }
  for (tnk__list_t *node; (node = tnk__list_pop(&due)) != NULL;)
    TIMER(node)->fn(TIMER(node));
  arm(timers);
}

int local_timers_open(local_timers_t *timers, uv_loop_t *loop) {
  tnk__list_init(&timers->active);
  return uv_timer_init(loop, &timers->uv);
}

void local_timers_close(local_timers_t *timers, uv_close_cb closed) {
  uv_close((uv_handle_t *)&timers->uv, closed);
}

void local_timer_init(local_timer_t *timer) {
  tnk__list_init(&timer->link);
  timer->due_ms = 0;
  timer->fn = NULL;
}

void local_timer_start(local_timers_t *timers, local_timer_t *timer,
                       uint64_t delay_ms, void (*fn)(local_timer_t *self)) {
  tnk__list_t *before;

  tnk__list_remove(&timer->link);
  timer->due_ms = uv_now(timers->uv.loop) + delay_ms;
  timer->fn = fn;
  before = timers->active.prev;
  while (before != &timers->active && TIMER(before)->due_ms > timer->due_ms)
    before = before->prev;
  tnk__list_prepend(before, &timer->link);
  if (timers->active.next == &timer->link)
    arm(timers);
}

void local_timer_stop(local_timer_t *timer) {
  tnk__list_remove(&timer->link);
}
