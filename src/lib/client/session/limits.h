/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_SESSION_LIMITS_H
#define TNK_LIB_CLIENT_SESSION_LIMITS_H

#include "lib/client/call/config.h"
#include "lib/io/loop/context.h"
#include "lib/policy/limiter.h"
#include "lib/policy/semaphore.h"
#include "lib/policy/window.h"
#include "lib/usage/allowance.h"
#include "lib/wire/message/calls_session.h"

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

/* Ask to pass. Returns 1 if there is no back-off. Returns 0 if the waiter was
 * queued: `granted` will be called once, and then this must be called again.
 * The gate needs no tickets. */
int tnk__gate_pass(tnk__gate_t *gate, tnk__waiter_t *waiter);
/* Remove the waiter from the queue, if it is there. */
void tnk__gate_cancel(tnk__gate_t *gate, tnk__waiter_t *waiter);

/*
 * The limits of a service. All its clients share them.
 *
 * An operation returns the slots, bytes and tokens that it has taken, at the
 * latest before it is freed. The limits know no client: they only queue
 * waiters.
 */
typedef struct tnk__limits {
  tnk__allowance_t allowance; /* the allowance, and the usage so far */
  tnk__limiter_t limiter;
  tnk__gate_t gate; /* samples that wait for the end of a back-off */
  tnk__budget_t train_bytes;
  tnk__budget_t result_bytes;
  tnk__budget_t sample_bytes;
  tnk__semaphore_t sample_running;  /* from the first attempt to the result */
  tnk__semaphore_t sample_slots;    /* while being submitted */
  tnk__window_t sample_window;      /* sets the limit of sample_slots */
  tnk__semaphore_t sample_throttle; /* a second slot; the gate sets its limit */
  tnk__semaphore_t fetches;         /* fetches of results that a poller has
                                       reported */
  tnk__semaphore_t checks; /* polls of samples that were silent for long */
  size_t n_pollers;        /* pollers of clients; each holds one poll */
  size_t max_pollers;
} tnk__limits_t;

/* Begin with the default flags, and join the back-off of other services. The
 * memory is zeroed. */
void tnk__limits_open(tnk__limits_t *limits, tnk__context_t *context,
                      const tnk__config_t *config, const tnk__flags_t *flags);
void tnk__limits_close(tnk__limits_t *limits, uint64_t now_ms);
/* Apply the server's flags. */
void tnk__limits_apply(tnk__limits_t *limits, const tnk__flags_t *flags);
/* Returns whether one more poller may hold a poll. Fetches need most of them.
 */
int tnk__limits_has_poller(const tnk__limits_t *limits);

#endif
