#ifndef TNK_LIB_POLICY_SEMAPHORE_H
#define TNK_LIB_POLICY_SEMAPHORE_H

#include <stddef.h>

#include "lib/policy/waiter.h"

/*
 * A counting semaphore, first come first served, without timers: a slot that
 * is released goes straight to the first waiter and to nobody else.
 *
 * Invariant: while somebody waits, n_held >= limit.
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
 * Ask for a slot. 1: the caller holds one now. 0: queued; `granted` will be
 * called once, with the slot held already. A waiter that asks again (after it
 * gave back its slot because of a 429) gets its old place: it is first in line,
 * in order of first arrival. tnk__waiter_init() makes it new.
 */
int tnk__semaphore_acquire(tnk__semaphore_t *sem, tnk__waiter_t *waiter);
/* Give back one slot; may call one `granted`. */
void tnk__semaphore_release(tnk__semaphore_t *sem);
/* Leave the queue; O(1). Whoever was granted already must release instead. */
void tnk__semaphore_cancel(tnk__semaphore_t *sem, tnk__waiter_t *waiter);
/* A higher limit may call several `granted`; a lower one takes no slot away,
 * it takes effect as slots come back. */
void tnk__semaphore_set_limit(tnk__semaphore_t *sem, size_t limit);

#endif
