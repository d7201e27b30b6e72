#include "loop/timer.h"

#include "loop/loop.h"

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

/* Turn a list of siblings into one heap: pairs from the left, then the pairs
 * from the right. */
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

/* Take a timer out of the heap. */
static void detach(tnk__timers_t *timers, tnk__timer_t *timer) {
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
  timer->loop = NULL;
  if (!timer->background)
    timers->n_foreground--;
}

static void start(struct tnk__loop *loop, tnk__timer_t *timer,
                  uint64_t delay_ms, void (*fn)(tnk__timer_t *self),
                  int background) {
  uint64_t now = tnk__loop_now_ms(loop);

  if (timer->loop != NULL)
    detach(&timer->loop->timers, timer);
  timer->child = timer->next = timer->prev = NULL;
  timer->loop = loop;
  timer->due_ms = delay_ms > UINT64_MAX - now ? UINT64_MAX : now + delay_ms;
  timer->order = loop->timers.n_started++;
  timer->fn = fn;
  timer->background = background;
  loop->timers.root = meld(loop->timers.root, timer);
  if (!background)
    loop->timers.n_foreground++;
  tnk__loop_timers_changed(loop);
}

void tnk__timer_start(struct tnk__loop *loop, tnk__timer_t *timer,
                      uint64_t delay_ms, void (*fn)(tnk__timer_t *self)) {
  start(loop, timer, delay_ms, fn, 0);
}

void tnk__timer_start_background(struct tnk__loop *loop, tnk__timer_t *timer,
                                 uint64_t delay_ms,
                                 void (*fn)(tnk__timer_t *self)) {
  start(loop, timer, delay_ms, fn, 1);
}

void tnk__timer_stop(tnk__timer_t *timer) {
  struct tnk__loop *loop = timer->loop;

  if (loop == NULL)
    return;
  detach(&loop->timers, timer);
  tnk__loop_timers_changed(loop);
}

int tnk__timer_is_active(const tnk__timer_t *timer) {
  return timer->loop != NULL;
}

void tnk__timers_run(tnk__timers_t *timers, uint64_t now_ms) {
  const uint64_t limit = timers->n_started;

  for (;;) {
    tnk__timer_t *timer = timers->root;
    /* A timer that restarts itself with no delay waits for the next turn. */
    if (timer == NULL || timer->due_ms > now_ms || timer->order >= limit)
      return;
    detach(timers, timer);
    timer->fn(timer);
  }
}
