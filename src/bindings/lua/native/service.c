/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bindings/lua/native/native.h"

static const char *const http_versions[] = {"auto", "1.1", "2",
                                            "2-prior-knowledge", NULL};
static const char *const limiter_scopes[] = {"shared", "private", NULL};
static const char *const log_levels[] = {"none",  "error", "warn", "info",
                                         "debug", "trace", NULL};

#define OPTION(member, type) FIELD(tnk_service_options_t, member, type)
static const field_t service_fields[] = {
    OPTION(api_key, FIELD_TEXT),
    OPTION(credential_cmd, FIELD_TEXT),
    OPTION(base_url, FIELD_TEXT),
    OPTION(project_id, FIELD_TEXT),
    OPTION(tags, FIELD_TEXT),
    OPTION(user_metadata, FIELD_PAIRS),
    OPTION(display_name, FIELD_TEXT),
    OPTION(headers, FIELD_PAIRS),
    OPTION(ca_file, FIELD_TEXT),
    OPTION(proxy, FIELD_TEXT),
    OPTION(no_proxy, FIELD_TEXT),
    OPTION(proxy_headers, FIELD_PAIRS),
    OPTION(connect_timeout_ms, FIELD_U64),
    OPTION(timeout_ms, FIELD_U64),
    OPTION(poll_timeout_ms, FIELD_U64),
    OPTION(max_retries, FIELD_U32),
    OPTION(max_polls, FIELD_U32),
    OPTION(max_pending, FIELD_U32),
    FIELD_CHOSEN(tnk_service_options_t, limiter_scope, limiter_scopes),
    OPTION(retry_samples, FIELD_CHOICE),
    OPTION(cert_file, FIELD_TEXT),
    OPTION(key_file, FIELD_TEXT),
    FIELD_CHOSEN(tnk_service_options_t, http_version, http_versions),
    OPTION(max_http2_connections, FIELD_U32),
    OPTION(max_billing_pause_ms, FIELD_U64),
    OPTION(patience_ms, FIELD_U64),
    OPTION(traceparent, FIELD_TEXT),
    OPTION(dump_file, FIELD_TEXT),
};
#undef OPTION

/* ---- Reports ---- */

static void report(proxy_t *service, event_kind_t kind, int32_t number,
                   const char *subject, const char *text) {
  /* Without memory the report is lost, and nothing else. */
  event_t *event = event_new(kind, service);

  if (event == NULL)
    return;
  event->number = number;
  event->texts[0] = copy_text(subject);
  event->texts[1] = copy_text(text);
  event_append(service->state, event);
}

static void on_queue_state(const char *client, tnk_queue_state_t state,
                           const char *reason, void *user) {
  report(user, EVENT_QUEUE_STATE, (int32_t)state, client, reason);
}

static void on_log(tnk_log_level_t level, const char *subject,
                   const char *message, size_t length, void *user) {
  (void)length;
  report(user, EVENT_LOG, (int32_t)level, subject, message);
}

/* ---- Opening and closing ---- */

static int wants(lua_State *L, int index, const char *name) {
  if (lua_isnil(L, index))
    return 0;
  push_member(L, index, name);
  where_t where = {name, 0};
  int is_given = !lua_isnil(L, -1);
  if (is_given && !lua_isfunction(L, -1))
    fail(L, where, "expected a function, got %s", luaL_typename(L, -1));
  lua_pop(L, 1);
  return is_given;
}

/* open(options) -> service, its address */
static int service_open(lua_State *L) {
  static const char *const others[] = {"on_queue_state", "on_log", NULL};
  static const field_t level_field = {"log_level", 0, FIELD_ENUM, log_levels};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_logger_t logger = {TNK_LOG_NONE, NULL, NULL};
  uint32_t level = TNK_LOG_WARN;
  const target_t more = {&level_field, 1, &level, NULL};
  const target_t target = {service_fields, COUNT(service_fields), &options,
                           &more};
  tnk_service_t *handle = NULL;
  char why[512] = "";
  state_t *state = state_of(L);

  call_setup(L);
  arg_options(L, 1, "service", &target, others);
  int has_queue_state = wants(L, 1, "on_queue_state");
  int has_log = wants(L, 1, "on_log");
  proxy_t *service = proxy_push(L, state, PROXY_SERVICE, NULL);
  if (has_queue_state) {
    options.on_queue_state = on_queue_state;
    options.queue_state_user = service;
  }
  if (has_log) {
    logger.level = (tnk_log_level_t)level;
    logger.write = on_log;
    logger.user = service;
    options.logger = &logger;
  }
  /* Otherwise the timers of an idle service would not run, because this loop
   * is turned and not run. The host's loop ends anyway, see turn(). */
  options.keep_loop_alive = TNK_YES;
  int err = tnk_service_open(&handle, &state->loop, &options, why, sizeof(why));
  if (err != TNK_OK)
    raise_error(L, err, "%s", why[0] != '\0' ? why : tnk_strerror(err));
  service->handle = handle;
  lua_pushlightuserdata(L, service);
  return 2;
}

/* close(proxy) -> whether an event follows */
static int close_proxy(lua_State *L) {
  proxy_t **box = luaL_checkudata(L, 1, "tnk.proxy");
  int follows = *box != NULL && (*box)->kind == PROXY_SERVICE &&
                (*box)->handle != NULL && !(*box)->is_closing;

  if (*box != NULL)
    proxy_close(*box);
  lua_pushboolean(L, follows);
  return 1;
}

/* ---- Operations ---- */

/* create_lora(id, service, options) */
static int create_lora(lua_State *L) {
  static const field_t fields[] = {
      FIELD(tnk_lora_options_t, base_model, FIELD_TEXT),
      FIELD(tnk_lora_options_t, rank, FIELD_U32),
      FIELD_CHOSEN(tnk_lora_options_t, optimizer, optimizer_names),
      FIELD(tnk_lora_options_t, seed, FIELD_I64),
      FIELD(tnk_lora_options_t, train_mlp, FIELD_CHOICE),
      FIELD(tnk_lora_options_t, train_attn, FIELD_CHOICE),
      FIELD(tnk_lora_options_t, train_unembed, FIELD_CHOICE),
      FIELD(tnk_lora_options_t, optimizer_json, FIELD_TEXT),
      FIELD(tnk_lora_options_t, user_metadata, FIELD_PAIRS),
  };
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;
  const target_t target = {fields, COUNT(fields), &options, NULL};
  proxy_t *service = operation_owner(L, PROXY_SERVICE);
  uint64_t timeout_ms =
      operation_options(L, 3, "create_lora_training", &target, NULL);
  operation_t *operation = operation_push(L, service, result_training);

  operation_start(operation, tnk_service_create_lora(service->handle, &options),
                  timeout_ms);
  return 1;
}

/* restore(id, service, options) */
static int restore(lua_State *L) {
  static const field_t fields[] = {
      FIELD(tnk_restore_options_t, path, FIELD_TEXT),
      FIELD(tnk_restore_options_t, base_model, FIELD_TEXT),
      FIELD(tnk_restore_options_t, with_optimizer, FIELD_CHOICE),
      FIELD(tnk_restore_options_t, classic, FIELD_CHOICE),
      FIELD(tnk_restore_options_t, weights_access_token, FIELD_TEXT),
      FIELD_CHOSEN(tnk_restore_options_t, optimizer, optimizer_names),
      FIELD(tnk_restore_options_t, optimizer_json, FIELD_TEXT),
      FIELD(tnk_restore_options_t, user_metadata, FIELD_PAIRS),
  };
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;
  const target_t target = {fields, COUNT(fields), &options, NULL};
  proxy_t *service = operation_owner(L, PROXY_SERVICE);
  uint64_t timeout_ms =
      operation_options(L, 3, "restore_training", &target, NULL);
  operation_t *operation = operation_push(L, service, result_training);

  operation_start(operation, tnk_service_restore(service->handle, &options),
                  timeout_ms);
  return 1;
}

/* create_sampling(id, service, options) */
static int create_sampling(lua_State *L) {
  static const field_t fields[] = {
      FIELD(tnk_sampling_options_t, model_path, FIELD_TEXT),
      FIELD(tnk_sampling_options_t, base_model, FIELD_TEXT),
      FIELD(tnk_sampling_options_t, record_stability_info, FIELD_CHOICE),
      FIELD(tnk_sampling_options_t, exported, FIELD_TEXT),
  };
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  const target_t target = {fields, COUNT(fields), &options, NULL};
  proxy_t *service = operation_owner(L, PROXY_SERVICE);
  uint64_t timeout_ms =
      operation_options(L, 3, "create_sampler", &target, NULL);
  operation_t *operation = operation_push(L, service, result_sampling);

  operation_start(operation,
                  tnk_service_create_sampling(service->handle, &options),
                  timeout_ms);
  return 1;
}

typedef tnk_promise_t *(*start_t)(tnk_service_t *service);

static int ask(lua_State *L, const char *what, start_t start,
               convert_t convert) {
  proxy_t *service = operation_owner(L, PROXY_SERVICE);
  uint64_t timeout_ms = operation_options(L, 3, what, NULL, NULL);
  operation_t *operation = operation_push(L, service, convert);

  operation_start(operation, start(service->handle), timeout_ms);
  return 1;
}

/* models(id, service, options) */
static int models(lua_State *L) {
  return ask(L, "models", tnk_service_capabilities, result_models);
}

/* health(id, service, options) */
static int health(lua_State *L) {
  return ask(L, "health", tnk_service_health, NULL);
}

/* session_id(service) -> the id, or nil */
static int session_id(lua_State *L) {
  const proxy_t *service = proxy_check(L, 1, PROXY_SERVICE);
  const char *id = tnk_service_session_id(service->handle);

  if (id == NULL)
    return 0;
  lua_pushstring(L, id);
  return 1;
}

/* stats(service) -> a table */
static int stats(lua_State *L) {
  tnk_stats_t out = TNK_STATS_INIT;
  const proxy_t *service = proxy_check(L, 1, PROXY_SERVICE);

  tnk_service_stats(&out, service->handle);
  lua_newtable(L);
  put_whole(L, "n_requests", (int64_t)out.n_requests);
  put_whole(L, "n_retries", (int64_t)out.n_retries);
  put_whole(L, "n_bytes_sent", (int64_t)out.n_bytes_sent);
  put_whole(L, "n_bytes_received", (int64_t)out.n_bytes_received);
  put_whole(L, "n_pending", out.n_pending);
  put_whole(L, "n_connections", out.n_connections);
  put_whole(L, "max_loop_lag_ms", (int64_t)out.max_loop_lag_ms);
  return 1;
}

const luaL_Reg native_service[] = {{"open", service_open},
                                   {"close", close_proxy},
                                   {"create_lora", create_lora},
                                   {"restore", restore},
                                   {"create_sampling", create_sampling},
                                   {"models", models},
                                   {"health", health},
                                   {"session_id", session_id},
                                   {"stats", stats},
                                   {NULL, NULL}};
