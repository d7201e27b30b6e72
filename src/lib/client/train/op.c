/* SPDX-License-Identifier: MIT */
/*
 * An operation:
 *
 *   queued --its turn--> prepared, its parts begin --all are accepted--> it
 *     leaves the turn --all results are read--> finish(), which settles it
 *   any --failure, cancel--> settled; parts that are on the wire continue until
 *     they are answered, because the number depends on it
 *   any --close--> settled; no part continues
 *   settled --no part and no other holder uses it--> freed
 *
 * and each of its requests (parts):
 *
 *   IDLE --begin--> PAYING --paid, encoded--> SENDING --accepted--> WAITING
 *                     |                        ^  |
 *                     '--to be compressed--> PACKING
 *
 * SENDING goes back to PAYING when the number was at fault. Each goes to DONE:
 * by a refusal, by the result, or by part_clear().
 *
 * tnk__op_fail(), tnk__op_resolve() and finish() may free the operation.
 */
#include "lib/client/train/op.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/session/session.h"
#include "lib/client/train/stop.h"

enum { MAX_WHY = 256 };

static void part_init(tnk__part_t *part, tnk__op_t *op, size_t index);
static void part_begin(tnk__part_t *part);
static void part_clear(tnk__part_t *part);
static void part_count(tnk__part_t *part, tnk__part_use_t use);

static tnk__session_t *session_of(const tnk__op_t *op) {
  return op->training->session;
}

/* ---- The end ---- */

/* Clear parts that have no request in flight. */
static void drop_parts(tnk__op_t *op) {
  for (size_t i = 0; i < op->n_parts; i++) {
    tnk__part_t *part = &op->parts[i];
    if (part->state == TNK__PART_SENDING &&
        !tnk__call_is_unseen(&part->job.future.call)) {
      part->job.future.call.owner.operation = 0; /* not reported any more */
      continue; /* its number depends on the response */
    }
    if (part->state < TNK__PART_WAITING)
      tnk__seq_settle(&part->number, TNK__EFFECT_NONE, TNK_OK, NULL);
    part_clear(part);
  }
}

static int has_open_parts(const tnk__op_t *op) {
  for (size_t i = 0; i < op->n_parts; i++)
    if (op->parts[i].state != TNK__PART_DONE)
      return 1;
  return 0;
}

/* Free the operation after one of its requests has ended, if it is over and no
 * request is open. */
static void release(tnk__op_t *op) {
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
    part_count(&op->parts[i], TNK__PART_UNTOLD);
  tnk__allowance_give_back(&session_of(op)->limits.allowance, &op->held);
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
  release(op);
}

/* Returns whether a request was run. An accepted request will be run, unless
 * another one came out of turn: then this one's turn may never come. */
static tnk_ran_t ran_of_part(const tnk__op_t *op, const tnk__part_t *part) {
  if (op->is_out_of_turn && part->state == TNK__PART_WAITING)
    return TNK_RAN_UNKNOWN;
  return tnk__job_ran(&part->job);
}

/* Returns whether all requests together were run. If a second pass is to come,
 * the first pass alone has changed nothing. */
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
  if (error->pub.code == TNK_EFAILED || ran == TNK_RAN_NO)
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
  release(op);
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
    part_clear(&op->parts[i]);
  }
  release(op);
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
  release(op);
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

/* Fail all waiting operations behind one that has failed with this error. They
 * were called without knowledge of the failure, and may depend on the failed
 * operation. */
static void fail_behind(tnk_training_t *training, tnk__error_t *error) {
  tnk__error_t *behind = tnk__error_behind(error);

  TNK__LIST_FOREACH_SAFE (link, next, &training->turns.queue) {
    tnk__turn_t *turn = tnk__container_of(link, tnk__turn_t, link);

    if (turn->n_open == 0)
      tnk__op_fail(tnk__container_of(turn, tnk__op_t, turn), behind);
  }
  tnk__error_unref(behind);
}

/* Fail all waiting operations: no further operation can be numbered. */
static void fail_queue(tnk_training_t *training, tnk__error_t *error) {
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

/* A request was accepted. Only schedules further work. */
static void accepted(tnk__op_t *op) {
  tnk__context_t *context = session_of(op)->context;

  op->n_accepted++;
  if (op->n_accepted == op->n_parts)
    all_submitted(op);
  else if (!op->side_by_side)
    tnk__defer(context, &op->parts[op->n_accepted].due);
  else if (op->n_accepted == op->n_parts - 1)
    tnk__defer(context, &op->parts[0].due); /* the first part is sent last */
}

/*
 * A request was run, but its result is lost. The operation fails with the first
 * such error, but only after its other requests were accepted too. Half a batch
 * of gradients would be worse than none or all.
 *
 * If a request came out of turn, the operation fails after all have ended. The
 * others probably came out of turn too. Only their end shows whether they were
 * run. With `error` NULL, check whether it is time to fail. Returns 1 if the
 * operation has failed; it may have been freed.
 */
static int lose(tnk__op_t *op, tnk__error_t *error) {
  if (error != NULL && op->lost == NULL)
    op->lost = tnk__error_ref(error);
  if (op->lost == NULL || op->n_accepted < op->n_parts ||
      (op->is_out_of_turn && has_open_parts(op)))
    return 0;
  tnk__op_fail(op, op->lost);
  return 1;
}

/* The result of a request has been read. */
static void has_read(tnk__op_t *op) {
  if (++op->n_read < op->n_parts) {
    lose(op, NULL);
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

  for (size_t i = 0; i < n; i++) {
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
  part_begin(part);
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
    part_init(&op->parts[i], op, i);
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
    part_begin(&op->parts[0]);
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
  tnk__allowance_t *allowance = &session_of(op)->limits.allowance;
  const tnk__claim_t claim = {.model = op->training->info.base_model,
                              .most = {.trained = n_tokens},
                              .is_open = !is_whole};
  const tnk__grant_t grant = tnk__allowance_take(allowance, &claim, &op->held);
  char why[MAX_WHY];
  tnk__text_t text;

  if (grant == TNK__ALLOWANCE_GRANTED)
    return 1;
  tnk__text_init(&text, why, sizeof(why));
  tnk__allowance_explain(allowance, grant, &claim, &text);
  tnk__op_refuse(op, why);
  return 0;
}

/* The program assumes the weights of a later step. */
static void refuse_unheard(tnk__op_t *op) {
  tnk_training_t *training = op->training;
  tnk__error_t *error =
      tnk__error_new(&session_of(op)->context->alloc, TNK_ESESSION,
                     "%s: %s was lost and has been restored to step %llu; "
                     "tnk_training_ready() returns the step to continue from",
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
  tnk__allowance_give_back(&session_of(op)->limits.allowance, &op->held);
  op->type->destroy(op);
}

/* ---- Requests: usage ---- */

/* Count its usage once: the actual usage if its result has come, else the
 * possible usage. */
static void part_count(tnk__part_t *part, tnk__part_use_t use) {
  tnk__op_t *op = part->op;
  tnk__allowance_t *allowance = &session_of(part->op)->limits.allowance;
  tnk__totals_t *totals = &op->training->totals;
  uint64_t n;

  if (part->is_counted || op->type->tokens == NULL)
    return;
  part->is_counted = 1;
  n = op->type->tokens(op, part->index);
  if (use == TNK__PART_USED)
    tnk__allowance_use(allowance, totals, op->training->info.base_model,
                       &(tnk__use_t){.trained = n});
  if (use != TNK__PART_UNTOLD || tnk__job_ran(&part->job) == TNK_RAN_NO)
    tnk__allowance_give_part(allowance, &op->held, n);
  else
    tnk__allowance_doubt_part(allowance, totals, &op->held, n);
}

/* Stop waiting for its results; its number has been settled. The state becomes
 * DONE, after the end of compression if that is running. */
static void part_clear(tnk__part_t *part) {
  part_count(part, TNK__PART_UNTOLD);
  tnk__job_cancel(&part->job);
  tnk__budget_release(&session_of(part->op)->limits.train_bytes, &part->payer);
  tnk__defer_cancel(&part->due);
  tnk__defer_cancel(&part->paid);
  if (part->state == TNK__PART_PACKING)
    return; /* the thread pool owns the body */
  tnk__cargo_clear(&part->cargo);
  tnk__seq_deinit(&part->number);
  tnk__part_form_clear(part);
  part->state = TNK__PART_DONE;
}

/* ---- Requests: submission ---- */

/* A response that only the numbering waited for. */
static void note_late(const tnk__op_t *op) {
  tnk__context_t *context = op->training->session->context;

  context->counters.n_late_events++;
  tnk__log(&context->logger, TNK_LOG_DEBUG, "training",
           "%s: %s was abandoned, so its response is dropped",
           op->training->info.model_id, op->type->name);
}

static int on_accepted(tnk__job_t *job, const tnk__accepted_t *answer) {
  tnk__part_t *part = tnk__container_of(job, tnk__part_t, job);
  tnk__op_t *op = part->op;

  (void)answer;
  tnk__training_moved(op->training);
  tnk__seq_settle(&part->number, TNK__EFFECT_ACCEPTED, TNK_OK, NULL);
  tnk__seq_deinit(&part->number);
  tnk__part_form_learn(part);
  tnk__budget_release(&session_of(part->op)->limits.train_bytes, &part->payer);
  tnk__cargo_clear(&part->cargo);
  if (op->promise == NULL) {
    note_late(op);
    if (op->n_parts == 1)
      tnk__tally_accept(op); /* it is run although no caller waits for it */
    part->state = TNK__PART_DONE;
    release(op);
    return 0;
  }
  part->state = TNK__PART_WAITING;
  accepted(op);
  return !lose(op, NULL);
}

/* The last access to the operation: the program is notified, and may free
 * it. */
static void stop_if(tnk_training_t *training, const tnk__stop_t *stop) {
  tnk__error_t *error = tnk__training_stop(training, stop);

  if (error != NULL)
    fail_queue(training, error);
  tnk__error_unref(error);
}

/* The server's message with the code of a lost model. Returns one reference. */
static tnk__error_t *blame_model(const tnk__part_t *part, tnk__error_t *error) {
  tnk_error_t pub = error->pub;

  if (pub.code == TNK_ESESSION)
    return tnk__error_ref(error);
  pub.code = TNK_ESESSION;
  return tnk__error_from(&session_of(part->op)->context->alloc,
                         part->op->type->name, &pub);
}

/* For loads, a 404 means that the state does not exist. */
static tnk__stop_t stop_of(const tnk__part_t *part, const tnk__reply_t *reply) {
  const tnk__op_class_t *type = part->op->type;
  const tnk__asked_t asked = {.name = type->name,
                              .is_accepted = part->job.is_accepted,
                              .needs_weights =
                                  type->route != TNK__ROUTE_LOAD_STATE &&
                                  !type->is_unnumbered};

  return tnk__stop_of(&part->number, &asked, reply);
}

/* The submission has failed permanently. */
static void on_refused(tnk__part_t *part, const tnk__reply_t *reply) {
  tnk__op_t *op = part->op;
  tnk_training_t *training = op->training;
  tnk__error_t *error = reply->error;
  const tnk__stop_t stop = stop_of(part, reply);
  int is_doubtful;

  tnk__budget_release(&session_of(part->op)->limits.train_bytes, &part->payer);
  if (op->promise != NULL && stop.sign == TNK__SIGN_NONE &&
      (tnk__part_form_change(part, reply) ||
       tnk__seq_heal(&part->number, reply, !op->side_by_side) ||
       (reply->verdict.effect == TNK__EFFECT_NONE && !reply->verdict.in_doubt &&
        !op->side_by_side && tnk__seq_suspect(&part->number, reply)))) {
    part_begin(part);
    return;
  }
  if (part->number.refusal != NULL && reply->verdict.effect == TNK__EFFECT_NONE)
    error = part->number.refusal;
  error = tnk__part_form_blame(part, reply, error);
  error = stop.sign != TNK__SIGN_NONE ? blame_model(part, error)
                                      : tnk__error_ref(error);
  part->state = TNK__PART_DONE;
  is_doubtful =
      op->promise != NULL && reply->verdict.effect == TNK__EFFECT_UNKNOWN;
  tnk__seq_settle(&part->number, reply->verdict.effect, error->pub.code,
                  &part->cargo);
  part_clear(part);
  if (op->promise != NULL && reply->verdict.effect == TNK__EFFECT_ACCEPTED) {
    accepted(op);
    lose(op, error);
  } else if (op->promise != NULL) {
    tnk__op_fail(op, error);
  } else {
    note_late(op);
    if (op->n_parts == 1 && reply->verdict.effect == TNK__EFFECT_ACCEPTED)
      tnk__tally_accept(op);
    release(op);
  }
  if (is_doubtful)
    fail_behind(training, error);
  /* Too many numbers are in doubt: the server could wait for one of them. */
  if (training->turns.err != TNK_OK)
    fail_queue(training, error);
  tnk__error_unref(error);
  stop_if(training, &stop);
}

static void lose_text(const tnk__part_t *part, int code, const char *why) {
  tnk_error_t pub = {.code = code, .message = why};
  tnk__error_t *error = tnk__error_from(&session_of(part->op)->context->alloc,
                                        part->op->type->name, &pub);

  lose(part->op, error);
  tnk__error_unref(error);
}

/* No result will come. If the failure shows that the server has lost the
 * operation, send no more of its requests. */
static void on_failed(tnk__part_t *part, const tnk__reply_t *reply) {
  tnk__op_t *op = part->op;
  tnk_training_t *training = op->training;
  const tnk__stop_t stop = stop_of(part, reply);
  /* The model that had accepted the request is gone. */
  const int is_lost =
      stop.sign == TNK__SIGN_EXPECTED ||
      (stop.sign == TNK__SIGN_UNKNOWN && reply->verdict.err == TNK_ENOTFOUND);
  tnk__error_t *error =
      is_lost ? blame_model(part, reply->error) : tnk__error_ref(reply->error);

  /* The future may show the numbering that the submission did not. */
  if (stop.sign == TNK__SIGN_NONE)
    tnk__seq_learn(&part->number, reply);
  if (tnk__job_ran(&part->job) == TNK_RAN_NO)
    op->is_out_of_turn = 1;
  if (reply->verdict.err == TNK_EFAILED || stop.sign != TNK__SIGN_NONE)
    tnk__op_fail(op, error);
  else
    lose(op, error);
  tnk__error_unref(error);
  stop_if(training, &stop);
}

static void on_result(tnk__part_t *part, const tnk__reply_t *reply) {
  tnk__op_t *op = part->op;
  char why[128];
  tnk__text_t text;
  int err = TNK_OK;

  part->state = TNK__PART_DONE;
  tnk__training_moved(op->training);
  if (reply->error == NULL || reply->verdict.err == TNK_EFAILED)
    part_count(part, reply->error == NULL ? TNK__PART_USED : TNK__PART_UNUSED);
  /* An operation that has ended shows that the queue moves. */
  if (reply->error == NULL || reply->verdict.err == TNK_EFAILED)
    tnk__training_notice(op->training, "active", NULL);
  if (reply->error != NULL) {
    on_failed(part, reply);
    return;
  }
  tnk__training_known(op->training, part->number.value);
  tnk__text_init(&text, why, sizeof(why));
  if (op->type->read != NULL)
    err = op->type->read(op, part->index, reply, &text);
  if (err != TNK_OK)
    lose_text(part, err, why);
  else
    has_read(op);
}

static void on_done(tnk__job_t *job, const tnk__reply_t *reply) {
  tnk__part_t *part = tnk__container_of(job, tnk__part_t, job);

  if (job->is_accepted)
    on_result(part, reply);
  else
    on_refused(part, reply);
}

static void on_state(tnk__future_t *future, const char *state,
                     const char *reason) {
  tnk__job_t *job = tnk__container_of(future, tnk__job_t, future);
  tnk__part_t *part = tnk__container_of(job, tnk__part_t, job);

  tnk__training_notice(part->op->training, state, reason);
}

static void submit(tnk__part_t *part) {
  tnk__op_t *op = part->op;
  const tnk__op_class_t *type = op->type;
  tnk__call_t *call = &part->job.future.call;

  tnk__job_init(&part->job, session_of(part->op), tnk__part_form_route(part),
                type->name, op->poll_type);
  part->job.accepted = on_accepted;
  call->owner.method_name = type->method;
  call->owner.secret = op->secret;
  call->owner.totals = &op->training->totals;
  call->request.has_own_metadata = op->has_own_metadata != 0;
  part->job.future.on_state = on_state;
  if (type->request != NULL && !part->is_json) {
    call->request.is_proto = 1;
    part->job.future.is_proto = 1;
  }
  tnk__cargo_load(&part->cargo, call);
  part->state = TNK__PART_SENDING;
  tnk__seq_use(&part->number, &part->cargo);
  call->request.is_reused = part->number.is_reused != 0;
  call->owner.operation = op->promise->operation;
  call->owner.part = (uint32_t)part->index;
  call->request.is_repeat = part->number.is_repeat != 0;
  tnk__job_start(&part->job, call->request.body, call->request.body_len,
                 on_done);
}

/* ---- Requests: encoding ---- */

static void on_packed(tnk__cargo_t *cargo) {
  tnk__part_t *part = tnk__container_of(cargo, tnk__part_t, cargo);
  tnk__op_t *op = part->op;

  op->n_holds--;
  part->state = TNK__PART_PAYING; /* the pool has returned the body */
  if (op->promise != NULL) {
    submit(part);
    return;
  }
  part_clear(part);
  release(op);
}

/* Compress on the thread pool if the server wants it. Returns 0 to send the
 * body as it is. */
static int pack(tnk__part_t *part) {
  tnk__op_t *op = part->op;

  if (op->type->request == NULL || part->is_json ||
      !session_of(part->op)->start.flags.compress_train)
    return 0;
  if (tnk__cargo_pack(&part->cargo, session_of(part->op)->context,
                      &op->training->zstd, on_packed) != TNK_OK)
    return 0;
  part->state = TNK__PART_PACKING;
  tnk__promise_waits(op->promise, TNK_WAITS_FOR_WORKER, part->index);
  op->n_holds++;
  return 1;
}

static int write_body(tnk__part_t *part) {
  const tnk__op_class_t *type = part->op->type;
  uint64_t number = part->number.value;
  tnk__fwdbwd_t request;
  tnk__buf_t *body;
  int err;

  if (type->request != NULL) {
    request = type->request(part->op, part->index, number);
    return tnk__part_form_is_json(part)
               ? tnk__fwdbwd_write_json(tnk__cargo_write(&part->cargo),
                                        &request)
               : tnk__cargo_feed(&part->cargo, &request);
  }
  body = tnk__cargo_write(&part->cargo);
  if (part->op->secret != NULL)
    tnk__buf_keep_secret(body);
  err = type->write(part->op, number, body);
  return err != TNK_OK ? err : body->err;
}

/* The pass is too large as JSON, which was only tried because protobuf was
 * refused. Report that refusal. */
static void fail_encoding(tnk__part_t *part, int err) {
  tnk__error_t *refusal = part->unread;

  if (refusal == NULL || err == TNK_ENOMEM) {
    tnk__op_fail_code(part->op, err);
    return;
  }
  tnk__error_ref(refusal);
  tnk__op_fail(part->op, refusal);
  tnk__error_unref(refusal);
}

static void encode(tnk__part_t *part) {
  tnk__op_t *op = part->op;
  int err = op->type->is_unnumbered ? TNK_OK : tnk__seq_take(&part->number);

  tnk__cargo_clear(&part->cargo);
  if (err == TNK_OK)
    err = write_body(part);
  if (err != TNK_OK)
    fail_encoding(part, err);
  else if (!pack(part))
    submit(part);
}

static uint64_t part_cost(tnk__payer_t *payer) {
  tnk__part_t *part = tnk__container_of(payer, tnk__part_t, payer);

  return part->op->type->cost(part->op, part->index);
}

static void on_granted(tnk__waiter_t *waiter) {
  tnk__payer_t *payer = tnk__container_of(waiter, tnk__payer_t, waiter);
  tnk__part_t *part = tnk__container_of(payer, tnk__part_t, payer);

  tnk__defer(session_of(part->op)->context, &part->paid);
}

/* Begin from IDLE, or again after the number was refused. */
static void part_begin(tnk__part_t *part) {
  tnk__session_t *session = session_of(part->op);

  part->state = TNK__PART_PAYING;
  part->since_ms = tnk__context_now_ms(session->context);
  if (part->op->type->cost == NULL ||
      tnk__budget_acquire(&session->limits.train_bytes, &part->payer))
    encode(part);
  else
    tnk__promise_waits(part->op->promise, TNK_WAITS_FOR_BYTES, part->index);
}

static void on_paid(tnk__deferred_t *paid) {
  encode(tnk__container_of(paid, tnk__part_t, paid));
}

static void part_init(tnk__part_t *part, tnk__op_t *op, size_t index) {
  part->op = op;
  part->index = index;
  tnk__seq_init(&part->number, op->training, &op->turn);
  tnk__payer_init(&part->payer, on_granted, part_cost);
  tnk__deferred_init(&part->paid, on_paid);
  tnk__cargo_init(&part->cargo, &session_of(part->op)->context->alloc);
}
