#ifndef TNK_LIB_POLICY_BUDGET_H
#define TNK_LIB_POLICY_BUDGET_H

#include <stddef.h>

#include "lib/policy/waiter.h"

/*
 * A byte budget, first come first served: the first waiter is admitted while
 * the balance is not negative, and pays its whole cost then, so the balance
 * may go below zero and one oversize request always gets through. Nobody
 * overtakes the first waiter.
 */
typedef struct {
  tnk__list_t waiters;
  int64_t size;
  int64_t balance; /* size minus what is taken */
  size_t n_waiting;
} tnk__budget_t;

/* Embedded in the operation that pays. */
typedef struct tnk__payer {
  tnk__waiter_t waiter;
  /* The price, asked once, at the moment of admission and not before: it
   * depends on whether the service is throttling by then. Must not call the
   * budget. */
  uint64_t (*cost)(struct tnk__payer *self);
  int64_t paid; /* what release gives back; 0 when nothing is held */
} tnk__payer_t;

void tnk__budget_init(tnk__budget_t *budget, uint64_t size);
void tnk__payer_init(tnk__payer_t *payer, void (*granted)(tnk__waiter_t *self),
                     uint64_t (*cost)(tnk__payer_t *self));
/* Ask for the bytes. 1: admitted and paid. 0: queued; `waiter.granted` will be
 * called once. */
int tnk__budget_acquire(tnk__budget_t *budget, tnk__payer_t *payer);
/* Give back what was paid, or leave the queue; harmless when neither holds.
 * May call several `granted`. */
void tnk__budget_release(tnk__budget_t *budget, tnk__payer_t *payer);
/* Change the size, as the server wants; may call several `granted`. */
void tnk__budget_set_size(tnk__budget_t *budget, uint64_t size);

#endif
