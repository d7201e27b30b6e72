#include "tools/local/train/model.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tools/local/lm/check.h"

/*
 * Models in training: a request of a session creates a model; unload_model or
 * the end of the session ends it. An ended model can no longer be found, and is
 * freed when its thread has finished. The first operation of its queue runs on
 * a thread, one at a time.
 */

void local_model_free(local_model_t *model) {
  local_server_t *server = model->server;

  local_queue_free(model);
  local_seqs_deinit(&model->seqs);
  tnk__lm_free(model->lm);
  tnk__free(server->alloc, model->metadata);
  tnk__free(server->alloc, model);
}

void local_model_end(local_model_t *model, const char *why) {
  local_table_remove(&model->server->models, &model->node);
  tnk__list_remove(&model->in_session);
  local_queue_fail(model, why);
  if (model->running == NULL) {
    local_model_free(model);
    return;
  }
  /* The current slice still uses it: on_done() frees it. */
  model->ended = why;
  local_job_cancel(&model->server->work, &model->job);
}

local_model_t *local_need_model(local_call_t *call, const char *id) {
  local_node_t *node = local_table_find(&call->server->models, id);

  if (node == NULL) {
    local_reply_error(call->req, 404, "Model not found: %s", id);
    return NULL;
  }
  return tnk__container_of(node, local_model_t, node);
}

local_model_t *local_model_new(local_session_t *session, const char *id) {
  local_server_t *server = session->server;
  local_model_t *model = tnk__calloc(server->alloc, 1, sizeof(*model));

  if (model == NULL)
    return NULL;
  model->session = session;
  model->server = server;
  model->next_seq = 1;
  model->last_ms = (uint64_t)local_now_ms(model->server);
  tnk__list_init(&model->queue);
  tnk__list_init(&model->held);
  local_seqs_init(&model->seqs, server->alloc);
  snprintf(model->id, sizeof(model->id), "%s", id);
  if (local_table_add(&server->models, &model->node, model->id) != TNK_OK) {
    tnk__free(server->alloc, model);
    return NULL;
  }
  tnk__list_append(&session->models, &model->in_session);
  return model;
}

/* ---- Running ---- */

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
  /* A strict server allows the number of a failed request again. */
  if (op->err != TNK_OK && op->seq >= 0 &&
      model->server->options.sequence == LOCAL_STRICT)
    model->next_seq = op->seq;
  if (model->ended != NULL) {
    /* The result is lost with the model, but the future must still be
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

/* All operations except the creation and the end of a model need the
 * weights. */
static int needs_weights(const local_op_t *op) {
  return op->kind != LOCAL_CREATE_MODEL && op->kind != LOCAL_UNLOAD_MODEL &&
         !(op->kind == LOCAL_LOAD_WEIGHTS && op->u.load.creates);
}

/* Fail an operation that cannot run, without using a thread. Returns 1 if it
 * was settled. */
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
  local_op_t *op;

  while (model->running == NULL && (op = local_queue_take(model)) != NULL) {
    if (settle_early(model, op))
      continue;
    model->running = op;
    op->begin_ms = local_now_ms(model->server);
    model->job.run = on_thread;
    model->job.done = on_done;
    local_job_start(&model->server->work, &model->job);
  }
}

void local_model_push(local_model_t *model, local_op_t *op) {
  local_queue_append(model, op);
  start_next(model);
}

void local_model_refuse(local_model_t *model, int64_t seq) {
  local_queue_skip(model, seq);
  start_next(model);
}

/* ---- Accepting operations ---- */

/* Handle a used number: returns 1 if the call was answered. */
static int answer_repeat(local_call_t *call, const local_model_t *model,
                         int64_t seq, uint64_t hash) {
  local_sequence_t mode = call->server->options.sequence;
  local_seq_t *seen;

  if (seq < 0 || mode == LOCAL_STRICT)
    return 0;
  seen = local_seqs_find(&model->seqs, seq);
  /* It was refused before (local_model_refuse()): the number is remembered
   * without a request, and accepted once. */
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
  model->last_ms = (uint64_t)local_now_ms(model->server);
  /* Answered first, because the following calls may settle the future at
   * once. */
  local_reply_future(call, op->future->id, model->id, NULL);
  local_queue_add(model, op);
  start_next(model);
}
