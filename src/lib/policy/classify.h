/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_CLASSIFY_H
#define TNK_LIB_POLICY_CLASSIFY_H

#include "lib/policy/retry_after.h"
#include "tnk/error.h"

/*
 * The retry table: the action after each outcome of each kind of call. The
 * table itself, with one row per kind of call, is in classify.c.
 */

typedef enum {
  TNK__CALL_QUERY = 0,      /* start-up and reads; safe to repeat */
  TNK__CALL_CREATE_SESSION, /* a repeat may leave an unused session behind */
  TNK__CALL_CREATE, /* a model or a sampling session; a repeat may leave an
                       unused one */
  TNK__CALL_TRAIN,  /* carries a sequence number */
  TNK__CALL_SAVE,   /* under a name; carries a sequence number */
  TNK__CALL_SAMPLE, /* a submission, with its own sequence number */
  TNK__CALL_POLL,   /* the future of any operation except a sample */
  TNK__CALL_POLL_SAMPLE,
  TNK__CALL_HEARTBEAT,
  TNK__CALL_CANCEL,
  TNK__CALL_FINISH,
  TNK__CALL_CHANGE,  /* changes an object of the service; may run twice */
  TNK__CALL_PUBLISH, /* or unpublish; a 409 means that it is already done */
  TNK__CALL_DELETE,
  TNK__N_CALLS
} tnk__call_kind_t;

typedef enum {
  TNK__OUTCOME_2XX = 0,
  TNK__OUTCOME_3XX, /* a redirect that is not followed */
  TNK__OUTCOME_400,
  TNK__OUTCOME_400_EMPTY, /* no body at all: sent by a proxy, not by the
                             service */
  TNK__OUTCOME_401,
  TNK__OUTCOME_402,
  TNK__OUTCOME_403,
  TNK__OUTCOME_404,
  TNK__OUTCOME_405,
  TNK__OUTCOME_408,
  TNK__OUTCOME_409,
  TNK__OUTCOME_410,
  TNK__OUTCOME_413,
  TNK__OUTCOME_422,
  TNK__OUTCOME_425,
  TNK__OUTCOME_429,
  TNK__OUTCOME_4XX, /* the rest */
  TNK__OUTCOME_5XX,
  TNK__OUTCOME_STRANGE,   /* any other number */
  TNK__OUTCOME_UNSENT,    /* failed before a byte of the request went out */
  TNK__OUTCOME_UNTRUSTED, /* the certificate was not accepted; nothing sent */
  /* A proxy did not forward the request, or the server refused to speak with
   * us. A repeat would fail as well, but accepted requests stay accepted. */
  TNK__OUTCOME_REFUSED,
  TNK__OUTCOME_LOST,      /* connection lost after sending, no status seen */
  TNK__OUTCOME_TIMEOUT,   /* our own limit, request sent, no status seen */
  TNK__OUTCOME_TRUNCATED, /* a 2xx or the last answer to a poll, with its
                             body cut off */
  /* A 2xx with an unusable body. Numbered requests are retried a few times,
   * because the server sends the id again, and a proxy may have sent this
   * response. Requests that create a new object each time are not retried. */
  TNK__OUTCOME_MALFORMED,
  TNK__OUTCOME_TOO_BIG, /* a 2xx over one of our limits */
  TNK__N_OUTCOMES
} tnk__outcome_t;

typedef enum {
  TNK__ACTION_SUCCEED = 0,
  TNK__ACTION_FAIL,
  TNK__ACTION_RETRY,    /* same bytes, number and key, after retry.h's delay */
  TNK__ACTION_REPOLL,   /* poll again; poll.h has the delay */
  TNK__ACTION_BACK_OFF, /* wait for the limiter, then send the same request
                           again */
  TNK__ACTION_PAUSE,    /* billing.h decides whether and how long */
  TNK__ACTION_RESUBMIT, /* as a new submission with a new number */
  TNK__ACTION_HEAL      /* the server expects another number: turns.h */
} tnk__action_t;

/* The effect of the request on the server, as far as it is known. */
typedef enum {
  TNK__EFFECT_NONE = 0, /* not accepted: its sequence number is still free */
  TNK__EFFECT_ACCEPTED, /* accepted: the number is used, whatever happens
                           next */
  TNK__EFFECT_UNKNOWN   /* only a repeat of the same bytes may find out */
} tnk__effect_t;

/* The delays and limits of a retry. */
typedef enum {
  TNK__SCHEDULE_NONE = 0,
  TNK__SCHEDULE_REQUEST, /* 0.5 s doubling to 10 s, limited in number */
  TNK__SCHEDULE_LONG     /* 1 s doubling to 30 s, limited only by patience */
} tnk__schedule_t;

/* One finished attempt. 0 is the default of the optional fields. */
typedef struct {
  tnk__call_kind_t call;
  tnk__outcome_t outcome;
  tnk__should_retry_t should_retry;
  tnk_category_t category; /* in the error's body, if there */
  int optional; /* servers may lack this call: a 404 is TNK_EUNSUPPORTED */
  int conflict; /* a 409 named the sequence number it expects, which is
                   higher (1) or lower (-1) than ours; 0: it named none */
  /* The effect of an earlier attempt of this submission is not known. Before
   * the next attempt the owner records each verdict's effect here. */
  int was_unknown;
  int was_replayed;  /* a kept connection broke during this attempt, and the
                        request was sent once more */
  int is_taken;      /* a refusal says that other bytes have the number */
  int doubts_number; /* for a 409 that names no number: the number was
                        refused and given back before, and is still refused */
  int in_session;    /* a query about an object that the session holds */
  int session_ended; /* the server has reported the end of the session, which
                        explains a refusal */
  int was_accepted;  /* by a response that broke off: only the id is lost */
} tnk__attempt_t;

typedef struct {
  tnk__action_t action;
  tnk__schedule_t schedule; /* for TNK__ACTION_RETRY */
  /* The error to report if this is the end. The transport's own code (TNK_EDNS,
   * TNK_ETLS) takes precedence. TNK_OK with SUCCEED only. */
  int err;
  /* If this is the end: the effect of all attempts together. */
  tnk__effect_t effect;
  /* With NONE: the number is given back because the server probably does not
   * have it, but an earlier attempt may have been accepted. */
  int in_doubt;
  tnk_ran_t ran; /* if this is the end: whether the request was or will be
                    run */
  int counts;    /* uses up a retry; pauses and waits for the limiter do not */
  int backs_off; /* set the shared back-off, whatever the action is */
} tnk__verdict_t;

/* The outcome of a response with `status`, which may be any number. n_body is
 * the length of the body before decoding. */
tnk__outcome_t tnk__outcome_of_status(int status, size_t n_body);
/* The outcome of a response whose body broke off. The status of a refusal is
 * sufficient for most calls. A poll that would end with it is sent again: that
 * costs nothing, and the lost body may hold the reason why the operation
 * failed. */
tnk__outcome_t tnk__outcome_of_cut(tnk__call_kind_t call, int status);
/* Returns whether the server answered with a status that reports a failure. */
int tnk__outcome_is_refusal(tnk__outcome_t outcome);
tnk__verdict_t tnk__classify(const tnk__attempt_t *attempt);
/* Returns whether a sample that ended with err may be submitted again, if the
 * service's option retry_samples is set. Protocol: sampling, retry handler. */
int tnk__sample_may_resubmit(int err);

#endif
