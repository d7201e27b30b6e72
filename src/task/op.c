#include "task/op.h"

#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "codec/zstd.h"
#include "task/session.h"

enum { MAX_HEALS = 3 };

static void begin(tnk__part_t *part);
static void advance(tnk__op_t *op);

static tnk__session_t *session_of(const tnk__op_t *op) {
  return op->training->session;
}

static void moved(tnk_training_t *training) {
  tnk__stall_moved(&training->stall, tnk__loop_now_ms(training->session->loop));
}

/* ---- Numbers ---- */

static int take_number(tnk__part_t *part) {
  tnk__op_t *op = part->op;
  int err;

  if (op->type->is_unnumbered || part->has_number)
    return TNK_OK;
  err = tnk__turns_take(&op->training->turns, &op->turn, &part->number);
  part->has_number = err == TNK_OK;
  part->epoch = op->turn.epoch;
  return err;
}

/* The fate of the part's numbers is known, or can never be. */
static void settle_number(tnk__part_t *part, tnk__effect_t effect, int err) {
  tnk__turn_t *turn = &part->op->turn;
  tnk__turns_t *turns = &part->op->training->turns;
  uint32_t i;

  for (i = 0; i < part->n_suspects; i++)
    tnk__turns_settle(turns, turn, part->suspects[i],
                      effect == TNK__EFFECT_NONE ? TNK__EFFECT_NONE
                                                 : TNK__EFFECT_ACCEPTED,
                      TNK_OK);
  part->n_suspects = 0;
  if (part->has_number)
    tnk__turns_settle(turns, turn, part->number, effect, err);
  part->has_number = 0;
}

/* ---- The end ---- */

static void clear_part(tnk__part_t *part) {
  tnk__job_cancel(&part->job);
  tnk__budget_release(&session_of(part->op)->train_bytes, &part->payer);
  tnk__defer_cancel(&part->paid);
  if (part->state == TNK__PART_PACKING)
    return; /* the thread pool has the buffers */
  tnk__buf_deinit(&part->body);
  tnk__buf_deinit(&part->packed);
  tnk__error_unref(part->refusal);
  part->refusal = NULL;
  part->state = TNK__PART_DONE;
}

/* Parts of which nothing is on the wire and nothing is awaited any more. */
static void drop_parts(tnk__op_t *op) {
  size_t i;

  for (i = 0; i < op->n_parts; i++) {
    tnk__part_t *part = &op->parts[i];
    if (part->state == TNK__PART_SENDING &&
        !tnk__call_is_unseen(&part->job.call))
      continue; /* its number depends on how this ends */
    if (part->state < TNK__PART_WAITING)
      settle_number(part, TNK__EFFECT_NONE, TNK_OK);
    clear_part(part);
  }
}

static int is_busy(const tnk__op_t *op) {
  size_t i;

  for (i = 0; i < op->n_parts; i++)
    if (op->parts[i].state != TNK__PART_DONE)
      return 1;
  return op->n_holds > 0;
}

/* Free the operation when it is over and nothing is open. */
static void release(tnk__op_t *op) {
  tnk_training_t *training = op->training;
  const tnk_allocator_t *alloc = &session_of(op)->loop->alloc;

  if (op->promise != NULL || is_busy(op))
    return;
  tnk__turns_leave(&training->turns, &op->turn);
  tnk__defer_cancel(&op->ready);
  tnk__list_remove(&op->member.link);
  moved(training);
  tnk__free(alloc, op->parts);
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

void tnk__op_fail(tnk__op_t *op, tnk__error_t *error) {
  tnk_promise_t *promise = op->promise;

  if (promise == NULL)
    return;
  op->promise = NULL;
  tnk__promise_reject(promise, tnk__error_ref(error));
  drop_parts(op);
  release(op);
}

static void on_abort(tnk__member_t *member, tnk__error_t *error) {
  tnk__op_t *op = tnk__container_of(member, tnk__op_t, member);
  tnk_promise_t *promise = op->promise;
  size_t i;

  op->promise = NULL;
  if (promise != NULL)
    tnk__promise_reject(promise, tnk__error_ref(error));
  for (i = 0; i < op->n_parts; i++) {
    settle_number(&op->parts[i], TNK__EFFECT_NONE, TNK_OK);
    clear_part(&op->parts[i]);
  }
  release(op);
}

void tnk__op_fail_code(tnk__op_t *op, int code) {
  tnk_error_t pub = {.code = code};
  tnk__error_t *error =
      tnk__error_from(&session_of(op)->loop->alloc, op->type->name, &pub);

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
  const tnk__op_t *op = (const tnk__op_t *)(const void *)member;

  if (op->promise != NULL && out != NULL)
    tnk__op_explain(op, out);
  return op->promise != NULL;
}

static void on_cancel(void *arg) {
  tnk__op_fail(arg, tnk__error_static(TNK_ECANCELED));
}

/* No further operation can be numbered: fail all that wait. */
static void fail_queue(tnk_training_t *training, tnk__error_t *error) {
  tnk__turn_t *turn;

  if (training->failed != NULL || training->closing)
    return;
  training->failed = tnk__error_ref(error);
  tnk__log(&training->session->loop->logger, TNK_LOG_ERROR, "training",
           "%s: no further operation can be sent: %s", training->info.model_id,
           error->pub.text);
  while ((turn = tnk__turns_next_failed(&training->turns)) != NULL)
    tnk__op_fail(tnk__container_of(turn, tnk__op_t, turn), error);
}

/* ---- Submitting ---- */

/* Everything is with the service: the next operation's turn. */
static void all_submitted(tnk__op_t *op) {
  if (op->keeps_turn)
    return;
  tnk__turns_leave(&op->training->turns, &op->turn);
  if (op->type->submitted != NULL)
    op->type->submitted(op);
}

/* An answer that nobody but the numbering waited for. */
static void note_late(const tnk__op_t *op) {
  tnk__loop_t *loop = session_of(op)->loop;

  loop->counters.n_late_events++;
  tnk__log(&loop->logger, TNK_LOG_DEBUG, "training",
           "%s: %s had been given up; its answer is dropped",
           op->training->info.model_id, op->type->name);
}

static int on_accepted(tnk__job_t *job, const tnk__accepted_t *answer) {
  tnk__part_t *part = tnk__container_of(job, tnk__part_t, job);
  tnk__op_t *op = part->op;

  (void)answer;
  moved(op->training);
  settle_number(part, TNK__EFFECT_ACCEPTED, TNK_OK);
  tnk__budget_release(&session_of(op)->train_bytes, &part->payer);
  tnk__buf_deinit(&part->body);
  tnk__buf_deinit(&part->packed);
  if (op->promise == NULL) {
    note_late(op);
    part->state = TNK__PART_DONE;
    release(op);
    return 0;
  }
  part->state = TNK__PART_WAITING;
  op->n_accepted++;
  advance(op);
  return 1;
}

/* A number that had been given back is refused: it may be the number rather
 * than the request. Try the next one; when that is taken, the server counts
 * refused numbers as used. 1 when it is on its way. */
static int suspect_number(tnk__part_t *part, const tnk__reply_t *reply) {
  if (!part->has_number || !part->is_reused || part->op->side_by_side ||
      part->n_suspects == TNK__OP_MAX_SUSPECTS ||
      (reply->status != 422 && reply->status != 409))
    return 0;
  if (part->refusal == NULL)
    part->refusal = tnk__error_ref(reply->error);
  part->suspects[part->n_suspects++] = part->number;
  part->has_number = 0;
  begin(part);
  return 1;
}

/* The server counts differently: go on with the number it expects. */
static int heal_number(tnk__part_t *part, const tnk__reply_t *reply) {
  tnk__op_t *op = part->op;

  if (reply->verdict.action != TNK__ACTION_HEAL || !part->has_number ||
      !reply->has_expected || reply->got != part->number ||
      part->n_suspects > 0)
    return 0;
  settle_number(part, TNK__EFFECT_NONE, TNK_OK);
  /* The others of a row are on their way under numbers that are as wrong, so
   * only the next operation can use what was learnt. */
  if (!tnk__turns_heal(&op->training->turns, part->epoch, part->number,
                       reply->expected) ||
      op->side_by_side || part->n_heals == MAX_HEALS)
    return 0;
  part->n_heals++;
  begin(part);
  return 1;
}

/* The submission has failed for good. */
static void on_refused(tnk__part_t *part, const tnk__reply_t *reply) {
  tnk__op_t *op = part->op;
  tnk_training_t *training = op->training;
  tnk__error_t *error = reply->error;

  tnk__budget_release(&session_of(op)->train_bytes, &part->payer);
  if (op->promise != NULL &&
      (heal_number(part, reply) || (reply->verdict.effect == TNK__EFFECT_NONE &&
                                    suspect_number(part, reply))))
    return;
  if (part->refusal != NULL && reply->verdict.effect == TNK__EFFECT_NONE)
    error = part->refusal;
  tnk__error_ref(error);
  part->state = TNK__PART_DONE;
  settle_number(part, reply->verdict.effect, error->pub.code);
  clear_part(part);
  if (op->promise != NULL) {
    tnk__op_fail(op, error);
  } else {
    note_late(op);
    release(op);
  }
  /* No later operation may be sent: the server could wait for this number. */
  if (training->turns.err != TNK_OK)
    fail_queue(training, error);
  tnk__error_unref(error);
}

static void on_result(tnk__part_t *part, const tnk__reply_t *reply) {
  tnk__op_t *op = part->op;
  int err;

  part->state = TNK__PART_DONE;
  moved(op->training);
  /* One that has ended shows that the queue moves. */
  if (reply->error == NULL || reply->verdict.err == TNK_EFAILED)
    tnk__training_notice(op->training, "active", NULL);
  if (reply->error != NULL) {
    /* The future may tell what the submission did not. */
    if (reply->has_expected && reply->got == part->number)
      tnk__turns_heal(&op->training->turns, part->epoch, part->number,
                      reply->expected);
    tnk__op_fail(op, reply->error);
    return;
  }
  err = op->type->read(op, part->index, reply);
  if (err != TNK_OK)
    tnk__op_fail_code(op, err);
  else if (++op->n_read == op->n_parts)
    op->type->finish(op);
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
  tnk__buf_t *body = part->packed.len > 0 ? &part->packed : &part->body;

  tnk__job_init(&part->job, session_of(op), type->route, type->name,
                op->poll_type);
  part->job.accepted = on_accepted;
  part->job.call.method_name = type->method;
  part->job.future.on_state = on_state;
  if (type->is_proto) {
    part->job.call.content_type = "application/x-protobuf";
    part->job.future.is_proto = 1;
  }
  if (body == &part->packed)
    part->job.call.encoding = "zstd";
  part->state = TNK__PART_SENDING;
  part->is_reused = part->number < op->training->fresh;
  if (part->has_number && !part->is_reused)
    op->training->fresh = part->number + 1;
  tnk__job_start(&part->job, body->data, body->len, on_done);
}

/* ---- Encoding ---- */

static void run_holds(tnk__work_t *work) {
  tnk__part_t *part = tnk__container_of(work, tnk__part_t, packing);

  part->pack_err = tnk__zstd_compress(&part->packed, tnk__allocator_default(),
                                      part->body.data, part->body.len);
}

static void on_packed(tnk__work_t *work, int canceled) {
  tnk__part_t *part = tnk__container_of(work, tnk__part_t, packing);
  tnk__op_t *op = part->op;

  op->n_holds--;
  part->state = TNK__PART_PAYING; /* the buffers are ours again */
  if (op->promise == NULL) {
    clear_part(part);
    release(op);
    return;
  }
  if (canceled || part->pack_err != TNK_OK)
    tnk__buf_clear(&part->packed); /* plain is always possible */
  else
    tnk__buf_deinit(&part->body);
  submit(part);
}

/* Compress off the loop if the server wants it. 0: send it as it is. */
static int pack(tnk__part_t *part) {
  tnk__op_t *op = part->op;

  if (!op->type->is_proto || !session_of(op)->flags.compress_train)
    return 0;
  if (tnk__work_start(session_of(op)->loop, &part->packing, run_holds,
                      on_packed) != TNK_OK)
    return 0;
  part->state = TNK__PART_PACKING;
  op->n_holds++;
  return 1;
}

static void encode(tnk__part_t *part) {
  tnk__op_t *op = part->op;
  int err = take_number(part);

  tnk__buf_clear(&part->body);
  tnk__buf_clear(&part->packed);
  if (err == TNK_OK)
    err = op->type->write(op, part->index, part->number, &part->body);
  if (err == TNK_OK)
    err = part->body.err;
  if (err != TNK_OK)
    tnk__op_fail_code(op, err);
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

  tnk__defer(session_of(part->op)->loop, &part->paid);
}

static void begin(tnk__part_t *part) {
  tnk__session_t *session = session_of(part->op);

  part->state = TNK__PART_PAYING;
  part->since_ms = tnk__loop_now_ms(session->loop);
  if (part->op->type->cost == NULL ||
      tnk__budget_acquire(&session->train_bytes, &part->payer))
    encode(part);
}

/* ---- The order of parts ---- */

/* After an acceptance: what may be submitted now? Only schedules. */
static void advance(tnk__op_t *op) {
  tnk__loop_t *loop = session_of(op)->loop;

  if (op->n_accepted == op->n_parts)
    all_submitted(op);
  else if (!op->side_by_side)
    tnk__defer(loop, &op->parts[op->n_accepted].paid);
  else if (op->n_accepted == op->n_parts - 1)
    tnk__defer(loop, &op->parts[0].paid); /* the first goes last */
}

/* Numbers in order first; then all but the first part at once. A failure in
 * here ends the operation, which may be gone then. */
static void begin_side_by_side(tnk__op_t *op) {
  size_t n = op->n_parts;
  tnk__part_t *parts = op->parts;
  size_t i;

  for (i = 0; i < n; i++) {
    int err = take_number(&parts[i]);
    if (err != TNK_OK) {
      tnk__op_fail_code(op, err);
      return;
    }
  }
  tnk__defer(session_of(op)->loop, &parts[1].paid);
}

/* The first time it is the part's turn, the second time it has paid. Side by
 * side each part sets off the next one, in another turn of the loop: encoding
 * a chunk takes a moment. */
static void on_begin(tnk__deferred_t *paid) {
  tnk__part_t *part = tnk__container_of(paid, tnk__part_t, paid);
  tnk__op_t *op = part->op;

  if (part->state != TNK__PART_IDLE) {
    encode(part);
    return;
  }
  if (op->side_by_side && part->index > 0 && part->index + 1 < op->n_parts)
    tnk__defer(session_of(op)->loop, &part[1].paid);
  begin(part);
}

static int make_parts(tnk__op_t *op, size_t n) {
  tnk__session_t *session = session_of(op);
  size_t i;

  tnk__free(&session->loop->alloc, op->parts);
  op->n_parts = op->n_accepted = op->n_read = 0;
  op->parts = tnk__calloc(&session->loop->alloc, n, sizeof(*op->parts));
  if (op->parts == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n; i++) {
    tnk__part_t *part = &op->parts[i];
    part->op = op;
    part->index = i;
    tnk__payer_init(&part->payer, on_granted, part_cost);
    tnk__deferred_init(&part->paid, on_begin);
    tnk__buf_init(&part->body, &session->loop->alloc, TNK__MAX_REQUEST_BODY);
    /* Filled on another thread, where the caller's allocator may not go. */
    tnk__buf_init(&part->packed, tnk__allocator_default(),
                  TNK__MAX_REQUEST_BODY);
  }
  op->n_parts = n;
  op->side_by_side = n > 1 && session->flags.parallel_chunks;
  return TNK_OK;
}

void tnk__op_next_pass(tnk__op_t *op, size_t n_parts) {
  int err = make_parts(op, n_parts);

  if (err != TNK_OK)
    tnk__op_fail_code(op, err);
  else if (op->side_by_side)
    begin_side_by_side(op);
  else
    begin(&op->parts[0]);
}

/* ---- The queue ---- */

static void on_ready(tnk__deferred_t *ready) {
  tnk__op_t *op = tnk__container_of(ready, tnk__op_t, ready);
  size_t n_parts = 1;
  int err = op->type->prepare(op, &n_parts);

  if (err != TNK_OK)
    tnk__op_fail_code(op, err);
  else
    tnk__op_next_pass(op, n_parts);
}

static void on_turn(tnk__turn_t *turn) {
  tnk__op_t *op = tnk__container_of(turn, tnk__op_t, turn);

  tnk__defer(session_of(op)->loop, &op->ready);
}

static void setup(tnk__op_t *op, const tnk__op_class_t *type,
                  tnk_training_t *training, tnk_promise_t *promise) {
  op->type = type;
  op->poll_type = type->type;
  op->training = training;
  op->promise = promise;
  tnk__list_init(&op->member.link);
  op->member.abort = on_abort;
  op->member.explain = explain_member;
  op->entered_ms = tnk__loop_now_ms(training->session->loop);
  tnk__promise_bind(promise, on_cancel, on_explain, op);
  tnk__turn_init(&op->turn, on_turn);
  tnk__deferred_init(&op->ready, on_ready);
}

tnk_promise_t *tnk__op_init(tnk__op_t *op, const tnk__op_class_t *type,
                            tnk_training_t *training) {
  setup(op, type, training,
        tnk__promise_new(training->session->loop, NULL, NULL));
  return op->promise;
}

void tnk__op_adopt(tnk__op_t *op, const tnk__op_class_t *type,
                   tnk_training_t *training, tnk_promise_t *promise) {
  setup(op, type, training, promise);
}

void tnk__op_enter(tnk__op_t *op) {
  tnk_training_t *training = op->training;
  int has_turn = tnk__turns_enter(&training->turns, &op->turn);

  if (tnk__list_empty(&training->ops))
    moved(training);
  tnk__op_warn_depth(training);
  tnk__list_append(&training->ops, &op->member.link);
  if (has_turn < 0)
    tnk__op_fail(op, training->failed != NULL ? training->failed
                                              : tnk__error_static(has_turn));
  else if (has_turn)
    tnk__defer(session_of(op)->loop, &op->ready);
}
