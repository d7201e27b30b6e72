#ifndef TNK_LIB_IO_LOOP_CONTEXT_H
#define TNK_LIB_IO_LOOP_CONTEXT_H

#include <uv.h>

#include "lib/base/list.h"
#include "lib/io/loop/timer.h"
#include "tnk/observe.h"

struct tnk__then;

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
  uint64_t lag_ms; /* how late the last timer was */
  uint64_t max_lag_ms;
} tnk__counters_t;

/* The time while none passes, as in a deferred call; 0: nobody has asked. */
typedef struct {
  uint64_t ns;
  uint64_t ms;
} tnk__moment_t;

/*
 * The context of one service or hub. States: open; closing, from
 * tnk__context_close() until libuv has let go of everything; then closed_cb
 * runs and the memory is the owner's again.
 */
typedef struct tnk__context {
  uv_loop_t *uv;
  tnk_allocator_t alloc; /* the service's copy */
  tnk_logger_t logger;
  uv_timer_t timer; /* fires for the earliest of our timers */
  uv_idle_t idle;   /* runs while one of the two is not empty */
  uv_check_t check; /* active: keeps the loop alive */
  tnk__list_t deferred;
  tnk__list_t last;   /* for when `deferred` is empty */
  int n_put_off;      /* turns in which it was not, in a row */
  tnk__list_t groups; /* promises that wait for others, see promise_group.c */
  void (*fail_groups)(
      struct tnk__context *context); /* set with the first of them */
  /* Frees what promises keep here; set with it. */
  void (*free_promises)(struct tnk__context *context);
  tnk__timers_t timers;
  uint64_t armed_ms; /* the deadline `timer` was started for */
  uint64_t wake_ms;  /* when `timer` should fire */
  int n_late_turns;  /* that the timers have let go first, in a row */
  int has_warned;    /* that the loop is late, last at: */
  uint64_t warned_ms;
  size_t n_held;    /* what libuv still holds, our own handles included */
  size_t n_working; /* jobs that run on other threads, see work.h */
  int closing;
  void (*closed_cb)(void *user);
  void *closed_user;
  size_t n_pending;      /* promises that have not settled */
  uint64_t random;       /* state of the generator */
  tnk__moment_t *moment; /* whose time holds; NULL: the clock's */
  uint64_t fake_now;     /* used while `is_fake` */
  int is_fake;
  int fake_wall_offset_s;
  int pid;                  /* of the process that opened it */
  uv_thread_t thread;       /* that opened it */
  struct tnk_promise *oom;  /* handed out when there is no memory for one */
  struct tnk__then *spares; /* callbacks of `oom`, made in advance */
  tnk__counters_t counters;
  tnk_observe_cb observer; /* NULL: nobody hears; see observe.h */
  void *observer_user;
  uint64_t n_operations; /* that it has heard of */
} tnk__context_t;

/* A call to be made from the next turn of the loop. Embedded in its owner. */
typedef struct tnk__deferred {
  tnk__list_t link;
  void (*fn)(struct tnk__deferred *self);
} tnk__deferred_t;

/* Open a context, the reserve of its promises included. The allocator and
 * logger are copied. Returns TNK_OK, TNK_ENOMEM or libuv's code; on failure
 * nothing needs to be closed. */
int tnk__context_open(tnk__context_t *context, uv_loop_t *uv,
                      const tnk_allocator_t *alloc, const tnk_logger_t *logger);
/* The two halves of opening, before libuv knows of it and after that. The first
 * returns TNK_OK or libuv's code, the second cannot fail. */
int tnk__context_init(tnk__context_t *context, uv_loop_t *uv,
                      const tnk_allocator_t *alloc, const tnk_logger_t *logger);
void tnk__context_start(tnk__context_t *context);
/* Keep the loop alive until the context closes, after tnk__context_start(). It
 * is for loops that another event loop turns: see tnk/bindings.h. */
void tnk__context_keep_loop_alive(tnk__context_t *context);
/* Begin to close. `closed` runs when n_held has come down to zero and the
 * deferred queue is empty: whoever holds the context must release it. Allocates
 * nothing. */
void tnk__context_close(tnk__context_t *context, void (*closed)(void *user),
                        void *user);
/* Keep the context from closing while libuv knows something of ours, and
 * release it when libuv does no longer. */
void tnk__context_hold(tnk__context_t *context);
void tnk__context_release(tnk__context_t *context);

void tnk__deferred_init(tnk__deferred_t *call,
                        void (*fn)(tnk__deferred_t *self));
/* Queue a call; one that is queued already stays where it is. */
void tnk__defer(tnk__context_t *context, tnk__deferred_t *call);
/* The same for what gathers the work of others, as one write for many requests:
 * it runs in the first turn without another call, at most a few turns later. */
void tnk__defer_last(tnk__context_t *context, tnk__deferred_t *call);
void tnk__defer_cancel(tnk__deferred_t *call);

/* Monotonic milliseconds: inside of a deferred call those when it first asked,
 * until code of the caller has run. */
uint64_t tnk__context_now_ms(const tnk__context_t *context);
/* The same in nanoseconds, read where it is not known. */
uint64_t tnk__context_read_ns(const tnk__context_t *context);
static inline uint64_t tnk__context_now_ns(const tnk__context_t *context) {
  const tnk__moment_t *moment = context->moment;

  return moment != NULL && moment->ns != 0 ? moment->ns
                                           : tnk__context_read_ns(context);
}
/* Inside of a deferred call: something has been done that takes time, and who
 * asks for it next is told the new one. */
void tnk__context_took_time(const tnk__context_t *context);
/* Between these two no time passes either; `moment` is the caller's, and of the
 * program nothing runs meanwhile but an observer, which returns soon. */
void tnk__context_stop_time(tnk__context_t *context, tnk__moment_t *moment);
void tnk__context_let_time_pass(tnk__context_t *context,
                                const tnk__moment_t *moment);
/* Unix seconds, for comparing with dates on the wire only. */
int64_t tnk__context_wall_s(const tnk__context_t *context);
/* Random numbers: 64 uniform bits, and uniform in [0, 1). Not for secrets. */
uint64_t tnk__context_random(tnk__context_t *context);
double tnk__context_uniform(tnk__context_t *context);

/* Whether this is a child of the process that opened it. Its sockets, and
 * libuv's own descriptors, are the parent's: nothing may be touched. */
int tnk__context_is_forked(const tnk__context_t *context);
/* Check who calls: TNK_OK on the thread and in the process that opened it. */
int tnk__context_check_caller(const tnk__context_t *context);

/* Mark that the program's code runs between these two; tnk_wait() refuses
 * meanwhile. */
void tnk__callout_begin(void);
void tnk__callout_end(void);
int tnk__callout_active(void);

/* Tests: stop reading the clock; time stands still until it is advanced.
 * Advancing fires due timers in order, with `now` at each one's deadline. */
void tnk__context_fake_clock(tnk__context_t *context, uint64_t now_ms);
void tnk__context_advance(tnk__context_t *context, uint64_t ms);

/* Fire `fn` once, `delay_ms` from now; restarts a running timer. */
void tnk__timer_start(tnk__context_t *context, tnk__timer_t *timer,
                      uint64_t delay_ms, void (*fn)(tnk__timer_t *self));
/* Start a timer that does not keep the loop alive. */
void tnk__timer_start_background(tnk__context_t *context, tnk__timer_t *timer,
                                 uint64_t delay_ms,
                                 void (*fn)(tnk__timer_t *self));
/* Stop a timer: it does not fire. Stopping it twice does no harm. */
void tnk__timer_stop(tnk__timer_t *timer);

#endif
