#ifndef TNK_LIB_CLIENT_SESSION_GATE_H
#define TNK_LIB_CLIENT_SESSION_GATE_H

#include "lib/io/loop/context.h"
#include "lib/policy/limiter.h"
#include "lib/policy/semaphore.h"

/*
 * Holds samples until the end of a back-off: one queue and one timer for a
 * service. The timer follows the limiter, which may move the deadline in both
 * directions.
 *
 * It also sets the limit of `slots`: `few` during a back-off and for a while
 * after it, unlimited otherwise. Every sample takes a slot at all times, so
 * that earlier samples are not overtaken when the limit is lifted.
 */
typedef struct {
  tnk__context_t *context;
  tnk__limiter_t *limiter;
  tnk__limiter_watcher_t watcher;
  tnk__timer_t timer;
  tnk__list_t waiting; /* in order of arrival */
  tnk__semaphore_t *slots;
  size_t few;
  tnk__timer_t calm; /* lifts the limit of slots */
} tnk__gate_t;

void tnk__gate_open(tnk__gate_t *gate, tnk__context_t *context,
                    tnk__limiter_t *limiter, tnk__semaphore_t *slots,
                    size_t few);
void tnk__gate_close(tnk__gate_t *gate);
/* Ask to pass. Returns 1 if there is no back-off. Returns 0 if the waiter was
 * queued: `granted` will be called once, and then this must be called again.
 * The gate needs no tickets. */
int tnk__gate_pass(tnk__gate_t *gate, tnk__waiter_t *waiter);
/* Remove the waiter from the queue, if it is there. */
void tnk__gate_cancel(tnk__gate_t *gate, tnk__waiter_t *waiter);

#endif
