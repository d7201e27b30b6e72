/* The steps of one request. op.h describes its states. */
#include "lib/client/train/op.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/session/session.h"
#include "lib/client/train/stop.h"

/*
 *   IDLE --begin--> PAYING --paid, encoded--> SENDING --accepted--> WAITING
 *                     |                        ^  |
 *                     '--to be compressed--> PACKING
 *
 * SENDING goes back to PAYING when the number was at fault. Each goes to DONE:
 * by a refusal, by the result, or by tnk__part_clear().
 */

static tnk__session_t *session_of(const tnk__part_t *part) {
  return part->op->training->session;
}

/* ---- Usage ---- */

void tnk__part_count(tnk__part_t *part, tnk__part_use_t use) {
  tnk__op_t *op = part->op;
  tnk__purse_t *purse = &session_of(part)->limits.purse;
  tnk__totals_t *totals = &op->training->totals;
  uint64_t n;

  if (part->is_counted || op->type->tokens == NULL)
    return;
  part->is_counted = 1;
  n = op->type->tokens(op, part->index);
  if (use == TNK__PART_USED)
    tnk__purse_use(purse, totals, op->training->info.base_model,
                   &(tnk__use_t){.trained = n});
  if (use != TNK__PART_UNTOLD || tnk__job_ran(&part->job) == TNK_RAN_NO)
    tnk__purse_give_part(purse, &op->held, n);
  else
    tnk__purse_doubt_part(purse, totals, &op->held, n);
}

void tnk__part_clear(tnk__part_t *part) {
  tnk__part_count(part, TNK__PART_UNTOLD);
  tnk__job_cancel(&part->job);
  tnk__budget_release(&session_of(part)->limits.train_bytes, &part->payer);
  tnk__defer_cancel(&part->due);
  tnk__defer_cancel(&part->paid);
  if (part->state == TNK__PART_PACKING)
    return; /* the thread pool owns the body */
  tnk__cargo_clear(&part->cargo);
  tnk__seq_deinit(&part->number);
  tnk__part_form_clear(part);
  part->state = TNK__PART_DONE;
}

/* ---- Submitting ---- */

/* A response that only the numbering waited for. */
static void note_late(const tnk__op_t *op) {
  tnk__context_t *context = op->training->session->context;

  context->counters.n_late_events++;
  tnk__log(&context->logger, TNK_LOG_DEBUG, "training",
           "%s: %s had been given up; its answer is dropped",
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
  tnk__budget_release(&session_of(part)->limits.train_bytes, &part->payer);
  tnk__cargo_clear(&part->cargo);
  if (op->promise == NULL) {
    note_late(op);
    if (op->n_parts == 1)
      tnk__tally_accept(op); /* it is run although no caller waits for it */
    part->state = TNK__PART_DONE;
    tnk__op_release(op);
    return 0;
  }
  part->state = TNK__PART_WAITING;
  tnk__op_accepted(op);
  return !tnk__op_lose(op, NULL);
}

/* The last access to the operation: the program is notified, and may free
 * it. */
static void stop_if(tnk_training_t *training, const tnk__stop_t *stop) {
  tnk__error_t *error = tnk__training_stop(training, stop);

  if (error != NULL)
    tnk__op_fail_queue(training, error);
  tnk__error_unref(error);
}

/* The server's message with the code of a lost model. Returns one reference. */
static tnk__error_t *blame_model(const tnk__part_t *part,
                                 const tnk__error_t *error) {
  tnk_error_t pub = error->pub;

  if (pub.code == TNK_ESESSION)
    return tnk__error_ref((tnk__error_t *)error);
  pub.code = TNK_ESESSION;
  return tnk__error_from(&session_of(part)->context->alloc,
                         part->op->type->name, &pub);
}

/* The submission has failed permanently. */
static void on_refused(tnk__part_t *part, const tnk__reply_t *reply) {
  tnk__op_t *op = part->op;
  tnk_training_t *training = op->training;
  tnk__error_t *error = reply->error;
  const tnk__stop_t stop =
      tnk__stop_of(part, reply, tnk__stop_sign(part, reply));
  int is_doubtful;

  tnk__budget_release(&session_of(part)->limits.train_bytes, &part->payer);
  if (op->promise != NULL && stop.sign == TNK__SIGN_NONE &&
      (tnk__part_form_change(part, reply) ||
       tnk__seq_heal(&part->number, reply, !op->side_by_side) ||
       (reply->verdict.effect == TNK__EFFECT_NONE && !reply->verdict.in_doubt &&
        !op->side_by_side && tnk__seq_suspect(&part->number, reply)))) {
    tnk__part_begin(part);
    return;
  }
  if (part->number.refusal != NULL && reply->verdict.effect == TNK__EFFECT_NONE)
    error = part->number.refusal;
  error = tnk__part_form_blame(part, reply, error);
  error = stop.sign == TNK__SIGN_GONE ? blame_model(part, error)
                                      : tnk__error_ref(error);
  part->state = TNK__PART_DONE;
  is_doubtful =
      op->promise != NULL && reply->verdict.effect == TNK__EFFECT_UNKNOWN;
  tnk__seq_settle(&part->number, reply->verdict.effect, error->pub.code,
                  &part->cargo);
  tnk__part_clear(part);
  if (op->promise != NULL && reply->verdict.effect == TNK__EFFECT_ACCEPTED) {
    tnk__op_accepted(op);
    tnk__op_lose(op, error);
  } else if (op->promise != NULL) {
    tnk__op_fail(op, error);
  } else {
    note_late(op);
    if (op->n_parts == 1 && reply->verdict.effect == TNK__EFFECT_ACCEPTED)
      tnk__tally_accept(op);
    tnk__op_release(op);
  }
  if (is_doubtful)
    tnk__op_fail_behind(training, error);
  /* Too many numbers are in doubt: the server could wait for one of them. */
  if (training->turns.err != TNK_OK)
    tnk__op_fail_queue(training, error);
  tnk__error_unref(error);
  stop_if(training, &stop);
}

static void lose_text(const tnk__part_t *part, int code, const char *why) {
  tnk_error_t pub = {.code = code, .message = why};
  tnk__error_t *error = tnk__error_from(&session_of(part)->context->alloc,
                                        part->op->type->name, &pub);

  tnk__op_lose(part->op, error);
  tnk__error_unref(error);
}

/* No result will come. If the failure shows that the server has lost the
 * operation, send no more of its requests. */
static void on_failed(tnk__part_t *part, const tnk__reply_t *reply) {
  tnk__op_t *op = part->op;
  tnk_training_t *training = op->training;
  const tnk__stop_t stop =
      tnk__stop_of(part, reply, tnk__stop_sign(part, reply));

  /* The future may show the numbering that the submission did not. */
  if (stop.sign == TNK__SIGN_NONE)
    tnk__seq_learn(&part->number, reply);
  if (tnk__job_ran(&part->job) == TNK_RAN_NO)
    op->is_out_of_turn = 1;
  if (reply->verdict.err == TNK_EFAILED || stop.sign != TNK__SIGN_NONE)
    tnk__op_fail(op, reply->error);
  else
    tnk__op_lose(op, reply->error);
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
    tnk__part_count(part,
                    reply->error == NULL ? TNK__PART_USED : TNK__PART_UNUSED);
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
    tnk__op_has_read(op);
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

  tnk__job_init(&part->job, session_of(part), tnk__part_form_route(part),
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

/* ---- Encoding ---- */

static void on_packed(tnk__cargo_t *cargo) {
  tnk__part_t *part = tnk__container_of(cargo, tnk__part_t, cargo);
  tnk__op_t *op = part->op;

  op->n_holds--;
  part->state = TNK__PART_PAYING; /* the pool has returned the body */
  if (op->promise != NULL) {
    submit(part);
    return;
  }
  tnk__part_clear(part);
  tnk__op_release(op);
}

/* Compress on the thread pool if the server wants it. Returns 0 to send the
 * body as it is. */
static int pack(tnk__part_t *part) {
  tnk__op_t *op = part->op;

  if (op->type->request == NULL || part->is_json ||
      !session_of(part)->start.flags.compress_train)
    return 0;
  if (tnk__cargo_pack(&part->cargo, session_of(part)->context,
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

  tnk__defer(session_of(part)->context, &part->paid);
}

void tnk__part_begin(tnk__part_t *part) {
  tnk__session_t *session = session_of(part);

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

void tnk__part_init(tnk__part_t *part, tnk__op_t *op, size_t index) {
  part->op = op;
  part->index = index;
  tnk__seq_init(&part->number, op->training, &op->turn);
  tnk__payer_init(&part->payer, on_granted, part_cost);
  tnk__deferred_init(&part->paid, on_paid);
  tnk__cargo_init(&part->cargo, &session_of(part)->context->alloc);
}
