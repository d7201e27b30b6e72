/* SPDX-License-Identifier: MIT */
/* Opens everything that requests need: the configuration of a client, a loop,
 * an HTTP client, and a token if the server requires one. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/io/net/net.h"
#include "lib/wire/format/jwt.h"
#include "tnk/error.h"
#include "tools/conform/state.h"

/* A call that does not exist. */
#define NO_SUCH_CALL "tnk-conform-no-such-call"

static int refuse(conform_t *c, int status, const char *why) {
  snprintf(c->complaint, sizeof(c->complaint), "%s", why);
  return status;
}

static void on_signal(uv_signal_t *handle, int number) {
  conform_t *c = handle->data;

  c->signal = number;
  c->is_interrupted = 1;
  uv_stop(&c->loop);
}

static void watch_signals(conform_t *c) {
  static const int numbers[] = {SIGINT, SIGTERM};

  for (size_t i = 0; i < 2; i++) {
    uv_signal_init(&c->loop, &c->signals[i]);
    c->signals[i].data = c;
    uv_signal_start(&c->signals[i], on_signal, numbers[i]);
    uv_unref((uv_handle_t *)&c->signals[i]);
  }
}

static int load_config(conform_t *c) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const char *why = NULL;
  int err;

  options.base_url = c->options.url;
  err = tnk__config_load(&c->config, tnk__allocator_default(), &options,
                         (int64_t)time(NULL), &why);
  if (err != TNK_OK)
    return refuse(c, err == TNK_ECREDENTIAL ? CONFORM_NO_ACCESS : CONFORM_USAGE,
                  why != NULL ? why : tnk_strerror(err));
  c->has_config = 1;
  if (c->config.api_key == NULL)
    return refuse(c, CONFORM_NO_ACCESS,
                  "TINKER_API_KEY must be set: the output of a command "
                  "is not used");
  return CONFORM_OK;
}

static int open_http(conform_t *c) {
  static const tnk__http_version_t versions[] = {
      [TNK_HTTP_AUTO] = TNK__HTTP_AUTO,
      [TNK_HTTP_1_1] = TNK__HTTP_1_1,
      [TNK_HTTP_2] = TNK__HTTP_2,
      [TNK_HTTP_2_PRIOR_KNOWLEDGE] = TNK__HTTP_2_PRIOR_KNOWLEDGE};
  const tnk_service_options_t *o = &c->config.options;
  tnk__http_options_t http = {.ca_file = o->ca_file,
                              .cert_file = o->cert_file,
                              .key_file = o->key_file,
                              .why = c->complaint,
                              .why_size = sizeof(c->complaint),
                              .proxies = &c->config.proxies,
                              .version = versions[o->http_version]};
  int err = tnk__http_open(&c->http, &c->context, &http);

  if (err == TNK_OK)
    err = tnk__net_new(&c->net, &c->context, o->ca_file);
  if (err == TNK_OK && o->cert_file != NULL)
    err = tnk__net_identify(c->net, o->cert_file, o->key_file);
  if (err != TNK_OK && c->complaint[0] == '\0')
    refuse(c, CONFORM_USAGE, tnk_strerror(err));
  return err == TNK_OK ? CONFORM_OK : CONFORM_USAGE;
}

/* Check that the server answers, and record how it reports a missing call. */
static int knock(conform_t *c) {
  const conform_call_t *call = conform_get(c, NO_SUCH_CALL);

  if (call->err != TNK_OK) /* Only that request may have failed. */
    call = conform_get(c, NO_SUCH_CALL);
  if (call->err != TNK_OK)
    return refuse(c, CONFORM_UNREACHABLE, call->how);
  c->no_such_status = call->status;
  tnk__buf_append(&c->no_such, call->body.data, call->body.len);
  return CONFORM_OK;
}

static void read_flags(conform_t *c) {
  conform_call_t *call =
      conform_post(c, "client/config", "{s:s}", "sdk_version", "0.38.0");

  if (call->status == 401 || call->status == 403)
    c->is_refused = 1;
  if (!conform_is_ok(call) || !json_is_object(call->json))
    return;
  c->flags = json_incref(call->json);
  c->wants_tokens =
      json_is_true(json_object_get(c->flags, "pjwt_auth_enabled"));
}

void conform_renew(conform_t *c) {
  const uint64_t now = tnk__context_now_ms(&c->context);
  conform_ask_t ask = {.method = "POST", .path = "auth/token"};
  const conform_call_t *call;
  tnk__jwt_t jwt = {0};
  const char *text;

  if (!c->wants_tokens ||
      (c->token != NULL && now - c->token_ms < c->token_life / 2))
    return;
  ask.json = json_object();
  call = conform_ask(c, &ask);
  text = conform_text(call, "jwt");
  if (call->status == 401 || call->status == 403)
    c->is_refused = 1;
  if (!conform_is_ok(call) || text == NULL || !tnk__token_is_sound(text))
    return;
  tnk__jwt_read(&jwt, tnk__allocator_default(), text);
  tnk__free_secret(tnk__allocator_default(), c->token);
  c->token = tnk__strdup(tnk__allocator_default(), text);
  c->token_ms = now;
  c->token_life = jwt.expires_s > jwt.issued_s && jwt.issued_s > 0
                      ? (uint64_t)(jwt.expires_s - jwt.issued_s) * 1000
                      : 120000;
}

int conform_open(conform_t *c) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  int status;

  tnk__list_init(&c->calls);
  tnk__list_init(&c->made);
  tnk__buf_init(&c->left, alloc, 1 << 20);
  tnk__buf_init(&c->no_such, alloc, 1 << 20);
  status = load_config(c);
  if (status != CONFORM_OK)
    return status;
  if (uv_loop_init(&c->loop) != 0)
    return refuse(c, CONFORM_USAGE, "cannot make an event loop");
  c->is_loop_open = 1;
  watch_signals(c);
  if (tnk__context_open(&c->context, &c->loop, alloc, NULL) != TNK_OK)
    return refuse(c, CONFORM_USAGE, "cannot make an event loop");
  c->is_context_open = 1;
  status = open_http(c);
  if (status == CONFORM_OK)
    status = knock(c);
  if (status != CONFORM_OK)
    return status;
  read_flags(c);
  conform_renew(c);
  if (c->is_refused)
    return refuse(c, CONFORM_NO_ACCESS, "the server rejects the key");
  return CONFORM_OK;
}

static void on_closed(void *user) {
  ((conform_t *)user)->is_closed = 1;
}

static void close_loop(conform_t *c) {
  if (c->is_context_open) {
    if (c->http.context != NULL)
      tnk__http_close(&c->http);
    tnk__net_unref(c->net);
    tnk__context_close(&c->context, on_closed, c);
    while (!c->is_closed)
      uv_run(&c->loop, UV_RUN_ONCE);
  }
  for (size_t i = 0; i < 2; i++)
    uv_close((uv_handle_t *)&c->signals[i], NULL);
  uv_run(&c->loop, UV_RUN_DEFAULT);
  uv_loop_close(&c->loop);
}

void conform_close(conform_t *c) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  tnk__list_t *node;

  conform_forget_calls(c);
  if (c->is_loop_open)
    close_loop(c);
  while ((node = tnk__list_pop(&c->made)) != NULL)
    tnk__free(alloc, tnk__container_of(node, conform_made_t, link));
  if (c->has_config)
    tnk__config_deinit(&c->config);
  json_decref(c->flags);
  json_decref(c->capabilities);
  tnk__free_secret(alloc, c->token);
  tnk__free(alloc, c->base_model);
  tnk__free(alloc, c->session);
  tnk__free(alloc, c->sampler);
  tnk__buf_deinit(&c->left);
  tnk__buf_deinit(&c->no_such);
}
