#include <string.h>

#include "base/alloc.h"
#include "local/lm/check.h"
#include "local/train/model.h"

/*
 * The order of a model's training requests. One that is accepted is either
 * held (its number is higher than the next) or queued; the first of the queue
 * runs on a thread, one at a time. What a number means depends on the server
 * we resemble; see server.h.
 */

#define OP(node) tnk__container_of(node, local_op_t, link)

static void start_next(local_model_t *model);

static void on_done(local_job_t *job) {
  local_model_t *model = tnk__container_of(job, local_model_t, job);
  local_op_t *op = model->running;

  model->running = NULL;
  if (model->server->closing) {
    local_op_free(op, model->server);
    if (model->ended != NULL)
      local_model_free(model);
    return;
  }
  /* A strict server gives the number of a failed request back. */
  if (op->err != TNK_OK && op->seq >= 0 &&
      model->server->options.sequence == LOCAL_STRICT)
    model->next_seq = op->seq;
  if (model->ended != NULL) {
    /* What it computed is lost with the model; the future must still be
     * settled. */
    local_future_fail(op->future, 410, "user", "%s", model->ended);
    op->future = NULL;
    local_op_free(op, model->server);
    local_model_free(model);
    return;
  }
  local_op_settle(op);
  if (model->unloaded)
    local_model_end(model, "The model was unloaded");
  else
    start_next(model);
}

static int on_thread(local_job_t *job) {
  return local_op_run(tnk__container_of(job, local_model_t, job)->running);
}

/* Everything but making a model, and ending one, needs the model. */
static int needs_weights(const local_op_t *op) {
  return op->kind != LOCAL_CREATE_MODEL && op->kind != LOCAL_UNLOAD_MODEL &&
         !(op->kind == LOCAL_LOAD_WEIGHTS && op->u.load.creates);
}

/* Fail what cannot run before it costs a thread. 1 when it has been settled. */
static int settle_early(local_model_t *model, local_op_t *op) {
  if (needs_weights(op) && model->lm == NULL && op->err == TNK_OK)
    op->err =
        tnk__lm_refuse(&op->why, TNK_EINVAL, "Model %s not loaded", model->id);
  if (op->err == TNK_OK && op->seq >= 0 &&
      model->server->options.sequence == LOCAL_STRICT) {
    if (op->seq != model->next_seq)
      op->err = tnk__lm_refuse(&op->why, TNK_ECONFLICT,
                               "Sequence conflict: expected %lld, got %lld",
                               (long long)model->next_seq, (long long)op->seq);
    else
      model->next_seq++;
  }
  if (op->err == TNK_OK)
    return 0;
  local_op_settle(op);
  return 1;
}

static void start_next(local_model_t *model) {
  tnk__list_t *node;

  while (model->running == NULL &&
         (node = tnk__list_pop(&model->queue)) != NULL) {
    if (settle_early(model, OP(node)))
      continue;
    model->running = OP(node);
    model->job.run = on_thread;
    model->job.done = on_done;
    local_job_start(&model->server->work, &model->job);
  }
}

void local_model_push(local_model_t *model, local_op_t *op) {
  op->model = model;
  tnk__list_append(&model->queue, &op->link);
  start_next(model);
}

static void hold(local_model_t *model, local_op_t *op) {
  tnk__list_t *before = model->held.prev;

  /* From the end, because what is behind a gap mostly comes in order. */
  while (before != &model->held && OP(before)->seq > op->seq)
    before = before->prev;
  tnk__list_prepend(before, &op->link);
  model->n_held++;
}

/* Queue what the number just accepted has set free. */
static void release(local_model_t *model) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&model->held)) != NULL &&
         OP(node)->seq == model->next_seq) {
    tnk__list_remove(node);
    model->n_held--;
    model->next_seq++;
    tnk__list_append(&model->queue, node);
  }
}

static void enqueue(local_model_t *model, local_op_t *op) {
  op->model = model;
  if (op->seq < 0 || model->server->options.sequence != LOCAL_BUFFERED) {
    tnk__list_append(&model->queue, &op->link);
  } else if (op->seq > model->next_seq) {
    hold(model, op);
  } else {
    /* A refused number that comes back is behind the next one already. */
    tnk__list_append(&model->queue, &op->link);
    if (op->seq == model->next_seq) {
      model->next_seq++;
      release(model);
    }
  }
  start_next(model);
}

void local_model_refuse(local_model_t *model, int64_t seq) {
  if (model->server->options.sequence != LOCAL_BUFFERED ||
      seq != model->next_seq ||
      local_seqs_add(&model->seqs, seq, 0, "") != TNK_OK)
    return;
  model->next_seq++;
  release(model);
  start_next(model);
}

/* A number that was there before: 1 when the call has been answered. */
static int answer_repeat(local_call_t *call, const local_model_t *model,
                         int64_t seq, uint64_t hash) {
  local_sequence_t mode = call->server->options.sequence;
  local_seq_t *seen;

  if (seq < 0 || mode == LOCAL_STRICT)
    return 0;
  seen = local_seqs_find(&model->seqs, seq);
  /* Refused before (local_model_refuse()): the number is remembered without a
   * request, and is taken once. */
  if (seen != NULL && seen->request_id[0] == '\0')
    return 0;
  if (seen != NULL && seen->hash == hash) {
    local_reply_future(call, seen->request_id, model->id, NULL);
    return 1;
  }
  if (seen != NULL) {
    local_reply_error(call->req, mode == LOCAL_LENIENT ? 409 : 422,
                      "Training request sequence number was reused: %lld",
                      (long long)seq);
    return 1;
  }
  if (mode == LOCAL_BUFFERED && seq < model->next_seq) {
    local_reply_error(call->req, 410,
                      "Training request %lld is too old to be repeated",
                      (long long)seq);
    return 1;
  }
  return 0;
}

void local_model_submit(local_call_t *call, local_model_t *model,
                        local_op_t *op, int64_t seq, uint64_t hash) {
  local_server_t *server = call->server;
  int full = 0;

  if (answer_repeat(call, model, seq, hash)) {
    local_op_free(op, server);
    return;
  }
  if (seq < 0 && server->options.sequence == LOCAL_BUFFERED) {
    local_op_free(op, server);
    local_reply_invalid(call->req, "missing", "seq_id", "Field required");
    return;
  }
  op->future = local_future_new(server, op->kind, &full);
  if (op->future == NULL ||
      (seq >= 0 &&
       local_seqs_add(&model->seqs, seq, hash, op->future->id) != TNK_OK)) {
    local_op_free(op, server);
    local_reply_error(call->req, full ? 429 : 503,
                      full ? "Too many requests are pending" : "Out of memory");
    return;
  }
  op->seq = seq;
  model->n_seqd++;
  model->last_ms = (uint64_t)local_wall_ms();
  /* Answered first: what follows may settle the future at once. */
  local_reply_future(call, op->future->id, model->id, NULL);
  enqueue(model, op);
}

void local_queue_fail(local_model_t *model, const char *why) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&model->queue)) != NULL ||
         (node = tnk__list_pop(&model->held)) != NULL) {
    local_future_fail(OP(node)->future, 410, "user", "%s", why);
    OP(node)->future = NULL;
    local_op_free(OP(node), model->server);
  }
  model->n_held = 0;
}

void local_queue_free(local_model_t *model) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&model->queue)) != NULL ||
         (node = tnk__list_pop(&model->held)) != NULL)
    local_op_free(OP(node), model->server);
  if (model->running != NULL)
    local_op_free(model->running, model->server);
  model->running = NULL;
  model->n_held = 0;
}
