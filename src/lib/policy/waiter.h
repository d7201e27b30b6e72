#ifndef TNK_LIB_POLICY_WAITER_H
#define TNK_LIB_POLICY_WAITER_H

#include <stdint.h>

#include "lib/base/list.h"

/*
 * A node in one of the queues of this folder. Embedded in the operation that
 * waits; one node may serve several queues, one after the other.
 *
 * `granted` is called from the function that freed what was waited for, never
 * from the one that queued. It must do no more than schedule (tnk__defer, a
 * timer): calling back into the same queue from it is not allowed.
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
