#ifndef TNK_LIB_CLIENT_CALL_ENDPOINT_H
#define TNK_LIB_CLIENT_CALL_ENDPOINT_H

#include "lib/base/list.h"
#include "lib/client/call/config.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/context.h"
#include "lib/policy/billing.h"
#include "lib/policy/outage.h"

struct tnk__auth;

/* Why a request was repeated. */
typedef enum {
  TNK__RETRY_CONNECT = 0, /* it had not been sent */
  TNK__RETRY_LOST,
  TNK__RETRY_TIMEOUT,
  TNK__RETRY_RATE,
  TNK__RETRY_BILLING,
  TNK__RETRY_SERVER,
  TNK__RETRY_OTHER,
  TNK__N_RETRY_CAUSES
} tnk__retry_cause_t;

struct tnk__endpoint;

/* What reach.h keeps. */
typedef struct {
  tnk__outage_t outage;
  tnk__outage_t refusals; /* the same, but answered each time with a 5xx */
  uint64_t refused_ms;    /* when the last 5xx came */
  tnk__list_t unanswered; /* pauses after an attempt without a response */
  /* Pauses after a 5xx: [1] of those whose last pause was ended early. */
  tnk__list_t refused[2];
  tnk__timer_t probe;
  tnk__deferred_t notice;
  int last_err;           /* of the last of those attempts */
  int last_status;        /* of the last refusal */
  uint8_t has_answered;   /* something has responded at least once */
  uint8_t is_absent;      /* nothing has, and the connection was refused: */
  char why_absent[128];   /* the sentence that says where */
  int was_told;           /* the observer knows of the outage */
  uint64_t told_since_ms; /* its begin */
  /* Hears of an outage and of its end, in a turn of its own; or NULL. */
  void (*on_change)(struct tnk__endpoint *endpoint, int is_out,
                    const char *reason);
} tnk__reach_t;

/* What call_doubt.c keeps. */
typedef struct {
  tnk__list_t asking; /* refused calls that wait for a heartbeat */
  uint64_t last_ms;   /* of the last such refusal */
  uint64_t round_ms;  /* of the first one of the present round */
  uint32_t n_rounds;  /* in a row */
  /* Ask now whether the session exists, and call tnk__doubts_settle() when that
   * is answered; 1. 0: there is no session to ask about. NULL: nobody asks. */
  int (*ask)(struct tnk__endpoint *endpoint);
} tnk__doubts_t;

/* What call_restart.c keeps. */
typedef struct {
  int is_watching;     /* there is a session whose models could be lost */
  int is_suspected;    /* a connection was refused */
  uint64_t refused_ms; /* the first one */
  tnk__list_t held;    /* of the reachers of calls that wait */
} tnk__restart_t;

/* Where calls go, and what all calls of a service share. */
typedef struct tnk__endpoint {
  tnk__context_t *context;
  const tnk__config_t *config;
  tnk__http_t *http;
  struct tnk__auth *auth;
  tnk__billing_t billing;
  tnk__reach_t reach;
  tnk__doubts_t doubts;
  tnk__restart_t restart;
  /* Optional calls that this server has answered, and those it lacks; sets of
   * tnk__route_bit(). */
  uint64_t offered;
  uint64_t missing;
  /* Members that it has refused, a set of rows of call_extras.c. */
  uint32_t refused_members;
  /* The session that the server has ended; NULL while it lives. */
  const char *ended_session;
  /* Repeated requests; the context's n_retries is their sum. */
  uint64_t n_retries_by[TNK__N_RETRY_CAUSES];
  /* The server has answered something, or the caller has been warned that it
   * cannot be reached. */
  int is_known;
  int closing; /* nothing is repeated any more */
} tnk__endpoint_t;

#endif
