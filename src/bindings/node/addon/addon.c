/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/node/addon/addon.h"

/* ---- Calls ---- */

static const char *kind_name(kind_t kind) {
  static const char *const names[] = {
      "object",  "service", "training client", "sampling client", "ledger",
      "gateway", "page",    "tokenizer",       "template",        "parser"};

  return names[kind];
}

object_t *call_object(call_t *call, size_t index, kind_t kind) {
  void *data = NULL;
  char text[96];
  napi_valuetype type = napi_undefined;

  napi_typeof(call->env, call->args[index], &type);
  object_t *object = NULL;
  /* Only the classes of ../lib pass externals, and these are all ours. */
  if (type == napi_external &&
      napi_get_value_external(call->env, call->args[index], &data) == napi_ok)
    object = data;
  if (object == NULL || object->kind != kind) {
    snprintf(text, sizeof(text), "expected a %s of tnk", kind_name(kind));
    napi_throw_type_error(call->env, "ERR_INVALID_ARG_TYPE", text);
    return NULL;
  }
  object_t *service = object->service;
  if (object->handle == NULL || (service != NULL && service->handle == NULL)) {
    snprintf(text, sizeof(text), "the %s has been closed",
             kind_name(service != NULL && service->handle == NULL
                           ? OBJECT_SERVICE
                           : kind));
    throw_error(call->addon, TNK_ECLOSED, text);
    return NULL;
  }
  return object;
}

int call_begin(call_t *call, napi_env env, napi_callback_info info,
               kind_t kind) {
  size_t n = MAX_ARGS;
  void *addon = NULL;

  memset(call, 0, sizeof(*call));
  call->env = env;
  /* Arguments that were not passed become undefined. */
  napi_get_cb_info(env, info, &n, call->args, NULL, NULL);
  if (napi_get_instance_data(env, &addon) != napi_ok || addon == NULL)
    return 0;
  call->addon = addon;
  if (kind == 0)
    return 1;
  call->object = call_object(call, 0, kind);
  return call->object != NULL;
}

void *call_alloc(call_t *call, size_t size) {
  void *memory = scratch_take(&call->scratch, size);

  if (memory == NULL)
    throw_error(call->addon, TNK_ENOMEM, NULL);
  return memory;
}

int read_options(call_t *call, size_t index, const field_t *fields, size_t n,
                 void *out) {
  return read_fields(call->env, call->args[index], fields, n, out,
                     &call->scratch);
}

napi_value call_end(call_t *call, napi_value value) {
  scratch_free(&call->scratch);
  return value;
}

napi_value call_fail(call_t *call, int code, const char *text) {
  throw_error(call->addon, code, text);
  return call_end(call, NULL);
}

/* ---- The module ---- */

/* setup(makeError): called once, before anything else. */
static napi_value js_setup(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, 0))
    return NULL;
  if (call.addon->make_error == NULL)
    napi_create_reference(env, call.args[0], 1, &call.addon->make_error);
  return call_end(&call, NULL);
}

static napi_value js_counts(napi_env env, napi_callback_info info) {
  static const field_t fields[] = {
      FIELD(counts_t, n_objects, "objects", FIELD_U32),
      FIELD(counts_t, n_promises, "promises", FIELD_U32),
      FIELD(counts_t, n_streams, "streams", FIELD_U32),
      FIELD(counts_t, n_controls, "controls", FIELD_U32),
      FIELD(counts_t, n_lent, "lent", FIELD_U32),
      FIELD(counts_t, n_buffers, "buffers", FIELD_U32),
  };
  call_t call;

  if (!call_begin(&call, env, info, 0))
    return NULL;
  napi_value counts =
      write_fields(env, fields, COUNT(fields), &call.addon->counts);
  set_number(env, counts, "services", call.addon->n_services);
  set_number(env, counts, "gateways", call.addon->n_gateways);
  return call_end(&call, counts);
}

static const function_t own_functions[] = {
    {"setup", js_setup}, {"counts", js_counts}, {NULL, NULL}};

static void add_functions(napi_env env, napi_value exports,
                          const function_t *functions) {
  for (; functions->name != NULL; functions++) {
    napi_value function = NULL;
    napi_create_function(env, functions->name, NAPI_AUTO_LENGTH,
                         functions->call, NULL, &function);
    napi_set_named_property(env, exports, functions->name, function);
  }
}

static void add_operations(napi_env env, napi_value exports,
                           const operation_t *operations) {
  for (; operations->name != NULL; operations++) {
    napi_value function = NULL;
    napi_create_function(env, operations->name, NAPI_AUTO_LENGTH, js_operate,
                         (void *)(uintptr_t)operations, &function);
    napi_set_named_property(env, exports, operations->name, function);
  }
}

static void free_addon(napi_env env, void *data, void *hint) {
  (void)env, (void)hint;
  addon_unref(data);
}

/* libuv keeps its ABI within a major version. This would find a copy that does
 * not, for example another runtime's. Returns NULL if all is well. */
static const char *check_libuv(void) {
  static char text[160];

  const struct {
    uv_handle_type type;
    size_t size;
  } handles[] = {
      {UV_TIMER, sizeof(uv_timer_t)},     {UV_TCP, sizeof(uv_tcp_t)},
      {UV_IDLE, sizeof(uv_idle_t)},       {UV_CHECK, sizeof(uv_check_t)},
      {UV_PROCESS, sizeof(uv_process_t)}, {UV_NAMED_PIPE, sizeof(uv_pipe_t)},
      {UV_ASYNC, sizeof(uv_async_t)}};
  int fits = uv_loop_size() == sizeof(uv_loop_t) &&
             uv_version() >> 16 == UV_VERSION_MAJOR;
  for (size_t i = 0; i < COUNT(handles); i++)
    fits = fits && uv_handle_size(handles[i].type) == handles[i].size;
  if (fits)
    return NULL;
  snprintf(text, sizeof(text),
           "tnk was built for libuv %d.%d, and this runtime has %s, whose "
           "structs differ; build tnk for this runtime",
           UV_VERSION_MAJOR, UV_VERSION_MINOR, uv_version_string());
  return text;
}

/* NULL with an exception pending. */
static addon_t *make_addon(napi_env env) {
  napi_value name = NULL, resource = NULL;
  addon_t *addon = calloc(1, sizeof(*addon));

  if (addon == NULL) {
    napi_throw_error(env, "TNK_ENOMEM", "out of memory");
    return NULL;
  }
  addon->env = env;
  addon->n_refs = 1;
  napi_create_string_utf8(env, "tnk", NAPI_AUTO_LENGTH, &name);
  napi_create_object(env, &resource);
  if (napi_get_uv_event_loop(env, &addon->loop) != napi_ok ||
      napi_async_init(env, resource, name, &addon->async) != napi_ok ||
      napi_set_instance_data(env, addon, free_addon, NULL) != napi_ok) {
    free(addon);
    napi_throw_error(env, "TNK_ENOTSUP", "this runtime has no loop of libuv");
    return NULL;
  }
  napi_add_async_cleanup_hook(env, addon_cleanup, addon, &addon->hook);
  return addon;
}

/* The macro below defines it, and no header declares it. */
NAPI_EXTERN int32_t node_api_module_get_api_version_v1(void);

NAPI_MODULE_INIT() {
  const function_t *const all[] = {own_functions,      promise_functions,
                                   service_functions,  training_functions,
                                   sampling_functions, ledger_functions,
                                   text_functions,     gateway_functions};
  const operation_t *const operations[] = {
      service_operations, training_operations, sampling_operations,
      rest_operations,    ledger_operations,   gateway_operations};
  const char *why = check_libuv();

  if (why != NULL) {
    napi_throw_error(env, "TNK_ENOTSUP", why);
    return NULL;
  }
  if (make_addon(env) == NULL)
    return NULL;
  for (size_t i = 0; i < COUNT(all); i++)
    add_functions(env, exports, all[i]);
  for (size_t i = 0; i < COUNT(operations); i++)
    add_operations(env, exports, operations[i]);
  set_text(env, exports, "version", tnk_version());
  set_text(env, exports, "libuv", tnk_libuv_version());
  set_text(env, exports, "http2", tnk_http2_version());
  return exports;
}
