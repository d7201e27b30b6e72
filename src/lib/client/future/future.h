#ifndef TNK_LIB_CLIENT_FUTURE_FUTURE_H
#define TNK_LIB_CLIENT_FUTURE_FUTURE_H

#include "lib/client/call/call.h"
#include "lib/client/future/poller.h"
#include "lib/policy/budget.h"
#include "lib/policy/poll.h"
#include "lib/policy/queue_state.h"
#include "lib/policy/semaphore.h"

typedef enum {
  TNK__FUTURE_IDLE = 0, /* never started, or over */
  TNK__FUTURE_POLLING,  /* a call is held by the server, or repeated */
  TNK__FUTURE_PAUSING,  /* between two polls; the call's timer runs */
  TNK__FUTURE_AWAITING, /* the poller will tell; the timer counts silence */
  TNK__FUTURE_IN_LINE,  /* for a slot among checks or fetches */
  TNK__FUTURE_PAYING,   /* for a large result, out of a budget */
  TNK__FUTURE_GOING,    /* goes on in the next turn of the loop */
  TNK__FUTURE_FAILING   /* without memory: fails in the next turn of the loop */
} tnk__future_state_t;

/* What its polls are for. */
typedef enum {
  TNK__POLLS_WAIT = 0, /* for the completion and the result, both at once */
  TNK__POLLS_CHECK,    /* whether the poller's word has been lost */
  TNK__POLLS_FETCH     /* for a result that the poller has told of */
} tnk__polls_t;

/*
 * Waits for the result of an accepted request. Two stages behind one interface,
 * waiting for the completion and fetching the result: polling one request does
 * both at once; with a poller, that does the first.
 *
 * POLLING and PAUSING alternate, until a poll brings the result, or tells that
 * it is ready and large: then PAYING, and POLLING once more. With a poller:
 * AWAITING until it tells of the completion, then IN_LINE, as few fetch side by
 * side, and POLLING; after long silence IN_LINE for one poll to check, and
 * AWAITING again. IDLE right before `done`, which is called once and never
 * inside start. Cancel leads to IDLE without `done`.
 *
 * There is one for each operation in flight, so it is kept small. While it is
 * idle its call and its node in a queue are the owner's: no operation makes two
 * calls, or waits in two queues, at a time.
 */
typedef struct tnk__future {
  struct tnk__session *session;
  /* The polls, one after the other. Its timer counts pauses and silence; its
   * deferred call comes when bytes or a slot were granted, or the start has
   * failed. */
  tnk__call_t call;
  tnk__poll_t poll;
  tnk__payer_t payer;      /* of the bytes of a large result */
  tnk__semaphore_t *slots; /* where it has, or waits for, a slot */
  tnk__poller_t *poller;   /* NULL: none; the owner's */
  tnk__awaited_t awaited;
  const char *type;     /* of the request: "ForwardBackward" ... */
  char *request_id;     /* behind its end is the body of a poll */
  uint64_t accepted_ms; /* when it was started */
  uint64_t took_ms;     /* from the operation's start until then */
  uint64_t queue_ms;    /* when the server spoke of its queue; 0: never */
  char *queue_reason;   /* what it said last, or NULL */
  uint64_t result_bytes;
  /* Hears what the server says of its queue; strings may be NULL. */
  void (*on_state)(struct tnk__future *self, const char *state,
                   const char *reason);
  void (*done)(struct tnk__future *self, const tnk__reply_t *reply);
  tnk_queue_state_t queue_state;
  uint32_t body_len;
  uint32_t n_failed;   /* polls in a row that brought no answer of use */
  uint8_t state;       /* a tnk__future_state_t */
  uint8_t polls;       /* a tnk__polls_t */
  uint8_t has_slot;    /* a slot of `slots` */
  uint8_t wants_slot;  /* bytes first, then a slot */
  uint8_t is_complete; /* learnt from the poller while checking */
  uint8_t is_proto;    /* the result comes as protobuf if the server can */
  uint8_t is_sample;  /* a result that expired is asked for anew by the owner */
  uint8_t is_final;   /* the next answer must be the result */
  uint8_t says_final; /* and the body says so */
} tnk__future_t;

/* Clear and bind; the call is bound to `route`, for the owner to use first.
 * `name` begins error sentences, `type` is the protocol's name of the kind of
 * request; both static. */
void tnk__future_init(tnk__future_t *future, struct tnk__session *session,
                      tnk__route_id_t route, const char *name,
                      const char *type);
/*
 * Poll until the request with that id (copied) has ended. took_ms is the time
 * from the start of the operation to its acceptance. In `done` the reply has an
 * error, or a body that is the result.
 */
void tnk__future_start(tnk__future_t *future, const char *request_id,
                       uint64_t took_ms,
                       void (*done)(tnk__future_t *self,
                                    const tnk__reply_t *reply));
/* Whether it was started and `done` is still to come: it is not IDLE. */
int tnk__future_is_active(const tnk__future_t *future);
/* Write what one that is under way waits for, as the end of a sentence. */
void tnk__future_explain(const tnk__future_t *future, tnk__text_t *out);
/* Stop without `done`, free what is held; legal in every state. */
void tnk__future_cancel(tnk__future_t *future);

#endif
