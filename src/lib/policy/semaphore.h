/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_SEMAPHORE_H
#define TNK_LIB_POLICY_SEMAPHORE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"

/*
 * A node in one of the queues of this folder, embedded in the operation that
 * waits. One node may serve several queues, one after the other.
 *
 * The function that releases a resource calls `granted`; the function that
 * queued the node never does. `granted` must only schedule (tnk__defer, a
 * timer). It must not call back into the same queue.
 */
typedef struct tnk__waiter {
  tnk__list_t link; /* in the queue; points to itself when in none */
  uint64_t ticket;  /* order of first arrival; 0: has not asked yet */
  void (*granted)(struct tnk__waiter *self);
} tnk__waiter_t;

static inline void tnk__waiter_init(tnk__waiter_t *waiter,
                                    void (*granted)(tnk__waiter_t *self)) {
  tnk__list_init(&waiter->link);
  waiter->ticket = 0;
  waiter->granted = granted;
}

static inline int tnk__waiter_is_queued(const tnk__waiter_t *waiter) {
  return !tnk__list_empty(&waiter->link);
}

/*
 * A counting semaphore without timers, first come first served. A released slot
 * goes directly to the first waiter.
 *
 * Invariant: n_held >= limit while the queue is not empty.
 */
typedef struct {
  tnk__list_t waiters; /* by ticket */
  size_t limit;
  size_t n_held; /* may exceed a limit that was lowered */
  size_t n_waiting;
  uint64_t last_ticket;
} tnk__semaphore_t;

#define TNK__SEMAPHORE_UNLIMITED SIZE_MAX

void tnk__semaphore_init(tnk__semaphore_t *sem, size_t limit);
/*
 * Ask for a slot. Returns 1 if the caller holds one now. Returns 0 if the
 * waiter was queued: `granted` will be called once, with the slot already held.
 *
 * A waiter that returns its slot because of a 429 may ask again. It keeps its
 * original place in the order of arrival. tnk__waiter_init() makes it new.
 */
int tnk__semaphore_acquire(tnk__semaphore_t *sem, tnk__waiter_t *waiter);
/* Return one slot. May call one `granted`. */
void tnk__semaphore_release(tnk__semaphore_t *sem);
/* Leave the queue, in O(1). A waiter that already holds a slot must release it
 * instead. */
void tnk__semaphore_cancel(tnk__semaphore_t *sem, tnk__waiter_t *waiter);
/* Change the limit. A higher limit may call several `granted`. A lower limit
 * takes effect as slots are returned. */
void tnk__semaphore_set_limit(tnk__semaphore_t *sem, size_t limit);

/*
 * A byte budget, first come first served. The first waiter is admitted while
 * the balance is not negative, and pays its whole cost then. So the balance may
 * drop below zero, and a request larger than the budget still gets through. No
 * waiter overtakes the first one.
 */
typedef struct {
  tnk__list_t waiters;
  int64_t size;
  int64_t balance; /* size minus the bytes that are paid */
  size_t n_waiting;
} tnk__budget_t;

/* Embedded in the operation that pays. */
typedef struct tnk__payer {
  tnk__waiter_t waiter;
  /* Returns the cost. It is called once, at the moment of admission, because
   * the cost depends on whether the service is throttling by then. Must not
   * call the budget. */
  uint64_t (*cost)(struct tnk__payer *self);
  int64_t paid; /* bytes that release returns; 0 when none are held */
} tnk__payer_t;

void tnk__budget_init(tnk__budget_t *budget, uint64_t size);
void tnk__payer_init(tnk__payer_t *payer, void (*granted)(tnk__waiter_t *self),
                     uint64_t (*cost)(tnk__payer_t *self));
/* Ask for the bytes. 1: admitted and paid. 0: queued; `waiter.granted` will be
 * called once. */
int tnk__budget_acquire(tnk__budget_t *budget, tnk__payer_t *payer);
/* Return the bytes that were paid, or leave the queue. Does nothing in any
 * other state. May call several `granted`. */
void tnk__budget_release(tnk__budget_t *budget, tnk__payer_t *payer);
/* Change the size to the server's value. May call several `granted`. */
void tnk__budget_set_size(tnk__budget_t *budget, uint64_t size);

#endif
