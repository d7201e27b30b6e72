#ifndef TNK_LIB_CLIENT_SESSION_GATE_H
#define TNK_LIB_CLIENT_SESSION_GATE_H

#include "lib/io/loop/context.h"
#include "lib/policy/limiter.h"
#include "lib/policy/semaphore.h"

/*
 * Where samples wait for the end of a back-off: one queue and one timer for
 * all of a service. The timer follows the limiter, which may move the deadline
 * either way meanwhile.
 *
 * It also keeps the limit of `slots`: `few` during a back-off and for a while
 * after it, none otherwise. Everybody takes one of them at all times, so that
 * those who came before the limit was lifted are not overtaken.
 */
typedef struct {
  tnk__context_t *context;
  tnk__limiter_t *limiter;
  tnk__limiter_watcher_t watcher;
  tnk__timer_t timer;
  tnk__list_t waiting; /* in order of arrival */
  tnk__semaphore_t *slots;
  size_t few;
  tnk__timer_t calm; /* when the limit of slots is lifted */
} tnk__gate_t;

void tnk__gate_open(tnk__gate_t *gate, tnk__context_t *context,
                    tnk__limiter_t *limiter, tnk__semaphore_t *slots,
                    size_t few);
void tnk__gate_close(tnk__gate_t *gate);
/* Ask to go through. 1: there is no back-off, go. 0: queued; `granted` will be
 * called once, and then this is to be asked again. The gate needs no
 * tickets. */
int tnk__gate_pass(tnk__gate_t *gate, tnk__waiter_t *waiter);
/* Takes the waiter out of the queue, if it is there. */
void tnk__gate_cancel(tnk__gate_t *gate, tnk__waiter_t *waiter);

#endif
