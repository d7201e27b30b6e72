/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/server/parts.h"

static int is_dynamic(const char *name) {
  return strcmp(name, "refresh_interval_sec") == 0 ||
         strcmp(name, "sample_cancel_enabled") == 0 ||
         strcmp(name, "sample_cancel_max_batch_size") == 0;
}

/* A JSON value is written unchanged, any other value as a string. */
static void put_flag(tnk__json_writer_t *w, const tnk_pair_t *flag) {
  const char *value = flag->value != NULL ? flag->value : "true";
  json_t *json;

  tnk__json_key(w, flag->name);
  /* Parsed only to check that it is JSON; written unchanged, so that numbers
   * keep their form. */
  if (tnk__json_parse(&json, value, strlen(value)) == TNK_OK) {
    json_decref(json);
    tnk__json_raw(w, value, strlen(value));
  } else {
    tnk__json_text(w, value);
  }
}

static int has_flag(const local_options_t *options, const char *name) {
  for (size_t i = 0; i < options->n_flags; i++)
    if (strcmp(options->flags[i].name, name) == 0)
      return 1;
  return 0;
}

static void put_default(tnk__json_writer_t *w, const local_options_t *options,
                        const char *name, int value) {
  if (!has_flag(options, name))
    tnk__json_put_bool(w, name, value);
}

static int make(local_server_t *server, char **out, int dynamic) {
  const local_options_t *options = &server->options;
  tnk__json_writer_t w;
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, server->alloc, (size_t)1 << 20);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  if (dynamic) {
    put_default(&w, options, "sample_cancel_enabled", 1);
  } else {
    put_default(&w, options, "pjwt_auth_enabled", options->token_life_s != 0);
    /* This server accepts the requests of a model in one order only. */
    if (options->sequence == LOCAL_STRICT)
      put_default(&w, options, "parallel_fwdbwd_chunks", 0);
    /* The official client's alternative HTTP stack requires TLS. */
    if (options->sequence != LOCAL_LENIENT)
      put_default(&w, options, "use_pyqwest_transport", 0);
  }
  for (size_t i = 0; i < options->n_flags; i++)
    if (is_dynamic(options->flags[i].name) == dynamic)
      put_flag(&w, &options->flags[i]);
  tnk__json_end(&w);
  err = tnk__json_finish(&w);
  if (err == TNK_OK && tnk__buf_cstr(&buf) == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_OK)
    *out = tnk__strdup(server->alloc, (const char *)buf.data);
  tnk__buf_deinit(&buf);
  return err == TNK_OK && *out == NULL ? TNK_ENOMEM : err;
}

int local_config_init(local_server_t *server) {
  int err = make(server, &server->config, 0);

  return err == TNK_OK ? make(server, &server->dynamic_config, 1) : err;
}

void local_config_deinit(local_server_t *server) {
  tnk__free(server->alloc, server->config);
  tnk__free(server->alloc, server->dynamic_config);
}

void local_client_config(local_call_t *call) {
  const char *sdk_version = NULL;

  if (call->server->options.sequence == LOCAL_STRICT &&
      !local_need_text(call, "sdk_version", &sdk_version))
    return;
  local_reply_text(call->req, 200, call->server->config);
}

void local_dynamic_config(local_call_t *call) {
  if (call->server->options.sequence == LOCAL_BUFFERED)
    local_reply_text(call->req, 200, call->server->dynamic_config);
  else
    local_reply_text(call->req, 404, "{\"detail\":\"Not Found\"}");
}

void local_healthz(local_call_t *call) {
  local_reply_text(call->req, 200, "{\"status\":\"ok\"}");
}

void local_telemetry(local_call_t *call) {
  local_reply_text(call->req, 200, "{\"status\":\"accepted\"}");
}

void local_capabilities(local_call_t *call) {
  local_out_t out;

  local_out_begin(&out, call->server->alloc);
  tnk__json_put_array(&out.w, "supported_models");
  tnk__json_begin_object(&out.w);
  tnk__json_put_text(&out.w, "model_name", local_base_name(call->server));
  tnk__json_put_int(&out.w, "max_context_length", TNK__LM_MAX_CONTEXT);
  tnk__json_put_bool(&out.w, "trainable", 1);
  tnk__json_put_bool(&out.w, "sampleable", 1);
  tnk__json_end(&out.w);
  tnk__json_end(&out.w);
  local_out_reply(&out, call->req, 200);
}
