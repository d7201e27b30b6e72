/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "tools/local/lm/lm.h"
#include "tools/local/sample/sampler.h"
#include "tools/local/train/model.h"
#include "tools/local/train/pass.h"

/* ---- An operation ---- */

/* A training request, from acceptance to its result. */

local_op_t *local_op_new(local_server_t *server, local_kind_t kind) {
  local_op_t *op = tnk__calloc(server->alloc, 1, sizeof(*op));

  if (op == NULL)
    return NULL;
  op->kind = kind;
  op->seq = -1;
  tnk__list_init(&op->link);
  tnk__arena_init(&op->arena, server->alloc, 2 * TNK__MAX_REQUEST_BODY);
  return op;
}

void local_op_free(local_op_t *op, local_server_t *server) {
  if (op->kind == LOCAL_SAVE_FOR_SAMPLER)
    tnk__lm_weights_free(op->u.save.snapshot);
  /* At the server's end local_futures_free() frees all futures together. */
  if (op->future != NULL && !server->closing)
    local_future_drop(op->future);
  tnk__list_remove(&op->link);
  tnk__arena_deinit(&op->arena);
  tnk__free(server->alloc, op);
}

local_op_t *local_need_op(local_call_t *call, local_kind_t kind) {
  local_op_t *op = local_op_new(call->server, kind);

  if (op == NULL)
    local_reply_error(call->req, 503, "Out of memory");
  return op;
}

int local_want_seq(local_call_t *call, int64_t *seq) {
  *seq = -1;
  return local_want_int(call, "seq_id", 0, INT64_MAX, seq);
}

void local_pass_note(local_op_t *op, size_t datum, const tnk__lm_why_t *why) {
  if (op->err == TNK_OK)
    op->err = tnk__lm_refuse(&op->why, TNK_EINVAL, "datum %zu: %.200s", datum,
                             why->text);
}

/* ---- The queue ---- */

/*
 * The order of a model's training requests. An accepted request is held if its
 * number is higher than the next one; otherwise it is queued. The first of the
 * queue is taken to run. The meaning of a number depends on the server mode;
 * see server.h.
 */

#define OP(node) tnk__container_of(node, local_op_t, link)

static void hold(local_model_t *model, local_op_t *op) {
  tnk__list_t *before = model->held.prev;

  /* From the end, because requests after a gap usually come in order. */
  while (before != &model->held && OP(before)->seq > op->seq)
    before = before->prev;
  tnk__list_prepend(before, &op->link);
  model->n_held++;
}

/* Queue the requests that the accepted number has released. */
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

void local_queue_add(local_model_t *model, local_op_t *op) {
  op->model = model;
  if (op->seq < 0 || model->server->options.sequence != LOCAL_BUFFERED) {
    tnk__list_append(&model->queue, &op->link);
  } else if (op->seq > model->next_seq) {
    hold(model, op);
  } else {
    /* A refused number that comes again is lower than the next one. */
    tnk__list_append(&model->queue, &op->link);
    if (op->seq == model->next_seq) {
      model->next_seq++;
      release(model);
    }
  }
}

void local_queue_append(local_model_t *model, local_op_t *op) {
  op->model = model;
  tnk__list_append(&model->queue, &op->link);
}

local_op_t *local_queue_take(local_model_t *model) {
  tnk__list_t *node = tnk__list_pop(&model->queue);

  return node != NULL ? OP(node) : NULL;
}

void local_queue_skip(local_model_t *model, int64_t seq) {
  if (model->server->options.sequence != LOCAL_BUFFERED ||
      seq != model->next_seq ||
      local_seqs_add(&model->seqs, seq, 0, "") != TNK_OK)
    return;
  model->next_seq++;
  release(model);
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

/* ---- Execution ---- */

/*
 * Runs operations on their thread, and converts their results on the loop. A
 * pass runs example by example; all other operations run in one piece.
 */

/* After this many tokens another job gets the thread, even in the middle of a
 * pass. */
enum { SLICE_TOKENS = 256 };

/* ---- Execution: on a thread ---- */

/* One slice of a pass. Memory for the longest example is reserved first, so
 * that a batch adds all of its gradients or none. */
static int run_pass(tnk__lm_t *lm, local_op_t *op) {
  local_pass_t *pass = &op->u.pass;
  size_t n_tokens = 0;

  if (pass->next == 0) {
    size_t longest = 0;

    for (size_t i = 0; i < pass->n; i++)
      if (pass->data[i].n_tokens > longest)
        longest = pass->data[i].n_tokens;
    if (longest > 0 && tnk__lm_reserve(lm, longest) != TNK_OK) {
      op->err = TNK_ENOMEM;
      return 1;
    }
  }
  while (pass->next < pass->n && n_tokens < SLICE_TOKENS) {
    size_t i = pass->next++;

    op->err = tnk__lm_run(lm, &pass->loss, &pass->data[i], pass->backward,
                          pass->logprobs[i], &pass->loss_sum);
    if (op->err != TNK_OK)
      return 1;
    n_tokens += pass->data[i].n_tokens;
  }
  return pass->next == pass->n;
}

static void run_save(const local_server_t *server, local_model_t *model,
                     local_op_t *op) {
  local_save_t *save = &op->u.save;
  local_meta_t meta = {.place = save->place,
                       .config = model->config,
                       .metadata = save->metadata,
                       .project = save->project};

  if (save->overwrite)
    local_meta_peek(server, &save->place, &save->old_ms, &save->old_bytes);
  if (save->ttl_s > 0)
    meta.expires_ms = local_now_ms(server) + save->ttl_s * 1000;
  if (op->kind == LOCAL_SAVE_EXTERNAL)
    op->err = local_store_export(server, model->lm, save->to, save->overwrite,
                                 &meta, &op->why);
  else
    op->err = local_store_save(server, model->lm, save->with_optimizer,
                               save->overwrite, &meta, &op->why);
  save->n_bytes = (uint64_t)meta.n_bytes;
  save->expires_ms = meta.expires_ms;
  if (op->err == TNK_OK && op->kind == LOCAL_SAVE_FOR_SAMPLER)
    save->snapshot = tnk__lm_snapshot(model->lm);
}

static void run_load(const local_server_t *server, local_model_t *model,
                     local_op_t *op) {
  local_load_t *load = &op->u.load;
  char path[LOCAL_PATH];
  char dir[LOCAL_FILE];

  local_place_text(&load->place, path);
  if (!local_place_dir(server, &load->place, dir) ||
      !local_place_exists(server, &load->place))
    op->err = tnk__lm_refuse(&op->why, TNK_ENOTFOUND,
                             "Checkpoint not found: %.200s", path);
  else if (load->creates)
    op->err = tnk__lm_load(&model->lm, server->base, dir, load->with_optimizer,
                           load->optimizer, server->alloc, &op->why);
  else
    op->err = tnk__lm_restore(model->lm, dir, load->with_optimizer, &op->why);
}

int local_op_run(local_op_t *op) {
  local_model_t *model = op->model;
  local_server_t *server = model->server;

  switch (op->kind) {
  case LOCAL_FORWARD:
  case LOCAL_FORWARD_BACKWARD:
    return run_pass(model->lm, op);
  case LOCAL_CREATE_MODEL:
    op->err = tnk__lm_new(&model->lm, server->base, &op->u.create,
                          server->alloc, &op->why);
    break;
  case LOCAL_OPTIM_STEP:
    if (op->u.step.dimuon)
      op->err = tnk__lm_step_dimuon(model->lm, &op->u.step.muon,
                                    &op->u.step.out, &op->why);
    else
      op->err = tnk__lm_step_adamw(model->lm, &op->u.step.adam, &op->u.step.out,
                                   &op->why);
    break;
  case LOCAL_SAVE_WEIGHTS:
  case LOCAL_SAVE_FOR_SAMPLER:
  case LOCAL_SAVE_EXTERNAL:
    run_save(server, model, op);
    break;
  case LOCAL_LOAD_WEIGHTS:
    run_load(server, model, op);
    break;
  case LOCAL_UNLOAD_MODEL:
    tnk__lm_free(model->lm);
    model->lm = NULL;
    break;
  case LOCAL_SAMPLE:
    break;
  }
  return 1;
}

/* ---- Execution: on the loop ---- */

static void write_step(tnk__json_writer_t *w, const local_step_t *step) {
  tnk__json_put_object(w, "metrics");
  tnk__json_put_double(w, "grad_norm", step->out.grad_norm);
  tnk__json_put_double(w, "step", (double)step->out.step);
  tnk__json_put_double(w, "learning_rate",
                       step->dimuon ? step->muon.learning_rate
                                    : step->adam.learning_rate);
  tnk__json_end(w);
  tnk__json_put_text(w, "type", "optim_step");
}

static void write_save(tnk__json_writer_t *w, const local_op_t *op) {
  const local_save_t *save = &op->u.save;
  char path[LOCAL_PATH];

  local_place_text(&save->place, path);
  tnk__json_put_text(w, "path", save->is_unnamed ? NULL : path);
  if (save->is_unnamed)
    tnk__json_put_text(w, "sampling_session_id", save->sampler_id);
  if (op->kind == LOCAL_SAVE_EXTERNAL)
    tnk__json_put_int(w, "size_bytes", (int64_t)save->n_bytes);
  tnk__json_put_text(w, "type",
                     op->kind == LOCAL_SAVE_WEIGHTS ? "save_weights"
                     : op->kind == LOCAL_SAVE_EXTERNAL
                         ? "save_weights_external"
                         : "save_weights_for_sampler");
}

static void write_json(tnk__json_writer_t *w, const local_op_t *op) {
  const local_model_t *model = op->model;
  char path[LOCAL_PATH];

  tnk__json_begin_object(w);
  switch (op->kind) {
  case LOCAL_CREATE_MODEL:
    tnk__json_put_text(w, "model_id", model->id);
    tnk__json_put_text(w, "type", "create_model");
    break;
  case LOCAL_OPTIM_STEP:
    write_step(w, &op->u.step);
    break;
  case LOCAL_LOAD_WEIGHTS:
    local_place_text(&op->u.load.place, path);
    tnk__json_put_text(w, "path", path);
    tnk__json_put_text(w, "model_id", model->id);
    tnk__json_put_text(w, "type", "load_weights");
    break;
  case LOCAL_UNLOAD_MODEL:
    tnk__json_put_text(w, "model_id", model->id);
    tnk__json_put_text(w, "status", "unloaded");
    tnk__json_put_text(w, "type", "unload_model");
    break;
  default:
    write_save(w, op);
  }
  tnk__json_end(w);
}

/* Create the sampler of an unnamed save from the snapshot. For an overwritten
 * name, make samplers load it again. */
static int publish(local_op_t *op) {
  local_save_t *save = &op->u.save;
  local_server_t *server = op->model->server;
  char dir[LOCAL_FILE];

  if (!local_place_dir(server, &save->place, dir))
    return TNK_EINTERNAL;
  local_weights_forget(server, dir);
  if (save->snapshot != NULL) {
    local_weights_put(server, dir, save->snapshot);
    save->snapshot = NULL;
  }
  if (!save->is_unnamed)
    return TNK_OK;
  if (local_sampler_find(server, save->sampler_id) != NULL)
    return tnk__lm_refuse(&op->why, TNK_ECONFLICT,
                          "Sampling session %s exists already",
                          save->sampler_id);
  return local_sampler_new(op->model->session, save->sampler_id,
                           &save->place) != NULL
             ? TNK_OK
             : TNK_ENOMEM;
}

static void note_save(const local_model_t *model, const local_save_t *save) {
  local_server_t *server = model->server;

  if (save->is_unnamed)
    return;
  local_store_expires(server, save->expires_ms);
  if (save->old_ms > 0)
    local_ledger_stored(server, save->old_bytes, save->old_ms, INT64_MAX);
  local_ledger_use(server, LOCAL_USE_CHECKPOINT, model->session->id, 1);
  local_place_note(server, "checkpoint_create", &save->place);
}

/* Record the times for traces, and the use of tokens. */
static void note_run(const local_op_t *op) {
  static const char *const names[] = {
      [LOCAL_CREATE_MODEL] = "create_model",
      [LOCAL_FORWARD] = "forward",
      [LOCAL_FORWARD_BACKWARD] = "forward_backward",
      [LOCAL_OPTIM_STEP] = "optim_step",
      [LOCAL_SAVE_WEIGHTS] = "save_weights",
      [LOCAL_SAVE_FOR_SAMPLER] = "save_weights_for_sampler",
      [LOCAL_SAVE_EXTERNAL] = "save_weights_external",
      [LOCAL_LOAD_WEIGHTS] = "load_weights",
      [LOCAL_UNLOAD_MODEL] = "unload_model",
      [LOCAL_SAMPLE] = "sample"};
  const local_model_t *model = op->model;
  const char *number = strrchr(model->id, ':');
  local_span_t span = {.name = names[op->kind],
                       .begin_ms = op->begin_ms,
                       .end_ms = local_now_ms(model->server),
                       .seq = op->seq};
  double n_tokens = 0;

  if (op->begin_ms == 0)
    return;
  memcpy(span.session, model->session->id, sizeof(span.session));
  span.track = number != NULL ? strtoll(number + 1, NULL, 10) : 0;
  local_ledger_span(model->server, &span);
  if (op->err != TNK_OK ||
      (op->kind != LOCAL_FORWARD && op->kind != LOCAL_FORWARD_BACKWARD))
    return;
  for (size_t i = 0; i < op->u.pass.n; i++)
    n_tokens += (double)op->u.pass.data[i].n_tokens;
  local_ledger_use(model->server, LOCAL_USE_TRAINING, span.session, n_tokens);
}

static void after(local_op_t *op) {
  local_model_t *model = op->model;

  /* The checkpoint may have another rank or optimizer than the request
   * assumed. */
  if (op->kind == LOCAL_CREATE_MODEL || op->kind == LOCAL_LOAD_WEIGHTS)
    model->config = *tnk__lm_config(model->lm);
  if (op->kind == LOCAL_OPTIM_STEP)
    model->n_steps = op->u.step.out.step;
  if (op->kind == LOCAL_UNLOAD_MODEL)
    model->unloaded = 1;
  if (op->kind == LOCAL_SAVE_WEIGHTS || op->kind == LOCAL_SAVE_FOR_SAMPLER ||
      op->kind == LOCAL_SAVE_EXTERNAL)
    note_save(model, &op->u.save);
  if (op->kind == LOCAL_LOAD_WEIGHTS)
    local_place_note(model->server, "checkpoint_read", &op->u.load.place);
  if (op->kind == LOCAL_SAVE_FOR_SAMPLER)
    op->err = publish(op);
}

void local_op_settle(local_op_t *op) {
  local_server_t *server = op->model->server;
  local_future_t *future = op->future;
  tnk__json_writer_t w;
  tnk__buf_t buf;

  note_run(op);
  if (op->err == TNK_OK)
    after(op);
  /* The future continues without the operation, which must not drop it. */
  op->future = NULL;
  if (op->err != TNK_OK) {
    local_future_fail_code(future, op->err, op->why.text);
    local_op_free(op, server);
    return;
  }
  tnk__buf_init(&buf, server->alloc, (size_t)1 << 30);
  if (op->kind == LOCAL_FORWARD || op->kind == LOCAL_FORWARD_BACKWARD) {
    local_pass_write(&buf, &op->u.pass);
    local_op_free(op, server);
    local_future_proto(future, &buf);
    return;
  }
  tnk__json_writer_init(&w, &buf);
  write_json(&w, op);
  local_op_free(op, server);
  local_future_json(future, &buf);
}
