#ifndef TNK_LIB_IO_LOOP_TIMER_H
#define TNK_LIB_IO_LOOP_TIMER_H

#include <stddef.h>
#include <stdint.h>

struct tnk__context;

/*
 * A one-shot timer, embedded in its owner and zeroed before its first use.
 * Starting and stopping are immediate: once stopped it does not fire. Kept in
 * a pairing heap of the context, so neither can fail.
 */
typedef struct tnk__timer {
  struct tnk__timer *child;
  struct tnk__timer *next; /* sibling */
  struct tnk__timer *prev; /* elder sibling, or the parent of a first child */
  struct tnk__context *context; /* NULL while stopped */
  uint64_t due_ms;
  /* The order of starting, times two; ties fire in it. The lowest bit: it does
   * not keep the loop alive. */
  uint64_t order;
  void (*fn)(struct tnk__timer *self);
} tnk__timer_t;

/* The timers of one context. */
typedef struct {
  tnk__timer_t *root;  /* the earliest */
  uint64_t n_started;  /* gives each start its order */
  size_t n_foreground; /* those that keep the loop alive */
} tnk__timers_t;

/* The heap alone; owners use tnk__timer_start() and _stop() of context.h, which
 * also arm libuv's timer. `due_ms` and `fn` are set. */
void tnk__timers_insert(tnk__timers_t *timers, tnk__timer_t *timer,
                        int background);
void tnk__timers_remove(tnk__timers_t *timers, tnk__timer_t *timer);
/* Fire what is due at `now_ms`, at most what was started before the call. */
void tnk__timers_run(tnk__timers_t *timers, uint64_t now_ms);

int tnk__timer_is_active(const tnk__timer_t *timer);
/* The time until an active timer fires. 0 when it is due, which it may be for
 * long where the loop is late. */
uint64_t tnk__timer_left_ms(const tnk__timer_t *timer, uint64_t now_ms);
/* Whether an active timer does not keep the loop alive. */
int tnk__timer_is_background(const tnk__timer_t *timer);

#endif
