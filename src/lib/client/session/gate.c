#include "lib/client/session/gate.h"

#include "lib/base/alloc.h"

static void arm(tnk__gate_t *gate);

static void on_due(tnk__timer_t *timer) {
  tnk__gate_t *gate = tnk__container_of(timer, tnk__gate_t, timer);
  tnk__list_t *node;

  if (tnk__limiter_wait_ms(gate->limiter, tnk__context_now_ms(gate->context)) >
      0) {
    arm(gate);
    return;
  }
  while ((node = tnk__list_pop(&gate->waiting)) != NULL) {
    tnk__waiter_t *waiter = tnk__container_of(node, tnk__waiter_t, link);
    waiter->granted(waiter);
  }
}

static void arm(tnk__gate_t *gate) {
  uint64_t now = tnk__context_now_ms(gate->context);

  if (!tnk__list_empty(&gate->waiting))
    tnk__timer_start(gate->context, &gate->timer,
                     tnk__limiter_wait_ms(gate->limiter, now), on_due);
}

static void on_calm(tnk__timer_t *timer);

/* Limit the slots while a back-off is recent. */
static void limit_slots(tnk__gate_t *gate) {
  uint64_t now = tnk__context_now_ms(gate->context);
  uint64_t end = tnk__limiter_recent_until_ms(gate->limiter, now);

  tnk__semaphore_set_limit(gate->slots,
                           end != 0 ? gate->few : TNK__SEMAPHORE_UNLIMITED);
  if (end != 0)
    tnk__timer_start_background(gate->context, &gate->calm, end - now, on_calm);
}

static void on_calm(tnk__timer_t *timer) {
  limit_slots(tnk__container_of(timer, tnk__gate_t, calm));
}

static void on_changed(tnk__limiter_watcher_t *watcher) {
  tnk__gate_t *gate = tnk__container_of(watcher, tnk__gate_t, watcher);

  arm(gate);
  limit_slots(gate);
}

void tnk__gate_open(tnk__gate_t *gate, tnk__context_t *context,
                    tnk__limiter_t *limiter, tnk__semaphore_t *slots,
                    size_t few) {
  gate->context = context;
  gate->limiter = limiter;
  gate->slots = slots;
  gate->few = few;
  tnk__list_init(&gate->waiting);
  tnk__limiter_watch(limiter, &gate->watcher, on_changed);
  limit_slots(gate);
}

void tnk__gate_close(tnk__gate_t *gate) {
  tnk__timer_stop(&gate->timer);
  tnk__timer_stop(&gate->calm);
  tnk__limiter_unwatch(&gate->watcher);
}

int tnk__gate_pass(tnk__gate_t *gate, tnk__waiter_t *waiter) {
  /* Waiting samples go first, even when the timer is only about to fire. */
  if (tnk__list_empty(&gate->waiting) &&
      tnk__limiter_wait_ms(gate->limiter, tnk__context_now_ms(gate->context)) ==
          0)
    return 1;
  tnk__list_append(&gate->waiting, &waiter->link);
  if (!tnk__timer_is_active(&gate->timer))
    arm(gate);
  return 0;
}

void tnk__gate_cancel(tnk__gate_t *gate, tnk__waiter_t *waiter) {
  tnk__list_remove(&waiter->link);
  if (tnk__list_empty(&gate->waiting))
    tnk__timer_stop(&gate->timer); /* it keeps the loop alive */
}
