#ifndef TNK_LIB_POLICY_SEMAPHORE_H
#define TNK_LIB_POLICY_SEMAPHORE_H

#include <stddef.h>

#include "lib/policy/waiter.h"

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

#endif
