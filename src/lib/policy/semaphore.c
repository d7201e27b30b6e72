/* SPDX-License-Identifier: MIT */
#include "lib/policy/semaphore.h"

#include "lib/base/alloc.h"

/* ---- Slots ---- */

/*
 * A waiter is new (no ticket), holds a slot, waits in the queue, or has
 * returned its slot and may ask again with its ticket. acquire() gives it a
 * slot or queues it. A released slot or a higher limit takes the first waiter
 * out of the queue. cancel() removes a waiter without giving it a slot.
 */

static tnk__waiter_t *waiter_of(tnk__list_t *link) {
  return tnk__container_of(link, tnk__waiter_t, link);
}

void tnk__semaphore_init(tnk__semaphore_t *sem, size_t limit) {
  tnk__list_init(&sem->waiters);
  sem->limit = limit;
  sem->n_held = 0;
  sem->n_waiting = 0;
  sem->last_ticket = 0;
}

/* Newcomers go to the end in O(1). A waiter that returns is placed among the
 * other returned waiters at the front, whose number the limit bounds. */
static void enqueue(tnk__semaphore_t *sem, tnk__waiter_t *waiter) {
  tnk__list_t *before = sem->waiters.prev;

  if (before != &sem->waiters && waiter_of(before)->ticket > waiter->ticket) {
    before = &sem->waiters;
    while (waiter_of(before->next)->ticket < waiter->ticket)
      before = before->next;
  }
  tnk__list_prepend(before, &waiter->link);
  sem->n_waiting++;
}

int tnk__semaphore_acquire(tnk__semaphore_t *sem, tnk__waiter_t *waiter) {
  if (tnk__waiter_is_queued(waiter))
    return 0;
  /* The ticket survives the release of a slot. It is the place in the order of
   * first arrival. */
  if (waiter->ticket == 0)
    waiter->ticket = ++sem->last_ticket;
  if (sem->n_held < sem->limit) {
    sem->n_held++;
    return 1;
  }
  enqueue(sem, waiter);
  return 0;
}

/* Give free slots to the first waiters. A slot counts as held before `granted`
 * is called, so no other waiter can take it. */
static void grant(tnk__semaphore_t *sem) {
  while (sem->n_held < sem->limit) {
    tnk__list_t *link = tnk__list_pop(&sem->waiters);

    if (link == NULL)
      return;
    sem->n_waiting--;
    sem->n_held++;
    waiter_of(link)->granted(waiter_of(link));
  }
}

void tnk__semaphore_release(tnk__semaphore_t *sem) {
  if (sem->n_held == 0)
    return;
  sem->n_held--;
  grant(sem);
}

void tnk__semaphore_cancel(tnk__semaphore_t *sem, tnk__waiter_t *waiter) {
  if (!tnk__waiter_is_queued(waiter))
    return;
  tnk__list_remove(&waiter->link);
  sem->n_waiting--;
}

void tnk__semaphore_set_limit(tnk__semaphore_t *sem, size_t limit) {
  sem->limit = limit;
  grant(sem);
}

/* ---- Bytes ---- */

/*
 * A payer is idle, waits in the queue, or has paid. acquire() lets it pay at
 * once or queues it. admit() takes payers from the front while the balance is
 * not negative. release() makes the payer idle again.
 *
 * The cost is known only at admission, so nothing is reserved for waiters.
 */

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
