/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/room.h"
#include "tools/local/lm/lm.h"
#include "tools/local/train/pass.h"

/* The training requests: they are parsed, checked and added to the model's
 * queue. */

/* ---- Passes ---- */

static void refuse_pass(local_call_t *call, local_op_t *op, int err,
                        const tnk__lm_why_t *why) {
  local_op_free(op, call->server);
  if (err == TNK_ENOMEM)
    local_reply_error(call->req, 503, "Out of memory");
  else
    local_reply_invalid(call->req, "value_error", NULL, why->text);
}

static void submit_pass(local_call_t *call, local_op_t *op,
                        const char *model_id, int64_t seq, int err,
                        const tnk__lm_why_t *why) {
  local_model_t *model;

  /* An unknown model is reported before invalid data. */
  model = local_need_model(call, model_id);
  if (model == NULL) {
    local_op_free(op, call->server);
    return;
  }
  if (err != TNK_OK) {
    refuse_pass(call, op, err, why);
    if (err != TNK_ENOMEM)
      local_model_refuse(model, seq);
    return;
  }
  if (local_pass_trace(op, model->session) != TNK_OK) {
    local_op_free(op, call->server);
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  op->kind = op->u.pass.backward ? LOCAL_FORWARD_BACKWARD : LOCAL_FORWARD;
  local_model_submit(call, model, op, seq,
                     local_hash(op->kind, call->bytes, call->n_bytes));
}

static void pass_proto(local_call_t *call, local_op_t *op) {
  TinkerPublic__ForwardBackwardRequest *request;
  ProtobufCAllocator alloc;
  tnk__room_t room;
  tnk__lm_why_t why = {{0}};
  int64_t seq;
  int err;

  tnk__room_init(&room, call->server->alloc, call->n_bytes);
  alloc = tnk__room_protobuf(&room);
  request = tinker_public__forward_backward_request__unpack(
      &alloc, call->n_bytes, call->bytes);
  if (request == NULL) {
    err = room.err == TNK_ENOMEM
              ? TNK_ENOMEM
              : tnk__lm_refuse(&why, TNK_EPROTO,
                               "The body is not a ForwardBackwardRequest");
    refuse_pass(call, op, err, &why);
    tnk__arena_deinit(&room.arena);
    return;
  }
  /* proto3 cannot distinguish 0 from an absent number, and numbers begin at
   * 1. */
  seq = request->seq_id > 0 ? request->seq_id : -1;
  call->req->seq_id = seq;
  op->u.pass.n_vocab = call->server->options.n_vocab;
  err = local_pass_proto(op, request, &why);
  submit_pass(call, op, request->model_id, seq, err, &why);
  tnk__arena_deinit(&room.arena);
}

static void pass_json(local_call_t *call, local_op_t *op, const char *member,
                      int backward) {
  const json_t *input = NULL;
  const char *model_id = NULL;
  tnk__lm_why_t why = {{0}};
  int64_t seq;
  int err;

  if (!local_need_text(call, "model_id", &model_id) ||
      !local_want_seq(call, &seq)) {
    local_op_free(op, call->server);
    return;
  }
  if (tnk__json_get_object(call->body, member, &input) != TNK__JSON_FOUND) {
    local_op_free(op, call->server);
    local_reply_invalid(call->req, "missing", member, "Field required");
    return;
  }
  op->u.pass.n_vocab = call->server->options.n_vocab;
  err = local_pass_json(op, input, backward, &why);
  submit_pass(call, op, model_id, seq, err, &why);
}

void local_forward_backward(local_call_t *call) {
  local_op_t *op;

  if (call->body != NULL && call->server->options.sequence == LOCAL_STRICT) {
    local_reply_error(call->req, 415, "Only application/x-protobuf is served");
    return;
  }
  op = local_need_op(call, LOCAL_FORWARD_BACKWARD);
  if (op == NULL)
    return;
  if (call->body != NULL)
    pass_json(call, op, "forward_backward_input", 1);
  else
    pass_proto(call, op);
}

void local_forward(local_call_t *call) {
  local_op_t *op = local_need_op(call, LOCAL_FORWARD);

  if (op != NULL)
    pass_json(call, op, "forward_input", 0);
}

/* ---- Optimizer ---- */

static int refuse_value(local_call_t *call, const char *key,
                        const char *message) {
  local_reply_invalid(call->req, "value_error", key, message);
  return 0;
}

/* A number may be absent, but not null. */
static int read_number(local_call_t *call, const json_t *from, const char *key,
                       double *out) {
  tnk__json_has_t has = tnk__json_get_double(from, key, out);

  if (has == TNK__JSON_FOUND || has == TNK__JSON_ABSENT)
    return 1;
  local_reply_invalid(call->req, "float_type", key,
                      "Input should be a valid number");
  return 0;
}

static int read_adam(local_call_t *call, const json_t *from,
                     tnk__adam_t *adam) {
  *adam = (tnk__adam_t)TNK__ADAM_INIT;
  if (!read_number(call, from, "learning_rate", &adam->learning_rate) ||
      !read_number(call, from, "beta1", &adam->beta1) ||
      !read_number(call, from, "beta2", &adam->beta2) ||
      !read_number(call, from, "eps", &adam->eps) ||
      !read_number(call, from, "weight_decay", &adam->weight_decay) ||
      !read_number(call, from, "grad_clip_norm", &adam->grad_clip_norm))
    return 0;
  if (!(adam->learning_rate >= 0))
    return refuse_value(call, "learning_rate",
                        "Input should be greater than or equal to 0");
  if (!(adam->beta1 >= 0 && adam->beta1 < 1))
    return refuse_value(call, "beta1", "Input should be in [0, 1)");
  if (!(adam->beta2 >= 0 && adam->beta2 < 1))
    return refuse_value(call, "beta2", "Input should be in [0, 1)");
  if (!(adam->eps > 0))
    return refuse_value(call, "eps", "Input should be greater than 0");
  return 1;
}

static int read_muon(local_call_t *call, const json_t *from,
                     tnk__dimuon_t *muon) {
  double rate = -1;

  *muon = (tnk__dimuon_t)TNK__DIMUON_INIT(0);
  if (!read_number(call, from, "learning_rate", &rate) ||
      !read_number(call, from, "beta1", &muon->beta1) ||
      !read_number(call, from, "grad_clip_norm", &muon->grad_clip_norm))
    return 0;
  if (!(rate >= 0))
    return refuse_value(call, "learning_rate",
                        "Input should be greater than or equal to 0");
  if (!(muon->beta1 >= 0 && muon->beta1 < 1))
    return refuse_value(call, "beta1", "Input should be in [0, 1)");
  muon->learning_rate = rate;
  return 1;
}

static int read_step(local_call_t *call, local_step_t *step) {
  const json_t *adam = NULL;
  const json_t *other = NULL;
  const char *type = NULL;

  tnk__json_get_object(call->body, "adam_params", &adam);
  tnk__json_get_object(call->body, "optimizer_params", &other);
  if ((adam != NULL) == (other != NULL))
    return refuse_value(call, "adam_params",
                        "Exactly one of adam_params and optimizer_params is "
                        "needed");
  if (adam != NULL)
    return read_adam(call, adam, &step->adam);
  type = tnk__json_str(other, "type");
  if (type == NULL || strcmp(type, "dimuon") != 0)
    return refuse_value(call, "optimizer_params",
                        "The optimizer must be dimuon");
  step->dimuon = 1;
  return read_muon(call, other, &step->muon);
}

void local_optim_step(local_call_t *call) {
  const char *model_id = NULL;
  local_model_t *model;
  local_step_t step = {0};
  local_op_t *op;
  int64_t seq;

  if (!local_need_text(call, "model_id", &model_id) ||
      !local_want_seq(call, &seq))
    return;
  model = local_need_model(call, model_id);
  if (model == NULL)
    return;
  if (!read_step(call, &step)) {
    local_model_refuse(model, seq);
    return;
  }
  op = local_need_op(call, LOCAL_OPTIM_STEP);
  if (op == NULL)
    return;
  op->u.step = step;
  local_model_submit(call, model, op, seq,
                     local_hash(op->kind, call->bytes, call->n_bytes));
}
