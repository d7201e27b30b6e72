/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_TRAIN_OP_H
#define TNK_LIB_CLIENT_TRAIN_OP_H

#include "lib/usage/allowance.h"
#include "lib/policy/turns.h"
#include "lib/client/train/cargo.h"
#include "lib/client/future/future.h"
#include "lib/client/session/member.h"
#include "lib/client/train/seq.h"
#include "lib/client/train/training.h"

/*
 * An operation of a training client: one or several numbered requests. They are
 * submitted in the client's order, and their results are awaited in parallel.
 *
 * An operation is queued for its turn. With the turn, it submits its requests
 * in sequence or in parallel. It gives up the turn when all are accepted, or
 * after the second pass if it has one. Then it waits for results. At its end
 * the promise settles. The operation stays until the effect of every request in
 * flight is known, because the sequence numbers depend on it. Then it is freed.
 */

struct tnk__op;

/* The effect of an operation on the tally of the weights; see below. */
typedef enum {
  TNK__COUNTS_NOTHING = 0,
  TNK__COUNTS_STEP,
  TNK__COUNTS_PASS,
  TNK__COUNTS_ANEW /* a loaded state replaces the weights */
} tnk__counts_t;

/* Behavior of a kind of operation. */
typedef struct {
  const char *name;   /* error messages begin with it */
  const char *method; /* the official client's name of the public call */
  const char *type;   /* kind of request, for polls */
  tnk__route_id_t route;
  int is_unnumbered; /* waits for its turn but takes no sequence number */
  tnk__counts_t counts;
  /* Called with the turn: sets the number of requests, at least 1. NULL:
   * one. */
  int (*prepare)(struct tnk__op *op, size_t *n_parts);
  /* Append the body of its only request. */
  int (*write)(struct tnk__op *op, uint64_t number, tnk__buf_t *out);
  /* Or, if `write` is NULL: the content to encode in protobuf while request
   * `index` is sent. Its result is in protobuf as well. */
  tnk__fwdbwd_t (*request)(struct tnk__op *op, size_t index, uint64_t number);
  /* Cost in bytes of the dispatch budget. NULL: free. */
  uint64_t (*cost)(struct tnk__op *op, size_t index);
  /* Tokens that request `index` trains on. NULL: none. */
  uint64_t (*tokens)(struct tnk__op *op, size_t index);
  /* Read the result of request `index`. If the code alone is not clear,
   * describe the error in `why`. NULL: the result is ignored. */
  int (*read)(struct tnk__op *op, size_t index, const tnk__reply_t *reply,
              tnk__text_t *why);
  /* End the operation after all results are read, or begin the next pass. */
  void (*finish)(struct tnk__op *op);
  /* The caller's data is no longer needed. May be NULL. Only schedules. */
  void (*submitted)(struct tnk__op *op);
  /* Free the operation and the kind's own fields. */
  void (*destroy)(struct tnk__op *op);
} tnk__op_class_t;

typedef enum {
  TNK__PART_IDLE = 0,
  TNK__PART_PAYING,  /* waits for the byte budget */
  TNK__PART_PACKING, /* its body is being compressed */
  TNK__PART_SENDING, /* submitted, not yet accepted */
  TNK__PART_WAITING, /* accepted, its future is polled */
  TNK__PART_DONE
} tnk__part_state_t;

/* The use of a finished request's tokens. */
typedef enum {
  TNK__PART_UNTOLD = 0, /* not known: decided by whether it was run */
  TNK__PART_USED,
  TNK__PART_UNUSED
} tnk__part_use_t;

/*
 * One request of an operation. The memory belongs to the operation.
 *
 * It is idle until the operation lets it begin. It pays for its bytes, takes
 * its number, and is encoded and, if the server wants that, compressed. Then it
 * is submitted, and again under another number if the number was at fault.
 * After it was accepted, it waits for its result. Then it is done.
 */
typedef struct tnk__part {
  struct tnk__op *op;
  size_t index;
  tnk__part_state_t state;
  uint64_t since_ms; /* when it asked the budget for its bytes */
  tnk__job_t job;
  tnk__payer_t payer;
  tnk__deferred_t due;  /* begins the request */
  tnk__deferred_t paid; /* continues after the budget admitted it */
  tnk__cargo_t cargo;
  tnk__seq_t number;
  int is_counted; /* its usage has been counted */
  int is_json;    /* its pass is sent as JSON, see pass_form.c */
  /* The refusal of its pass as protobuf, during the attempt with JSON, or
   * NULL. */
  tnk__error_t *unread;
} tnk__part_t;

typedef struct tnk__op {
  tnk__member_t member; /* in training->ops */
  const tnk__op_class_t *type;
  tnk_training_t *training;
  tnk_promise_t *promise; /* NULL after it has settled */
  const char *secret;     /* secret in its requests, or NULL; owned by the
                             kind */
  uint64_t entered_ms;    /* when it joined the queue */
  const char *poll_type;  /* type->type, unless the kind changes it */
  tnk__turn_t turn;
  tnk__deferred_t ready;
  tnk__part_t *parts;
  size_t n_parts;
  size_t n_accepted;
  size_t n_read;
  tnk__held_t held;   /* tokens taken from the allowance for requests not
                         counted yet */
  tnk__error_t *lost; /* why a pending result will not come, or NULL */
  size_t n_holds;     /* jobs on the thread pool, and callbacks of the
                         program */
  int side_by_side;
  int keeps_turn;     /* also after everything has been submitted */
  int is_out_of_turn; /* a request was accepted, and then refused for its
                         number */
  tnk__tally_t tally; /* of the operations before it, once it is accepted */
  int is_tallied;
  int is_held;          /* must not begin before tnk__op_let_go(), even with
                           the turn */
  int is_patient;       /* ends only when its tally is final */
  int is_due;           /* waits only for its tally */
  int has_own_metadata; /* the library has added metadata to its request */
} tnk__op_t;

/* Make an operation: `size` zeroed bytes, beginning with a tnk__op_t, bound to
 * *promise. If *promise is NULL, a new promise is made, and the caller owns it.
 * NULL without memory; then *promise is rejected. */
void *tnk__op_new(size_t size, const tnk__op_class_t *type,
                  tnk_training_t *training, tnk_promise_t **promise);
/* Take tokens from the allowance for an operation that is not queued yet.
 * Returns 0 if there are not enough; then it is destroyed and its promise
 * rejected. */
int tnk__op_take(tnk__op_t *op, uint64_t n_tokens, int is_whole);
/* Destroy an operation that is not queued yet, because of the budget, and
 * reject its promise. */
void tnk__op_refuse(tnk__op_t *op, const char *why);
/* Queue a complete operation, which frees itself later. An incomplete one (out
 * of memory) is destroyed and its promise rejected. */
void tnk__op_enter(tnk__op_t *op, int is_complete);
/* Let the held operation of a promise begin, if it is pending. */
void tnk__op_let_go(tnk_promise_t *promise);
/* Begin another pass of n_parts requests, still with the turn. Called in
 * `finish`. */
void tnk__op_next_pass(tnk__op_t *op, size_t n_parts);
/* Settle the promise, from `finish` or at any time. `error` is borrowed. */
void tnk__op_resolve(tnk__op_t *op, tnk__result_kind_t kind, void *value,
                     void (*free_value)(const tnk_allocator_t *, void *));
void tnk__op_fail(tnk__op_t *op, tnk__error_t *error);
/* Keep the memory while the program's code runs, which may cancel or close. */
void tnk__op_hold(tnk__op_t *op);
/* End the hold. Returns 0 if the operation is over; it may have been freed. */
int tnk__op_unhold(tnk__op_t *op);
/* Free it after its promise was transferred. */
void tnk__op_dispose(tnk__op_t *op);
/* Describe why a pending operation waits, in a sentence that begins with its
 * name. */
void tnk__op_explain(const tnk__op_t *op, tnk__text_t *out);
/* Warn about a deep queue. */
void tnk__op_warn_depth(tnk_training_t *training);
/* Fail with a code and no further message. */
void tnk__op_fail_code(tnk__op_t *op, int code);

/* ---- tally.c ---- */

/*
 * The content of the weights at each point of the sequence: the optimizer steps
 * and gradient passes that the service accepted before it. Operations that it
 * later reports as failed do not count. The tally follows the sequence of
 * operations. The program's loop may be ahead of it.
 */

/* The service has accepted the whole operation. The operations accepted before
 * it are its tally. Counts once per operation; later calls do nothing. */
void tnk__tally_accept(tnk__op_t *op);
/* The service reports that the operation failed. Later tallies exclude it. */
void tnk__tally_undo(tnk__op_t *op);
/* Returns whether every counted operation before it has settled, so that its
 * tally is final. */
int tnk__tally_is_final(const tnk__op_t *op);

/* ---- pass_form.c ---- */

/*
 * The form of a pass: protobuf, or JSON for servers that do not read protobuf.
 * As long as the server has accepted no pass of the session, a 415 or a 422 to
 * a protobuf pass may mean that it cannot read it. The same pass is then sent
 * as JSON, under the same number. The session keeps the first form that the
 * server accepts. If JSON is refused too, the promise gets the first refusal.
 */

/* Returns whether to encode the request as JSON. */
int tnk__part_form_is_json(tnk__part_t *part);
/* The route of the request. */
tnk__route_id_t tnk__part_form_route(const tnk__part_t *part);
/* Handle a refusal. Returns 1 if the same pass must be sent as JSON. */
int tnk__part_form_change(tnk__part_t *part, const tnk__reply_t *reply);
/* The error to report after a refusal with `error`. Adds no reference. */
tnk__error_t *tnk__part_form_blame(const tnk__part_t *part,
                                   const tnk__reply_t *reply,
                                   tnk__error_t *error);
/* The request was accepted: the session keeps its form. */
void tnk__part_form_learn(tnk__part_t *part);
void tnk__part_form_clear(tnk__part_t *part);

#endif
