/*
 * An operation as a whole. op_part.c handles its requests (parts).
 *
 *   queued --its turn--> prepared, its parts begin --all are accepted--> it
 *     leaves the turn --all results are read--> finish(), which settles it
 *   any --failure, cancel--> settled; parts that are on the wire continue until
 *     they are answered, because the number depends on it
 *   any --close--> settled; no part continues
 *   settled --no part and no other holder uses it--> freed
 *
 * Settling may free the operation: `op` is not touched after tnk__op_fail(),
 * tnk__op_resolve() and finish().
 */
#include "lib/client/train/op.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/session/session.h"

enum { MAX_WHY = 256 };

static tnk__session_t *session_of(const tnk__op_t *op) {
  return op->training->session;
}

/* ---- The end ---- */

/* Clear parts that have no request in flight. */
static void drop_parts(tnk__op_t *op) {
  size_t i;

  for (i = 0; i < op->n_parts; i++) {
    tnk__part_t *part = &op->parts[i];
    if (part->state == TNK__PART_SENDING &&
        !tnk__call_is_unseen(&part->job.future.call)) {
      part->job.future.call.owner.operation = 0; /* not reported any more */
      continue; /* its number depends on the response */
    }
    if (part->state < TNK__PART_WAITING)
      tnk__seq_settle(&part->number, TNK__EFFECT_NONE, TNK_OK, NULL);
    tnk__part_clear(part);
  }
}

static int has_open_parts(const tnk__op_t *op) {
  size_t i;

  for (i = 0; i < op->n_parts; i++)
    if (op->parts[i].state != TNK__PART_DONE)
      return 1;
  return 0;
}

void tnk__op_release(tnk__op_t *op) {
  tnk_training_t *training = op->training;
  const tnk_allocator_t *alloc = &session_of(op)->context->alloc;

  if (op->promise != NULL || has_open_parts(op))
    return;
  /* A loss that is still being computed no longer blocks the queue. */
  tnk__turns_leave(&training->turns, &op->turn);
  tnk__defer_cancel(&op->ready);
  if (op->n_holds > 0)
    return;
  tnk__list_remove(&op->member.link);
  training->n_due -= op->is_due != 0;
  if (training->n_due > 0)
    tnk__defer(session_of(op)->context, &training->due);
  tnk__training_moved(training);
  for (size_t i = 0; i < op->n_parts && op->parts != NULL; i++)
    tnk__part_count(&op->parts[i], TNK__PART_UNTOLD);
  tnk__purse_give_back(&session_of(op)->limits.purse, &op->held);
  tnk__free(alloc, op->parts);
  tnk__error_unref(op->lost);
  op->type->destroy(op);
  tnk__training_op_gone(training);
}

void tnk__op_resolve(tnk__op_t *op, tnk__result_kind_t kind, void *value,
                     void (*free_value)(const tnk_allocator_t *, void *)) {
  tnk_promise_t *promise = op->promise;

  op->promise = NULL;
  tnk__promise_resolve(promise, kind, value, free_value);
  tnk__op_dispose(op);
}

void tnk__op_dispose(tnk__op_t *op) {
  drop_parts(op);
  tnk__op_release(op);
}

/* Whether a request was run. An accepted request will be run, unless another
 * one came out of turn: then this one's turn may never come. */
static tnk_ran_t ran_of_part(const tnk__op_t *op, const tnk__part_t *part) {
  if (op->is_out_of_turn && part->state == TNK__PART_WAITING)
    return TNK_RAN_UNKNOWN;
  return tnk__job_ran(&part->job);
}

/* Whether all requests together were run. If a second pass is to come, the
 * first pass alone has changed nothing. */
static tnk_ran_t ran_of(const tnk__op_t *op) {
  size_t n_of[TNK_RAN_PARTLY + 1] = {0};
  size_t i;

  for (i = 0; i < op->n_parts && op->parts != NULL; i++)
    n_of[ran_of_part(op, &op->parts[i])]++;
  if (op->keeps_turn || n_of[TNK_RAN_NO] == i)
    return TNK_RAN_NO;
  if (n_of[TNK_RAN_YES] > 0)
    return n_of[TNK_RAN_YES] == i ? TNK_RAN_YES : TNK_RAN_PARTLY;
  return TNK_RAN_UNKNOWN;
}

/* If the service reports the failure, its error is complete, unless a part has
 * not failed. */
static void reject(tnk__op_t *op, tnk__error_t *error) {
  tnk_promise_t *promise = op->promise;
  tnk_ran_t ran = ran_of(op);

  op->promise = NULL;
  if (error->pub.code == TNK_EFAILED)
    tnk__tally_undo(op);
  tnk__promise_reject(promise,
                      error->pub.code == TNK_EFAILED && ran == TNK_RAN_UNKNOWN
                          ? tnk__error_ref(error)
                          : tnk__error_ran(error, ran));
}

void tnk__op_fail(tnk__op_t *op, tnk__error_t *error) {
  if (op->promise == NULL)
    return;
  reject(op, error);
  drop_parts(op);
  tnk__op_release(op);
}

/* The client closes. The outcome of requests in flight will not be known, and
 * no further number is taken. */
static void on_abort(tnk__member_t *member, tnk__error_t *error) {
  tnk__op_t *op = tnk__container_of(member, tnk__op_t, member);
  size_t i;

  if (op->promise != NULL)
    reject(op, error);
  for (i = 0; i < op->n_parts; i++) {
    tnk__seq_settle(&op->parts[i].number, TNK__EFFECT_NONE, TNK_OK, NULL);
    tnk__part_clear(&op->parts[i]);
  }
  tnk__op_release(op);
}

void tnk__op_fail_code(tnk__op_t *op, int code) {
  tnk_error_t pub = {.code = code};
  tnk__error_t *error =
      tnk__error_from(&session_of(op)->context->alloc, op->type->name, &pub);

  tnk__op_fail(op, error);
  tnk__error_unref(error);
}

void tnk__op_hold(tnk__op_t *op) {
  op->n_holds++;
}

int tnk__op_unhold(tnk__op_t *op) {
  op->n_holds--;
  if (op->promise != NULL)
    return 1;
  tnk__op_release(op);
  return 0;
}

static void on_explain(const void *arg, tnk__text_t *out) {
  tnk__op_explain(arg, out);
}

static int explain_member(const tnk__member_t *member, tnk__text_t *out) {
  const tnk__op_t *op = tnk__container_of_const(member, tnk__op_t, member);

  if (op->promise != NULL && out != NULL)
    tnk__op_explain(op, out);
  return op->promise != NULL;
}

static void on_cancel(void *arg) {
  tnk__op_fail(arg, tnk__error_static(TNK_ECANCELED));
}

void tnk__op_fail_behind(tnk_training_t *training, tnk__error_t *error) {
  tnk__error_t *behind = tnk__error_behind(error);

  TNK__LIST_FOREACH_SAFE (link, next, &training->turns.queue) {
    tnk__turn_t *turn = tnk__container_of(link, tnk__turn_t, link);

    if (turn->n_open == 0)
      tnk__op_fail(tnk__container_of(turn, tnk__op_t, turn), behind);
  }
  tnk__error_unref(behind);
}

void tnk__op_fail_queue(tnk_training_t *training, tnk__error_t *error) {
  tnk__turn_t *turn;

  if (training->failed != NULL || training->closing)
    return;
  training->failed = tnk__error_behind(error);
  tnk__log(&training->session->context->logger, TNK_LOG_ERROR, "training",
           "%s: no further operation can be sent: %s", training->info.model_id,
           error->pub.text);
  while ((turn = tnk__turns_next_failed(&training->turns)) != NULL)
    tnk__op_fail(tnk__container_of(turn, tnk__op_t, turn), training->failed);
}

/* ---- The order of parts ---- */

/* The service has everything: the next operation gets the turn. */
static void all_submitted(tnk__op_t *op) {
  if (op->keeps_turn)
    return;
  tnk__tally_accept(op);
  tnk__turns_leave(&op->training->turns, &op->turn);
  if (op->type->submitted != NULL)
    op->type->submitted(op);
}

void tnk__op_accepted(tnk__op_t *op) {
  tnk__context_t *context = session_of(op)->context;

  op->n_accepted++;
  if (op->n_accepted == op->n_parts)
    all_submitted(op);
  else if (!op->side_by_side)
    tnk__defer(context, &op->parts[op->n_accepted].due);
  else if (op->n_accepted == op->n_parts - 1)
    tnk__defer(context, &op->parts[0].due); /* the first part is sent last */
}

int tnk__op_lose(tnk__op_t *op, tnk__error_t *error) {
  if (error != NULL && op->lost == NULL)
    op->lost = tnk__error_ref(error);
  if (op->lost == NULL || op->n_accepted < op->n_parts ||
      (op->is_out_of_turn && has_open_parts(op)))
    return 0;
  tnk__op_fail(op, op->lost);
  return 1;
}

void tnk__op_has_read(tnk__op_t *op) {
  if (++op->n_read < op->n_parts) {
    tnk__op_lose(op, NULL);
  } else if (op->is_patient && !tnk__tally_is_final(op)) {
    op->is_due = 1;
    op->training->n_due++;
  } else {
    op->type->finish(op);
  }
}

static void on_due_end(tnk__deferred_t *due) {
  tnk_training_t *training = tnk__container_of(due, tnk_training_t, due);

  TNK__LIST_FOREACH_SAFE (node, next, &training->ops) {
    tnk__op_t *op = tnk__container_of(tnk__member_of(node), tnk__op_t, member);

    if (!op->is_due || !tnk__tally_is_final(op))
      continue;
    op->is_due = 0;
    training->n_due--;
    op->type->finish(op);
    return; /* its removal continues with the next one */
  }
}

/* Take all numbers in order, then send all parts except the first. A failure
 * ends the operation, which may have been freed then. */
static void begin_side_by_side(tnk__op_t *op) {
  size_t n = op->n_parts;
  tnk__part_t *parts = op->parts;
  size_t i;

  for (i = 0; i < n; i++) {
    int err = tnk__seq_take(&parts[i].number);
    if (err != TNK_OK) {
      tnk__op_fail_code(op, err);
      return;
    }
  }
  tnk__defer(session_of(op)->context, &parts[1].due);
}

/* In parallel mode each part starts the next one in another turn of the loop,
 * because encoding a chunk takes time. */
static void on_due(tnk__deferred_t *due) {
  tnk__part_t *part = tnk__container_of(due, tnk__part_t, due);
  tnk__op_t *op = part->op;

  if (op->side_by_side && part->index > 0 && part->index + 1 < op->n_parts)
    tnk__defer(session_of(op)->context, &part[1].due);
  tnk__part_begin(part);
}

static int make_parts(tnk__op_t *op, size_t n) {
  tnk__session_t *session = session_of(op);
  size_t i;

  tnk__free(&session->context->alloc, op->parts);
  op->n_parts = op->n_accepted = op->n_read = 0;
  op->is_out_of_turn = 0;
  op->parts = tnk__calloc(&session->context->alloc, n, sizeof(*op->parts));
  if (op->parts == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n; i++) {
    tnk__part_init(&op->parts[i], op, i);
    tnk__deferred_init(&op->parts[i].due, on_due);
  }
  op->n_parts = n;
  op->side_by_side = n > 1 && session->start.flags.parallel_chunks;
  return TNK_OK;
}

void tnk__op_next_pass(tnk__op_t *op, size_t n_parts) {
  int err = make_parts(op, n_parts);

  if (err != TNK_OK)
    tnk__op_fail_code(op, err);
  else if (op->side_by_side)
    begin_side_by_side(op);
  else
    tnk__part_begin(&op->parts[0]);
}

/* ---- The queue ---- */

static void on_ready(tnk__deferred_t *ready) {
  tnk__op_t *op = tnk__container_of(ready, tnk__op_t, ready);
  size_t n_parts = 1;
  int err =
      op->type->prepare != NULL ? op->type->prepare(op, &n_parts) : TNK_OK;

  if (err != TNK_OK)
    tnk__op_fail_code(op, err);
  else
    tnk__op_next_pass(op, n_parts);
}

static void begin(tnk__op_t *op) {
  if (!op->is_held)
    tnk__defer(session_of(op)->context, &op->ready);
}

static void on_turn(tnk__turn_t *turn) {
  begin(tnk__container_of(turn, tnk__op_t, turn));
}

void tnk__op_let_go(tnk_promise_t *promise) {
  tnk__op_t *op;

  if (tnk_promise_state(promise) != TNK_PENDING)
    return;
  op = promise->as.pending.op;
  op->is_held = 0;
  if (tnk__turns_has_turn(&op->training->turns, &op->turn))
    begin(op);
}

static int advances(tnk__member_t *member) {
  tnk__op_t *op = tnk__container_of(member, tnk__op_t, member);
  int n = 0;

  for (size_t i = 0; i < op->n_parts; i++)
    n += tnk__call_advances(&op->parts[i].job.future.call);
  return n > 0;
}

static const tnk__member_type_t member_type = {on_abort, explain_member,
                                               advances};

static void setup(tnk__op_t *op, const tnk__op_class_t *type,
                  tnk_training_t *training, tnk_promise_t *promise) {
  op->type = type;
  op->poll_type = type->type;
  op->training = training;
  op->promise = promise;
  tnk__list_init(&op->member.link);
  op->member.type = &member_type;
  op->entered_ms = tnk__context_now_ms(training->session->context);
  tnk__promise_bind(promise, on_cancel, on_explain, op);
  tnk__promise_enter(promise, op->type->name, training->info.model_id);
  tnk__turn_init(&op->turn, on_turn);
  if (training->due.fn == NULL)
    tnk__deferred_init(&training->due, on_due_end);
  tnk__deferred_init(&op->ready, on_ready);
}

void *tnk__op_new(size_t size, const tnk__op_class_t *type,
                  tnk_training_t *training, tnk_promise_t **promise) {
  tnk__context_t *context = training->session->context;
  void *op = tnk__calloc(&context->alloc, 1, size);

  if (*promise == NULL)
    *promise = tnk__promise_new(context, NULL, NULL);
  if (op != NULL && !tnk__promise_is_oom(*promise)) {
    setup(op, type, training, *promise);
    return op;
  }
  tnk__free(&context->alloc, op);
  if (!tnk__promise_is_oom(*promise))
    tnk__promise_reject(
        *promise, tnk__error_ran(tnk__error_static(TNK_ENOMEM), TNK_RAN_NO));
  return NULL;
}

void tnk__op_refuse(tnk__op_t *op, const char *why) {
  tnk_error_t pub = {.code = TNK_EBUDGET, .message = why};
  tnk__error_t *error =
      tnk__error_from(&session_of(op)->context->alloc, op->type->name, &pub);

  reject(op, error);
  tnk__error_unref(error);
  op->type->destroy(op);
}

int tnk__op_take(tnk__op_t *op, uint64_t n_tokens, int is_whole) {
  tnk__purse_t *purse = &session_of(op)->limits.purse;
  const tnk__claim_t claim = {.model = op->training->info.base_model,
                              .most = {.trained = n_tokens},
                              .is_open = !is_whole};
  const tnk__grant_t grant = tnk__purse_take(purse, &claim, &op->held);
  char why[MAX_WHY];
  tnk__text_t text;

  if (grant == TNK__PURSE_GRANTED)
    return 1;
  tnk__text_init(&text, why, sizeof(why));
  tnk__purse_explain(purse, grant, &claim, &text);
  tnk__op_refuse(op, why);
  return 0;
}

/* The program assumes the weights of a later step. */
static void refuse_unheard(tnk__op_t *op) {
  tnk_training_t *training = op->training;
  tnk__error_t *error =
      tnk__error_new(&session_of(op)->context->alloc, TNK_ESESSION,
                     "%s: %s was lost and has been restored to step %llu; "
                     "tnk_training_ready() tells from which step to continue",
                     op->type->name, training->info.model_id,
                     (unsigned long long)training->tally.n_steps);

  tnk__list_append(&training->ops, &op->member.link);
  tnk__op_fail(op, error);
  tnk__error_unref(error);
}

static void enter(tnk__op_t *op) {
  tnk_training_t *training = op->training;
  int has_turn;

  if (training->is_unheard) {
    refuse_unheard(op);
    return;
  }
  has_turn = tnk__turns_enter(&training->turns, &op->turn);
  if (tnk__list_empty(&training->ops))
    tnk__training_moved(training);
  tnk__op_warn_depth(training);
  tnk__list_append(&training->ops, &op->member.link);
  if (has_turn < 0)
    tnk__op_fail(op, training->failed != NULL ? training->failed
                                              : tnk__error_static(has_turn));
  else if (has_turn)
    begin(op);
  else
    tnk__promise_waits(op->promise, TNK_WAITS_FOR_TURN, 0);
}

void tnk__op_enter(tnk__op_t *op, int is_complete) {
  if (is_complete) {
    enter(op);
    return;
  }
  reject(op, tnk__error_static(TNK_ENOMEM));
  tnk__purse_give_back(&session_of(op)->limits.purse, &op->held);
  op->type->destroy(op);
}
