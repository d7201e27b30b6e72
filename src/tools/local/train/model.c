/* SPDX-License-Identifier: MIT */
#include "tools/local/train/model.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/lm/lm.h"

/* ---- Models ---- */

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

/* Create a model without weights, which an operation creates or loads; NULL
 * without memory. */
static local_model_t *model_new(local_session_t *session, const char *id) {
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

/* ---- Models: running ---- */

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

/* Queue an operation without a number, such as a creation, and start it. */
static void model_push(local_model_t *model, local_op_t *op) {
  local_queue_append(model, op);
  start_next(model);
}

void local_model_refuse(local_model_t *model, int64_t seq) {
  local_queue_skip(model, seq);
  start_next(model);
}

/* ---- Models: accepting operations ---- */

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

/* ---- Requests ---- */

/* The requests about models: create, get information, unload. */

/* ---- Requests: creation ---- */

int local_want_optimizer(local_call_t *call, tnk__lm_optimizer_t *out) {
  const json_t *config = NULL;
  const char *type = "adamw";
  tnk__json_has_t has =
      tnk__json_get_object(call->body, "optimizer_config", &config);

  if (has == TNK__JSON_FOUND)
    tnk__json_get_text(config, "type", &type);
  if (has == TNK__JSON_WRONG ||
      (strcmp(type, "adamw") != 0 && strcmp(type, "dimuon") != 0)) {
    local_reply_invalid(call->req, "value_error", "optimizer_config",
                        "The optimizer must be adamw or dimuon");
    return 0;
  }
  *out = type[0] == 'd' ? TNK__LM_DIMUON : TNK__LM_ADAMW;
  return 1;
}

static int read_lora(local_call_t *call, tnk__lm_config_t *config) {
  const json_t *lora = NULL;
  local_call_t inner = *call;
  int64_t rank = config->rank;
  int64_t seed = 0;
  int mlp = 1;
  int attn = 1;
  int unembed = 1;

  if (tnk__json_get_object(call->body, "lora_config", &lora) !=
      TNK__JSON_FOUND) {
    local_reply_invalid(call->req, "model_type", "lora_config",
                        "Input should be a valid LoRA configuration");
    return 0;
  }
  inner.body = lora;
  if (!local_want_int(&inner, "rank", 1, INT32_MAX, &rank) ||
      !local_want_int(&inner, "seed", INT64_MIN, INT64_MAX, &seed) ||
      !local_want_bool(&inner, "train_mlp", &mlp) ||
      !local_want_bool(&inner, "train_attn", &attn) ||
      !local_want_bool(&inner, "train_unembed", &unembed))
    return 0;
  config->rank = (uint32_t)rank;
  config->seed = (uint64_t)seed;
  config->train_mlp = mlp != 0;
  config->train_attn = attn != 0;
  config->train_unembed = unembed != 0;
  return 1;
}

/* The model with a session's model_seq_id. A repeat of the request that created
 * it is answered; any other request is refused. */
static int answer_repeated_create(local_call_t *call, const char *id,
                                  uint64_t hash) {
  local_node_t *node = local_table_find(&call->server->models, id);
  const local_model_t *model;
  local_seq_t *made;

  if (node == NULL)
    return 0;
  model = tnk__container_of(node, local_model_t, node);
  /* The request that created the model is remembered with number -1, which no
   * other request has. */
  made = local_seqs_find(&model->seqs, -1);
  if (made != NULL && made->hash == hash)
    local_reply_future(call, made->request_id, id, NULL);
  else
    local_reply_error(call->req, 409,
                      "model_seq_id of %s was used with another request", id);
  return 1;
}

void local_model_make(local_call_t *call, local_session_t *session,
                      local_op_t *op, const tnk__lm_config_t *config,
                      int64_t first_seq) {
  local_server_t *server = call->server;
  uint64_t hash = local_hash(1, call->bytes, call->n_bytes);
  int64_t model_seq = session->n_models;
  char id[LOCAL_ID];
  local_model_t *model;
  int full = 0;

  if (!local_want_int(call, "model_seq_id", 0, INT32_MAX, &model_seq)) {
    local_op_free(op, server);
    return;
  }
  snprintf(id, sizeof(id), "%s:train:%lld", session->id, (long long)model_seq);
  if (answer_repeated_create(call, id, hash)) {
    local_op_free(op, server);
    return;
  }
  if (server->models.n >= LOCAL_MAX_MODELS) {
    local_op_free(op, server);
    /* Not 429, which clients retry silently: only a client can unload a
     * model. */
    local_reply_error(call->req, 400,
                      "There are %d models already, more do not fit: unload "
                      "one, or end its session",
                      LOCAL_MAX_MODELS);
    return;
  }
  op->future = local_future_new(server, op->kind, &full);
  model = op->future != NULL ? model_new(session, id) : NULL;
  if (model == NULL) {
    local_op_free(op, server);
    local_reply_error(call->req, 429, "Too many requests are pending");
    return;
  }
  /* For the next request without a number. */
  if (model_seq >= session->n_models)
    session->n_models = model_seq + 1;
  local_seqs_add(&model->seqs, -1, hash, op->future->id);
  model->config = *config;
  model->metadata = local_metadata(call);
  model->next_seq = first_seq;
  local_reply_future(call, op->future->id, model->id, NULL);
  model_push(model, op);
}

void local_create_model(local_call_t *call) {
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;
  local_session_t *session = local_need_session(call);
  const char *base = NULL;
  local_op_t *op;

  if (session == NULL || !local_need_text(call, "base_model", &base) ||
      !read_lora(call, &config) ||
      !local_want_optimizer(call, &config.optimizer))
    return;
  op = local_op_new(call->server, LOCAL_CREATE_MODEL);
  if (op == NULL) {
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  op->u.create = config;
  if (!local_is_base(call->server, base))
    op->err = tnk__lm_refuse(&op->why, TNK_EINVAL,
                             "This server has no base model %s, only %s", base,
                             local_base_name(call->server));
  local_model_make(call, session, op, &config, 1);
}

/* ---- Requests: information ---- */

void local_put_optimizer(tnk__json_writer_t *w, tnk__lm_optimizer_t optimizer) {
  tnk__json_put_object(w, "optimizer_config");
  tnk__json_put_text(w, "type",
                     optimizer == TNK__LM_DIMUON ? "dimuon" : "adamw");
  if (optimizer == TNK__LM_DIMUON)
    tnk__json_put_int(w, "version", 1);
  tnk__json_end(w);
}

void local_get_info(local_call_t *call) {
  const char *id = NULL;
  const local_model_t *model;
  local_out_t out;

  if (!local_need_text(call, "model_id", &id))
    return;
  model = local_need_model(call, id);
  if (model == NULL)
    return;
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "type", "get_info");
  tnk__json_put_text(&out.w, "model_id", model->id);
  tnk__json_put_object(&out.w, "model_data");
  tnk__json_put_text(&out.w, "arch", TNK__LM_ARCH);
  tnk__json_put_text(&out.w, "model_name", local_base_name(call->server));
  tnk__json_put_text(&out.w, "tokenizer_id",
                     local_tokenizer_name(call->server));
  tnk__json_end(&out.w);
  local_put_optimizer(&out.w, model->config.optimizer);
  tnk__json_put_bool(&out.w, "is_lora", 1);
  tnk__json_put_int(&out.w, "lora_rank", model->config.rank);
  tnk__json_put_text(&out.w, "model_name", local_base_name(call->server));
  local_out_reply(&out, call->req, 200);
}

void local_unload_model(local_call_t *call) {
  const char *id = NULL;
  local_model_t *model;
  local_op_t *op;
  int full = 0;

  if (!local_need_text(call, "model_id", &id))
    return;
  model = local_need_model(call, id);
  if (model == NULL)
    return;
  op = local_op_new(call->server, LOCAL_UNLOAD_MODEL);
  if (op != NULL)
    op->future = local_future_new(call->server, op->kind, &full);
  if (op == NULL || op->future == NULL) {
    if (op != NULL)
      local_op_free(op, call->server);
    local_reply_error(call->req, 503, "Too many requests are pending");
    return;
  }
  local_reply_future(call, op->future->id, model->id, NULL);
  model_push(model, op);
}
