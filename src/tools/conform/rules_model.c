/* SPDX-License-Identifier: MIT */
/* Rules about models: creation, information, unloading. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/message/calls_training.h"
#include "tools/conform/state.h"

/* ---- Calls without a model ---- */

/* A call for a model that does not exist. */
static conform_call_t *unknown_model(conform_t *c) {
  const char *path = c->about;

  if (strcmp(path, "forward_backward") == 0)
    return conform_pass(c, CONFORM_NONE, 1, NULL);
  if (strcmp(path, "optim_step") == 0)
    return conform_step(c, CONFORM_NONE, 1);
  return conform_post(c, path, "{s:s,s:i,s:s}", "model_id", CONFORM_NONE,
                      "seq_id", 1, "path", "none");
}

static conform_verdict_t is_unknown(conform_t *c) {
  const conform_call_t *call = c->call;

  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (call->status == 404 || call->status == 410)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_ALLOWED, "%d", call->status);
  return conform_other(c, call, "404");
}

/* A model in a session that does not exist, or without a required member. */
static conform_call_t *unknown_session(conform_t *c) {
  return conform_post_json(c, "create_model",
                           conform_model_body(c, CONFORM_NONE, 0));
}

static conform_call_t *create_with(conform_t *c, const char *key,
                                   json_t *value) {
  json_t *body = conform_new_model_body(c);

  json_object_set_new(body, key, value);
  return conform_post_json(c, "create_model", body);
}

static conform_call_t *no_lora(conform_t *c) {
  return create_with(c, "lora_config", json_null());
}

static conform_call_t *no_base(conform_t *c) {
  return create_with(c, "base_model", json_string(CONFORM_NONE));
}

static conform_verdict_t not_created(conform_t *c) {
  if (!conform_is_ok(c->call))
    return conform_refused(c);
  conform_follow(c, c->call, 0);
  if (c->end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "it fails with %d",
                        c->end.last != NULL ? c->end.last->status : 0);
  if (c->end.fate == CONFORM_RESULT)
    conform_made(c, CONFORM_MODEL, conform_text(c->end.last, "model_id"));
  return conform_tell(c, CONFORM_ALLOWED, "it is ignored");
}

/* ---- Calls with a model ---- */

static conform_call_t *create(conform_t *c) {
  return conform_post_json(c, "create_model", conform_new_model_body(c));
}

static conform_verdict_t created(conform_t *c) {
  const char *type;

  if (!conform_succeeds(c, c->call, 0))
    return conform_told(c);
  if (conform_made(c, CONFORM_MODEL, conform_text(c->end.last, "model_id")) ==
      NULL)
    return conform_tell(c, CONFORM_DIFFERS, "the result has no \"model_id\"");
  type = conform_text(c->end.last, "type");
  if (type != NULL && strcmp(type, "create_model") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "its type is \"%.40s\"", type);
  return conform_tell(c, CONFORM_HOLDS, "%d", c->call->status);
}

static conform_verdict_t id_form(conform_t *c) {
  const size_t n = strlen(c->session);

  if (strncmp(c->model->id, c->session, n) == 0 &&
      strncmp(c->model->id + n, ":train:", 7) == 0)
    return conform_tell(c, CONFORM_HOLDS, "session:train:number");
  return conform_tell(c, CONFORM_ALLOWED, "another form");
}

static conform_verdict_t repeat(conform_t *c) {
  const int64_t number = c->n_models++;
  conform_made_t *models[2];

  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call = conform_post_json(
        c, "create_model", conform_model_body(c, c->session, number));

    if (i == 1 && conform_is_refusal(call))
      return conform_tell(c, CONFORM_ALLOWED, "rejected with %d", call->status);
    models[i] = conform_take_model(c, call);
    if (models[i] == NULL)
      return conform_tell(c, CONFORM_DIFFERS, "%s", c->why);
  }
  return conform_same(c, models[0] == models[1], "model");
}

static conform_verdict_t not_awaited(conform_t *c) {
  const char *id = conform_text(c->call, "model_id");
  const conform_call_t *pass;

  if (id != NULL)
    conform_made(c, CONFORM_MODEL, id);
  if (!conform_accepted(c, c->call, "a request_id"))
    return conform_told(c);
  if (id == NULL)
    return conform_tell(c, CONFORM_SKIPPED, "its id is only in the result");
  pass = conform_pass(c, id, 1, NULL);
  conform_follow(c, c->call, 0);
  conform_follow(c, pass, 1);
  if (c->end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "it waits for the model");
  return conform_tell(
      c, c->end.fate == CONFORM_FAILED ? CONFORM_ALLOWED : CONFORM_DIFFERS,
      "%s", c->end.how);
}

/* ---- Information ---- */

static conform_call_t *ask_info(conform_t *c) {
  return conform_post(c, "get_info", "{s:s,s:s}", "model_id", c->model->id,
                      "type", "get_info");
}

static conform_verdict_t info(conform_t *c) {
  const conform_call_t *call = c->call;
  const char *id = conform_text(call, "model_id");
  tnk_training_info_t read = {0};
  tnk__arena_t arena;
  int err;

  if (!conform_accepted(c, call, "200"))
    return conform_told(c);
  if (id == NULL || strcmp(id, c->model->id) != 0 ||
      tnk__json_obj(call->json, "model_data") == NULL)
    return conform_tell(c, CONFORM_DIFFERS,
                        "no \"model_id\" or \"model_data\"");
  tnk__arena_init(&arena, tnk__allocator_default(), 1 << 20);
  err = tnk__get_info_read(&read, &arena, call->body.data, call->body.len);
  tnk__arena_deinit(&arena);
  return err == TNK_OK
             ? conform_holds(c)
             : conform_tell(c, CONFORM_DIFFERS, "it cannot be parsed");
}

/* Optional information that clients use. */
static conform_verdict_t info_has(conform_t *c) {
  const json_t *in = strcmp(c->about, "tokenizer_id") == 0
                         ? tnk__json_obj(c->call->json, "model_data")
                         : c->call->json;
  const json_t *value = json_object_get(in, c->about);
  const char *type = tnk__json_str(value, "type");

  if (!conform_accepted(c, c->call, "200"))
    return conform_told(c);
  if (value == NULL || json_is_null(value))
    return conform_tell(c, CONFORM_ALLOWED, "it is missing");
  if (json_is_string(value))
    return conform_tell(c, CONFORM_HOLDS, "%.80s", json_string_value(value));
  if (json_is_integer(value))
    return conform_tell(c, CONFORM_HOLDS, "%lld",
                        (long long)json_integer_value(value));
  return conform_tell(c, CONFORM_HOLDS, "%s", type != NULL ? type : "");
}

/* The model's creation selects the optimizer's family. A server must not
 * silently replace an unknown family. */
static conform_call_t *create_dimuon(conform_t *c) {
  return create_with(c, "optimizer_config",
                     json_pack("{s:s,s:i}", "type", "dimuon", "version", 1));
}

static conform_verdict_t optimizer(conform_t *c) {
  const json_t *told;
  const char *type;

  if (conform_is_refusal(c->call))
    return conform_tell(c, CONFORM_ABSENT, "dimuon is rejected with %d",
                        c->call->status);
  c->model = conform_take_model(c, c->call);
  if (c->model == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "%s", c->why);
  told = tnk__json_obj(ask_info(c)->json, "optimizer_config");
  type = tnk__json_str(told, "type");
  if (type != NULL && strcmp(type, "dimuon") == 0)
    return conform_tell(c, CONFORM_HOLDS, "dimuon");
  return conform_tell(c, CONFORM_ALLOWED, "dimuon is %s",
                      type != NULL ? "replaced by another one"
                                   : "not reported");
}

static conform_call_t *unload(conform_t *c) {
  return conform_post(c, "unload_model", "{s:s,s:s}", "model_id", c->model->id,
                      "type", "unload_model");
}

static conform_verdict_t unloaded(conform_t *c) {
  if (conform_is_absent(c, c->call))
    return conform_tell(c, CONFORM_ABSENT, "%d", c->call->status);
  if (!conform_succeeds(c, c->call, 0))
    return conform_told(c);
  conform_follow(c, conform_pass(c, c->model->id, 1, NULL), 1);
  conform_gone(c, c->model);
  if (c->end.fate == CONFORM_FAILED)
    return conform_holds(c);
  return conform_tell(c, CONFORM_DIFFERS, "a pass after that: %s", c->end.how);
}

static const conform_rule_t rules[] = {
    {"model-unknown-info", "get_info of an unknown model gets 404",
     "session 4.2", CONFORM_FREE, NULL, unknown_model, is_unknown, "get_info"},
    {"model-unknown-pass", "a pass of an unknown model gets 404",
     "training 5.1", CONFORM_FREE, NULL, unknown_model, is_unknown,
     "forward_backward"},
    {"model-unknown-step", "a step of an unknown model gets 404",
     "training 5.6", CONFORM_FREE, NULL, unknown_model, is_unknown,
     "optim_step"},
    {"model-unknown-save", "a save of an unknown model gets 404",
     "training 5.6", CONFORM_FREE, NULL, unknown_model, is_unknown,
     "save_weights"},
    {"model-unknown-unload", "unloading an unknown model gets 404",
     "session 4.1", CONFORM_FREE, NULL, unknown_model, is_unknown,
     "unload_model"},
    {"model-no-session", "a model in an unknown session is rejected",
     "session 4.1", CONFORM_SPENDS, conform_needs_base, unknown_session,
     not_created, NULL},
    {"model-no-lora", "a model without a LoRA configuration is rejected",
     "session 4.1", CONFORM_SPENDS, conform_needs_base, no_lora, not_created,
     NULL},
    {"model-no-base", "a model of an unknown base model is rejected",
     "session 4.6", CONFORM_SPENDS, conform_needs_base, no_base, not_created,
     NULL},
    {"model-create", "a model can be created", "session 4.2", CONFORM_SPENDS,
     conform_needs_base, create, created, NULL},
    {"model-repeat", "a repeated creation creates no second model",
     "session 4.3", CONFORM_SPENDS, conform_needs_base, NULL, repeat, NULL},
    {"model-id", "the id of a model contains the session's id", "session 4.3",
     CONFORM_SPENDS, conform_needs_shared_model, NULL, id_form, NULL},
    {"model-not-awaited", "a model accepts requests before it is ready",
     "session 4.6", CONFORM_SPENDS, conform_needs_base, create, not_awaited,
     NULL},
    {"model-info", "get_info describes a model", "session 4.2", CONFORM_SPENDS,
     conform_needs_shared_model, ask_info, info, NULL},
    {"model-tokenizer", "get_info names the tokenizer", "session 4.7",
     CONFORM_SPENDS, conform_needs_shared_model, ask_info, info_has,
     "tokenizer_id"},
    {"model-rank", "get_info returns the LoRA rank", "session 4.2",
     CONFORM_SPENDS, conform_needs_shared_model, ask_info, info_has,
     "lora_rank"},
    {"model-family", "get_info names the optimizer", "session 4.2",
     CONFORM_SPENDS, conform_needs_shared_model, ask_info, info_has,
     "optimizer_config"},
    {"model-optimizer", "a model gets the requested optimizer",
     "training 5.6.1", CONFORM_SPENDS, conform_needs_base, create_dimuon,
     optimizer, NULL},
    {"model-unload", "an unloaded model rejects requests", "session 4.1",
     CONFORM_SPENDS, conform_needs_model, unload, unloaded, NULL},
};

const conform_group_t conform_model = {"models", rules,
                                       sizeof(rules) / sizeof(*rules)};
