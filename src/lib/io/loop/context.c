/* SPDX-License-Identifier: MIT */
/*
 * A context is open, then closing, then gone. While it is open, its timer is
 * armed for the earliest deadline and its idle handle is active only while
 * calls are deferred. Its check handle is active only if the context keeps the
 * loop alive. tnk__context_end() makes the context closing: operations wind
 * down, while timers and deferred calls still work. When only our own handles
 * are left, the next quiet turn of the loop closes them. The close callback of
 * the last one hands the memory back to the owner.
 */
#include "lib/io/loop/context.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "tnk/error.h"

/* The depth of calls into the program's code on this thread, and the context
 * that is making a deferred call here, with its time. It is per thread because
 * several services may share a loop. */
static _Thread_local struct {
  unsigned depth;
  tnk__context_t *context;
  tnk__moment_t moment;
} inside;

static void begin_moment(tnk__context_t *context) {
  inside.context = context;
  inside.moment.ns = 0;
  context->moment = context->is_fake ? NULL : &inside.moment;
}

static void end_moment(void) {
  if (inside.context != NULL)
    inside.context->moment = NULL;
}

void tnk__callout_begin(void) {
  inside.depth++;
  end_moment();
}

void tnk__callout_end(void) {
  inside.depth--;
  if (inside.depth == 0 && inside.context != NULL)
    begin_moment(inside.context);
}

int tnk__callout_active(void) {
  return inside.depth > 0;
}

/* N_OWN_HANDLES: the timer, the idle handle and the check handle. MAX_PUT_OFF:
 * turns that a `last` call may wait; a result leads to the next request in
 * five. LATE_MS: timers that are later than this wait for a turn of the loop,
 * and for at most MAX_LATE_TURNS if those are late too. */
enum {
  N_OWN_HANDLES = 3,
  MAX_PUT_OFF = 8,
  LATE_MS = 100,
  MAX_LATE_TURNS = 3,
  WARN_LAG_MS = 5000,
  WARN_EVERY_MS = 60000
};

static void on_idle(uv_idle_t *idle);

static void finish_close(tnk__context_t *context) {
  void (*ended)(void *) = context->ended_cb;
  void *user = context->ended_user;

  if (ended == NULL)
    return;
  context->ended_cb = NULL;
  ended(user);
}

/* Check in the next turn of the loop whether nothing is held any more. Not at
 * once, because the last holder may still defer a call. */
static void watch_for_end(tnk__context_t *context) {
  if (!uv_is_closing((uv_handle_t *)&context->idle))
    uv_idle_start(&context->idle, on_idle);
}

void tnk__context_hold(tnk__context_t *context) {
  context->n_held++;
}

void tnk__context_release(tnk__context_t *context) {
  context->n_held--;
  if (!context->closing)
    return;
  if (context->n_held == 0)
    finish_close(context);
  else if (context->n_held == N_OWN_HANDLES)
    watch_for_end(context);
}

enum { NS_PER_MS = 1000000 };

static uint64_t clock_ms(const tnk__context_t *context) {
  return context->is_fake ? context->fake_now : uv_hrtime() / NS_PER_MS;
}

static inline const tnk__moment_t *known(tnk__moment_t *moment) {
  if (moment->ns == 0) {
    moment->ns = uv_hrtime();
    moment->ms = moment->ns / NS_PER_MS;
  }
  return moment;
}

uint64_t tnk__context_now_ms(const tnk__context_t *context) {
  return context->moment != NULL ? known(context->moment)->ms
                                 : clock_ms(context);
}

uint64_t tnk__context_read_ns(const tnk__context_t *context) {
  if (context->moment != NULL)
    return known(context->moment)->ns;
  return context->is_fake ? context->fake_now * NS_PER_MS : uv_hrtime();
}

void tnk__context_took_time(const tnk__context_t *context) {
  if (context->moment != NULL)
    context->moment->ns = 0;
}

void tnk__context_stop_time(tnk__context_t *context, tnk__moment_t *moment) {
  moment->ns = 0;
  if (context->moment == NULL && !context->is_fake)
    context->moment = moment;
}

void tnk__context_let_time_pass(tnk__context_t *context,
                                const tnk__moment_t *moment) {
  if (context->moment == moment)
    context->moment = NULL;
}

/* The clock is read once for each call, and again after slow work such as the
 * program's code. The time is queried often, and reading the clock is not
 * cheap. */
static void run_queue(tnk__context_t *context, tnk__list_t *queue) {
  tnk__list_t now;
  tnk__list_t *node;

  tnk__list_move(&now, queue);
  while ((node = tnk__list_pop(&now)) != NULL) {
    tnk__deferred_t *call = tnk__container_of(node, tnk__deferred_t, link);
    begin_moment(context);
    call->fn(call);
  }
  end_moment();
  inside.context = NULL;
}

static int has_deferred(const tnk__context_t *context) {
  return !tnk__list_empty(&context->deferred) ||
         !tnk__list_empty(&context->last);
}

/* `last` calls run in a turn without other calls, or after they have waited for
 * MAX_PUT_OFF turns. */
static void run_deferred(tnk__context_t *context) {
  if (tnk__list_empty(&context->deferred) ||
      context->n_put_off == MAX_PUT_OFF) {
    context->n_put_off = 0;
    run_queue(context, &context->last);
    return;
  }
  if (!tnk__list_empty(&context->last))
    context->n_put_off++;
  run_queue(context, &context->deferred);
}

static void run_endings(tnk__context_t *context) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&context->endings)) != NULL) {
    tnk__deferred_t *call = tnk__container_of(node, tnk__deferred_t, link);
    call->fn(call);
  }
}

/* While the idle handle was closing, the program may have registered a callback
 * on a settled promise. It may also have created a group with promises of
 * another service. This is the last chance to call those callbacks. */
static void finish_calls(tnk__context_t *context) {
  while (has_deferred(context) || !tnk__list_empty(&context->endings)) {
    run_deferred(context);
    run_endings(context);
  }
}

static void on_handle_closed(uv_handle_t *handle) {
  tnk__context_t *context = handle->data;

  if (context->n_held == 1)
    finish_calls(context);
  tnk__context_release(context);
}

/* Close our own handles once nothing else is held. Operations that are ending
 * need timers and deferred calls until then. */
static void close_when_quiet(tnk__context_t *context) {
  if (!context->closing || context->n_held != N_OWN_HANDLES)
    return;
  if (!tnk__list_empty(&context->endings)) {
    run_endings(context); /* they may defer calls */
    watch_for_end(context);
    return;
  }
  uv_close((uv_handle_t *)&context->timer, on_handle_closed);
  uv_close((uv_handle_t *)&context->idle, on_handle_closed);
  uv_close((uv_handle_t *)&context->check, on_handle_closed);
}

static void on_idle(uv_idle_t *idle) {
  tnk__context_t *context = idle->data;

  run_deferred(context);
  if (has_deferred(context))
    return;
  /* Stop it while closing as well. A look-up may hold the context for long, and
   * an active idle handle would make the loop spin. */
  uv_idle_stop(idle);
  close_when_quiet(context);
}

/* An active handle keeps the loop alive; the callback has nothing to do. */
static void on_check(uv_check_t *check) {
  (void)check;
}

void tnk__context_keep_loop_alive(tnk__context_t *context) {
  uv_check_start(&context->check, on_check);
}

static void on_timer(uv_timer_t *timer);

/* Start libuv's timer for the earliest deadline, which may have changed. */
static void timers_changed(tnk__context_t *context) {
  const tnk__timer_t *first = context->timers.root;
  uv_handle_t *handle = (uv_handle_t *)&context->timer;
  uint64_t now;

  if (uv_is_closing(handle))
    return;
  if (context->timers.n_foreground > 0)
    uv_ref(handle);
  else
    uv_unref(handle);
  if (first == NULL || context->is_fake) {
    uv_timer_stop(&context->timer);
    return;
  }
  /* Other timers start and stop often, which must not cost a call of libuv. */
  if (uv_is_active(handle) && context->armed_ms == first->due_ms)
    return;
  now = clock_ms(context);
  context->armed_ms = first->due_ms;
  context->wake_ms = first->due_ms > now ? first->due_ms : now;
  /* libuv counts from its cached time, which may be older than ours. */
  uv_update_time(context->uv);
  uv_timer_start(&context->timer, on_timer, context->wake_ms - now, 0);
}

/* Heartbeats and responses wait while a callback of the program runs. The
 * server may end the session meanwhile. */
static void warn_if_late(tnk__context_t *context, uint64_t now) {
  if (context->counters.lag_ms < WARN_LAG_MS ||
      (context->has_warned && now - context->warned_ms < WARN_EVERY_MS))
    return;
  context->has_warned = 1;
  context->warned_ms = now;
  tnk__log(&context->logger, TNK_LOG_WARN, "loop",
           "the loop came %llu.%llu s late: a callback on it took that long "
           "and delayed all other work",
           (unsigned long long)context->counters.lag_ms / 1000,
           (unsigned long long)context->counters.lag_ms / 100 % 10);
}

/* The delay of the first due timer is the lag of the loop. */
static void run_timers(tnk__context_t *context, uint64_t now) {
  const tnk__timer_t *first = context->timers.root;

  if (first != NULL && first->due_ms <= now) {
    context->counters.lag_ms = now - first->due_ms;
    if (context->counters.lag_ms > context->counters.max_lag_ms)
      context->counters.max_lag_ms = context->counters.lag_ms;
    warn_if_late(context, now);
  }
  tnk__timers_run(&context->timers, now);
}

/* Returns whether sockets are read before due timers fire. While the program
 * computed or was stopped, responses may have arrived that a timeout would
 * discard. libuv before 1.45 runs timers before it polls sockets. */
static int lets_sockets_go_first(tnk__context_t *context, uint64_t now) {
  if (now < context->wake_ms + LATE_MS ||
      context->n_late_turns == MAX_LATE_TURNS) {
    context->n_late_turns = 0;
    return 0;
  }
  context->n_late_turns++;
  context->wake_ms = now + 1; /* with 0 libuv might not poll */
  uv_update_time(context->uv);
  uv_timer_start(&context->timer, on_timer, 1, 0);
  return 1;
}

static void on_timer(uv_timer_t *timer) {
  tnk__context_t *context = timer->data;
  const uint64_t now = clock_ms(context);

  if (lets_sockets_go_first(context, now))
    return;
  run_timers(context, now);
  timers_changed(context);
}

static void start_timer(tnk__context_t *context, tnk__timer_t *timer,
                        uint64_t delay_ms, void (*fn)(tnk__timer_t *self),
                        int background) {
  const uint64_t now = tnk__context_now_ms(context);

  if (timer->context != NULL)
    tnk__timers_remove(&timer->context->timers, timer);
  timer->context = context;
  timer->due_ms = delay_ms > UINT64_MAX - now ? UINT64_MAX : now + delay_ms;
  timer->fn = fn;
  tnk__timers_insert(&context->timers, timer, background);
  timers_changed(context);
}

void tnk__timer_start(tnk__context_t *context, tnk__timer_t *timer,
                      uint64_t delay_ms, void (*fn)(tnk__timer_t *self)) {
  start_timer(context, timer, delay_ms, fn, 0);
}

void tnk__timer_start_background(tnk__context_t *context, tnk__timer_t *timer,
                                 uint64_t delay_ms,
                                 void (*fn)(tnk__timer_t *self)) {
  start_timer(context, timer, delay_ms, fn, 1);
}

void tnk__timer_stop(tnk__timer_t *timer) {
  tnk__context_t *context = timer->context;

  if (context == NULL)
    return;
  tnk__timers_remove(&context->timers, timer);
  timers_changed(context);
}

void tnk__deferred_init(tnk__deferred_t *call,
                        void (*fn)(tnk__deferred_t *self)) {
  tnk__list_init(&call->link);
  call->fn = fn;
}

static void queue_call(tnk__context_t *context, tnk__list_t *queue,
                       tnk__deferred_t *call) {
  if (!tnk__list_empty(&call->link))
    return;
  tnk__list_append(queue, &call->link);
  if (!uv_is_closing((uv_handle_t *)&context->idle))
    uv_idle_start(&context->idle, on_idle);
}

void tnk__defer(tnk__context_t *context, tnk__deferred_t *call) {
  queue_call(context, &context->deferred, call);
}

void tnk__defer_last(tnk__context_t *context, tnk__deferred_t *call) {
  queue_call(context, &context->last, call);
}

void tnk__defer_to_end(tnk__context_t *context, tnk__deferred_t *call) {
  if (tnk__list_empty(&call->link))
    tnk__list_append(&context->endings, &call->link);
}

void tnk__defer_cancel(tnk__deferred_t *call) {
  tnk__list_remove(&call->link);
}

uint64_t tnk__context_unix_ns(const tnk__context_t *context, uint64_t ns) {
  const uint64_t now_ns =
      context->is_fake ? context->fake_now * 1000000 : uv_hrtime();
  uv_timeval64_t now = {0};

  (void)uv_gettimeofday(&now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_usec * 1000 + ns -
         now_ns;
}

int64_t tnk__context_wall_s(const tnk__context_t *context) {
  uv_timeval64_t now;

  if (uv_gettimeofday(&now) != 0)
    return 0;
  return now.tv_sec + context->fake_wall_offset_s;
}

uint64_t tnk__context_random(tnk__context_t *context) {
  uint64_t z = (context->random += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double tnk__context_uniform(tnk__context_t *context) {
  return (double)(tnk__context_random(context) >> 11) * 0x1.0p-53;
}

int tnk__context_is_forked(const tnk__context_t *context) {
  return context->pid != (int)getpid();
}

int tnk__context_check_caller(const tnk__context_t *context) {
  uv_thread_t self = uv_thread_self();

  if (tnk__context_is_forked(context))
    return TNK_EFORKED;
  return uv_thread_equal(&self, &context->thread) ? TNK_OK : TNK_ETHREAD;
}

/* libuv's writes to a closed socket raise SIGPIPE, which ends the process by
 * default. Blocking it in this thread turns it into an error code. */
static void block_sigpipe(void) {
  sigset_t set;

  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int tnk__context_init(tnk__context_t *context, uv_loop_t *uv,
                      const tnk_allocator_t *alloc,
                      const tnk_logger_t *logger) {
  memset(context, 0, sizeof(*context));
  context->uv = uv;
  context->alloc = *alloc;
  if (logger != NULL)
    context->logger = *logger;
  context->pid = (int)getpid();
  context->thread = uv_thread_self();
  tnk__list_init(&context->deferred);
  tnk__list_init(&context->last);
  tnk__list_init(&context->endings);
  return uv_random(NULL, NULL, &context->random, sizeof(context->random), 0,
                   NULL);
}

void tnk__context_start(tnk__context_t *context) {
  block_sigpipe();
  /* These calls cannot fail. The loop has the handles from here on. */
  uv_timer_init(context->uv, &context->timer);
  uv_idle_init(context->uv, &context->idle);
  uv_check_init(context->uv, &context->check);
  uv_unref((uv_handle_t *)&context->timer);
  context->timer.data = context;
  context->idle.data = context;
  context->check.data = context;
  context->n_held = N_OWN_HANDLES;
}

void tnk__context_end(tnk__context_t *context, void (*ended)(void *user),
                      void *user) {
  context->closing = 1;
  context->ended_cb = ended;
  context->ended_user = user;
  watch_for_end(context);
}

void tnk__context_fake_clock(tnk__context_t *context, uint64_t now_ms) {
  context->is_fake = 1;
  context->fake_now = now_ms;
  timers_changed(context);
}

void tnk__context_advance(tnk__context_t *context, uint64_t ms) {
  const uint64_t end = context->fake_now + ms;

  while (context->timers.root != NULL && context->timers.root->due_ms <= end) {
    if (context->timers.root->due_ms > context->fake_now)
      context->fake_now = context->timers.root->due_ms;
    run_timers(context, context->fake_now);
  }
  context->fake_now = end;
  timers_changed(context);
}

/* ---- The observer ---- */

void tnk__observe(const tnk__context_t *context, tnk_event_t *event) {
  event->time_ns = tnk__context_now_ns(context);
  context->observer(event, context->observer_user);
}

uint64_t tnk__observe_begin(tnk__context_t *context, const char *name,
                            const char *client) {
  if (context->observer == NULL)
    return 0;
  tnk__observe(context, &(tnk_event_t){.phase = TNK_PHASE_QUEUED,
                                       .operation = ++context->n_operations,
                                       .name = name,
                                       .client = client});
  return context->n_operations;
}
