#ifndef TNK_TASK_FUTURE_H
#define TNK_TASK_FUTURE_H

#include "flow/budget.h"
#include "flow/poll.h"
#include "flow/queue_state.h"
#include "flow/semaphore.h"
#include "task/call.h"
#include "task/poller.h"

/*
 * Waits for the result of an accepted request. Two stages behind one
 * interface, waiting for the completion and fetching the result: polling one
 * request does both at once; with a poller, that does the first.
 *
 * Idle; polling (a call is held by the server); pausing (between two polls);
 * waiting for room in the budget of large results; idle again right before
 * `done`, which is called once and never inside start. Cancel leads to idle
 * without `done`.
 *
 * With a poller: awaiting the completion without a request of its own; then
 * fetching, of which few go on side by side. After long silence checking: one
 * poll, while still awaiting.
 */
typedef enum {
  TNK__FUTURE_DIRECT = 0,
  TNK__FUTURE_AWAITING,
  TNK__FUTURE_CHECKING, /* waits for a place, or polls */
  TNK__FUTURE_FETCHING
} tnk__future_stage_t;

typedef struct tnk__future {
  struct tnk__session *session;
  tnk__call_t call;
  tnk__timer_t timer;
  tnk__poll_t poll;
  tnk__payer_t room;     /* of the budget for large results */
  tnk__deferred_t go;    /* room or a place was granted, or the start failed */
  tnk__poller_t *poller; /* NULL: none; the owner's */
  tnk__awaited_t awaited;
  tnk__future_stage_t stage;
  tnk__waiter_t place;      /* among fetches or checks */
  tnk__semaphore_t *places; /* where it has, or waits for, a place */
  int has_place;
  int wants_place;  /* room first, then a place */
  int is_complete;  /* learnt from the poller while checking */
  const char *type; /* of the request: "ForwardBackward" ... */
  char *request_id;
  uint64_t accepted_ms; /* when it was started */
  char *queue_reason;   /* what the server last said of its queue, or NULL */
  tnk_queue_state_t queue_state;
  uint64_t queue_ms; /* when it said so; 0: never */
  tnk__buf_t body;   /* of the poll */
  uint64_t result_bytes;
  int is_proto;  /* the result comes as protobuf if the server can */
  int is_sample; /* a result that expired is asked for anew by the owner */
  int is_final;  /* the next answer must be the result */
  char iteration[24];
  char roundtrip[32];
  tnk_pair_t headers[3];
  /* Told what the server says of its queue; strings may be NULL. */
  void (*on_state)(struct tnk__future *self, const char *state,
                   const char *reason);
  void (*done)(struct tnk__future *self, const tnk__reply_t *reply);
} tnk__future_t;

/* Clear and bind. `name` begins error sentences, `type` is the protocol's name
 * of the kind of request; both static. */
void tnk__future_init(tnk__future_t *future, struct tnk__session *session,
                      const char *name, const char *type);
/*
 * Poll until the request with that id (copied) has ended. took_ms is the time
 * from the start of the operation to its acceptance. In `done` the reply has an
 * error, or a body that is the result.
 */
void tnk__future_start(tnk__future_t *future, const char *request_id,
                       uint64_t took_ms,
                       void (*done)(tnk__future_t *self,
                                    const tnk__reply_t *reply));
/* What one that is under way waits for, as the end of a sentence. */
void tnk__future_explain(const tnk__future_t *future, tnk__text_t *out);
/* Stop without `done`, free what is held; legal in every state. */
void tnk__future_cancel(tnk__future_t *future);

#endif
