/*
 * A context is open, then closing, then gone. While it is open, its timer is
 * armed for the earliest deadline and its idle handle is active only while
 * calls are deferred. tnk__loop_close() makes it closing: what is held winds
 * down, with timers and deferred calls still at work, and whenever only our
 * own two handles are left, the next quiet turn closes them. The end of the
 * second one hands the memory back to the owner.
 */
#include "loop/loop.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tnk/error.h"

/* How deep this thread is inside functions of the caller. It is per thread
 * because several services may share a loop. */
static _Thread_local unsigned callout_depth;

void tnk__callout_begin(void) {
  callout_depth++;
}

void tnk__callout_end(void) {
  callout_depth--;
}

int tnk__callout_active(void) {
  return callout_depth > 0;
}

/* The timer and the idle handle. */
enum { N_OWN_HANDLES = 2 };

static void on_idle(uv_idle_t *idle);

static void finish_close(tnk__loop_t *loop) {
  void (*closed)(void *) = loop->closed_cb;
  void *user = loop->closed_user;

  if (closed == NULL)
    return;
  loop->closed_cb = NULL;
  tnk__promise_reserve_free(loop);
  closed(user);
}

/* Look in the next turn whether all is quiet. Not at once: whoever lets go of
 * the last thing may still want to defer a call. */
static void watch_for_end(tnk__loop_t *loop) {
  if (!uv_is_closing((uv_handle_t *)&loop->idle))
    uv_idle_start(&loop->idle, on_idle);
}

void tnk__loop_hold(tnk__loop_t *loop) {
  loop->n_held++;
}

void tnk__loop_release(tnk__loop_t *loop) {
  loop->n_held--;
  if (!loop->closing)
    return;
  if (loop->n_held == 0)
    finish_close(loop);
  else if (loop->n_held == N_OWN_HANDLES)
    watch_for_end(loop);
}

static void run_deferred(tnk__loop_t *loop) {
  tnk__list_t now;
  tnk__list_t *node;

  tnk__list_move(&now, &loop->deferred);
  while ((node = tnk__list_pop(&now)) != NULL) {
    tnk__deferred_t *call = tnk__container_of(node, tnk__deferred_t, link);
    call->fn(call);
  }
}

/* Somebody may have registered on a settled promise since the idle handle
 * began to close: this is the last chance to tell him. */
static void on_handle_closed(uv_handle_t *handle) {
  tnk__loop_t *loop = handle->data;

  while (loop->n_held == 1 && !tnk__list_empty(&loop->deferred))
    run_deferred(loop);
  tnk__loop_release(loop);
}

/* Close our two handles once nothing else is held: until then timers and
 * deferred calls must still work for those who are winding down. */
static void close_when_quiet(tnk__loop_t *loop) {
  if (!loop->closing || loop->n_held != N_OWN_HANDLES)
    return;
  if (!tnk__list_empty(&loop->groups)) {
    /* They wait for promises of other services, and cannot without us. */
    loop->fail_groups(loop);
    watch_for_end(loop);
    return;
  }
  uv_close((uv_handle_t *)&loop->timer, on_handle_closed);
  uv_close((uv_handle_t *)&loop->idle, on_handle_closed);
}

static void on_idle(uv_idle_t *idle) {
  tnk__loop_t *loop = idle->data;

  run_deferred(loop);
  if (!tnk__list_empty(&loop->deferred))
    return;
  /* Stopped while closing as well: a look-up may hold us for long, and an
   * active idle handle would make the loop spin meanwhile. */
  uv_idle_stop(idle);
  close_when_quiet(loop);
}

static void on_timer(uv_timer_t *timer);

/* The earliest deadline may have changed: arm libuv's timer for it. */
static void timers_changed(tnk__loop_t *loop) {
  const tnk__timer_t *first = loop->timers.root;
  uv_handle_t *handle = (uv_handle_t *)&loop->timer;
  uint64_t now;

  if (uv_is_closing(handle))
    return;
  if (loop->timers.n_foreground > 0)
    uv_ref(handle);
  else
    uv_unref(handle);
  if (first == NULL || loop->is_fake) {
    uv_timer_stop(&loop->timer);
    return;
  }
  /* Starting and stopping other timers is frequent and must not cost a call
   * into libuv. */
  if (uv_is_active(handle) && loop->armed_ms == first->due_ms)
    return;
  loop->armed_ms = first->due_ms;
  now = tnk__loop_now_ms(loop);
  /* libuv counts from its own cached time, which may lag behind ours. */
  uv_update_time(loop->uv);
  uv_timer_start(&loop->timer, on_timer,
                 first->due_ms > now ? first->due_ms - now : 0, 0);
}

/* The first of the timers that are due tells how late the loop is. */
static void run_timers(tnk__loop_t *loop, uint64_t now) {
  const tnk__timer_t *first = loop->timers.root;

  if (first != NULL && first->due_ms <= now) {
    loop->counters.lag_ms = now - first->due_ms;
    if (loop->counters.lag_ms > loop->counters.max_lag_ms)
      loop->counters.max_lag_ms = loop->counters.lag_ms;
  }
  tnk__timers_run(&loop->timers, now);
}

static void on_timer(uv_timer_t *timer) {
  tnk__loop_t *loop = timer->data;

  run_timers(loop, tnk__loop_now_ms(loop));
  timers_changed(loop);
}

static void start_timer(tnk__loop_t *loop, tnk__timer_t *timer,
                        uint64_t delay_ms, void (*fn)(tnk__timer_t *self),
                        int background) {
  const uint64_t now = tnk__loop_now_ms(loop);

  if (timer->loop != NULL)
    tnk__timers_remove(&timer->loop->timers, timer);
  timer->loop = loop;
  timer->due_ms = delay_ms > UINT64_MAX - now ? UINT64_MAX : now + delay_ms;
  timer->fn = fn;
  tnk__timers_insert(&loop->timers, timer, background);
  timers_changed(loop);
}

void tnk__timer_start(tnk__loop_t *loop, tnk__timer_t *timer, uint64_t delay_ms,
                      void (*fn)(tnk__timer_t *self)) {
  start_timer(loop, timer, delay_ms, fn, 0);
}

void tnk__timer_start_background(tnk__loop_t *loop, tnk__timer_t *timer,
                                 uint64_t delay_ms,
                                 void (*fn)(tnk__timer_t *self)) {
  start_timer(loop, timer, delay_ms, fn, 1);
}

void tnk__timer_stop(tnk__timer_t *timer) {
  tnk__loop_t *loop = timer->loop;

  if (loop == NULL)
    return;
  tnk__timers_remove(&loop->timers, timer);
  timers_changed(loop);
}

void tnk__deferred_init(tnk__deferred_t *call,
                        void (*fn)(tnk__deferred_t *self)) {
  tnk__list_init(&call->link);
  call->fn = fn;
}

void tnk__defer(tnk__loop_t *loop, tnk__deferred_t *call) {
  if (!tnk__list_empty(&call->link))
    return;
  tnk__list_append(&loop->deferred, &call->link);
  if (!uv_is_closing((uv_handle_t *)&loop->idle))
    uv_idle_start(&loop->idle, on_idle);
}

void tnk__defer_cancel(tnk__deferred_t *call) {
  tnk__list_remove(&call->link);
}

uint64_t tnk__loop_now_ms(const tnk__loop_t *loop) {
  return loop->is_fake ? loop->fake_now : uv_hrtime() / 1000000;
}

int64_t tnk__loop_wall_s(const tnk__loop_t *loop) {
  uv_timeval64_t now;

  if (uv_gettimeofday(&now) != 0)
    return 0;
  return now.tv_sec + loop->fake_wall_offset_s;
}

uint64_t tnk__loop_random(tnk__loop_t *loop) {
  uint64_t z = (loop->random += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double tnk__loop_uniform(tnk__loop_t *loop) {
  return (double)(tnk__loop_random(loop) >> 11) * 0x1.0p-53;
}

int tnk__loop_is_forked(const tnk__loop_t *loop) {
  return loop->pid != (int)getpid();
}

int tnk__loop_check_caller(const tnk__loop_t *loop) {
  uv_thread_t self = uv_thread_self();

  if (tnk__loop_is_forked(loop))
    return TNK_EFORKED;
  return uv_thread_equal(&self, &loop->thread) ? TNK_OK : TNK_ETHREAD;
}

/* libuv's writes to a dead socket raise SIGPIPE, whose default ends the
 * process. Blocking it in this thread turns it into an error code. */
static void block_sigpipe(void) {
  sigset_t set;

  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int tnk__loop_open(tnk__loop_t *loop, uv_loop_t *uv,
                   const tnk_allocator_t *alloc, const tnk_logger_t *logger) {
  int err;

  memset(loop, 0, sizeof(*loop));
  loop->uv = uv;
  loop->alloc = *alloc;
  if (logger != NULL)
    loop->logger = *logger;
  loop->pid = (int)getpid();
  loop->thread = uv_thread_self();
  tnk__list_init(&loop->deferred);
  tnk__list_init(&loop->groups);
  err = uv_random(NULL, NULL, &loop->random, sizeof(loop->random), 0, NULL);
  if (err != 0)
    return err;
  err = tnk__promise_reserve(loop);
  if (err != TNK_OK)
    return err;
  block_sigpipe();
  /* Neither init can fail; both are linked into the loop from here on. */
  uv_timer_init(uv, &loop->timer);
  uv_idle_init(uv, &loop->idle);
  uv_unref((uv_handle_t *)&loop->timer);
  loop->timer.data = loop;
  loop->idle.data = loop;
  loop->n_held = N_OWN_HANDLES;
  return TNK_OK;
}

void tnk__loop_close(tnk__loop_t *loop, void (*closed)(void *user),
                     void *user) {
  loop->closing = 1;
  loop->closed_cb = closed;
  loop->closed_user = user;
  watch_for_end(loop);
}

void tnk__loop_fake_clock(tnk__loop_t *loop, uint64_t now_ms) {
  loop->is_fake = 1;
  loop->fake_now = now_ms;
  timers_changed(loop);
}

void tnk__loop_advance(tnk__loop_t *loop, uint64_t ms) {
  const uint64_t end = loop->fake_now + ms;

  while (loop->timers.root != NULL && loop->timers.root->due_ms <= end) {
    if (loop->timers.root->due_ms > loop->fake_now)
      loop->fake_now = loop->timers.root->due_ms;
    run_timers(loop, loop->fake_now);
  }
  loop->fake_now = end;
  timers_changed(loop);
}
