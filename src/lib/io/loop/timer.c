/* SPDX-License-Identifier: MIT */
/*
 * A pairing heap. A timer is either stopped (`context` is NULL) or in the heap
 * of that context. It leaves the heap before its function is called, so the
 * function may start it again or free its owner.
 */
#include "lib/io/loop/context.h"

static int is_before(const tnk__timer_t *a, const tnk__timer_t *b) {
  return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

/* Join two heaps; either may be NULL. The roots have no siblings. */
static tnk__timer_t *meld(tnk__timer_t *a, tnk__timer_t *b) {
  if (a == NULL)
    return b;
  if (b == NULL)
    return a;
  if (is_before(b, a)) {
    tnk__timer_t *t = a;
    a = b;
    b = t;
  }
  b->prev = a;
  b->next = a->child;
  if (a->child != NULL)
    a->child->prev = b;
  a->child = b;
  return a;
}

/* Merge a list of siblings into one heap: first pairs from the left, then the
 * pairs from the right. */
static tnk__timer_t *meld_siblings(tnk__timer_t *first) {
  tnk__timer_t *pairs = NULL;
  tnk__timer_t *root = NULL;

  while (first != NULL) {
    tnk__timer_t *a = first;
    tnk__timer_t *b = a->next;
    tnk__timer_t *rest = b != NULL ? b->next : NULL;
    a->next = a->prev = NULL;
    if (b != NULL)
      b->next = b->prev = NULL;
    a = meld(a, b);
    a->next = pairs;
    pairs = a;
    first = rest;
  }
  while (pairs != NULL) {
    tnk__timer_t *rest = pairs->next;
    pairs->next = NULL;
    root = meld(root, pairs);
    pairs = rest;
  }
  return root;
}

void tnk__timers_insert(tnk__timers_t *timers, tnk__timer_t *timer,
                        int background) {
  timer->child = timer->next = timer->prev = NULL;
  timer->order = timers->n_started++ << 1 | (background ? 1 : 0);
  timers->root = meld(timers->root, timer);
  if (!background)
    timers->n_foreground++;
}

void tnk__timers_remove(tnk__timers_t *timers, tnk__timer_t *timer) {
  tnk__timer_t *children = meld_siblings(timer->child);

  if (timers->root == timer) {
    timers->root = children;
  } else {
    if (timer->prev->child == timer)
      timer->prev->child = timer->next;
    else
      timer->prev->next = timer->next;
    if (timer->next != NULL)
      timer->next->prev = timer->prev;
    timers->root = meld(timers->root, children);
  }
  timer->child = timer->next = timer->prev = NULL;
  timer->context = NULL;
  if (!tnk__timer_is_background(timer))
    timers->n_foreground--;
}

int tnk__timer_is_active(const tnk__timer_t *timer) {
  return timer->context != NULL;
}

uint64_t tnk__timer_left_ms(const tnk__timer_t *timer, uint64_t now_ms) {
  return timer->due_ms > now_ms ? timer->due_ms - now_ms : 0;
}

int tnk__timer_is_background(const tnk__timer_t *timer) {
  return (timer->order & 1) != 0;
}

void tnk__timers_run(tnk__timers_t *timers, uint64_t now_ms) {
  const uint64_t limit = timers->n_started;

  for (;;) {
    tnk__timer_t *timer = timers->root;
    /* A timer that restarts itself without a delay waits for the next turn of
     * the loop. */
    if (timer == NULL || timer->due_ms > now_ms || timer->order >> 1 >= limit)
      return;
    tnk__timers_remove(timers, timer);
    timer->fn(timer);
  }
}
