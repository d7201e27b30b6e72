#ifndef TNK_LOOP_TIMER_H
#define TNK_LOOP_TIMER_H

#include <stddef.h>
#include <stdint.h>

struct tnk__loop;

/*
 * A one-shot timer, embedded in its owner and zeroed before its first use.
 * Starting and stopping are immediate: once stopped it does not fire. Kept in
 * a pairing heap of the context, so neither can fail.
 */
typedef struct tnk__timer {
  struct tnk__timer *child;
  struct tnk__timer *next; /* sibling */
  struct tnk__timer *prev; /* elder sibling, or the parent of a first child */
  struct tnk__loop *loop;  /* NULL while stopped */
  uint64_t due_ms;
  uint64_t order; /* of starting; ties fire in this order */
  void (*fn)(struct tnk__timer *self);
  int background; /* does not keep the loop alive */
} tnk__timer_t;

typedef struct {
  tnk__timer_t *root;
  uint64_t n_started;
  size_t n_foreground; /* active ones that keep the loop alive */
} tnk__timers_t;

/* Fire `fn` once, `delay_ms` from now; restarts a running timer. */
void tnk__timer_start(struct tnk__loop *loop, tnk__timer_t *timer,
                      uint64_t delay_ms, void (*fn)(tnk__timer_t *self));
/* The same without keeping the loop alive. */
void tnk__timer_start_background(struct tnk__loop *loop, tnk__timer_t *timer,
                                 uint64_t delay_ms,
                                 void (*fn)(tnk__timer_t *self));
void tnk__timer_stop(tnk__timer_t *timer);
int tnk__timer_is_active(const tnk__timer_t *timer);
/* Fire what is due at `now_ms`, at most what was started before the call. */
void tnk__timers_run(tnk__timers_t *timers, uint64_t now_ms);

#endif
