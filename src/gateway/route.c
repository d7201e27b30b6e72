/* SPDX-License-Identifier: MIT */
/* Routing of requests. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/response.h"
#include "gateway/send.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

/* ---- Small endpoints ---- */

static void send_buf(const tnk__gw_call_t *call, const char *type,
                     tnk__buf_t *body, int err) {
  size_t n;
  uint8_t *data;

  if (err != TNK_OK) {
    tnk__buf_deinit(body);
    tnk__gw_call_refuse(call, 500, NULL, "%s", tnk_strerror(err));
    return;
  }
  data = tnk__buf_take(body, &n);
  tnk__srv_req_reply(call->req, 200, type, NULL, data, data != NULL ? n : 0);
}

const char *tnk__gw_model_name(const tnk_gateway_t *gateway) {
  const char *name = gateway->model;

  if (name == NULL && gateway->sampler != NULL) {
    name = tnk_sampling_base_model(gateway->sampler->sampling);
    if (name == NULL)
      name = gateway->sampler->name;
  }
  return name != NULL ? name : "tnk";
}

static void put_model(tnk__json_writer_t *w, const tnk_gateway_t *gateway) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "id", tnk__gw_model_name(gateway));
  tnk__json_put_text(w, "object", "model");
  tnk__json_put_text(w, "type", "model");
  tnk__json_put_text(w, "display_name", tnk__gw_model_name(gateway));
  tnk__json_put_int(w, "created", gateway->began_s);
  tnk__json_put_text(w, "owned_by", "tnk");
  tnk__json_end(w);
}

static void list_models(const tnk__gw_call_t *call) {
  tnk__json_writer_t w;
  tnk__buf_t body;

  tnk__buf_init(&body, &call->gateway->alloc, 64 * 1024);
  tnk__json_writer_init(&w, &body);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "object", "list");
  tnk__json_key(&w, "data");
  tnk__json_begin_array(&w);
  put_model(&w, call->gateway);
  tnk__json_end(&w);
  tnk__json_put_bool(&w, "has_more", 0);
  tnk__json_end(&w);
  send_buf(call, "application/json", &body, tnk__json_finish(&w));
}

static void show_model(const tnk__gw_call_t *call) {
  const char *name = call->path + strlen("/v1/models/");
  tnk__json_writer_t w;
  tnk__buf_t body;

  if (strcmp(name, tnk__gw_model_name(call->gateway)) != 0) {
    tnk__gw_call_refuse(call, 404, "model_not_found",
                        "there is no model \"%.80s\"", name);
    return;
  }
  tnk__buf_init(&body, &call->gateway->alloc, 64 * 1024);
  tnk__json_writer_init(&w, &body);
  put_model(&w, call->gateway);
  send_buf(call, "application/json", &body, tnk__json_finish(&w));
}

/* `why` is NULL, or the reason for 503. */
static void send_state(const tnk__gw_call_t *call, const char *why) {
  char text[64];

  (void)snprintf(text, sizeof(text), "{\"status\":\"%s\"}",
                 why != NULL ? why : "ok");
  tnk__srv_req_reply_text(call->req, why != NULL ? 503 : 200,
                          "application/json", text);
}

/* Why nothing is sampled any more until the gateway is started again. */
static const char *why_dead(const tnk_gateway_t *gateway) {
  if (tnk__gw_journal_error(tnk__gw_record_journal(gateway->record)) != TNK_OK)
    return "the record cannot be written";
  if (gateway->sampler != NULL && gateway->sampler->is_lost)
    return "the service has ended the session";
  return NULL;
}

const char *tnk__gw_why_not_ready(const tnk_gateway_t *gateway) {
  const char *why = why_dead(gateway);

  if (why != NULL)
    return why;
  if (gateway->is_leaving)
    return "the gateway is about to end";
  return gateway->sampler != NULL ? NULL : "there is no model yet";
}

static void serve_health(const tnk__gw_call_t *call) {
  send_state(call, why_dead(call->gateway));
}

static void serve_ready(const tnk__gw_call_t *call) {
  send_state(call, tnk__gw_why_not_ready(call->gateway));
}

/* ---- Routes ---- */

static void serve_chat(const tnk__gw_call_t *call) {
  tnk__gw_job_begin(call->gateway, call->req, call->api,
                    tnk__gw_call_session(call));
}

static void serve_count(const tnk__gw_call_t *call) {
  tnk__gw_job_count(call->gateway, call->req, call->api,
                    tnk__gw_call_session(call));
}

static void serve_sampler(const tnk__gw_call_t *call) {
  tnk__gw_sampler_ask(call->gateway, call->req);
}

static const struct {
  const char *method;
  const char *path;
  tnk__gw_api_t api;
  void (*serve)(const tnk__gw_call_t *call);
} routes[] = {
    {"POST", "/v1/chat/completions", TNK__GW_CHAT, serve_chat},
    {"POST", "/v1/completions", TNK__GW_COMPLETION, serve_chat},
    {"POST", "/v1/responses", TNK__GW_RESPONSE, serve_chat},
    {"POST", "/v1/messages", TNK__GW_MESSAGE, serve_chat},
    {"POST", "/v1/messages/count_tokens", TNK__GW_MESSAGE, serve_count},
    {"POST", "/v1/responses/input_tokens", TNK__GW_RESPONSE, serve_count},
    {"GET", "/v1/models", TNK__GW_CHAT, list_models},
    {"GET", "/health", TNK__GW_CHAT, serve_health},
    {"GET", "/healthz", TNK__GW_CHAT, serve_health},
    {"GET", "/readyz", TNK__GW_CHAT, serve_ready},
    {"GET", "/metrics", TNK__GW_CHAT, tnk__gw_scrape},
    {"POST", "/tnk/reward", TNK__GW_CHAT, tnk__gw_reward_take},
    {"POST", "/tnk/sampler", TNK__GW_CHAT, serve_sampler},
    {"GET", "/tnk/datums", TNK__GW_CHAT, tnk__gw_export},
    {"POST", "/tnk/sessions", TNK__GW_CHAT, tnk__gw_key_create},
    {"GET", "/tnk/sessions", TNK__GW_CHAT, tnk__gw_key_list},
};

/* The server omits the body of a response to HEAD. */
int tnk__gw_is_method(const tnk__gw_call_t *call, const char *method) {
  return strcmp(call->req->method, method) == 0 ||
         (strcmp(method, "GET") == 0 && strcmp(call->req->method, "HEAD") == 0);
}

void tnk__gw_refuse_method(const tnk__gw_call_t *call, const char *method) {
  tnk__gw_fault_t fault;

  (void)tnk__gw_fault(&fault, 405, NULL, "%s is not allowed here",
                      call->req->method);
  fault.allow = strcmp(method, "GET") == 0 ? "GET, HEAD" : method;
  tnk__gw_refuse(call->gateway, call->req, call->api, &fault);
}

static void route(const tnk__gw_call_t *call) {
  static const char model[] = "/v1/models/";
  const char *coding = tnk__srv_req_header(call->req, "content-encoding");
  const char *allowed = NULL;

  if (!tnk__gw_may(call))
    return;
  if (coding != NULL && strcasecmp(coding, "identity") != 0) {
    tnk__gw_call_refuse(call, 415, NULL,
                        "a body that is \"%.40s\" is not supported here",
                        coding);
    return;
  }
  for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
    if (strcmp(routes[i].path, call->path) != 0)
      continue;
    if (tnk__gw_is_method(call, routes[i].method)) {
      routes[i].serve(call);
      return;
    }
    allowed = allowed == NULL ? routes[i].method : "GET, HEAD, POST";
  }
  if (allowed != NULL)
    tnk__gw_refuse_method(call, allowed);
  else if (strncmp(call->path, TNK__GW_SESSIONS, strlen(TNK__GW_SESSIONS)) == 0)
    tnk__gw_key_change(call);
  else if (strncmp(call->path, TNK__GW_RESPONSES, strlen(TNK__GW_RESPONSES)) ==
           0)
    tnk__gw_response_serve(call);
  else if (strncmp(call->path, model, sizeof(model) - 1) != 0)
    tnk__gw_call_refuse(call, 404, NULL, "there is no %.120s", call->req->path);
  else if (tnk__gw_is_method(call, "GET"))
    show_model(call);
  else
    tnk__gw_refuse_method(call, "GET");
}

/* The API whose error format a path uses. It also applies to unknown paths
 * below it, and to errors before a request is served. */
static tnk__gw_api_t api_of(const char *path) {
  for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
    size_t n = strlen(routes[i].path);

    if (strncmp(routes[i].path, path, n) == 0 &&
        (path[n] == '\0' || path[n] == '/'))
      return routes[i].api;
  }
  return TNK__GW_CHAT;
}

static tnk__gw_call_t call_of(tnk_gateway_t *gateway, tnk__srv_req_t *req) {
  const char *slash = strncmp(req->path, "/s/", 3) == 0
                          ? strchr(req->path + 3, '/')
                          : req->path;

  return (tnk__gw_call_t){.gateway = gateway,
                          .req = req,
                          .path = req->path,
                          .api = api_of(slash != NULL ? slash : "")};
}

void tnk__gw_refuse_early(tnk__srv_req_t *req, int status, const char *text,
                          void *user) {
  tnk__gw_call_t call = call_of(user, req);
  tnk__gw_fault_t fault;

  (void)tnk__gw_fault(&fault, status, NULL, "%s", text);
  tnk__gw_explain(req, &fault);
  tnk__gw_refuse(call.gateway, req, call.api, &fault);
}

/* Clients that join a base URL and a path may add a slash at the end. It is cut
 * off before the session, the powers of a key and the route are looked up. */
static void cut_slash(tnk__srv_req_t *req) {
  size_t n = strlen(req->path);

  if (n > 1 && req->path[n - 1] == '/')
    ((char *)(uintptr_t)req->path)[n - 1] = '\0';
}

void tnk__gw_handle(tnk__srv_req_t *req, void *user) {
  tnk__gw_call_t call;

  cut_slash(req);
  call = call_of(user, req);

  if (tnk__gw_find_session(&call) == 0)
    route(&call);
}
