#ifndef TNK_LIB_CLIENT_TRAIN_OP_H
#define TNK_LIB_CLIENT_TRAIN_OP_H

#include "lib/usage/purse.h"
#include "lib/policy/turns.h"
#include "lib/client/train/cargo.h"
#include "lib/client/future/job.h"
#include "lib/client/session/member.h"
#include "lib/client/train/seq.h"
#include "lib/client/train/training.h"

/*
 * An operation of a training client: one or several numbered requests that are
 * submitted in the client's order, whose results are awaited side by side.
 *
 * Queued for its turn. With the turn: its parts are submitted, one after the
 * other or side by side. It leaves the turn when all are accepted (one that
 * has a second pass keeps it until then), and waits for results. Over: the
 * promise has settled; the operation stays until the fate of every request on
 * the wire is known, because its number depends on it, and is then freed.
 */

struct tnk__op;

/* What an operation adds to the weights; see below. */
typedef enum {
  TNK__COUNTS_NOTHING = 0,
  TNK__COUNTS_STEP,
  TNK__COUNTS_PASS,
  TNK__COUNTS_ANEW /* a state is loaded in their place */
} tnk__counts_t;

/* Behaviour of a kind of operation. */
typedef struct {
  const char *name;   /* begins error sentences */
  const char *method; /* the official client's name of the public call */
  const char *type;   /* kind of request, for polls */
  tnk__route_id_t route;
  int is_unnumbered; /* waits for its turn but takes no sequence number */
  tnk__counts_t counts;
  /* Say, with the turn, how many requests it takes, at least 1; may be NULL:
   * one. */
  int (*prepare)(struct tnk__op *op, size_t *n_parts);
  /* Append the body of its only request. */
  int (*write)(struct tnk__op *op, uint64_t number, tnk__buf_t *out);
  /* Or, where that is not given: what is to be written, in protobuf, while
   * request `index` is sent; the result is in protobuf as well. */
  tnk__fwdbwd_t (*request)(struct tnk__op *op, size_t index, uint64_t number);
  /* Bytes of the dispatch budget. May be NULL: none. */
  uint64_t (*cost)(struct tnk__op *op, size_t index);
  /* Tokens that request `index` trains on; may be NULL: none. */
  uint64_t (*tokens)(struct tnk__op *op, size_t index);
  /* Read the result of request `index`, and say what is wrong with it if the
   * code alone would not; may be NULL: it does not matter. */
  int (*read)(struct tnk__op *op, size_t index, const tnk__reply_t *reply,
              tnk__text_t *why);
  /* End the operation, now that all results are read, or begin the next
   * pass. */
  void (*finish)(struct tnk__op *op);
  /* The caller's data is not needed any more; may be NULL. Only schedules. */
  void (*submitted)(struct tnk__op *op);
  /* Free the operation and what the kind has added. */
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

/* What a part that has ended has used. */
typedef enum {
  TNK__PART_UNTOLD = 0, /* nobody says so: by whether it was run */
  TNK__PART_USED,
  TNK__PART_UNUSED
} tnk__part_use_t;

/*
 * One request of an operation. It is idle until the operation says that it may
 * begin; pays for its bytes; takes its number and is encoded, and if the server
 * wants it compressed; is submitted, again under another number if the number
 * was at fault; accepted, and its result awaited; done. The memory is the
 * operation's.
 */
typedef struct tnk__part {
  struct tnk__op *op;
  size_t index;
  tnk__part_state_t state;
  uint64_t since_ms; /* when it asked for its bytes */
  tnk__job_t job;
  tnk__payer_t payer;
  tnk__deferred_t due;  /* the operation lets it begin */
  tnk__deferred_t paid; /* the budget does */
  tnk__cargo_t cargo;
  tnk__seq_t number;
  int is_counted; /* what it has used, or that it has not */
  int is_json;    /* its pass is sent as JSON, see pass_form.c */
  /* The refusal of its pass as protobuf, while JSON is tried; or NULL. */
  tnk__error_t *unread;
} tnk__part_t;

typedef struct tnk__op {
  tnk__member_t member; /* in training->ops */
  const tnk__op_class_t *type;
  tnk_training_t *training;
  tnk_promise_t *promise; /* NULL once it has settled */
  const char *secret;     /* of the calls of its parts, or NULL; the kind's */
  uint64_t entered_ms;    /* when it took its place in the queue */
  const char *poll_type;  /* type->type, unless the kind changes it */
  tnk__turn_t turn;
  tnk__deferred_t ready;
  tnk__part_t *parts;
  size_t n_parts;
  size_t n_accepted;
  size_t n_read;
  tnk__held_t held;   /* of the purse, for parts that are not counted */
  tnk__error_t *lost; /* why a result that was due will not come, or NULL */
  size_t n_holds;     /* jobs on the thread pool, and calls of the user */
  int side_by_side;
  int keeps_turn;     /* also when everything has been submitted */
  int is_out_of_turn; /* a part was accepted, and then refused for its number */
  tnk__tally_t tally; /* of what comes before it, once it is tallied */
  int is_tallied;
  int is_held;          /* begins only when it is let go, also with the turn */
  int is_patient;       /* ends only when its tally is final */
  int is_due;           /* it is at its end but for that */
  int has_own_metadata; /* the library has added metadata to its request */
} tnk__op_t;

/* Make an operation: zeroed memory of `size` bytes that begins with it, bound
 * to its promise: *promise, which somebody else gives up, or if that is NULL a
 * new one, which is the caller's. NULL without memory; then *promise says
 * so. */
void *tnk__op_new(size_t size, const tnk__op_class_t *type,
                  tnk_training_t *training, tnk_promise_t **promise);
/* Take out of the purse what one that has not been queued may use. 0: there is
 * not enough; it is destroyed and its promise rejected. */
int tnk__op_take(tnk__op_t *op, uint64_t n_tokens, int is_whole);
/* Destroy one that has not been queued, for the budget, and reject its
 * promise. */
void tnk__op_refuse(tnk__op_t *op, const char *why);
/* Queue an operation that is complete; it frees itself from here on. One that
 * there was no memory to complete is destroyed and its promise rejected. */
void tnk__op_enter(tnk__op_t *op, int is_complete);
/* Let an operation begin that was held: that of a promise, if it is pending. */
void tnk__op_let_go(tnk_promise_t *promise);
/* Begin another pass of n_parts, still with the turn; from `finish`. */
void tnk__op_next_pass(tnk__op_t *op, size_t n_parts);
/* Settle it, from `finish` or at any time. `error` stays the caller's. */
void tnk__op_resolve(tnk__op_t *op, tnk__result_kind_t kind, void *value,
                     void (*free_value)(const tnk_allocator_t *, void *));
void tnk__op_fail(tnk__op_t *op, tnk__error_t *error);
/* Keep the memory while the program's code runs, which may cancel or close. */
void tnk__op_hold(tnk__op_t *op);
/* Keep it no longer. 0: it is over, and may be gone. */
int tnk__op_unhold(tnk__op_t *op);
/* Free it after its promise has been handed to somebody else. */
void tnk__op_dispose(tnk__op_t *op);
/* Write what one whose promise is pending waits for: a sentence that begins
 * with its name. */
void tnk__op_explain(const tnk__op_t *op, tnk__text_t *out);
/* Warn of a queue that has become deep. */
void tnk__op_warn_depth(tnk_training_t *training);
/* Fail with a code and nothing more to say. */
void tnk__op_fail_code(tnk__op_t *op, int code);

/* ---- tally.c ---- */

/*
 * What the weights contain at each place of the sequence: how many steps of the
 * optimizer and passes with gradients the service has accepted before it, less
 * those of which it says later that they failed. It belongs to the sequence of
 * operations and not to the loop of the program, which may be ahead of it.
 */

/* Note that the service has the whole of an operation: what was accepted before
 * it is now its tally. Once an operation; others are let pass. */
void tnk__tally_accept(tnk__op_t *op);
/* Note that the service says that it has failed: what came after it does not
 * contain it. */
void tnk__tally_undo(tnk__op_t *op);
/* What the next operation will find before it if nothing fails. */
tnk__tally_t tnk__tally_expected(const tnk_training_t *training);
/* Whether all before it that counts has settled, so that its tally is final. */
int tnk__tally_is_final(const tnk__op_t *op);

/* ---- Between op.c and op_part.c ---- */

void tnk__part_init(tnk__part_t *part, tnk__op_t *op, size_t index);
/* Let it begin, from IDLE on, or again after its number was refused. */
void tnk__part_begin(tnk__part_t *part);
/* Await nothing of it any more; its number has been settled. It is DONE, unless
 * it is being compressed: then once that is over. */
void tnk__part_clear(tnk__part_t *part);
/* Count once what it has used, if its result has come, else what it may
 * have. */
void tnk__part_count(tnk__part_t *part, tnk__part_use_t use);
/* Note that a part has been accepted; all that may follow is scheduled. */
void tnk__op_accepted(tnk__op_t *op);
/* Note that a part has been run, but its result is lost: the operation fails
 * with the first such error once its other parts are with the service too, as
 * half a batch of gradients would be worse than none or all. If a part came out
 * of turn, it fails once all have ended: the others then probably did too, and
 * only that tells whether it was run. NULL: look whether it is time. 1 when
 * the operation has failed, and may be gone. */
int tnk__op_lose(tnk__op_t *op, tnk__error_t *error);
/* Note that the result of a part has been read. */
void tnk__op_has_read(tnk__op_t *op);
/* Free the operation, a part of which has ended, when it is over and nothing is
 * open. */
void tnk__op_release(tnk__op_t *op);
/* Fail all that wait, behind one that has failed with this error: they were
 * called without knowing of it, and what it was to change may be missing. */
void tnk__op_fail_behind(tnk_training_t *training, tnk__error_t *error);
/* Fail all that wait: no further operation can be numbered. */
void tnk__op_fail_queue(tnk_training_t *training, tnk__error_t *error);

/* ---- pass_form.c ---- */

/*
 * The form of a pass: protobuf, or JSON for servers that do not read protobuf.
 * As long as the server has accepted no pass of the session, a 415 or a 422 to
 * a protobuf pass may mean that it cannot read it. The same pass is then sent
 * as JSON, under the same number. The session keeps the first form that the
 * server accepts. If JSON is refused too, the promise gets the first refusal.
 */

/* Whether the part is to be encoded as JSON. */
int tnk__part_form_is_json(tnk__part_t *part);
/* The call that it is sent with. */
tnk__route_id_t tnk__part_form_route(const tnk__part_t *part);
/* Decide about a refusal. 1: the same pass is to be sent as JSON. */
int tnk__part_form_change(tnk__part_t *part, const tnk__reply_t *reply);
/* The error to report when it was refused with this one; no new reference. */
tnk__error_t *tnk__part_form_blame(const tnk__part_t *part,
                                   const tnk__reply_t *reply,
                                   tnk__error_t *error);
/* The part was accepted: the session keeps its form. */
void tnk__part_form_learn(tnk__part_t *part);
void tnk__part_form_clear(tnk__part_t *part);

#endif
