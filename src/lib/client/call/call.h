/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_CALL_H
#define TNK_LIB_CLIENT_CALL_CALL_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/client/call/endpoint.h"
#include "lib/client/call/reach.h"
#include "lib/io/http/client.h"
#include "lib/policy/classify.h"
#include "lib/policy/retry.h"
#include "lib/usage/totals.h"

/* The calls of the protocol, one row each in routes.c. */
typedef enum {
  TNK__ROUTE_CLIENT_CONFIG,
  TNK__ROUTE_DYNAMIC_CONFIG,
  TNK__ROUTE_AUTH_TOKEN,
  TNK__ROUTE_CREATE_SESSION,
  TNK__ROUTE_HEARTBEAT,
  TNK__ROUTE_FINISH,
  TNK__ROUTE_CAPABILITIES,
  TNK__ROUTE_HEALTH,
  TNK__ROUTE_CREATE_MODEL,
  TNK__ROUTE_CREATE_LOSS,
  TNK__ROUTE_CREATE_FROM_STATE,
  TNK__ROUTE_WEIGHTS_INFO,
  TNK__ROUTE_GET_INFO,
  TNK__ROUTE_UNLOAD,
  TNK__ROUTE_CREATE_SAMPLING,
  TNK__ROUTE_GET_SAMPLER,
  TNK__ROUTE_JOIN_SAMPLING,
  TNK__ROUTE_FORWARD_BACKWARD,
  TNK__ROUTE_FORWARD, /* for passes in JSON only */
  TNK__ROUTE_OPTIM_STEP,
  TNK__ROUTE_SAVE_STATE,
  TNK__ROUTE_SAVE_SAMPLER,
  TNK__ROUTE_SAVE_EXTERNAL,
  TNK__ROUTE_LOAD_STATE,
  TNK__ROUTE_SAMPLE,
  TNK__ROUTE_STREAM_SAMPLE,
  TNK__ROUTE_RETRIEVE_FUTURE,
  TNK__ROUTE_RETRIEVE_SAMPLE,
  TNK__ROUTE_RETRIEVE_FUTURES,
  TNK__ROUTE_CANCEL_FUTURE,
  TNK__ROUTE_REST_GET, /* objects that a service keeps, see lib/store/ask.h */
  TNK__ROUTE_REST_POST,
  TNK__ROUTE_REST_PUT,
  TNK__ROUTE_REST_DELETE,
  TNK__ROUTE_ARCHIVE,
  TNK__ROUTE_PUBLISH,
  TNK__ROUTE_UNPUBLISH,
  TNK__ROUTE_SEARCH_SESSIONS,
  TNK__ROUTE_COPY_WEIGHTS,
  TNK__ROUTE_HOSTED,
  TNK__ROUTE_USAGE,
  TNK__ROUTE_STORAGE,
  TNK__ROUTE_AUDIT,
  TNK__ROUTE_GET_KEY,
  TNK__ROUTE_REVOKE_KEY,
  TNK__N_ROUTES
} tnk__route_id_t;

typedef enum { TNK__POST = 0, TNK__GET, TNK__PUT, TNK__DELETE } tnk__method_t;

typedef enum {
  TNK__OPTIONAL = 1,  /* servers may lack it */
  TNK__ABOUT_KEY = 2, /* sent with the key itself, not with a token */
  TNK__POINTS = 4,    /* its answer is a redirection */
  /* A 404 may be about the named object or about the call, so it does not
   * affect later calls. */
  TNK__NAMES = 8,
  TNK__LONG = 16,      /* slow to answer: silence is normal */
  TNK__IN_SESSION = 32 /* reads an object that belongs to the session */
} tnk__trait_t;

/* The constants of one call. Protocol: transport, timeouts. */
typedef struct {
  /* Relative to the base URL; "%s" stands for an id. For calls with their own
   * target: its prefix. */
  const char *path;
  tnk__method_t method;
  uint32_t timeout_ms; /* 0: the service's */
  tnk__call_kind_t kind;
  unsigned traits; /* a set of tnk__trait_t */
  tnk__lane_t lane;
} tnk__route_t;

const tnk__route_t *tnk__route(tnk__route_id_t id);
/* The call's bit in sets of calls. */
uint64_t tnk__route_bit(const tnk__route_t *route);

/* The end of a call. Belongs to the call; valid inside `done`. */
typedef struct {
  tnk__error_t *error;    /* NULL on a 2xx; `done` may take a reference */
  tnk__verdict_t verdict; /* the decision of the retry table */
  tnk__outcome_t outcome;
  int status;          /* 0 without a response */
  int is_proto;        /* the body is protobuf, else JSON or text */
  const uint8_t *body; /* never NULL */
  size_t body_len;
  tnk__buf_t *buf;                  /* holds the body; may be taken out */
  const tnk__http_result_t *result; /* has the headers; NULL: no request was
                                       sent */
  const char *detail;               /* the connection's failure, or NULL */
  int is_page;             /* an HTML page, not a response of the service */
  const char *page;        /* message of such a page, or NULL */
  uint64_t retry_after_ms; /* 0: none */
  int has_expected;        /* a 409 named the sequence number it expects */
  uint64_t expected;
  uint64_t got; /* the number that was refused */
  int is_taken; /* a refusal said that other bytes have the number */
} tnk__reply_t;

struct tnk__call;
struct tnk__shorter;
struct tnk__headers;

typedef enum {
  TNK__CALL_IDLE = 0, /* never started, or over */
  TNK__CALL_WAITING,  /* for a token, in a list of auth.h */
  TNK__CALL_SENDING,  /* an exchange is active */
  TNK__CALL_PAUSING,  /* between two attempts; its timer runs */
  TNK__CALL_READY,    /* its pause is over; the owner decides when to
                         continue */
  TNK__CALL_DECIDING, /* after a response or a token; decides by the next
                         turn at the latest */
  TNK__CALL_DOUBTING, /* refused, and held by call_doubt.c */
  TNK__CALL_FAILING   /* cannot be sent: `done` is called in the next turn of
                         the loop */
} tnk__call_state_t;

/* The operation that a call belongs to. It stays when the call is bound to
 * another request of the operation. */
typedef struct {
  const char *name;        /* name of the operation; error messages begin
                              with it */
  const char *method_name; /* the official client's name of the public call */
  /* Another secret that is sent and must be redacted in the server's messages,
   * or NULL. */
  const char *secret;
  tnk__totals_t *totals; /* counts the client's requests and bodies, or NULL */
  /* For a call in the session of another service: where the id of that session
   * is once the server has ended it, and NULL before. NULL: the service's own
   * session. */
  const char *const *elsewhere;
  /* The observer's operation, or 0 without an observer, and the index of the
   * request in it. */
  uint64_t operation;
  uint32_t part;
  uint8_t is_question; /* its response is the result of an operation */
} tnk__call_owner_t;

/* The request as it is written. Its owner sets what differs from zero before
 * the start. */
typedef struct {
  const tnk__route_t *route;
  const char *path_id; /* for "%s" of the route's path; owned by the owner */
  const char *target;  /* path and query instead of the route's, or NULL;
                          relative to the base URL if it begins with a
                          slash */
  /* Adds headers to the next attempt, or NULL. */
  void (*add_headers)(const struct tnk__call *self,
                      struct tnk__headers *headers);
  /* Called with the credential of the next attempt, before its headers are
   * added, or NULL. */
  void (*use_key)(struct tnk__call *self, const char *key);
  /* Called when a part of the body of a 2xx has arrived, for a streamed
   * response, or NULL. It may take the data from the exchange. The last part
   * and all data that was not taken are passed to `done`. */
  void (*on_part)(struct tnk__call *self);
  /* Called when a pause begins, to release resources that sending needs, and
   * when it is over, or NULL. After the end of the pause tnk__call_go_on() must
   * follow, at once or later. */
  void (*in_pause)(struct tnk__call *self, int is_over);
  const uint8_t *body; /* borrowed from the owner until `done` */
  size_t body_len;
  tnk__feed_t *feed; /* sent after the body, borrowed from the owner; or NULL */
  size_t max_body;   /* limit of the response; 0: by the kind of call */
  uint32_t timeout_ms;      /* 0: the route's */
  unsigned wants_proto : 1; /* a protobuf response is accepted; else JSON */
  unsigned is_proto : 1;    /* the body is protobuf; else JSON */
  unsigned is_zstd : 1;     /* the body is compressed */
  unsigned has_own_metadata : 1; /* the library has added "user_metadata" */
  unsigned background : 1;       /* does not keep the loop alive */
  unsigned once : 1;             /* no retries: the owner decides */
  /* Its number was refused and given back before. */
  unsigned is_reused : 1;
  /* Another call sent these bytes under its number, and they may have been
   * executed. */
  unsigned is_repeat : 1;
} tnk__call_request_t;

/* The results of all attempts since the start. */
typedef struct {
  uint64_t key[2]; /* X-Idempotency-Key */
  tnk__retry_t retry;
  uint32_t n_attempts;
  uint32_t session; /* endpoint->n_sessions at the start */
  uint32_t n_moved; /* most progress of an attempt so far, in units of 16 KiB */
  uint8_t n_unreadable;      /* unusable responses */
  uint8_t n_conflicts;       /* 409s that named no number */
  uint8_t ran;               /* tnk_ran_t, after its end */
  uint8_t disowned;          /* 1; 2 once a lost response is requested again */
  uint8_t left_out;          /* members removed from the body, a set of rows of
                                call_extras.c */
  unsigned was_unknown : 1;  /* an attempt may have been executed */
  unsigned was_accepted : 1; /* the response with the acceptance broke off */
  unsigned was_replayed : 1; /* a broken connection was replaced meanwhile */
  unsigned was_rejected : 1; /* its token was rejected, so it was sent again */
} tnk__call_tries_t;

/* The present attempt or pause, and the end of the one before. The end stays
 * over the next start, so that a connection that broke is not used again. */
typedef struct {
  uint64_t since_ms;     /* begin of the current attempt or pause */
  uint32_t token_number; /* number of the token that was sent */
  int last_status;       /* end of the attempt before a pause: a status ... */
  int last_err;          /* ... or, without a response, an error code */
  uint8_t state;         /* a tnk__call_state_t */
  uint8_t was_cut_off;   /* by an empty 400; its source sends no more data */
} tnk__call_now_t;

/*
 * One request of the protocol. It is retried according to the retry table,
 * always with the same bytes and idempotency key.
 *
 *   IDLE --start--> SENDING --answered--> DECIDING --> IDLE, then `done`
 *          |          ^  ^                   |
 *          |          |  '----- PAUSING <----'   (READY after PAUSING, if the
 *          |          |                            owner wants to know)
 *          '--> WAITING --a token came--> DECIDING --> SENDING
 *
 * A refusal that a lost session would explain is DOUBTING before it is IDLE. A
 * request that cannot be sent is FAILING, and then IDLE. `done` is called once
 * and never inside start. Cancel leads to IDLE without `done`.
 *
 * There is one per operation in flight, so it is kept small. While it is idle,
 * the owner uses its timer and its deferred call. Cancel stops them too.
 */
typedef struct tnk__call {
  tnk__endpoint_t *endpoint;
  tnk__exchange_t exchange;
  tnk__timer_t timer;
  tnk__reacher_t reacher;   /* for its pauses, and for its owner's */
  tnk__deferred_t deferred; /* used in WAITING, after it, and in FAILING */
  union {
    tnk__error_t *early;      /* why it is FAILING */
    struct tnk__doubt *doubt; /* its reply, while it is DOUBTING */
  };
  void (*done)(struct tnk__call *self, const tnk__reply_t *reply);
  tnk__call_owner_t owner;
  tnk__call_request_t request;
  /* The body that is sent instead of the owner's, see call_extras.c, or
   * NULL. */
  struct tnk__shorter *shorter;
  tnk__call_tries_t tries; /* each start begins with zeros */
  tnk__call_now_t now;
} tnk__call_t;

/* Clear and bind. The owner then sets what differs from zero in `owner` and
 * `request`. */
void tnk__call_init(tnk__call_t *call, tnk__endpoint_t *endpoint,
                    tnk__route_id_t route, const char *name);
/* Bind an idle call to another request of the same operation. */
void tnk__call_rebind(tnk__call_t *call, tnk__route_id_t route);
void tnk__call_start(tnk__call_t *call,
                     void (*done)(tnk__call_t *self,
                                  const tnk__reply_t *reply));
/* Called inside `done`: the body of this 2xx is unusable. Returns 1 if the
 * request is retried, and `done` is called again. */
int tnk__call_repeat_unreadable(tnk__call_t *call, const tnk__reply_t *reply);
/* Returns whether a call that got a 402 may wait and retry, according to the
 * pause of the account. Ask once per 402. A sample's owner does the waiting,
 * and asks inside `done`. */
int tnk__call_may_pause(const tnk__call_t *call);
/* Count a retry after this outcome. */
void tnk__call_count_repeat(const tnk__call_t *call, tnk__outcome_t outcome);
/* Returns whether a 404 or 410 is about the object that the request names. Then
 * it has a specific message. A framework without this call sends only "Not
 * Found". */
int tnk__reply_names_thing(const tnk__reply_t *reply);
/* Stop without `done`; legal in every state. */
void tnk__call_cancel(tnk__call_t *call);
/* Write the end of a sentence: the reason why an active call waits. */
void tnk__call_explain(const tnk__call_t *call, tnk__text_t *out);
/* Write the result of the last attempt, for example "HTTP 503". */
void tnk__call_explain_last(const tnk__call_t *call, tnk__text_t *out);
/* Continue after a pause, from READY. Does nothing in other states. */
void tnk__call_go_on(tnk__call_t *call);
/* Report a step of the operation to the observer. */
void tnk__call_tell(const tnk__call_t *call, tnk_event_t *event);
/* Report a failed attempt to the observer, if there is one. */
void tnk__call_tell_retry(const tnk__call_t *call, int status, int code);
/* Report to the observer what the owner waits for between calls. */
static inline void tnk__call_waits(const tnk__call_t *call,
                                   tnk_waits_for_t what) {
  if (call->owner.operation != 0)
    tnk__call_tell(call,
                   &(tnk_event_t){.phase = TNK_PHASE_WAITS, .waits_for = what});
}
/* Redact secrets of this or an earlier attempt in a server's message, in place.
 * NULL does nothing. */
void tnk__call_hide(const tnk__call_t *call, const char *message);
/* Returns whether it was started and `done` is still to come: any state except
 * IDLE. */
int tnk__call_is_active(const tnk__call_t *call);
/* Returns whether the server has run or will run the request. For an active
 * call: the result if it ended now. */
tnk_ran_t tnk__call_ran(const tnk__call_t *call);
/* Returns whether an attempt before the last one may have been accepted. */
int tnk__call_was_doubtful(const tnk__call_t *call);
/* The result of the call is no longer wanted. Returns 1 if `done` will still
 * report what the call has begun, through the pending response, or one retry if
 * that was lost. Returns 0 if no response is pending and a retry could begin
 * unwanted work: cancel it. */
int tnk__call_disown(tnk__call_t *call);
/* Returns whether an upload or a large response has progressed since this was
 * called before. */
int tnk__call_advances(tnk__call_t *call);
/* Returns whether the server certainly has not accepted it so far. */
int tnk__call_is_unseen(const tnk__call_t *call);

/* ---- call_doubt.c: lost sessions ---- */

/*
 * Refusals that a lost session would explain, such as 404. The call waits until
 * a heartbeat has shown whether the session exists. Then it ends with
 * TNK_ESESSION or with its own code.
 *
 * Such refusals are also slowed down. The first ones are reported at once. If
 * more follow, each takes at least half a second since the call began, then
 * twice as long, up to ten seconds. So a program that calls again after each
 * failure does not send thousands of requests. A minute without such refusals
 * resets this.
 */
void tnk__doubts_open(tnk__endpoint_t *endpoint);
/* The heartbeats were answered; tnk__call_ended_session() has the result. Only
 * schedules. */
void tnk__doubts_settle(tnk__endpoint_t *endpoint);
/* The session that the call belongs to, if the server has ended it; else
 * NULL. The end of the service's own session says nothing about a call in the
 * session of another service. */
const char *tnk__call_ended_session(const tnk__call_t *call);
/* Returns whether the session of the call has ended. There may be a new one by
 * now, and a call that creates something still names the one it began in. */
int tnk__call_has_lost_session(const tnk__call_t *call);

/* ---- call_doubt.c: restarts ---- */

/*
 * A server whose port refuses connections is down. When it responds again, it
 * may have loaded an older state of its models. So training requests are not
 * sent from the first refused connection until a heartbeat was answered and the
 * clients were notified.
 *
 * A response to a request that was sent before the refusal shows that the
 * server was not down. Connections through a proxy say nothing about the
 * server.
 */
void tnk__restart_open(tnk__endpoint_t *endpoint);
/* The heartbeat was answered, or the session has ended: resume all attempts.
 * Only schedules. */
void tnk__restart_over(tnk__endpoint_t *endpoint);

#endif
