/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_ENDPOINT_H
#define TNK_LIB_CLIENT_CALL_ENDPOINT_H

#include "lib/base/list.h"
#include "lib/client/call/config.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/context.h"
#include "lib/policy/billing.h"
#include "lib/policy/queue_state.h"

struct tnk__auth;

/* Causes of retries. */
typedef enum {
  TNK__RETRY_CONNECT = 0, /* the request was not sent */
  TNK__RETRY_LOST,
  TNK__RETRY_TIMEOUT,
  TNK__RETRY_RATE,
  TNK__RETRY_BILLING,
  TNK__RETRY_SERVER,
  TNK__RETRY_OTHER,
  TNK__N_RETRY_CAUSES
} tnk__retry_cause_t;

struct tnk__endpoint;

/* State of reach.h. */
typedef struct {
  tnk__outage_t outage;
  tnk__outage_t refusals; /* the same for responses that are all 5xx */
  uint64_t refused_ms;    /* when the last 5xx came */
  tnk__list_t unanswered; /* pauses after an attempt without a response */
  /* Pauses after a 5xx. In [1] are those whose previous pause was ended
   * early. */
  tnk__list_t refused[2];
  tnk__timer_t probe;
  tnk__deferred_t notice;
  int last_err;           /* error of the last unanswered attempt */
  int last_status;        /* status of the last refusal */
  uint8_t has_answered;   /* something has responded at least once */
  uint8_t is_absent;      /* never a response, and connections are refused */
  char why_absent[128];   /* the message about it, with the address */
  int was_told;           /* the observer was notified of the outage */
  uint64_t told_since_ms; /* begin of that outage */
  /* Called at the begin and the end of an outage, in its own turn of the loop;
   * or NULL. */
  void (*on_change)(struct tnk__endpoint *endpoint, int is_out,
                    const char *reason);
} tnk__reach_t;

/* The refusals of calls, see call_doubt.c. */
typedef struct {
  uint64_t last_ms;  /* time of the last one */
  uint64_t round_ms; /* time of the first one in the current round */
  uint32_t n_rounds; /* consecutive */
} tnk__pace_t;

/* State of call_doubt.c. */
typedef struct {
  tnk__list_t asking;  /* refused calls that wait for a heartbeat */
  tnk__pace_t pace[2]; /* of calls in the service's own session, and in the
                          sessions of other services */
  /* Check now whether the session exists, and call tnk__doubts_settle() with
   * the answer. Returns 1, or 0 if there is no session. NULL: no check is
   * made. */
  int (*ask)(void *user);
  void *user;
} tnk__doubts_t;

/* State of the suspicion of a restart; see call.h. */
typedef struct {
  int is_watching;     /* there is a session whose models could be lost */
  int is_suspected;    /* a connection was refused */
  uint64_t refused_ms; /* time of the first refusal */
  tnk__list_t held;    /* reachers of calls that wait */
} tnk__restart_t;

/* The target of calls, and the state that all calls of a service share. */
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
  /* Members that the server has refused, a set of rows of call_extras.c. */
  uint32_t refused_members;
  /* The session that the server has ended; NULL while it exists. */
  const char *ended_session;
  /* Sessions so far. A call that began in an earlier one names that one. */
  uint32_t n_sessions;
  /* Retries by cause; the context's n_retries is their sum. */
  uint64_t n_retries_by[TNK__N_RETRY_CAUSES];
  /* The server has responded, or the caller was warned that it is
   * unreachable. */
  int is_known;
  /* The service has accepted an operation that costs money. */
  int has_credited;
  int closing; /* retries have stopped */
} tnk__endpoint_t;

#endif
