/*
 * A waiter is new (no ticket), holds a slot, waits in the queue, or has given
 * its slot back and may ask again with the ticket it has. acquire() takes it to
 * a slot or into the queue; a slot that comes free, or a higher limit, takes
 * the first one out; cancel() takes one out without a slot.
 */
#include "lib/policy/semaphore.h"

#include "lib/base/alloc.h"

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

/* Newcomers go to the end at once; one that returns is put among the other
 * returned ones at the front, whose number the limit bounds. */
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
  /* Kept over the release of a slot: it is the place in the order of first
   * arrival. */
  if (waiter->ticket == 0)
    waiter->ticket = ++sem->last_ticket;
  if (sem->n_held < sem->limit) {
    sem->n_held++;
    return 1;
  }
  enqueue(sem, waiter);
  return 0;
}

/* Hand free slots to the first waiters. The slot counts as held before its
 * new owner hears of it, so nobody can come in between. */
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
