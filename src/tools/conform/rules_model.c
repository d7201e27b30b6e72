/* Rules about models: creation, information, unloading. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/message/calls_training.h"
#include "tools/conform/state.h"

#define NONE "tnk-conform-none"

/* ---- Calls without a model ---- */

/* A call for a model that does not exist. */
static conform_verdict_t unknown_model(conform_t *c,
                                       const conform_rule_t *rule) {
  const char *path = rule->about;
  json_t *body = strcmp(path, "optim_step") == 0
                     ? conform_step_body(NONE, 1)
                     : json_pack("{s:s,s:i,s:s}", "model_id", NONE, "seq_id", 1,
                                 "path", "none");
  const conform_call_t *call = strcmp(path, "forward_backward") == 0
                                   ? conform_pass(c, NONE, 1, NULL)
                                   : conform_post(c, path, body);

  if (strcmp(path, "forward_backward") == 0)
    json_decref(body);
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (call->status == 404 || call->status == 410)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_ALLOWED, "%d", call->status);
  return conform_other(c, call, "404");
}

/* A model in a session that does not exist, or without a required member. */
static conform_verdict_t judge_create(conform_t *c, json_t *body) {
  const conform_call_t *call = conform_post(c, "create_model", body);
  conform_end_t end = {0};

  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "a 4xx");
  conform_follow(c, call, 0, &end);
  if (end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "it fails with %d",
                        end.last != NULL ? end.last->status : 0);
  if (end.fate == CONFORM_RESULT)
    conform_made(c, CONFORM_MODEL, conform_text(end.last, "model_id"));
  return conform_tell(c, CONFORM_ALLOWED, "it is not looked at");
}

static conform_verdict_t unknown_session(conform_t *c,
                                         const conform_rule_t *rule) {
  (void)rule;
  if (conform_base_model(c) == NULL)
    return conform_skip(c);
  return judge_create(c, conform_model_body(c, NONE, 0));
}

static conform_verdict_t no_lora(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  json_t *body;

  (void)rule;
  if (session == NULL || conform_base_model(c) == NULL)
    return conform_skip(c);
  body = conform_model_body(c, session, c->n_models++);
  json_object_set_new(body, "lora_config", json_null());
  return judge_create(c, body);
}

static conform_verdict_t no_base(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  json_t *body;

  (void)rule;
  if (session == NULL || conform_base_model(c) == NULL)
    return conform_skip(c);
  body = conform_model_body(c, session, c->n_models++);
  json_object_set_new(body, "base_model", json_string(NONE));
  return judge_create(c, body);
}

/* ---- Calls with a model ---- */

static conform_verdict_t create(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  const conform_call_t *call;
  conform_end_t end = {0};
  const char *type;

  (void)rule;
  if (session == NULL || conform_base_model(c) == NULL)
    return conform_skip(c);
  call = conform_post(c, "create_model",
                      conform_model_body(c, session, c->n_models++));
  conform_follow(c, call, 0, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  if (conform_made(c, CONFORM_MODEL, conform_text(end.last, "model_id")) ==
      NULL)
    return conform_tell(c, CONFORM_DIFFERS, "the result has no \"model_id\"");
  type = conform_text(end.last, "type");
  if (type != NULL && strcmp(type, "create_model") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "its type is \"%.40s\"", type);
  return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
}

static conform_verdict_t id_form(conform_t *c, const conform_rule_t *rule) {
  const conform_made_t *model = conform_shared_model(c);
  size_t n;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  n = strlen(c->session);
  if (strncmp(model->id, c->session, n) == 0 &&
      strncmp(model->id + n, ":train:", 7) == 0)
    return conform_tell(c, CONFORM_HOLDS, "session:train:number");
  return conform_tell(c, CONFORM_ALLOWED, "another form");
}

static conform_verdict_t repeat(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  const int64_t number = c->n_models++;
  conform_made_t *models[2];

  (void)rule;
  if (session == NULL || conform_base_model(c) == NULL)
    return conform_skip(c);
  for (size_t i = 0; i < 2; i++) {
    const conform_call_t *call =
        conform_post(c, "create_model", conform_model_body(c, session, number));

    if (i == 1 && conform_is_refusal(call))
      return conform_tell(c, CONFORM_ALLOWED, "refused with %d", call->status);
    models[i] = conform_take_model(c, call);
    if (models[i] == NULL)
      return conform_tell(c, CONFORM_DIFFERS, "%s", c->why);
  }
  if (models[0] == models[1])
    return conform_tell(c, CONFORM_HOLDS, "the same model");
  return conform_tell(c, CONFORM_ALLOWED, "a second model");
}

static conform_verdict_t not_awaited(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  const conform_call_t *made;
  const conform_call_t *pass;
  const char *id;
  conform_end_t end = {0};

  (void)rule;
  if (session == NULL || conform_base_model(c) == NULL)
    return conform_skip(c);
  made = conform_post(c, "create_model",
                      conform_model_body(c, session, c->n_models++));
  id = conform_text(made, "model_id");
  if (id != NULL)
    conform_made(c, CONFORM_MODEL, id);
  if (!conform_is_ok(made) || id == NULL)
    return conform_is_ok(made)
               ? conform_tell(c, CONFORM_SKIPPED,
                              "its id comes with the result only")
               : conform_other(c, made, "a request_id");
  pass = conform_pass(c, id, 1, NULL);
  conform_follow(c, made, 0, &end);
  conform_follow(c, pass, 1, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "it waits for the model");
  return conform_tell(
      c, end.fate == CONFORM_FAILED ? CONFORM_ALLOWED : CONFORM_DIFFERS, "%s",
      end.how);
}

/* ---- Information ---- */

static conform_call_t *ask_info(conform_t *c, const char *model) {
  return conform_post(
      c, "get_info",
      json_pack("{s:s,s:s}", "model_id", model, "type", "get_info"));
}

static conform_verdict_t info(conform_t *c, const conform_rule_t *rule) {
  const conform_made_t *model = conform_shared_model(c);
  tnk_training_info_t read = {0};
  const conform_call_t *call;
  const char *id;
  tnk__arena_t arena;
  int err;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = ask_info(c, model->id);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  id = conform_text(call, "model_id");
  if (id == NULL || strcmp(id, model->id) != 0 ||
      tnk__json_obj(call->json, "model_data") == NULL)
    return conform_tell(c, CONFORM_DIFFERS,
                        "no \"model_id\" or \"model_data\"");
  tnk__arena_init(&arena, tnk__allocator_default(), 1 << 20);
  err = tnk__get_info_read(&read, &arena, call->body.data, call->body.len);
  tnk__arena_deinit(&arena);
  return err == TNK_OK ? conform_tell(c, CONFORM_HOLDS, "%s", "")
                       : conform_tell(c, CONFORM_DIFFERS, "it cannot be read");
}

/* Optional information that clients use. */
static conform_verdict_t info_has(conform_t *c, const conform_rule_t *rule) {
  const char *key = rule->about;
  const conform_made_t *model = conform_shared_model(c);
  const conform_call_t *call;
  const json_t *value;

  if (model == NULL)
    return conform_skip(c);
  call = ask_info(c, model->id);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  value = strcmp(key, "tokenizer_id") == 0
              ? json_object_get(tnk__json_obj(call->json, "model_data"), key)
              : json_object_get(call->json, key);
  if (value == NULL || json_is_null(value))
    return conform_tell(c, CONFORM_ALLOWED, "it does not");
  if (json_is_string(value))
    return conform_tell(c, CONFORM_HOLDS, "%.80s", json_string_value(value));
  if (json_is_integer(value))
    return conform_tell(c, CONFORM_HOLDS, "%lld",
                        (long long)json_integer_value(value));
  return conform_tell(
      c, CONFORM_HOLDS, "%s",
      tnk__json_str(value, "type") != NULL ? tnk__json_str(value, "type") : "");
}

/* The model's creation selects the optimizer's family. A server must not
 * silently replace an unknown family. */
static conform_verdict_t optimizer(conform_t *c, const conform_rule_t *rule) {
  const char *session = conform_session_id(c);
  const conform_call_t *call;
  const conform_made_t *model;
  json_t *body;
  const char *type;

  (void)rule;
  if (session == NULL || conform_base_model(c) == NULL)
    return conform_skip(c);
  body = conform_model_body(c, session, c->n_models++);
  json_object_set_new(body, "optimizer_config",
                      json_pack("{s:s,s:i}", "type", "dimuon", "version", 1));
  call = conform_post(c, "create_model", body);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_ABSENT, "dimuon is refused with %d",
                        call->status);
  model = conform_take_model(c, call);
  if (model == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "%s", c->why);
  call = ask_info(c, model->id);
  type = tnk__json_str(tnk__json_obj(call->json, "optimizer_config"), "type");
  if (type != NULL && strcmp(type, "dimuon") == 0)
    return conform_tell(c, CONFORM_HOLDS, "dimuon");
  return conform_tell(c, CONFORM_ALLOWED, "dimuon is %s",
                      type != NULL ? "another one then" : "not spoken of");
}

static conform_verdict_t unload(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_new_model(c);
  const conform_call_t *call;
  conform_end_t end = {0};

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = conform_post(
      c, "unload_model",
      json_pack("{s:s,s:s}", "model_id", model->id, "type", "unload_model"));
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  conform_follow(c, call, 0, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  conform_follow(c, conform_pass(c, model->id, 1, NULL), 1, &end);
  conform_gone(c, model);
  if (end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "%s", "");
  return conform_tell(c, CONFORM_DIFFERS, "a pass of it then: %s", end.how);
}

static const conform_rule_t rules[] = {
    {"model-unknown-info", "get_info of an unknown model is a 404",
     "session 4.2", CONFORM_FREE, unknown_model, "get_info"},
    {"model-unknown-pass", "so is a pass", "training 5.1", CONFORM_FREE,
     unknown_model, "forward_backward"},
    {"model-unknown-step", "a step", "training 5.6", CONFORM_FREE,
     unknown_model, "optim_step"},
    {"model-unknown-save", "a save", "training 5.6", CONFORM_FREE,
     unknown_model, "save_weights"},
    {"model-unknown-unload", "and its unloading", "session 4.1", CONFORM_FREE,
     unknown_model, "unload_model"},
    {"model-no-session", "a model of an unknown session is refused",
     "session 4.1", CONFORM_SPENDS, unknown_session, NULL},
    {"model-no-lora", "one without its configuration is refused", "session 4.1",
     CONFORM_SPENDS, no_lora, NULL},
    {"model-no-base", "one of an unknown base is refused", "session 4.6",
     CONFORM_SPENDS, no_base, NULL},
    {"model-create", "a model is made", "session 4.2", CONFORM_SPENDS, create,
     NULL},
    {"model-repeat", "a repeat with the same number makes no second one",
     "session 4.3", CONFORM_SPENDS, repeat, NULL},
    {"model-id", "its id is made of the session's", "session 4.3",
     CONFORM_SPENDS, id_form, NULL},
    {"model-not-awaited", "requests may be sent before it is ready",
     "session 4.6", CONFORM_SPENDS, not_awaited, NULL},
    {"model-info", "get_info tells of it", "session 4.2", CONFORM_SPENDS, info,
     NULL},
    {"model-tokenizer", "and names its tokenizer", "session 4.7",
     CONFORM_SPENDS, info_has, "tokenizer_id"},
    {"model-rank", "its rank", "session 4.2", CONFORM_SPENDS, info_has,
     "lora_rank"},
    {"model-family", "and its optimizer", "session 4.2", CONFORM_SPENDS,
     info_has, "optimizer_config"},
    {"model-optimizer", "the optimizer is that which was asked for",
     "training 5.6.1", CONFORM_SPENDS, optimizer, NULL},
    {"model-unload", "an unloaded model takes no more requests", "session 4.1",
     CONFORM_SPENDS, unload, NULL},
};

const conform_group_t conform_model = {"models", rules,
                                       sizeof(rules) / sizeof(*rules)};
