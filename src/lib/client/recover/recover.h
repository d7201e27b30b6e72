#ifndef TNK_LIB_CLIENT_RECOVER_RECOVER_H
#define TNK_LIB_CLIENT_RECOVER_RECOVER_H

#include "lib/client/recover/breaker.h"
#include "lib/client/recover/run_query.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/session/session.h"
#include "lib/client/train/training.h"

/*
 * What a server has lost, made again: the session, then the clients one after
 * the other. Off unless the program has asked for it.
 *
 * Idle; opening, while a new session is being made; restoring one client;
 * pausing before the next attempt. What is lost meanwhile is noted, and its
 * turn comes.
 */
typedef enum {
  TNK__RECOVERY_IDLE = 0,
  TNK__RECOVERY_OPENING,
  TNK__RECOVERY_RESTORING,
  TNK__RECOVERY_PAUSING
} tnk__recovery_state_t;

typedef struct tnk__recovery {
  tnk__session_t *session;
  const tnk__run_query_t *runs; /* lent */
  tnk__recovery_state_t state;
  int is_lost;         /* the session is, and a new one is needed */
  uint32_t n_attempts; /* of what is under way */
  uint32_t n_losses;   /* of sessions, in a row */
  uint64_t lost_ms;    /* of the last one */
  uint32_t n_restarts; /* of the server, that were suspected */
  tnk__need_t need;
  tnk__timer_t timer;
  tnk__deferred_t next;
  tnk_training_t *training; /* that is restored, with a reference; or NULL */
  tnk_sampling_t *sampling; /* or this one */
  tnk__breaker_t breaker;
  tnk__timer_t monitor;  /* until the next questions about runs */
  tnk_training_t *asked; /* whose run is asked for, with a reference; or NULL */
  uint32_t round;        /* of those questions */
  int is_watching;       /* they have begun */
} tnk__recovery_t;

/* Begin, idle. Nothing is ever done where the options do not ask for it. `runs`
 * must outlive the recovery. */
void tnk__recovery_open(tnk__recovery_t *recovery, tnk__session_t *session,
                        const tnk__run_query_t *runs);
/* Give up whatever is under way; the session is being shut. */
void tnk__recovery_shut(tnk__recovery_t *recovery);

/* ---- A server that was probably restarted: restarted.c ---- */

/* Stop the training clients whose weights may be older, and tell the program,
 * which may close everything. With recovery they are restored. */
void tnk__recovery_restarted(tnk__session_t *session);

/* ---- Runs that the service marks as corrupted: monitor.c ---- */

/* Ask for them after a while, again and again. */
void tnk__monitor_start(tnk__recovery_t *recovery);

/* ---- What the program is told: tell.c ---- */

/* Call the program, and write it to the log. 0: it has closed the service. */
int tnk__recovery_tell(const tnk__recovery_t *recovery,
                       tnk_recovery_event_t event);

#endif
