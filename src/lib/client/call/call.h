#ifndef TNK_LIB_CLIENT_CALL_CALL_H
#define TNK_LIB_CLIENT_CALL_CALL_H

#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/client/call/endpoint.h"
#include "lib/client/call/reach.h"
#include "lib/client/call/routes.h"
#include "lib/policy/retry.h"
#include "lib/usage/totals.h"

/* How a call ended. Belongs to the call; valid inside `done`. */
typedef struct {
  tnk__error_t *error;    /* NULL on a 2xx; `done` may ref it */
  tnk__verdict_t verdict; /* what the retry table says is next */
  tnk__outcome_t outcome;
  int status;          /* 0 when there was no answer */
  int is_proto;        /* the body is protobuf, else JSON or text */
  const uint8_t *body; /* never NULL */
  size_t body_len;
  tnk__buf_t *buf;                  /* holds the body; may be taken out */
  const tnk__http_result_t *result; /* has its headers; NULL: none was sent */
  const char *detail;      /* what happened to the connection, or NULL */
  int is_page;             /* not the service's, but for people */
  const char *page;        /* what such an answer says, or NULL */
  uint64_t retry_after_ms; /* 0: none */
  int has_expected;        /* a 409 named the sequence number it expects */
  uint64_t expected;
  uint64_t got; /* the number that it complains about */
  int is_taken; /* a refusal said that other bytes have the number */
} tnk__reply_t;

struct tnk__failure;
struct tnk__shorter;
struct tnk__headers;

typedef enum {
  TNK__CALL_IDLE = 0, /* never started, or over */
  TNK__CALL_WAITING,  /* for a token, in a list of auth.h */
  TNK__CALL_SENDING,  /* an exchange is under way */
  TNK__CALL_PAUSING,  /* between two attempts; its timer runs */
  TNK__CALL_READY,    /* its pause is over; the owner says when to go on */
  TNK__CALL_DECIDING, /* what follows an answer or a token, at the latest in
                         the next turn */
  TNK__CALL_DOUBTING, /* it was refused, and waits in call_doubt.c */
  TNK__CALL_FAILING   /* it cannot be sent: `done` comes in the next turn of the
                         loop */
} tnk__call_state_t;

/*
 * One request of the protocol, repeated as the retry table says, always with
 * the same bytes and idempotency key.
 *
 *   IDLE --start--> SENDING --answered--> DECIDING --> IDLE, then `done`
 *          |          ^  ^                   |
 *          |          |  '----- PAUSING <----'   (READY after PAUSING, if the
 *          |          |                            owner wants to know)
 *          '--> WAITING --a token came--> DECIDING --> SENDING
 *
 * A refusal that a lost session would explain is DOUBTING before it is IDLE.
 * Whatever cannot be sent is FAILING, and then IDLE. `done` is called once and
 * never inside start. Cancel leads to IDLE without `done`.
 *
 * There is one for each operation in flight, so it is kept small. While it is
 * idle its timer and its deferred call are the owner's, who needs them between
 * two calls only; cancel stops them too.
 */
typedef struct tnk__call {
  tnk__endpoint_t *endpoint;
  const tnk__route_t *route;
  tnk__exchange_t exchange;
  tnk__timer_t timer;
  tnk__reacher_t reacher;   /* of its pauses, and of its owner's */
  tnk__deferred_t deferred; /* of WAITING, and of what follows it; of FAILING */
  union {
    tnk__error_t *early;      /* why it is FAILING */
    struct tnk__doubt *doubt; /* its reply, while it is DOUBTING */
  };
  void (*done)(struct tnk__call *self, const tnk__reply_t *reply);
  const char *name;        /* of the operation, begins error sentences */
  const char *method_name; /* the official client's name of the public call */
  const char *path_id;     /* for "%s" of the route's path; the owner's */
  const char *target;      /* path and query in place of the route's, of the
                              base URL where it begins with a slash; or NULL */
  /* What else is sent that nobody may see in the server's words; or NULL. */
  const char *secret;
  /* Adds further headers of the next attempt; NULL: there are none. */
  void (*add_headers)(const struct tnk__call *self,
                      struct tnk__headers *headers);
  /* NULL; or hears what the next attempt is sent with, before its headers are
   * added. */
  void (*use_key)(struct tnk__call *self, const char *key);
  /* NULL; or hears that something of the body of a 2xx has come, which it may
   * take from the exchange: the answer is a stream. What comes last, and what
   * was not taken, is with `done`. */
  void (*on_part)(struct tnk__call *self);
  /* NULL; or hears that a pause begins, so that what is needed for sending can
   * be given back, and that it is over: tnk__call_go_on() is to follow then,
   * at once or later. */
  void (*in_pause)(struct tnk__call *self, int is_over);
  tnk__totals_t *totals; /* of the client, its requests and bodies; or NULL */
  const uint8_t *body;   /* the owner's, until `done` */
  size_t body_len;
  /* The body that is sent in place of the owner's, see call_extras.c; or NULL.
   */
  struct tnk__shorter *shorter;
  tnk__feed_t *feed; /* what follows the body, the owner's too; or NULL */
  size_t max_body;   /* of the answer; 0: by the kind of call */
  uint64_t since_ms; /* of the present attempt or pause */
  uint64_t key[2];   /* X-Idempotency-Key */
  tnk__retry_t retry;
  /* What the observer knows it by: the operation, 0 when it hears nothing of
   * it; which of its requests. */
  uint64_t operation;
  uint32_t part;
  uint32_t timeout_ms; /* 0: the route's */
  uint32_t n_attempts;
  uint32_t token_number; /* it was sent with, see auth.h */
  int last_status;     /* how the attempt before a pause ended: a status ... */
  int last_err;        /* ... or, when there was none, a code */
  uint8_t wants_proto; /* an answer in protobuf is welcome; else JSON */
  uint8_t is_proto;    /* so is the body; else JSON */
  uint8_t is_zstd;     /* the body is compressed */
  uint8_t has_own_metadata; /* the library has added "user_metadata" */
  uint8_t background;       /* does not keep the loop alive */
  uint8_t once;             /* no repeats at all: the owner decides */
  uint8_t state;            /* a tnk__call_state_t */
  uint8_t n_unreadable;     /* answers that meant nothing */
  uint8_t n_conflicts;      /* 409s that named no number */
  uint8_t is_reused;        /* its number was refused before and given back; the
                               owner's, set anew before each start */
  uint8_t is_repeat;    /* of bytes that were sent under its number by another
                           call, and may have been executed; as is_reused */
  uint8_t was_unknown;  /* an attempt may have been executed */
  uint8_t was_accepted; /* the answer that said so broke off */
  uint8_t was_replayed; /* a broken connection was replaced under an attempt */
  uint8_t ran;          /* tnk_ran_t, of one that is over */
  uint8_t was_rejected; /* its token, so it went out once more */
  uint8_t was_cut_off;  /* by an empty 400: whatever gave that, gives no more */
  uint8_t disowned;     /* 1; 2 once a lost answer is asked for */
  uint8_t is_question; /* its answer is the result that an operation is after */
  uint8_t left_out;    /* members of the body, a set of rows of call_extras.c */
  /* The most that was seen to move of an attempt, in units of 16 KiB. */
  uint32_t n_moved;
} tnk__call_t;

/* Clear and bind. The owner then sets what differs from the defaults. */
void tnk__call_init(tnk__call_t *call, tnk__endpoint_t *endpoint,
                    tnk__route_id_t route, const char *name);
/* Bind an idle one anew, for the same operation: all that the owner sets is
 * back at the defaults, except method_name and secret. */
void tnk__call_rebind(tnk__call_t *call, tnk__route_id_t route);
void tnk__call_start(tnk__call_t *call,
                     void (*done)(tnk__call_t *self,
                                  const tnk__reply_t *reply));
/* From inside `done`: the body of this 2xx has no meaning. 1: the request is
 * repeated, and `done` comes again. */
int tnk__call_repeat_unreadable(tnk__call_t *call, const tnk__reply_t *reply);
/* Whether a call that a 402 has answered may wait and try again, by the pause
 * of the account. To be asked once for each 402; for a sample, whose owner does
 * the waiting, from inside `done`. */
int tnk__call_may_pause(const tnk__call_t *call);
/* Count a request that follows one that ended so. */
void tnk__call_count_repeat(const tnk__call_t *call, tnk__outcome_t outcome);
/* Whether a 404 or 410 is about what the request names: it says so in words of
 * its own. A framework that lacks the call says no more than "Not Found". */
int tnk__reply_names_thing(const tnk__reply_t *reply);
/* Stop without `done`; legal in every state. */
void tnk__call_cancel(tnk__call_t *call);
/* Write what a call that is under way waits for, as the end of a sentence. */
void tnk__call_explain(const tnk__call_t *call, tnk__text_t *out);
/* Write how the last attempt that has ended did: "HTTP 503". */
void tnk__call_explain_last(const tnk__call_t *call, tnk__text_t *out);
/* Go on after a pause: from READY; else nothing happens. */
void tnk__call_go_on(tnk__call_t *call);
/* Tell the observer of a step of its operation, which has a number. */
void tnk__call_tell(const tnk__call_t *call, tnk_event_t *event);
/* The same of an attempt that has failed, unless nobody hears. */
void tnk__call_tell_retry(const tnk__call_t *call, int status, int code);
/* The same of what its owner waits for in between. */
static inline void tnk__call_waits(const tnk__call_t *call,
                                   tnk_waits_for_t what) {
  if (call->operation != 0)
    tnk__call_tell(call,
                   &(tnk_event_t){.phase = TNK_PHASE_WAITS, .waits_for = what});
}
/* The id of the span that an attempt, from 1, is in a trace; never 0. */
uint64_t tnk__call_span(const tnk__call_t *call, uint32_t attempt);
/* An attempt has gone out; for call_send.c alone. */
void tnk__call_on_sent(tnk__exchange_t *exchange);
/* An attempt has to wait before it goes out; the same. */
void tnk__call_on_wait(tnk__exchange_t *exchange);
/* Whether another attempt follows that answer, after a pause; for call.c
 * alone. */
int tnk__call_may_repeat(tnk__call_t *call, const tnk__reply_t *reply,
                         uint64_t *delay_ms);
/* Begin the exchange of one attempt; for call.c alone. TNK_OK, or a code and
 * then nothing has begun. */
int tnk__call_send(tnk__call_t *call, const char *key);
/* Leave out of the body what this server has refused before; for call.c alone,
 * as the three that follow. */
void tnk__call_leave_out(tnk__call_t *call);
/* After a 422. 1: the body is shorter now, and the request is to be sent once
 * more. */
int tnk__call_shorten(tnk__call_t *call, const tnk__reply_t *reply);
/* After a 2xx: what was left out is left out from now on, and the program is
 * warned once. */
void tnk__call_learn_members(const tnk__call_t *call);
/* The request is over, or given up: its body is the owner's again. */
void tnk__call_restore_body(tnk__call_t *call);
/* Count a request for the client; for call.c alone. */
void tnk__call_count_sent(const tnk__call_t *call);
/* See whether the answer is the service's, and write what it says if it is not;
 * for call.c alone. `text` stays as long as the reply. */
void tnk__call_read_page(const tnk__call_t *call,
                         const tnk__http_result_t *result, tnk__reply_t *reply,
                         char *text, size_t size);
/* Blot out the secrets that were sent, with this attempt or one before, in what
 * the server says, in place. NULL does nothing. */
void tnk__call_hide(const tnk__call_t *call, const char *message);
/* The error of a call that is over, from what is known; for call.c alone. */
tnk__error_t *tnk__call_error(const tnk__call_t *call,
                              const tnk__http_result_t *result,
                              const tnk__reply_t *reply,
                              const struct tnk__failure *failure);
/* Whether it was started and `done` is still to come: it is not IDLE. */
int tnk__call_is_active(const tnk__call_t *call);
/* Whether the server has run the request or will: of a call under way, if it
 * ended now; else as it has ended. */
tnk_ran_t tnk__call_ran(const tnk__call_t *call);
/* Whether an attempt before the last one may have been accepted. */
int tnk__call_was_doubtful(const tnk__call_t *call);
/* Note that nobody waits for what it does any more. 1: `done` will still tell
 * what it has begun, by the answer that is due, or by one repeat if that was
 * lost. 0: nothing is due, and a repeat could begin what nobody wants: cancel
 * it. */
int tnk__call_disown(tnk__call_t *call);
/* Whether an upload or a large response has come further than it ever was when
 * this was asked before. */
int tnk__call_advances(tnk__call_t *call);
/* Whether the server certainly has not accepted it so far. */
int tnk__call_is_unseen(const tnk__call_t *call);

/* ---- call_doubt.c ---- */

/*
 * Refusals that a lost session would explain, such as 404. The call waits until
 * a heartbeat has told whether the session exists, and then ends with the right
 * code: TNK_ESESSION or its own.
 *
 * Such refusals are also slowed down. The first ones are reported at once. If
 * more follow, each takes at least half a second since the call began, then
 * twice as long, up to ten seconds, so that a caller that calls again after
 * each failure does not send thousands of requests. A minute without any
 * resets this.
 */
void tnk__doubts_open(tnk__endpoint_t *endpoint);
/* Hold a call that has ended with this reply. 1: its `done` comes in a later
 * turn of the loop. 0: it ends now. */
int tnk__doubt_hold(tnk__call_t *call, const tnk__reply_t *reply);
/* The heartbeat has been answered; endpoint->ended_session says how. Only
 * schedules. */
void tnk__doubts_settle(tnk__endpoint_t *endpoint);
/* Forget a call that is held. Allocates nothing. */
void tnk__doubt_drop(tnk__call_t *call);
/* Whether the refused request was run. */
tnk_ran_t tnk__doubt_ran(const tnk__call_t *call);

/* ---- call_restart.c ---- */

/*
 * A server whose port refuses connections is down. When it answers again, it
 * may have loaded an older state of its models. Training requests are therefore
 * not sent from the first refused connection until a heartbeat has been
 * answered and the clients have been told.
 *
 * An answer to a request that was sent before the refusal shows that the server
 * was not down. Connections through a proxy say nothing about the server.
 */
void tnk__restart_open(tnk__endpoint_t *endpoint);
/* Note how an attempt of a call has ended. */
void tnk__restart_note(tnk__call_t *call, const tnk__http_result_t *result,
                       tnk__outcome_t outcome);
/* Whether an attempt must wait now. */
int tnk__restart_holds(const tnk__call_t *call);
/* The call pauses for that: until tnk__restart_over(). */
void tnk__restart_wait(tnk__call_t *call);
/* The heartbeat has been answered, or there is no session any more: let all
 * attempts go. Only schedules. */
void tnk__restart_over(tnk__endpoint_t *endpoint);

#endif
