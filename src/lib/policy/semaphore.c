/*
 * A waiter is new (no ticket), holds a slot, waits in the queue, or has
 * returned its slot and may ask again with its ticket. acquire() gives it a
 * slot or queues it. A released slot or a higher limit takes the first waiter
 * out of the queue. cancel() removes a waiter without giving it a slot.
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
