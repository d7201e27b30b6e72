/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_RECOVER_RECOVER_H
#define TNK_LIB_CLIENT_RECOVER_RECOVER_H

#include "lib/client/recover/run_query.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/session/session.h"
#include "lib/client/train/training.h"

/*
 * A circuit breaker. After max_failures consecutive failures, no attempt is
 * made during pause_ms. Then one attempt decides: a success resets the breaker,
 * a failure restarts the pause.
 */
typedef struct {
  uint64_t max_failures; /* 0: disabled */
  uint64_t pause_ms;
  uint64_t n_failures; /* consecutive */
  uint64_t until_ms;   /* end of the last pause */
} tnk__breaker_t;

void tnk__breaker_init(tnk__breaker_t *breaker, uint64_t max_failures,
                       uint64_t pause_ms);
/* Time until the next attempt is allowed; 0: now. */
uint64_t tnk__breaker_wait_ms(const tnk__breaker_t *breaker, uint64_t now_ms);
void tnk__breaker_failed(tnk__breaker_t *breaker, uint64_t now_ms);
void tnk__breaker_worked(tnk__breaker_t *breaker);

/*
 * Recovery after a loss at the server: first the session, then the clients in
 * sequence. Off unless the program has enabled it.
 *
 * Idle; opening, while a new session is created; restoring one client; pausing
 * before the next attempt. Further losses are recorded and handled in turn.
 */
typedef enum {
  TNK__RECOVERY_IDLE = 0,
  TNK__RECOVERY_OPENING,
  TNK__RECOVERY_RESTORING,
  TNK__RECOVERY_PAUSING
} tnk__recovery_state_t;

typedef struct tnk__recovery {
  tnk__session_t *session;
  tnk__losses_t losses;         /* callbacks of the session */
  const tnk__run_query_t *runs; /* borrowed */
  tnk__recovery_state_t state;
  int is_lost;         /* the session is lost, and a new one is needed */
  uint32_t n_attempts; /* attempts of the current step */
  uint32_t n_losses;   /* consecutive losses of sessions */
  uint64_t lost_ms;    /* time of the last loss */
  uint32_t n_restarts; /* suspected restarts of the server */
  tnk__need_t need;
  tnk__timer_t timer;
  tnk__deferred_t next;
  tnk_training_t *training; /* the client being restored, with a reference;
                               or NULL */
  tnk_sampling_t *sampling; /* or the sampling client being restored */
  tnk__breaker_t breaker;
  tnk__timer_t monitor;  /* starts the next round of run queries */
  tnk_training_t *asked; /* client of the current run query, with a
                            reference; or NULL */
  uint32_t round;        /* number of the round */
  int is_watching;       /* the queries have begun */
} tnk__recovery_t;

/* Begin, idle. Does nothing unless the options enable recovery. `runs` must
 * outlive the recovery. */
void tnk__recovery_open(tnk__recovery_t *recovery, tnk__session_t *session,
                        const tnk__run_query_t *runs);
/* Stop everything. The session is being shut. */
void tnk__recovery_shut(tnk__recovery_t *recovery);

#endif
