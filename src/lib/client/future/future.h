/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_FUTURE_FUTURE_H
#define TNK_LIB_CLIENT_FUTURE_FUTURE_H

#include "lib/client/call/call.h"
#include "lib/client/future/poller.h"
#include "lib/policy/poll.h"
#include "lib/policy/queue_state.h"
#include "lib/policy/semaphore.h"
#include "lib/wire/message/answer.h"

struct tnk__session;

typedef enum {
  TNK__FUTURE_IDLE = 0, /* never started, or over */
  TNK__FUTURE_POLLING,  /* a call is held by the server, or retried */
  TNK__FUTURE_PAUSING,  /* between two polls; the call's timer runs */
  TNK__FUTURE_AWAITING, /* waits for the poller; the timer measures silence */
  TNK__FUTURE_IN_LINE,  /* queued for a slot among checks or fetches */
  TNK__FUTURE_PAYING,   /* queued for the bytes of a large result */
  TNK__FUTURE_GOING,    /* continues in the next turn of the loop */
  TNK__FUTURE_FAILING   /* out of memory: fails in the next turn of the loop */
} tnk__future_state_t;

/* Purpose of its polls. */
typedef enum {
  TNK__POLLS_WAIT = 0, /* for the completion and the result together */
  TNK__POLLS_CHECK,    /* whether the poller's notification was lost */
  TNK__POLLS_FETCH     /* for a result that the poller has reported */
} tnk__polls_t;

/*
 * Waits for the result of an accepted request. There are two stages behind one
 * interface: waiting for the completion, and fetching the result. Polling one
 * request does both at once. With a poller, the poller does the first stage.
 *
 * POLLING and PAUSING alternate until a poll returns the result, or reports
 * that it is ready and large. Then follow PAYING, and one more POLLING. With a
 * poller: AWAITING until it reports the completion, then IN_LINE, because few
 * fetch in parallel, and POLLING. After long silence: IN_LINE for one poll that
 * checks, and AWAITING again. IDLE right before `done`, which is called once
 * and never inside start. Cancel leads to IDLE without `done`.
 *
 * There is one per operation in flight, so it is kept small. While it is idle,
 * the owner uses its call and its queue node: no operation makes two calls, or
 * waits in two queues, at a time.
 */
typedef struct tnk__future {
  struct tnk__limits *limits;
  /* Makes the polls, in sequence. Its timer measures pauses and silence. Its
   * deferred call runs when bytes or a slot were granted, or the start has
   * failed. */
  tnk__call_t call;
  tnk__poll_t poll;
  tnk__payer_t payer;      /* for the bytes of a large result */
  tnk__semaphore_t *slots; /* the semaphore of its slot, held or awaited */
  tnk__poller_t *poller;   /* borrowed from the owner, or NULL */
  tnk__awaited_t awaited;
  const char *type;     /* type of the request: "ForwardBackward" ... */
  char *request_id;     /* its terminator is followed by the body of a poll */
  uint64_t accepted_ms; /* when it was started */
  uint64_t took_ms;     /* duration from the operation's start until then */
  uint64_t queue_ms;    /* when the server last reported its queue; 0: never */
  char *queue_reason;   /* last reason from the server, or NULL */
  uint64_t result_bytes;
  /* Called when the server reports the state of its queue; strings may be
   * NULL. */
  void (*on_state)(struct tnk__future *self, const char *state,
                   const char *reason);
  void (*done)(struct tnk__future *self, const tnk__reply_t *reply);
  tnk_queue_state_t queue_state;
  uint32_t body_len;
  uint32_t n_failed;   /* consecutive polls without a usable response */
  uint8_t state;       /* a tnk__future_state_t */
  uint8_t polls;       /* a tnk__polls_t */
  uint8_t has_slot;    /* a slot of `slots` */
  uint8_t wants_slot;  /* first bytes, then a slot */
  uint8_t is_complete; /* the poller reported it during a check */
  uint8_t is_proto;    /* protobuf is requested for the result */
  uint8_t is_sample;   /* the owner requests a result again after it expired */
  uint8_t is_final;    /* the next response must be the result */
  uint8_t says_final;  /* and the body of the poll says so */
} tnk__future_t;

/*
 * A request that the service accepts first and answers later: a call, and then
 * the future it returned, which uses the same call object. Some servers answer
 * at once; then the future is skipped.
 *
 * Idle, while its call and its future are idle; submitting, while only its call
 * is active; accepted, while its future is. Idle again right before `done`,
 * which is called once and never inside start. Cancel leads to idle without
 * `done`.
 */
typedef struct tnk__job {
  tnk__future_t future;
  /* The service has accepted the request, and its body is no longer needed. May
   * be NULL. Returns whether to wait for its future. If not, `done` will not be
   * called, and the job may be freed. */
  int (*accepted)(struct tnk__job *self, const tnk__accepted_t *answer);
  /* Called with the result or an error. For an error, is_accepted shows whether
   * the submission or the operation failed. */
  void (*done)(struct tnk__job *self, const tnk__reply_t *reply);
  uint8_t is_accepted;
  uint8_t was_doubtful; /* an earlier attempt may have been accepted too */
  uint8_t ran;          /* tnk_ran_t, once it is accepted */
} tnk__job_t;

/* Clear and bind; strings are static. The owner then sets the fields that
 * differ from the defaults, in `future` and, for the submission, in
 * `future.call`. */
void tnk__job_init(tnk__job_t *job, struct tnk__session *session,
                   tnk__route_id_t route, const char *name, const char *type);
/* Submit the request. The body is borrowed until `accepted` or `done`. */
void tnk__job_start(tnk__job_t *job, const void *body, size_t n,
                    void (*done)(tnk__job_t *self, const tnk__reply_t *reply));
/* Returns whether it was started and `done` is still to come. */
int tnk__job_is_active(const tnk__job_t *job);
/* Returns whether the server has run or will run the request, in any state. A
 * job that was never bound has not been run. */
tnk_ran_t tnk__job_ran(const tnk__job_t *job);
void tnk__job_cancel(tnk__job_t *job);
/* Write the end of a sentence: the reason why an active job waits. */
void tnk__job_explain(const tnk__job_t *job, tnk__text_t *out);

/* ---- Fields that the owner may use while the job is idle ---- */

tnk__timer_t *tnk__job_timer(tnk__job_t *job);
tnk__deferred_t *tnk__job_deferred(tnk__job_t *job);
tnk__payer_t *tnk__job_payer(tnk__job_t *job);
const tnk__timer_t *tnk__job_timer_const(const tnk__job_t *job);
const tnk__payer_t *tnk__job_payer_const(const tnk__job_t *job);
tnk__job_t *tnk__job_of_timer(tnk__timer_t *timer);
tnk__job_t *tnk__job_of_deferred(tnk__deferred_t *deferred);
tnk__job_t *tnk__job_of_waiter(tnk__waiter_t *waiter);

#endif
