#ifndef TNK_TASK_FUTURE_FUTURE_H
#define TNK_TASK_FUTURE_FUTURE_H

#include "flow/budget.h"
#include "flow/poll.h"
#include "flow/queue_state.h"
#include "flow/semaphore.h"
#include "task/call/call.h"
#include "task/future/poller.h"

/*
 * Waits for the result of an accepted request. Two stages behind one interface,
 * waiting for the completion and fetching the result: polling one request does
 * both at once; with a poller, that does the first.
 *
 * Idle; polling (a call is held by the server); pausing (between two polls);
 * paying, for a large result, out of a budget; idle again right before `done`,
 * which is called once and never inside start. Cancel leads to idle without
 * `done`.
 *
 * With a poller: awaiting the completion without a request of its own; then
 * fetching, of which few go on side by side. After long silence checking: one
 * poll, while still awaiting.
 *
 * There is one for each operation in flight, so it is kept small. While it is
 * idle its call and its node in a queue are the owner's: no operation makes two
 * calls, or waits in two queues, at a time.
 */
typedef enum {
  TNK__FUTURE_DIRECT = 0,
  TNK__FUTURE_AWAITING,
  TNK__FUTURE_CHECKING, /* waits for a slot, or polls */
  TNK__FUTURE_FETCHING
} tnk__future_stage_t;

typedef struct tnk__future {
  struct tnk__session *session;
  /* The polls, one after the other. Its timer counts pauses and silence; its
   * deferred call comes when bytes or a slot were granted, or the start has
   * failed. */
  tnk__call_t call;
  tnk__poll_t poll;
  tnk__payer_t payer;       /* of the bytes of a large result */
  tnk__semaphore_t *places; /* where it has, or waits for, a slot */
  tnk__poller_t *poller;    /* NULL: none; the owner's */
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
  tnk__future_stage_t stage;
  tnk_queue_state_t queue_state;
  uint32_t body_len;
  uint8_t is_begun;    /* started, and `done` is still to come */
  uint8_t has_place;   /* a slot of `places` */
  uint8_t wants_place; /* bytes first, then a slot */
  uint8_t is_complete; /* learnt from the poller while checking */
  uint8_t is_proto;    /* the result comes as protobuf if the server can */
  uint8_t is_sample;  /* a result that expired is asked for anew by the owner */
  uint8_t is_final;   /* the next answer must be the result */
  uint8_t says_final; /* and the body says so */
  uint8_t has_failed; /* there was no memory */
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
/* Write what one that is under way waits for, as the end of a sentence. */
void tnk__future_explain(const tnk__future_t *future, tnk__text_t *out);
/* Stop without `done`, free what is held; legal in every state. */
void tnk__future_cancel(tnk__future_t *future);

#endif
