#ifndef TNK_LIB_IO_LOOP_TIMER_H
#define TNK_LIB_IO_LOOP_TIMER_H

#include <stddef.h>
#include <stdint.h>

struct tnk__context;

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
 * tnk__timer_stop() of context.h, which also start libuv's timer. `due_ms` and
 * `fn` must be set. */
void tnk__timers_insert(tnk__timers_t *timers, tnk__timer_t *timer,
                        int background);
void tnk__timers_remove(tnk__timers_t *timers, tnk__timer_t *timer);
/* Fire the timers due at `now_ms` that were started before this call. */
void tnk__timers_run(tnk__timers_t *timers, uint64_t now_ms);

int tnk__timer_is_active(const tnk__timer_t *timer);
/* The time until an active timer fires. 0 if it is due; if the loop is late, it
 * may be due for long. */
uint64_t tnk__timer_left_ms(const tnk__timer_t *timer, uint64_t now_ms);
/* Whether an active timer does not keep the loop alive. */
int tnk__timer_is_background(const tnk__timer_t *timer);

#endif
