/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "bindings/node/addon/addon.h"

#define OPTION(member, name, type)                                             \
  FIELD(tnk_gateway_options_t, member, name, type)
static const char *const formats[] = {"hint", "retry", "refuse", NULL};
static const field_t gateway_fields[] = {
    OPTION(host, "host", FIELD_TEXT),
    OPTION(key, "key", FIELD_TEXT),
    OPTION(model, "model", FIELD_TEXT),
    OPTION(record, "record", FIELD_TEXT),
    OPTION(record_ca_file, "recordCaFile", FIELD_TEXT),
    OPTION(record_cert_file, "recordCertFile", FIELD_TEXT),
    OPTION(record_key_file, "recordKeyFile", FIELD_TEXT),
    OPTION(variables, "variables", FIELD_PAIRS),
    FIELD_NAMED(tnk_gateway_options_t, family, "family", family_values),
    OPTION(port, "port", FIELD_I32),
    OPTION(max_requests, "maxRequests", FIELD_U32),
    OPTION(max_tokens, "maxTokens", FIELD_I32),
    OPTION(max_memory, "maxMemory", FIELD_U64),
    OPTION(max_body, "maxBody", FIELD_U64),
    OPTION(max_connections, "maxConnections", FIELD_U32),
    OPTION(keep_alive_ms, "keepAliveMs", FIELD_U32),
    OPTION(tls_cert, "tlsCert", FIELD_TEXT),
    OPTION(tls_key, "tlsKey", FIELD_TEXT),
    OPTION(record_sync, "recordSync", FIELD_CHOICE),
    OPTION(keep_control_tokens, "keepControlTokens", FIELD_CHOICE),
    OPTION(admin_key, "adminKey", FIELD_TEXT),
    OPTION(usd_prompt, "usdPrompt", FIELD_DOUBLE),
    OPTION(usd_sampled, "usdSampled", FIELD_DOUBLE),
    OPTION(usd_cached, "usdCached", FIELD_DOUBLE),
    FIELD_NAMED(tnk_gateway_options_t, formats, "formats", formats),
    OPTION(max_attempts, "maxAttempts", FIELD_U32),
    OPTION(worker, "worker", FIELD_TEXT),
    OPTION(repeat_ms, "repeatMs", FIELD_U32),
    OPTION(share_port, "sharePort", FIELD_CHOICE),
    OPTION(keep_unexported, "keepUnexported", FIELD_CHOICE),
    OPTION(keep_sessions, "keepSessions", FIELD_U64),
    OPTION(keep_age_ms, "keepAgeMs", FIELD_U64),
    OPTION(client_ca_file, "clientCaFile", FIELD_TEXT),
    OPTION(client_crl_file, "clientCrlFile", FIELD_TEXT),
    OPTION(client_optional, "clientOptional", FIELD_CHOICE),
};
#undef OPTION

/* gatewayOpen(service, tokenizer, template, options) */
static napi_value js_open(napi_env env, napi_callback_info info) {
  tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
  tnk_gateway_t *handle = NULL;
  object_t *tokenizer = NULL, *template_ = NULL;
  napi_value external = NULL;
  char why[512] = "";
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_SERVICE) ||
      !read_fields(env, call.args[3], gateway_fields, COUNT(gateway_fields),
                   &options, &call.scratch))
    return call_end(&call, NULL);
  if (is_given(env, call.args[1]) &&
      (tokenizer = call_object(&call, 1, OBJECT_TOKENIZER)) == NULL)
    return call_end(&call, NULL);
  if (is_given(env, call.args[2]) &&
      (template_ = call_object(&call, 2, OBJECT_TEMPLATE)) == NULL)
    return call_end(&call, NULL);
  options.tokenizer = object_tokenizer(tokenizer);
  options.template_ = template_ != NULL ? template_->handle : NULL;
  object_t *gateway =
      object_new(call.addon, OBJECT_GATEWAY, NULL, call.object, &external);
  if (gateway == NULL)
    return call_end(&call, NULL);
  int err = tnk_gateway_open(&handle, call.addon->loop, call.object->handle,
                             &options, why, sizeof(why));
  if (err != TNK_OK)
    return call_fail(&call, err, why);
  gateway->handle = handle;
  object_list(gateway);
  /* The gateway borrows the tokenizer, and serves until it is closed. */
  object_need(gateway, tokenizer);
  object_use(gateway);
  return call_end(&call, external);
}

static napi_value js_address(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_GATEWAY))
    return NULL;
  return make_text(env, tnk_gateway_address(call.object->handle));
}

/* gatewayUse(gateway, options, control) */
static tnk_promise_t *use(call_t *call) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  if (!read_sampling_options(call, call->args[1], &options))
    return NULL;
  return tnk_gateway_use(call->object->handle, &options);
}

/* The answer that a reward is for. */
typedef struct {
  const char *session;
  const char *id;
  uint32_t choice;
} rewarded_t;

/* gatewayReward(gateway, reward, {session, id, choice}) */
static napi_value js_reward(napi_env env, napi_callback_info info) {
  static const field_t fields[] = {
      FIELD(rewarded_t, session, "session", FIELD_TEXT),
      FIELD(rewarded_t, id, "id", FIELD_TEXT),
      FIELD(rewarded_t, choice, "choice", FIELD_U32),
  };
  rewarded_t options = {NULL, NULL, 0};
  double reward = 0;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_GATEWAY) ||
      !read_fields(env, call.args[2], fields, COUNT(fields), &options,
                   &call.scratch))
    return call_end(&call, NULL);
  if (napi_get_value_double(env, call.args[1], &reward) != napi_ok) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE",
                          "reward: expected a number");
    return call_end(&call, NULL);
  }
  int err = tnk_gateway_reward(call.object->handle, options.session, options.id,
                               options.choice, reward);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  return call_end(&call, NULL);
}

/* gatewayKeyCreate(gateway, options): {id, key} */
static napi_value js_key_create(napi_env env, napi_callback_info info) {
#define OPTION(member, name, type)                                             \
  FIELD(tnk_gateway_key_options_t, member, name, type)
  static const field_t fields[] = {
      OPTION(session, "session", FIELD_TEXT),
      OPTION(expires_in_s, "expiresInSeconds", FIELD_U64),
      OPTION(max_requests, "maxRequests", FIELD_U64),
      OPTION(max_tokens, "maxTokens", FIELD_U64),
      OPTION(max_turns, "maxTurns", FIELD_U64),
      OPTION(max_usd, "maxUsd", FIELD_DOUBLE),
      OPTION(max_body, "maxBody", FIELD_U64),
      OPTION(max_concurrent, "maxConcurrent", FIELD_U32),
      OPTION(max_per_minute, "maxPerMinute", FIELD_U32),
      OPTION(may_reward, "mayReward", FIELD_CHOICE),
      OPTION(certificate, "certificate", FIELD_TEXT),
  };
#undef OPTION
  tnk_gateway_key_options_t options = TNK_GATEWAY_KEY_OPTIONS_INIT;
  char key[TNK_GATEWAY_KEY_SIZE] = "", id[TNK_GATEWAY_KEY_ID_SIZE] = "";
  napi_value object = NULL;
  call_t call;
  if (!call_begin(&call, env, info, OBJECT_GATEWAY) ||
      !read_fields(env, call.args[1], fields, COUNT(fields), &options,
                   &call.scratch))
    return call_end(&call, NULL);
  int err = tnk_gateway_key_create(call.object->handle, &options, key,
                                   sizeof(key), id, sizeof(id));
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  napi_create_object(env, &object);
  set_text(env, object, "id", id);
  set_text(env, object, "key", key);
  memset(key, 0, sizeof(key));
  return call_end(&call, object);
}

/* gatewayKeyRotate(gateway, id): key; gatewayKeyRevoke(gateway, id) */
static napi_value js_key_rotate(napi_env env, napi_callback_info info) {
  char key[TNK_GATEWAY_KEY_SIZE] = "";
  napi_value value = NULL;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_GATEWAY))
    return NULL;
  const char *id = read_text(env, call.args[1], "id", NULL, &call.scratch);
  if (id == NULL)
    return call_end(&call, NULL);
  int err = tnk_gateway_key_rotate(call.object->handle, id, key, sizeof(key));
  if (err != TNK_OK)
    throw_error(call.addon, err, NULL);
  else
    value = make_text(env, key);
  memset(key, 0, sizeof(key));
  return call_end(&call, value);
}

static napi_value js_key_revoke(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_GATEWAY))
    return NULL;
  const char *id = read_text(env, call.args[1], "id", NULL, &call.scratch);
  int err =
      id == NULL ? TNK_OK : tnk_gateway_key_revoke(call.object->handle, id);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  return call_end(&call, NULL);
}

static int on_line(void *user, const char *line, size_t n) {
  array_t *lines = user;
  napi_value text = NULL;

  if (napi_create_string_utf8(lines->env, line, n, &text) != napi_ok)
    return TNK_ENOMEM;
  array_add(lines, text);
  return TNK_OK;
}

/* gatewayKeys(gateway): lines of JSON */
static napi_value js_keys(napi_env env, napi_callback_info info) {
  array_t lines;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_GATEWAY))
    return NULL;
  array_begin(&lines, env);
  int err = tnk_gateway_keys(call.object->handle, on_line, &lines);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  return lines.value;
}

/* gatewayDatums(gateway, session, rewarded): lines of JSON */
static napi_value js_datums(napi_env env, napi_callback_info info) {
  array_t lines;
  const char *session = NULL;
  bool rewarded = false;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_GATEWAY))
    return NULL;
  if (is_given(env, call.args[1])) {
    session = read_text(env, call.args[1], "session", NULL, &call.scratch);
    if (session == NULL)
      return call_end(&call, NULL);
  }
  napi_get_value_bool(env, call.args[2], &rewarded);
  array_begin(&lines, env);
  int err = tnk_gateway_datums(call.object->handle, session, rewarded, on_line,
                               &lines);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  return call_end(&call, lines.value);
}

static napi_value js_gateway_stats(napi_env env, napi_callback_info info) {
#define STAT(member, name, type) FIELD(tnk_gateway_stats_t, member, name, type)
  static const field_t fields[] = {
      STAT(n_requests, "requests", FIELD_U64),
      STAT(n_answered, "answered", FIELD_U64),
      STAT(n_failed, "failed", FIELD_U64),
      STAT(n_gone, "gone", FIELD_U64),
      STAT(n_tokens, "tokens", FIELD_U64),
      STAT(n_continued, "continued", FIELD_U64),
      STAT(n_under_way, "underWay", FIELD_U32),
      STAT(n_connections, "connections", FIELD_U32),
      STAT(version, "version", FIELD_U32),
      STAT(n_old_samplers, "oldSamplers", FIELD_U32),
  };
#undef STAT
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  call_t call;
  if (!call_begin(&call, env, info, OBJECT_GATEWAY))
    return NULL;
  tnk_gateway_stats(&stats, call.object->handle);
  return write_fields(env, fields, COUNT(fields), &stats);
}

static napi_value js_leave(napi_env env, napi_callback_info info) {
  call_t call;

  if (call_begin(&call, env, info, OBJECT_GATEWAY))
    tnk_gateway_leave(call.object->handle);
  return NULL;
}

static napi_value js_drain(napi_env env, napi_callback_info info) {
  call_t call;

  if (call_begin(&call, env, info, OBJECT_GATEWAY))
    tnk_gateway_drain(call.object->handle);
  return NULL;
}

const function_t gateway_functions[] = {
    {"gatewayOpen", js_open},
    {"gatewayAddress", js_address},
    {"gatewayReward", js_reward},
    {"gatewayKeyCreate", js_key_create},
    {"gatewayKeyRotate", js_key_rotate},
    {"gatewayKeyRevoke", js_key_revoke},
    {"gatewayKeys", js_keys},
    {"gatewayDatums", js_datums},
    {"gatewayStats", js_gateway_stats},
    {"gatewayLeave", js_leave},
    {"gatewayDrain", js_drain},
    {NULL, NULL},
};

const operation_t gateway_operations[] = {
    {"gatewayUse", OBJECT_GATEWAY, 0, use, NULL},
    {NULL, 0, 0, NULL, NULL},
};
