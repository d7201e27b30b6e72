/* SPDX-License-Identifier: MIT */
#include "bindings/node/addon/addon.h"

#define DEFAULT_MAX_PENDING 1048576

/* ---- Options ---- */

static const char *const http_versions[] = {"auto", "1.1", "2",
                                            "2-prior-knowledge", NULL};
static const char *const limiter_scopes[] = {"shared", "private", NULL};
const char *const optimizer_values[] = {"adamw", "dimuon", "raw", NULL};
static const char *const log_levels[] = {"none",  "error", "warn", "info",
                                         "debug", "trace", NULL};

#define OPTION(member, name, type)                                             \
  FIELD(tnk_service_options_t, member, name, type)
static const field_t service_fields[] = {
    OPTION(api_key, "apiKey", FIELD_TEXT),
    OPTION(credential_cmd, "credentialCmd", FIELD_TEXT),
    OPTION(base_url, "baseURL", FIELD_TEXT),
    OPTION(project_id, "projectId", FIELD_TEXT),
    OPTION(tags, "tags", FIELD_TEXT),
    OPTION(user_metadata, "userMetadata", FIELD_PAIRS),
    OPTION(display_name, "displayName", FIELD_TEXT),
    OPTION(headers, "headers", FIELD_PAIRS),
    OPTION(ca_file, "caFile", FIELD_TEXT),
    OPTION(proxy, "proxy", FIELD_TEXT),
    OPTION(no_proxy, "noProxy", FIELD_TEXT),
    OPTION(proxy_headers, "proxyHeaders", FIELD_PAIRS),
    OPTION(connect_timeout_ms, "connectTimeoutMs", FIELD_U64),
    OPTION(timeout_ms, "timeoutMs", FIELD_U64),
    OPTION(poll_timeout_ms, "pollTimeoutMs", FIELD_U64),
    OPTION(max_retries, "maxRetries", FIELD_U32),
    OPTION(max_polls, "maxPolls", FIELD_U32),
    OPTION(max_pending, "maxPending", FIELD_U32),
    FIELD_NAMED(tnk_service_options_t, limiter_scope, "limiterScope",
                limiter_scopes),
    OPTION(retry_samples, "retrySamples", FIELD_CHOICE),
    OPTION(keep_loop_alive, "keepLoopAlive", FIELD_CHOICE),
    OPTION(cert_file, "certFile", FIELD_TEXT),
    OPTION(key_file, "keyFile", FIELD_TEXT),
    FIELD_NAMED(tnk_service_options_t, http_version, "httpVersion",
                http_versions),
    OPTION(max_http2_connections, "maxHttp2Connections", FIELD_U32),
    OPTION(max_billing_pause_ms, "maxBillingPauseMs", FIELD_U64),
    OPTION(patience_ms, "patienceMs", FIELD_U64),
    OPTION(traceparent, "traceparent", FIELD_TEXT),
    OPTION(dump_file, "dumpFile", FIELD_TEXT),
    OPTION(recovery, "recovery", FIELD_CHOICE),
    OPTION(recovery_attempts, "recoveryAttempts", FIELD_U32),
    OPTION(recovery_delay_ms, "recoveryDelayMs", FIELD_U64),
    OPTION(recovery_max_delay_ms, "recoveryMaxDelayMs", FIELD_U64),
    OPTION(recovery_poll_ms, "recoveryPollMs", FIELD_U64),
};
#undef OPTION

/* ---- Events ---- */

static void on_queue_state(const char *client, tnk_queue_state_t state,
                           const char *reason, void *user) {
  static const char *const states[] = {
      "unknown", "active",       "paused-capacity", "paused-rate-limit",
      "stalled", "session-lost", "unreachable",     "memory-lost"};
  object_t *service = user;
  napi_env env = service->addon->env;
  napi_value event = NULL;
  scope_t scope;

  if (!scope_enter(service->addon, &scope))
    return;
  napi_create_object(env, &event);
  set_text(env, event, "client", client);
  set_text(env, event, "state",
           (unsigned)state < COUNT(states) ? states[state] : states[0]);
  set_text(env, event, "reason", reason);
  emit(service, "queueState", event);
  scope_leave(service->addon, &scope);
}

static void on_recovery(const tnk_recovery_event_t *from, void *user) {
  static const char *const states[] = {"detected", "started",   "completed",
                                       "failed",   "exhausted", NULL};
  static const field_t fields[] = {
      FIELD_NAMED(tnk_recovery_event_t, state, "state", states),
      FIELD(tnk_recovery_event_t, attempt, "attempt", FIELD_U32),
      FIELD(tnk_recovery_event_t, client, "client", FIELD_TEXT),
      FIELD(tnk_recovery_event_t, path, "path", FIELD_TEXT),
      FIELD(tnk_recovery_event_t, n_steps, "steps", FIELD_U64),
      FIELD(tnk_recovery_event_t, retry_ms, "retryMs", FIELD_U64),
      FIELD(tnk_recovery_event_t, reason, "reason", FIELD_TEXT),
  };
  object_t *service = user;
  scope_t scope;

  if (!scope_enter(service->addon, &scope))
    return;
  emit(service, "recovery",
       write_fields(service->addon->env, fields, COUNT(fields), from));
  scope_leave(service->addon, &scope);
}

static void on_log(tnk_log_level_t level, const char *subject,
                   const char *message, size_t length, void *user) {
  object_t *service = user;
  napi_env env = service->addon->env;
  napi_value event = NULL, text = NULL;
  scope_t scope;

  if (!scope_enter(service->addon, &scope))
    return;
  napi_create_object(env, &event);
  set_text(env, event, "level", log_levels[level]);
  set_text(env, event, "subject", subject);
  napi_create_string_utf8(env, message, length, &text);
  napi_set_named_property(env, event, "message", text);
  emit(service, "log", event);
  scope_leave(service->addon, &scope);
}

/* ---- Opening and closing ---- */

/* The callbacks that the options ask for. */
static int read_callbacks(call_t *call, napi_value value, object_t *service,
                          tnk_service_options_t *options,
                          tnk_logger_t *logger) {
  static const field_t level = {"logLevel", 0, FIELD_ENUM, log_levels};
  napi_value function = NULL;
  uint32_t number = TNK_LOG_WARN;

  if (get_property(call->env, value, "onQueueState", &function)) {
    options->on_queue_state = on_queue_state;
    options->queue_state_user = service;
  }
  if (get_property(call->env, value, "onRecovery", &function)) {
    options->on_recovery = on_recovery;
    options->recovery_user = service;
  }
  if (!read_fields(call->env, value, &level, 1, &number, &call->scratch))
    return 0;
  if (get_property(call->env, value, "onLog", &function)) {
    logger->level = (tnk_log_level_t)number;
    logger->write = on_log;
    logger->user = service;
    options->logger = logger;
  }
  return 1;
}

/* serviceOpen(options, emit): a service. */
static napi_value js_service_open(napi_env env, napi_callback_info info) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_logger_t logger = {TNK_LOG_NONE, NULL, NULL};
  napi_value external = NULL;
  tnk_service_t *handle = NULL;
  char why[512] = "";
  call_t call;

  if (!call_begin(&call, env, info, 0))
    return NULL;
  object_t *service =
      object_new(call.addon, OBJECT_SERVICE, NULL, NULL, &external);
  if (service == NULL ||
      !read_fields(env, call.args[0], service_fields, COUNT(service_fields),
                   &options, &call.scratch) ||
      !read_callbacks(&call, call.args[0], service, &options, &logger))
    return call_end(&call, NULL);
  /* It may be called before the service is open. */
  napi_create_reference(env, call.args[1], 1, &service->emit);
  int err =
      tnk_service_open(&handle, call.addon->loop, &options, why, sizeof(why));
  if (err != TNK_OK)
    return call_fail(&call, err, why);
  service->handle = handle;
  service->max_pending =
      options.max_pending > 0 ? options.max_pending : DEFAULT_MAX_PENDING;
  object_list(service);
  return call_end(&call, external);
}

/* close(object): a promise that resolves when the object is closed. */
static napi_value js_close(napi_env env, napi_callback_info info) {
  void *data = NULL;
  napi_value result = NULL;
  napi_deferred deferred = NULL;
  call_t call;

  if (!call_begin(&call, env, info, 0) ||
      napi_get_value_external(env, call.args[0], &data) != napi_ok ||
      napi_create_promise(env, &deferred, &result) != napi_ok)
    return NULL;
  object_t *object = data;
  int waits = object->kind == OBJECT_SERVICE || object->kind == OBJECT_GATEWAY;
  if (waits && object->handle != NULL && !object->is_closing)
    object->closing = deferred;
  else
    napi_resolve_deferred(env, deferred, make_undefined(env));
  object_close(object);
  return call_end(&call, result);
}

/* ---- Clients ---- */

napi_value convert_handle(addon_t *addon, object_t *owner,
                          tnk_promise_t *promise, kind_t kind, void *handle) {
  napi_value external = NULL;
  object_t *object =
      object_new(addon, kind, handle, object_service(owner), &external);

  if (object == NULL)
    return NULL;
  object->promise = tnk_promise_ref(promise);
  return external;
}

napi_value convert_training(addon_t *addon, object_t *owner,
                            tnk_promise_t *promise) {
  return convert_handle(addon, owner, promise, OBJECT_TRAINING,
                        tnk_promise_training(promise));
}

napi_value convert_sampling(addon_t *addon, object_t *owner,
                            tnk_promise_t *promise) {
  return convert_handle(addon, owner, promise, OBJECT_SAMPLING,
                        tnk_promise_sampling(promise));
}

napi_value convert_path(addon_t *addon, object_t *owner,
                        tnk_promise_t *promise) {
  (void)owner;
  return make_text(addon->env, tnk_promise_path(promise));
}

/* createLora(service, options, control) */
static tnk_promise_t *create_lora(call_t *call) {
  static const field_t fields[] = {
      FIELD(tnk_lora_options_t, base_model, "baseModel", FIELD_TEXT),
      FIELD(tnk_lora_options_t, rank, "rank", FIELD_U32),
      FIELD_NAMED(tnk_lora_options_t, optimizer, "optimizer", optimizer_values),
      FIELD(tnk_lora_options_t, seed, "seed", FIELD_I64),
      FIELD(tnk_lora_options_t, train_mlp, "trainMlp", FIELD_CHOICE),
      FIELD(tnk_lora_options_t, train_attn, "trainAttn", FIELD_CHOICE),
      FIELD(tnk_lora_options_t, train_unembed, "trainUnembed", FIELD_CHOICE),
      FIELD(tnk_lora_options_t, optimizer_json, "optimizerJson", FIELD_TEXT),
      FIELD(tnk_lora_options_t, user_metadata, "userMetadata", FIELD_PAIRS),
  };
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  if (!read_options(call, 1, fields, COUNT(fields), &options))
    return NULL;
  return tnk_service_create_lora(call->object->handle, &options);
}

/* restore(service, options, control) */
static tnk_promise_t *restore(call_t *call) {
  static const field_t fields[] = {
      FIELD(tnk_restore_options_t, path, "path", FIELD_TEXT),
      FIELD(tnk_restore_options_t, base_model, "baseModel", FIELD_TEXT),
      FIELD(tnk_restore_options_t, with_optimizer, "withOptimizer",
            FIELD_CHOICE),
      FIELD(tnk_restore_options_t, classic, "classic", FIELD_CHOICE),
      FIELD(tnk_restore_options_t, weights_access_token, "weightsAccessToken",
            FIELD_TEXT),
      FIELD_NAMED(tnk_restore_options_t, optimizer, "optimizer",
                  optimizer_values),
      FIELD(tnk_restore_options_t, optimizer_json, "optimizerJson", FIELD_TEXT),
      FIELD(tnk_restore_options_t, user_metadata, "userMetadata", FIELD_PAIRS),
  };
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  if (!read_options(call, 1, fields, COUNT(fields), &options))
    return NULL;
  return tnk_service_restore(call->object->handle, &options);
}

int read_sampling_options(call_t *call, napi_value value,
                          tnk_sampling_options_t *out) {
  static const field_t fields[] = {
      FIELD(tnk_sampling_options_t, model_path, "modelPath", FIELD_TEXT),
      FIELD(tnk_sampling_options_t, base_model, "baseModel", FIELD_TEXT),
      FIELD(tnk_sampling_options_t, record_stability_info,
            "recordStabilityInfo", FIELD_CHOICE),
      FIELD(tnk_sampling_options_t, exported, "exported", FIELD_TEXT),
  };

  return read_fields(call->env, value, fields, COUNT(fields), out,
                     &call->scratch);
}

/* createSampling(service, options, control) */
static tnk_promise_t *create_sampling(call_t *call) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  if (!read_sampling_options(call, call->args[1], &options))
    return NULL;
  return tnk_service_create_sampling(call->object->handle, &options);
}

static napi_value convert_models(addon_t *addon, object_t *owner,
                                 tnk_promise_t *promise) {
  static const field_t fields[] = {
      FIELD(tnk_model_t, name, "name", FIELD_TEXT),
      FIELD(tnk_model_t, max_context_length, "maxContextLength", FIELD_COUNT),
      FIELD(tnk_model_t, trainable, "trainable", FIELD_CHOICE),
      FIELD(tnk_model_t, sampleable, "sampleable", FIELD_CHOICE),
  };
  const tnk_capabilities_t *all = tnk_promise_capabilities(promise);
  napi_value models = NULL;

  (void)owner;
  napi_create_array(addon->env, &models);
  for (size_t i = 0; i < tnk_capabilities_count(all); i++)
    napi_set_element(addon->env, models, (uint32_t)i,
                     write_fields(addon->env, fields, COUNT(fields),
                                  tnk_capabilities_model(all, i)));
  return models;
}

/* models(service, options, control) */
static tnk_promise_t *models(call_t *call) {
  return tnk_service_capabilities(call->object->handle);
}

/* health(service, options, control) */
static tnk_promise_t *health(call_t *call) {
  return tnk_service_health(call->object->handle);
}

/* ---- State ---- */

static napi_value js_session_id(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_SERVICE))
    return NULL;
  return make_text(env, tnk_service_session_id(call.object->handle));
}

static napi_value js_stats(napi_env env, napi_callback_info info) {
#define STAT(member, name, type) FIELD(tnk_stats_t, member, name, type)
  static const field_t fields[] = {
      STAT(n_requests, "requests", FIELD_U64),
      STAT(n_retries, "retries", FIELD_U64),
      STAT(n_bytes_sent, "bytesSent", FIELD_U64),
      STAT(n_bytes_received, "bytesReceived", FIELD_U64),
      STAT(n_pending, "pending", FIELD_U32),
      STAT(n_connections, "connections", FIELD_U32),
      STAT(n_polls, "polls", FIELD_U32),
      STAT(n_resubmits, "resubmits", FIELD_U64),
      STAT(n_stalls, "stalls", FIELD_U64),
      STAT(loop_lag_ms, "loopLagMs", FIELD_U64),
      STAT(max_loop_lag_ms, "maxLoopLagMs", FIELD_U64),
  };
#undef STAT
  tnk_stats_t stats = TNK_STATS_INIT;
  call_t call;
  if (!call_begin(&call, env, info, OBJECT_SERVICE))
    return NULL;
  tnk_service_stats(&stats, call.object->handle);
  return write_fields(env, fields, COUNT(fields), &stats);
}

static napi_value js_totals(napi_env env, napi_callback_info info) {
  tnk_totals_t totals = TNK_TOTALS_INIT;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_SERVICE))
    return NULL;
  tnk_service_totals(&totals, call.object->handle);
  return make_totals(env, &totals);
}

/* setBudget(service, {maxTokens, maxUsd, pricesFile}) */
static napi_value js_set_budget(napi_env env, napi_callback_info info) {
  static const field_t fields[] = {
      FIELD(tnk_budget_t, max_tokens, "maxTokens", FIELD_U64),
      FIELD(tnk_budget_t, max_usd, "maxUsd", FIELD_DOUBLE),
      FIELD(tnk_budget_t, prices_file, "pricesFile", FIELD_TEXT),
  };
  tnk_budget_t budget = TNK_BUDGET_INIT;
  char why[512] = "";
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_SERVICE) ||
      !read_fields(env, call.args[1], fields, COUNT(fields), &budget,
                   &call.scratch))
    return call_end(&call, NULL);
  int err =
      tnk_service_set_budget(call.object->handle, &budget, why, sizeof(why));
  if (err != TNK_OK)
    return call_fail(&call, err, why);
  return call_end(&call, NULL);
}

static void write_dump(const char *text, size_t length, void *user) {
  call_t *call = user;

  napi_create_string_utf8(call->env, text, length, &call->args[1]);
}

/* dump(service): JSON */
static napi_value js_dump(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_SERVICE))
    return NULL;
  int err =
      tnk_service_dump(call.object->handle, TNK_DUMP_JSON, write_dump, &call);
  if (err != TNK_OK)
    throw_error(call.addon, err, NULL);
  return call.args[1];
}

const function_t service_functions[] = {
    {"serviceOpen", js_service_open},
    {"close", js_close},
    {"sessionId", js_session_id},
    {"stats", js_stats},
    {"totals", js_totals},
    {"setBudget", js_set_budget},
    {"dump", js_dump},
    {NULL, NULL},
};

const operation_t service_operations[] = {
    {"createLora", OBJECT_SERVICE, 0, create_lora, convert_training},
    {"restore", OBJECT_SERVICE, 0, restore, convert_training},
    {"createSampling", OBJECT_SERVICE, 0, create_sampling, convert_sampling},
    {"models", OBJECT_SERVICE, 0, models, convert_models},
    {"health", OBJECT_SERVICE, 0, health, NULL},
    {NULL, 0, 0, NULL, NULL},
};
