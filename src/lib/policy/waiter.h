#ifndef TNK_LIB_POLICY_WAITER_H
#define TNK_LIB_POLICY_WAITER_H

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

#endif
