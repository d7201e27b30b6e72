/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_LOOP_CONTEXT_H
#define TNK_LIB_IO_LOOP_CONTEXT_H

#include <uv.h>

#include "lib/base/list.h"
#include "tnk/observe.h"

struct tnk__context;
struct tnk__then;

/*
 * A one-shot timer, embedded in its owner, which must zero it before its first
 * use. Starting and stopping take effect at once: a stopped timer does not
 * fire. Neither can fail, because timers are nodes in a pairing heap of the
 * context.
 */
typedef struct tnk__timer {
  struct tnk__timer *child;
  struct tnk__timer *next; /* next sibling */
  struct tnk__timer *prev; /* previous sibling; for a first child its parent */
  struct tnk__context *context; /* NULL while stopped */
  uint64_t due_ms;
  /* Twice the sequence number of the start. Timers with the same deadline fire
   * in this order. The lowest bit means that it does not keep the loop
   * alive. */
  uint64_t order;
  void (*fn)(struct tnk__timer *self);
} tnk__timer_t;

/* The timers of one context. */
typedef struct {
  tnk__timer_t *root;  /* the earliest */
  uint64_t n_started;  /* sequence number of the next start */
  size_t n_foreground; /* timers that keep the loop alive */
} tnk__timers_t;

/* The functions of the heap. Owners call tnk__timer_start() and
 * tnk__timer_stop() below, which also start libuv's timer. `due_ms` and `fn`
 * must be set. */
void tnk__timers_insert(tnk__timers_t *timers, tnk__timer_t *timer,
                        int background);
void tnk__timers_remove(tnk__timers_t *timers, tnk__timer_t *timer);
/* Fire the timers due at `now_ms` that were started before this call. */
void tnk__timers_run(tnk__timers_t *timers, uint64_t now_ms);

int tnk__timer_is_active(const tnk__timer_t *timer);
/* The time until an active timer fires. 0 if it is due; if the loop is late, it
 * may be due for long. */
uint64_t tnk__timer_left_ms(const tnk__timer_t *timer, uint64_t now_ms);
/* Returns whether an active timer does not keep the loop alive. */
int tnk__timer_is_background(const tnk__timer_t *timer);

/* Counters behind tnk_service_stats(). */
typedef struct {
  uint64_t n_requests;
  uint64_t n_retries;
  uint64_t n_late_events;
  uint64_t n_double_settles;
  uint64_t n_bytes_sent;
  uint64_t n_bytes_received;
  uint64_t n_resubmits;
  uint64_t n_stalls;
  uint64_t lag_ms; /* delay of the latest late timer */
  uint64_t max_lag_ms;
} tnk__counters_t;

/* The time that holds during a deferred call. 0: it was not read yet. */
typedef struct {
  uint64_t ns;
  uint64_t ms;
} tnk__moment_t;

/*
 * The context of one service or hub. It is open, and then closing from
 * tnk__context_close() until libuv has released everything. Then its callback
 * runs, and the memory is returned to the owner.
 */
typedef struct tnk__context {
  uv_loop_t *uv;
  tnk_allocator_t alloc; /* copy of the service's allocator */
  tnk_logger_t logger;
  uv_timer_t timer; /* fires for the earliest of our timers */
  uv_idle_t idle;   /* runs while `deferred` or `last` is not empty */
  uv_check_t check; /* keeps the loop alive while it is active */
  tnk__list_t deferred;
  tnk__list_t last;    /* calls for when `deferred` is empty */
  int n_put_off;       /* consecutive turns in which `deferred` was not empty */
  tnk__list_t endings; /* calls for when the context ends */
  tnk__timers_t timers;
  uint64_t armed_ms; /* deadline for which `timer` was started */
  uint64_t wake_ms;  /* when `timer` should fire */
  int n_late_turns;  /* consecutive turns in which timers waited for sockets */
  int has_warned;    /* a late loop was reported, last at: */
  uint64_t warned_ms;
  size_t n_held; /* number of objects that libuv holds, including our handles */
  size_t n_working; /* jobs on other threads, see work.h */
  int closing;
  void (*ended_cb)(void *user);
  void *ended_user;
  size_t n_pending;      /* promises that have not settled */
  uint64_t random;       /* state of the random generator */
  tnk__moment_t *moment; /* the time that holds now; NULL: read the clock */
  uint64_t fake_now;     /* used while `is_fake` */
  int is_fake;
  int fake_wall_offset_s;
  int pid;                 /* process that opened it */
  uv_thread_t thread;      /* thread that opened it */
  struct tnk_promise *oom; /* returned when there is no memory for a promise */
  /* Preallocated callback nodes for when memory is out. */
  struct tnk__then *spares;
  tnk__counters_t counters;
  tnk_observe_cb observer; /* NULL: no observer; see tnk__observe() */
  void *observer_user;
  uint64_t n_operations; /* operations reported to the observer */
} tnk__context_t;

/* A call to be made in the next turn of the loop. Embedded in its owner. */
typedef struct tnk__deferred {
  tnk__list_t link;
  void (*fn)(struct tnk__deferred *self);
} tnk__deferred_t;

/* Open a context, including its reserve of promises. The allocator and logger
 * are copied. Returns TNK_OK, TNK_ENOMEM or libuv's code. After an error
 * nothing needs to be closed. Defined in promise.c, like the next function. */
int tnk__context_open(tnk__context_t *context, uv_loop_t *uv,
                      const tnk_allocator_t *alloc, const tnk_logger_t *logger);
/* Begin to close. `closed` runs when n_held is zero and the deferred queue is
 * empty, so every holder must release the context. Promises can then only be
 * read and freed. Allocates nothing. */
void tnk__context_close(tnk__context_t *context, void (*closed)(void *user),
                        void *user);
/* The two steps of opening: before and after libuv knows of the context.
 * tnk__context_init() returns TNK_OK or libuv's code; tnk__context_start()
 * cannot fail. The reserve of promises is made in between. */
int tnk__context_init(tnk__context_t *context, uv_loop_t *uv,
                      const tnk_allocator_t *alloc, const tnk_logger_t *logger);
void tnk__context_start(tnk__context_t *context);
/* Keep the loop alive until the context closes; call it after
 * tnk__context_start(). For loops that another event loop drives, see
 * tnk/bindings.h. */
void tnk__context_keep_loop_alive(tnk__context_t *context);
/* The part of closing that knows no promises: tnk__context_close() calls it. */
void tnk__context_end(tnk__context_t *context, void (*ended)(void *user),
                      void *user);
/* tnk__context_hold() keeps the context from closing while libuv holds one of
 * our objects. tnk__context_release() ends that. */
void tnk__context_hold(tnk__context_t *context);
void tnk__context_release(tnk__context_t *context);

void tnk__deferred_init(tnk__deferred_t *call,
                        void (*fn)(tnk__deferred_t *self));
/* Queue a call. If it is already queued, it keeps its position. */
void tnk__defer(tnk__context_t *context, tnk__deferred_t *call);
/* The same for a call that gathers work of others, for example one write for
 * many requests. It runs in the first turn without other calls, at most a few
 * turns later. */
void tnk__defer_last(tnk__context_t *context, tnk__deferred_t *call);
/* The same for a call that is made when the context ends, while timers and
 * deferred calls still work. */
void tnk__defer_to_end(tnk__context_t *context, tnk__deferred_t *call);
void tnk__defer_cancel(tnk__deferred_t *call);

/* Monotonic milliseconds. Inside a deferred call the time is read once. It is
 * read again only after code of the caller has run. */
uint64_t tnk__context_now_ms(const tnk__context_t *context);
/* The same in nanoseconds, reading the clock if necessary. */
uint64_t tnk__context_read_ns(const tnk__context_t *context);
static inline uint64_t tnk__context_now_ns(const tnk__context_t *context) {
  const tnk__moment_t *moment = context->moment;

  return moment != NULL && moment->ns != 0 ? moment->ns
                                           : tnk__context_read_ns(context);
}
/* Note inside a deferred call that the preceding work took time. The next query
 * reads the clock again. */
void tnk__context_took_time(const tnk__context_t *context);
/* Between these two calls the time stands still as well. `moment` belongs to
 * the caller. In between, no code of the program may run, except an observer,
 * which must return soon. */
void tnk__context_stop_time(tnk__context_t *context, tnk__moment_t *moment);
void tnk__context_let_time_pass(tnk__context_t *context,
                                const tnk__moment_t *moment);
/* Convert a time of tnk__context_now_ns() to nanoseconds since 1970, for others
 * to read. */
uint64_t tnk__context_unix_ns(const tnk__context_t *context, uint64_t ns);
/* Unix seconds, only for comparing with dates from the network. */
int64_t tnk__context_wall_s(const tnk__context_t *context);
/* Random numbers: 64 uniform bits, or uniform in [0, 1). Not for secrets. */
uint64_t tnk__context_random(tnk__context_t *context);
double tnk__context_uniform(tnk__context_t *context);

/* Returns whether this is a child of the process that opened the context. Its
 * sockets and libuv's descriptors belong to the parent, so nothing may be
 * touched. */
int tnk__context_is_forked(const tnk__context_t *context);
/* Check the caller: TNK_OK on the thread and in the process that opened the
 * context. */
int tnk__context_check_caller(const tnk__context_t *context);

/* Mark that code of the program runs between these two calls. tnk_wait() fails
 * meanwhile. */
void tnk__callout_begin(void);
void tnk__callout_end(void);
int tnk__callout_active(void);

/* For tests: stop reading the clock. Time stands still until it is advanced.
 * Advancing fires due timers in order; the time is then the deadline of
 * each. */
void tnk__context_fake_clock(tnk__context_t *context, uint64_t now_ms);
void tnk__context_advance(tnk__context_t *context, uint64_t ms);

/* Give an operation its number and report that it is queued. Returns 0 without
 * an observer; the operation is then never reported. `client` may be NULL. */
uint64_t tnk__observe_begin(tnk__context_t *context, const char *name,
                            const char *client);
/* Report a step of an operation that has a number. The time is filled in. */
void tnk__observe(const tnk__context_t *context, tnk_event_t *event);

/* Call `fn` once, `delay_ms` from now. Restarts a running timer. */
void tnk__timer_start(tnk__context_t *context, tnk__timer_t *timer,
                      uint64_t delay_ms, void (*fn)(tnk__timer_t *self));
/* Start a timer that does not keep the loop alive. */
void tnk__timer_start_background(tnk__context_t *context, tnk__timer_t *timer,
                                 uint64_t delay_ms,
                                 void (*fn)(tnk__timer_t *self));
/* Stop a timer, so that it does not fire. Stopping it twice is harmless. */
void tnk__timer_stop(tnk__timer_t *timer);

#endif
