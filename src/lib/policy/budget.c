/*
 * A payer is idle, waits in the queue, or has paid. acquire() lets it pay at
 * once or queues it. admit() takes payers from the front while the balance is
 * not negative. release() makes the payer idle again.
 *
 * The cost is known only at admission, so nothing is reserved for waiters.
 */
#include "lib/policy/budget.h"

#include "lib/base/alloc.h"

/* Sums of this many bytes do not overflow int64_t. */
#define MAX_AMOUNT ((uint64_t)INT64_MAX / 4)

static int64_t amount(uint64_t n) {
  return (int64_t)(n > MAX_AMOUNT ? MAX_AMOUNT : n);
}

static tnk__payer_t *payer_of(tnk__list_t *link) {
  return tnk__container_of(link, tnk__payer_t, waiter.link);
}

void tnk__budget_init(tnk__budget_t *budget, uint64_t size) {
  tnk__list_init(&budget->waiters);
  budget->size = amount(size);
  budget->balance = budget->size;
  budget->n_waiting = 0;
}

void tnk__payer_init(tnk__payer_t *payer, void (*granted)(tnk__waiter_t *self),
                     uint64_t (*cost)(tnk__payer_t *self)) {
  tnk__waiter_init(&payer->waiter, granted);
  payer->cost = cost;
  payer->paid = 0;
}

static void pay(tnk__budget_t *budget, tnk__payer_t *payer) {
  payer->paid = amount(payer->cost(payer));
  budget->balance -= payer->paid;
}

int tnk__budget_acquire(tnk__budget_t *budget, tnk__payer_t *payer) {
  if (tnk__waiter_is_queued(&payer->waiter))
    return 0;
  /* The queue must be empty as well: waiters come before a new payer when the
   * balance recovers. */
  if (budget->balance >= 0 && tnk__list_empty(&budget->waiters)) {
    pay(budget, payer);
    return 1;
  }
  tnk__list_append(&budget->waiters, &payer->waiter.link);
  budget->n_waiting++;
  return 0;
}

static void admit(tnk__budget_t *budget) {
  while (budget->balance >= 0) {
    tnk__list_t *link = tnk__list_pop(&budget->waiters);

    if (link == NULL)
      return;
    budget->n_waiting--;
    pay(budget, payer_of(link));
    payer_of(link)->waiter.granted(&payer_of(link)->waiter);
  }
}

void tnk__budget_release(tnk__budget_t *budget, tnk__payer_t *payer) {
  if (tnk__waiter_is_queued(&payer->waiter)) {
    tnk__list_remove(&payer->waiter.link);
    budget->n_waiting--;
    return;
  }
  budget->balance += payer->paid;
  payer->paid = 0;
  admit(budget);
}

void tnk__budget_set_size(tnk__budget_t *budget, uint64_t size) {
  int64_t now = amount(size);

  budget->balance += now - budget->size;
  budget->size = now;
  admit(budget);
}
