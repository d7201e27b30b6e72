/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/data/check.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/train/model.h"

/* The requests that save and load: they are parsed, checked and queued. */

/* ---- Saving ---- */

/* Parse the common members of saves; NULL if answered. */
static local_op_t *read_save(local_call_t *call, local_kind_t kind,
                             local_model_t **model, int64_t *seq) {
  const char *model_id = NULL;
  int64_t ttl = 0;
  int overwrite = 0;
  local_op_t *op;
  char *metadata;

  if (!local_need_text(call, "model_id", &model_id) ||
      !local_want_seq(call, seq))
    return NULL;
  *model = local_need_model(call, model_id);
  if (*model == NULL)
    return NULL;
  if (!local_want_ttl(call, &ttl) ||
      !local_want_bool(call, "overwrite", &overwrite)) {
    local_model_refuse(*model, *seq);
    return NULL;
  }
  op = local_need_op(call, kind);
  if (op == NULL)
    return NULL;
  op->u.save.ttl_s = ttl;
  op->u.save.overwrite = overwrite;
  memcpy(op->u.save.place.run, (*model)->id, sizeof((*model)->id));
  if ((*model)->session->project != NULL)
    op->u.save.project =
        tnk__arena_strdup(&op->arena, (*model)->session->project);
  metadata = local_metadata(call);
  if (metadata != NULL) {
    op->u.save.metadata = tnk__arena_strdup(&op->arena, metadata);
    tnk__free(call->server->alloc, metadata);
  }
  return op;
}

/* Parse the checkpoint's name into the place; returns 0 if answered. */
static int read_name(local_call_t *call, local_op_t *op) {
  local_sequence_t mode = call->server->options.sequence;
  const char *name = NULL;

  if (!local_need_text(call, "path", &name))
    return 0;
  if (!local_name_ok(name, mode == LOCAL_LENIENT)) {
    local_reply_invalid(call->req, "string_pattern_mismatch", "path",
                        "String should match pattern '^[a-zA-Z0-9_-]+$'");
    return 0;
  }
  memcpy(op->u.save.place.name, name, strlen(name) + 1);
  if (mode == LOCAL_STRICT)
    op->u.save.overwrite = 1;
  return 1;
}

/* SkyRL refuses an existing name at once. */
static int refuse_taken(local_call_t *call, const local_op_t *op) {
  if (call->server->options.sequence != LOCAL_LENIENT ||
      !local_place_exists(call->server, &op->u.save.place))
    return 0;
  local_reply_error(call->req, 409, "Checkpoint '%s' already exists for model",
                    op->u.save.place.name);
  return 1;
}

static void save_named(local_call_t *call, local_kind_t kind,
                       local_place_kind_t place) {
  local_model_t *model;
  int64_t seq;
  local_op_t *op = read_save(call, kind, &model, &seq);

  if (op == NULL)
    return;
  op->u.save.place.kind = place;
  /* Only a state for resuming needs it; samplers and exports do not. */
  op->u.save.with_optimizer = place == LOCAL_WEIGHTS;
  if (!read_name(call, op) || refuse_taken(call, op)) {
    local_op_free(op, call->server);
    local_model_refuse(model, seq);
    return;
  }
  local_model_submit(call, model, op, seq,
                     local_hash(kind, call->bytes, call->n_bytes));
}

void local_save_weights(local_call_t *call) {
  save_named(call, LOCAL_SAVE_WEIGHTS, LOCAL_WEIGHTS);
}

static int refuse_recipient(local_call_t *call, const char *text,
                            const char *reason) {
  if (tnk__is_secret_key(text)) {
    local_reply_error(call->req, 400, "age_encryption_recipients: one %s",
                      reason);
    return 0;
  }
  if (strncmp(text, "ssh-", 4) == 0)
    reason = "is a key of SSH, for which this server cannot encrypt";
  local_reply_error(call->req, 400,
                    "age_encryption_recipients: the recipient \"%.16s...\" %s",
                    text, reason);
  return 0;
}

static int refuse_recipients(local_call_t *call, const char *type,
                             const char *message) {
  local_reply_invalid(call->req, type, "age_encryption_recipients", message);
  return 0;
}

/* Parse the recipients of the files; returns 0 if answered. */
static int read_recipients(local_call_t *call, local_recipients_t *out) {
  const json_t *list = json_object_get(call->body, "age_encryption_recipients");

  out->n = 0;
  if (list == NULL || json_is_null(list))
    return 1;
  if (!json_is_array(list) || json_array_size(list) > LOCAL_MAX_RECIPIENTS)
    return refuse_recipients(call, "list_type",
                             "Input should be a list of at most 10 recipients");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *text = json_string_value(json_array_get(list, i));
    const char *reason;

    if (text == NULL)
      return refuse_recipients(call, "string_type",
                               "Input should be a valid string");
    reason = tnk__age_recipient_read(out->keys[out->n++], text);
    if (reason != NULL)
      return refuse_recipient(call, text, reason);
  }
  return 1;
}

void local_save_external(local_call_t *call) {
  local_recipients_t to = {0};
  local_recipients_t *kept;
  local_model_t *model;
  int64_t seq;
  local_op_t *op = read_save(call, LOCAL_SAVE_EXTERNAL, &model, &seq);

  if (op == NULL)
    return;
  op->u.save.place.kind = LOCAL_EXTERNAL_WEIGHTS;
  if (!read_recipients(call, &to) || !read_name(call, op) ||
      refuse_taken(call, op)) {
    local_op_free(op, call->server);
    local_model_refuse(model, seq);
    return;
  }
  kept = tnk__arena_copy(&op->arena, &to, sizeof(to));
  op->u.save.to = kept;
  if (kept == NULL)
    op->err = TNK_ENOMEM;
  local_model_submit(
      call, model, op, seq,
      local_hash(LOCAL_SAVE_EXTERNAL, call->bytes, call->n_bytes));
}

static void save_unnamed(local_call_t *call) {
  local_model_t *model;
  int64_t session_seq = -1;
  int64_t seq;
  local_op_t *op = read_save(call, LOCAL_SAVE_FOR_SAMPLER, &model, &seq);
  local_save_t *save;

  if (op == NULL)
    return;
  save = &op->u.save;
  if (!local_want_int(call, "sampling_session_seq_id", 0, INT64_MAX - 1,
                      &session_seq)) {
    local_op_free(op, call->server);
    local_model_refuse(model, seq);
    return;
  }
  /* A request without a number gets the next one. */
  if (session_seq < 0)
    session_seq = model->session->n_samplers;
  if (session_seq >= model->session->n_samplers)
    model->session->n_samplers = session_seq + 1;
  save->is_unnamed = 1;
  save->place.kind = LOCAL_EPHEMERAL;
  snprintf(save->place.name, sizeof(save->place.name), "ss%lld_seq%lld",
           (long long)session_seq, (long long)seq);
  snprintf(save->sampler_id, sizeof(save->sampler_id), "%s:sample:%lld",
           model->session->id, (long long)session_seq);
  /* Clients use a new number of the session for each attempt, so the number
   * does not identify a repeat. */
  local_model_submit(call, model, op, seq, local_hash(9, "unnamed", 7));
}

void local_save_for_sampler(local_call_t *call) {
  const char *name = NULL;

  if (!local_want_text(call, "path", &name))
    return;
  if (name != NULL)
    save_named(call, LOCAL_SAVE_FOR_SAMPLER, LOCAL_SAMPLER_WEIGHTS);
  else
    save_unnamed(call);
}

/* ---- Loading ---- */

/* Parse the checkpoint in "path" and whether to load the optimizer's state;
 * NULL if answered. */
static local_op_t *read_load(local_call_t *call) {
  const char *path = NULL;
  int with_optimizer = 0;
  local_place_t place;
  local_op_t *op;

  if (!local_need_text(call, "path", &path) ||
      !local_want_bool(call, "optimizer", &with_optimizer))
    return NULL;
  if (!local_place_parse(&place, path)) {
    local_reply_error(call->req, 400, "Invalid checkpoint path: %s", path);
    return NULL;
  }
  if (place.kind == LOCAL_EXTERNAL_WEIGHTS) {
    local_reply_error(call->req, 400,
                      "External weights are for other programs and cannot be "
                      "loaded: %s",
                      path);
    return NULL;
  }
  op = local_need_op(call, LOCAL_LOAD_WEIGHTS);
  if (op == NULL)
    return NULL;
  op->u.load.place = place;
  op->u.load.with_optimizer = with_optimizer;
  return op;
}

static void load_into(local_call_t *call, const char *model_id) {
  local_model_t *model = local_need_model(call, model_id);
  local_op_t *op;
  int64_t seq;

  if (model == NULL || !local_want_seq(call, &seq))
    return;
  if (call->server->options.sequence == LOCAL_LENIENT && model->n_seqd > 0) {
    local_reply_error(call->req, 400,
                      "LoadWeights is not permitted with seq_id %lld",
                      (long long)seq);
    return;
  }
  op = read_load(call);
  if (op == NULL) {
    local_model_refuse(model, seq);
    return;
  }
  if (call->server->options.sequence == LOCAL_LENIENT &&
      !local_place_exists(call->server, &op->u.load.place)) {
    local_op_free(op, call->server);
    local_reply_error(call->req, 404, "Checkpoint not found");
    return;
  }
  local_model_submit(call, model, op, seq,
                     local_hash(op->kind, call->bytes, call->n_bytes));
}

static void load_new(local_call_t *call) {
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;
  local_session_t *session = local_need_session(call);
  local_op_t *op;

  if (session == NULL || !local_want_optimizer(call, &config.optimizer))
    return;
  op = read_load(call);
  if (op == NULL)
    return;
  op->u.load.creates = 1;
  op->u.load.optimizer = config.optimizer;
  /* The load has number 0. */
  local_model_make(call, session, op, &config, 1);
}

void local_load_weights(local_call_t *call) {
  const char *model_id = NULL;

  if (!local_want_text(call, "model_id", &model_id))
    return;
  if (model_id != NULL)
    load_into(call, model_id);
  else if (call->server->options.sequence == LOCAL_LENIENT)
    local_reply_invalid(call->req, "missing", "model_id", "Field required");
  else if (call->server->options.members == LOCAL_MEMBERS_STRICT)
    local_reply_error(call->req, 400, "Missing model_id");
  else
    load_new(call);
}
