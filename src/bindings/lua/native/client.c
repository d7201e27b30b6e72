/* SPDX-License-Identifier: MIT */
#include "bindings/lua/native/native.h"

/* ---- Training ---- */

typedef tnk_promise_t *(*pass_t)(tnk_training_t *, const tnk_datum_t *, size_t,
                                 const tnk_pass_options_t *);

/* forward(id, training, data, loss_fn, options) */
static int run_pass(lua_State *L, const char *what, pass_t pass) {
  static const char *const others[] = {"settings", NULL};
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  const where_t loss = {"loss_fn", 0};
  size_t n = 0;
  proxy_t *training = operation_owner(L, PROXY_TRAINING);
  const tnk_datum_t *data = arg_data(L, 3, &n);

  options.loss_fn = arg_text(L, 4, loss);
  uint64_t timeout_ms = operation_options(L, 5, what, NULL, others);
  if (!lua_isnil(L, 5)) {
    push_member(L, 5, "settings");
    arg_settings(L, lua_gettop(L), &options);
  }
  operation_t *operation = operation_push(L, training, result_pass);
  operation_start(operation, pass(training->handle, data, n, &options),
                  timeout_ms);
  return 1;
}

static int forward(lua_State *L) {
  return run_pass(L, "forward", tnk_training_forward);
}

static int forward_backward(lua_State *L) {
  return run_pass(L, "forward_backward", tnk_training_forward_backward);
}

/* optim_step(id, training, options) */
static int optim_step(lua_State *L) {
  static const field_t fields[] = {
      FIELD_CHOSEN(tnk_optim_t, optimizer, optimizer_names),
      FIELD(tnk_optim_t, learning_rate, FIELD_DOUBLE),
      FIELD(tnk_optim_t, beta1, FIELD_DOUBLE),
      FIELD(tnk_optim_t, beta2, FIELD_DOUBLE),
      FIELD(tnk_optim_t, eps, FIELD_DOUBLE),
      FIELD(tnk_optim_t, weight_decay, FIELD_DOUBLE),
      FIELD(tnk_optim_t, grad_clip_norm, FIELD_DOUBLE),
      FIELD(tnk_optim_t, json, FIELD_TEXT),
  };
  tnk_optim_t options = TNK_OPTIM_INIT;
  const target_t target = {fields, COUNT(fields), &options, NULL};
  proxy_t *training = operation_owner(L, PROXY_TRAINING);
  uint64_t timeout_ms = operation_options(L, 3, "optim_step", &target, NULL);
  operation_t *operation = operation_push(L, training, result_metrics);

  operation_start(operation,
                  tnk_training_optim_step(training->handle, &options),
                  timeout_ms);
  return 1;
}

/* A string that is not nil. */
static const char *given_text(lua_State *L, int index, const char *what,
                              const char *name) {
  const where_t where = {what, 0};
  const char *text = arg_text(L, index, where);

  if (text == NULL)
    fail(L, where, "expected a string as %s, got nil", name);
  return text;
}

typedef tnk_promise_t *(*save_t)(tnk_training_t *, const char *,
                                 const tnk_save_options_t *);

/* save_state(id, training, name, options) */
static int run_save(lua_State *L, const char *what, save_t save) {
  static const field_t fields[] = {
      FIELD(tnk_save_options_t, ttl_seconds, FIELD_U64),
      FIELD(tnk_save_options_t, overwrite, FIELD_CHOICE),
      FIELD(tnk_save_options_t, user_metadata, FIELD_PAIRS),
      FIELD(tnk_save_options_t, recipients, FIELD_TEXTS),
  };
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;
  const target_t target = {fields, COUNT(fields), &options, NULL};
  proxy_t *training = operation_owner(L, PROXY_TRAINING);
  const char *name = given_text(L, 3, what, "name");
  uint64_t timeout_ms = operation_options(L, 4, what, &target, NULL);
  operation_t *operation = operation_push(L, training, result_saved);

  operation_start(operation, save(training->handle, name, &options),
                  timeout_ms);
  return 1;
}

static int save_state(lua_State *L) {
  return run_save(L, "save_state", tnk_training_save_state);
}

static int save_weights(lua_State *L) {
  return run_save(L, "save_weights_for_sampler",
                  tnk_training_save_weights_for_sampler);
}

/* sampler(id, training, options) */
static int save_and_sample(lua_State *L) {
  static const char *const kinds[] = {"snapshot", "inflight", NULL};
  static const field_t kind_field = {"kind", 0, FIELD_ENUM, kinds};
  static const field_t fields[] = {
      FIELD(tnk_sampling_options_t, record_stability_info, FIELD_CHOICE)};
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  uint32_t kind = TNK_SAMPLING_SNAPSHOT;
  const target_t more = {&kind_field, 1, &kind, NULL};
  const target_t target = {fields, COUNT(fields), &options, &more};
  proxy_t *training = operation_owner(L, PROXY_TRAINING);
  uint64_t timeout_ms =
      operation_options(L, 3, "save_weights_and_sampler", &target, NULL);
  operation_t *operation = operation_push(L, training, result_sampling);

  operation_start(operation,
                  tnk_training_save_weights_and_get_sampling(
                      training->handle, (tnk_sampling_kind_t)kind, &options),
                  timeout_ms);
  return 1;
}

/* load_state(id, training, path, options) */
static int load_state(lua_State *L) {
  static const field_t fields[] = {
      FIELD(tnk_load_options_t, with_optimizer, FIELD_CHOICE),
      FIELD(tnk_load_options_t, weights_access_token, FIELD_TEXT),
  };
  tnk_load_options_t options = TNK_LOAD_OPTIONS_INIT;
  const target_t target = {fields, COUNT(fields), &options, NULL};
  proxy_t *training = operation_owner(L, PROXY_TRAINING);

  options.path = given_text(L, 3, "load_state", "path");
  uint64_t timeout_ms = operation_options(L, 4, "load_state", &target, NULL);
  operation_t *operation = operation_push(L, training, NULL);
  operation_start(operation,
                  tnk_training_load_state(training->handle, &options),
                  timeout_ms);
  return 1;
}

/* training_info(training) -> a table */
static int training_info(lua_State *L) {
  tnk_training_info_t info = TNK_TRAINING_INFO_INIT;
  const proxy_t *training = proxy_check(L, 1, PROXY_TRAINING);

  tnk_training_info(&info, training->handle);
  lua_newtable(L);
  put_text(L, "model_id", info.model_id);
  put_text(L, "base_model", info.base_model);
  put_text(L, "arch", info.arch);
  put_text(L, "tokenizer_id", info.tokenizer_id);
  put_text(L, "optimizer", info.optimizer);
  put_whole(L, "lora_rank", info.lora_rank);
  return 1;
}

/* ---- Sampling ---- */

#define PARAM(member, name, type)                                              \
  FIELD_NAMED(tnk_sampling_params_t, member, name, type)
static const field_t param_fields[] = {
    PARAM(max_tokens, "max_tokens", FIELD_I32),
    PARAM(top_k, "top_k", FIELD_I32),
    PARAM(seed, "seed", FIELD_I64),
    PARAM(temperature, "temperature", FIELD_DOUBLE),
    PARAM(top_p, "top_p", FIELD_DOUBLE),
    PARAM(stop_texts, "stop", FIELD_TEXTS),
    PARAM(stop_tokens, "stop_tokens", FIELD_I32S),
};
#undef PARAM

/* Read the options of an operation on a prompt, which is one of them. Returns
 * the timeout. */
static uint64_t prompt_options(lua_State *L, const char *what,
                               const target_t *target,
                               tnk_model_input_t *prompt) {
  static const char *const others[] = {"prompt", NULL};
  where_t where = {what, 0};

  arg_list(L, 3, where, "a table of options");
  where.what = "prompt";
  push_member(L, 3, "prompt");
  arg_input(L, lua_gettop(L), where, prompt);
  return operation_options(L, 3, what, target, others);
}

/* sample(id, sampling, options) */
static int sample(lua_State *L) {
  static const field_t fields[] = {
      FIELD_NAMED(tnk_sample_options_t, n_samples, "num_samples", FIELD_U32),
      FIELD(tnk_sample_options_t, prompt_logprobs, FIELD_CHOICE),
      FIELD(tnk_sample_options_t, topk_prompt_logprobs, FIELD_U32),
      FIELD(tnk_sample_options_t, topk_sample_logprobs, FIELD_U32),
      FIELD(tnk_sample_options_t, prompt_logprobs_last_n, FIELD_U32),
  };
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  tnk_model_input_t prompt = {0};
  const target_t more = {fields, COUNT(fields), &options, NULL};
  const target_t target = {param_fields, COUNT(param_fields), &params, &more};
  proxy_t *sampling = operation_owner(L, PROXY_SAMPLING);
  uint64_t timeout_ms = prompt_options(L, "sample", &target, &prompt);
  operation_t *operation = operation_push(L, sampling, result_samples);

  operation_start(
      operation,
      tnk_sampling_sample(sampling->handle, &prompt, &params, &options),
      timeout_ms);
  return 1;
}

static int on_token(const tnk_stream_token_t *token, void *user) {
  operation_t *operation = user;
  event_t *event = event_new(EVENT_TOKEN, NULL);

  if (event != NULL)
    event->texts[0] = copy_text(token->text);
  if (event == NULL || (token->text != NULL && event->texts[0] == NULL))
    operation->is_short = 1;
  if (event == NULL)
    return 1;
  event->operation = operation;
  event->number = token->token;
  event->index = token->index;
  event->logprob = token->logprob;
  event_append(operation->state, event);
  return operation->is_short;
}

/* stream(id, sampling, options) */
static int stream(lua_State *L) {
  static const field_t fields[] = {
      FIELD(tnk_sample_stream_options_t, silence_ms, FIELD_U64)};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_stream_options_t options = TNK_SAMPLE_STREAM_OPTIONS_INIT;
  tnk_model_input_t prompt = {0};
  const target_t more = {fields, COUNT(fields), &options, NULL};
  const target_t target = {param_fields, COUNT(param_fields), &params, &more};
  proxy_t *sampling = operation_owner(L, PROXY_SAMPLING);
  uint64_t timeout_ms = prompt_options(L, "stream", &target, &prompt);
  operation_t *operation = operation_push(L, sampling, result_samples);

  options.on_token = on_token;
  options.user = operation;
  operation_start(
      operation,
      tnk_sampling_sample_stream(sampling->handle, &prompt, &params, &options),
      timeout_ms);
  return 1;
}

/* compute_logprobs(id, sampling, options) */
static int compute_logprobs(lua_State *L) {
  static const field_t fields[] = {
      FIELD(tnk_logprobs_options_t, last_n, FIELD_U32)};
  tnk_logprobs_options_t options = TNK_LOGPROBS_OPTIONS_INIT;
  tnk_model_input_t prompt = {0};
  const target_t target = {fields, COUNT(fields), &options, NULL};
  proxy_t *sampling = operation_owner(L, PROXY_SAMPLING);
  uint64_t timeout_ms = prompt_options(L, "compute_logprobs", &target, &prompt);
  operation_t *operation = operation_push(L, sampling, result_logprobs);

  operation_start(
      operation,
      tnk_sampling_compute_logprobs(sampling->handle, &prompt, &options),
      timeout_ms);
  return 1;
}

/* export(sampling) -> a string */
static int export_sampler(lua_State *L) {
  const proxy_t *sampling = proxy_check(L, 1, PROXY_SAMPLING);
  const char *exported = tnk_sampling_export(sampling->handle);

  if (exported == NULL)
    raise_error(L, TNK_ENOMEM, "the sampler cannot be exported");
  lua_pushstring(L, exported);
  return 1;
}

const luaL_Reg native_client[] = {{"forward", forward},
                                  {"forward_backward", forward_backward},
                                  {"optim_step", optim_step},
                                  {"save_state", save_state},
                                  {"save_weights", save_weights},
                                  {"sampler", save_and_sample},
                                  {"load_state", load_state},
                                  {"training_info", training_info},
                                  {"sample", sample},
                                  {"stream", stream},
                                  {"compute_logprobs", compute_logprobs},
                                  {"export", export_sampler},
                                  {NULL, NULL}};
