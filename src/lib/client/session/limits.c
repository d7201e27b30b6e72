/* SPDX-License-Identifier: MIT */
#include "lib/client/session/limits.h"

#include "lib/base/alloc.h"

enum {
  MAX_TRAIN_BYTES = 16 * 1000 * 1000,
  SAMPLE_THROTTLED_SLOTS = 10,
  /* With batched polls: results fetched in parallel, and the share of all polls
   * that may check silent samples. */
  MAX_FETCHES = 64,
  CHECKS_PART = 8,
  POLLERS_PART = 4
};

/* ---- The gate ---- */

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

static void gate_open(tnk__gate_t *gate, tnk__context_t *context,
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

static void gate_close(tnk__gate_t *gate) {
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

/* ---- The back-off of services with one URL and credential ---- */

/* One per thread, because a loop belongs to a thread. It owns no memory:
 * services link their limiters into it, and a back-off that outlives its
 * service is stored inside it. */
static _Thread_local tnk__limiter_registry_t registry;
static _Thread_local int registry_is_ready;

/*
 * Join the back-off that all services of this thread with the same URL and
 * credential share, or keep a private one if the options say so. The two random
 * numbers key the hashes; only the first call of a thread uses them.
 */
static void join(tnk__limiter_t *limiter, const tnk__config_t *config,
                 uint64_t now_ms, uint64_t random0, uint64_t random1) {
  tnk__limiter_key_t key;

  tnk__limiter_init(limiter);
  if (config->options.limiter_scope == TNK_LIMITER_PRIVATE)
    return;
  if (!registry_is_ready) {
    tnk__limiter_registry_init(&registry, random0, random1);
    registry_is_ready = 1;
  }
  key = tnk__limiter_key(&registry, config->options.base_url,
                         config->api_key != NULL ? config->api_key
                                                 : config->credential_cmd);
  tnk__limiter_join(limiter, &registry, &key, now_ms);
}

/* ---- All limits ---- */

void tnk__limits_open(tnk__limits_t *limits, tnk__context_t *context,
                      const tnk__config_t *config, const tnk__flags_t *flags) {
  tnk__budget_init(&limits->train_bytes, flags->train_dispatch_bytes);
  tnk__budget_init(&limits->sample_bytes, flags->sample_dispatch_bytes);
  tnk__budget_init(&limits->result_bytes, flags->result_bytes);
  tnk__semaphore_init(&limits->sample_running,
                      (size_t)flags->sample_concurrency);
  tnk__window_init(&limits->sample_window);
  tnk__semaphore_init(&limits->sample_slots, TNK__WINDOW_MIN);
  tnk__semaphore_init(&limits->fetches, MAX_FETCHES);
  tnk__semaphore_init(&limits->checks,
                      1 + config->options.max_polls / CHECKS_PART);
  tnk__semaphore_init(&limits->sample_throttle, TNK__SEMAPHORE_UNLIMITED);
  limits->max_pollers = config->options.max_polls / POLLERS_PART;
  join(&limits->limiter, config, tnk__context_now_ms(context),
       tnk__context_random(context), tnk__context_random(context));
  gate_open(&limits->gate, context, &limits->limiter, &limits->sample_throttle,
            SAMPLE_THROTTLED_SLOTS);
}

void tnk__limits_close(tnk__limits_t *limits, uint64_t now_ms) {
  gate_close(&limits->gate);
  tnk__limiter_leave(&limits->limiter, now_ms);
}

void tnk__limits_apply(tnk__limits_t *limits, const tnk__flags_t *flags) {
  uint64_t train_bytes = flags->train_dispatch_bytes;

  /* Encoded chunks take memory. The limit is enough to keep the connections
   * busy, even if the server would accept more. */
  if (train_bytes > MAX_TRAIN_BYTES)
    train_bytes = MAX_TRAIN_BYTES;
  tnk__budget_set_size(&limits->train_bytes, train_bytes);
  tnk__budget_set_size(&limits->sample_bytes, flags->sample_dispatch_bytes);
  tnk__budget_set_size(&limits->result_bytes, flags->result_bytes);
  tnk__semaphore_set_limit(&limits->sample_running,
                           flags->batched_polls
                               ? TNK__SEMAPHORE_UNLIMITED
                               : (size_t)flags->sample_concurrency);
}

int tnk__limits_has_poller(const tnk__limits_t *limits) {
  return limits->n_pollers < limits->max_pollers;
}
