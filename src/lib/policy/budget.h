#ifndef TNK_LIB_POLICY_BUDGET_H
#define TNK_LIB_POLICY_BUDGET_H

#include <stddef.h>

#include "lib/policy/waiter.h"

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
