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
  if (tnk__gw_record_error(gateway->record) != TNK_OK)
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
  /* A restart would not help, so this is not in why_dead(). */
  if (tnk__gw_record_why(gateway->record) != NULL)
    return "the store of the record is not available";
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

const char *tnk__gw_path_below(const char *path) {
  const char *slash =
      strncmp(path, "/s/", 3) == 0 ? strchr(path + 3, '/') : path;

  return slash != NULL ? slash : "";
}

static tnk__gw_call_t call_of(tnk_gateway_t *gateway, tnk__srv_req_t *req) {
  return (tnk__gw_call_t){.gateway = gateway,
                          .req = req,
                          .path = req->path,
                          .api = api_of(tnk__gw_path_below(req->path))};
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

static void serve(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                  const char *why) {
  tnk__gw_call_t call = call_of(gateway, req);

  if (why != NULL)
    tnk__gw_call_refuse(&call, 503, NULL, "%s", why);
  else if (tnk__gw_find_session(&call) == 0)
    route(&call);
}

/* ---- Requests that wait for a shared record ---- */

/* Another gateway may have answered the previous request of a conversation, so
 * each request first waits until this process has read what the store had when
 * it arrived. */
typedef struct {
  tnk__list_t link; /* in the gateway */
  tnk_gateway_t *gateway;
  tnk__srv_req_t *req;
  tnk__gw_waiter_t waiter;
} hold_t;

static void free_hold(hold_t *hold) {
  tnk__list_remove(&hold->link);
  tnk__gw_record_leave(&hold->waiter);
  tnk__free(&hold->gateway->alloc, hold);
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  free_hold(user);
}

static void on_read(tnk__gw_waiter_t *waiter, int err) {
  hold_t *hold = tnk__container_of(waiter, hold_t, waiter);
  tnk_gateway_t *gateway = hold->gateway;
  tnk__srv_req_t *req = hold->req;

  free_hold(hold);
  tnk__srv_req_park(req, NULL, NULL);
  serve(gateway, req,
        err == 0 ? NULL : "the store of the record is not available");
}

/* Returns whether a request writes lines. Counting tokens writes none. */
static int is_writing(const tnk__srv_req_t *req) {
  if (strcmp(req->method, "POST") != 0)
    return 0;
  for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++)
    if (routes[i].serve == serve_count &&
        strcmp(routes[i].path, tnk__gw_path_below(req->path)) == 0)
      return 0;
  return 1;
}

static void hold_back(tnk_gateway_t *gateway, tnk__srv_req_t *req) {
  hold_t *hold = tnk__calloc(&gateway->alloc, 1, sizeof(*hold));

  if (hold == NULL) {
    serve(gateway, req, "out of memory");
    return;
  }
  hold->gateway = gateway;
  hold->req = req;
  hold->waiter.done = on_read;
  tnk__list_append(&gateway->holds, &hold->link);
  /* A request that writes lines waits while a full store refuses them. */
  if (tnk__gw_record_sync(gateway->record, &hold->waiter, is_writing(req)) ==
      0) {
    tnk__srv_req_park(req, on_gone, hold);
    return;
  }
  free_hold(hold);
  serve(gateway, req, "the record cannot be written");
}

void tnk__gw_holds_drop(tnk_gateway_t *gateway) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&gateway->holds)) != NULL) {
    hold_t *hold = tnk__container_of(node, hold_t, link);
    tnk__srv_req_t *req = hold->req;

    free_hold(hold);
    tnk__srv_req_park(req, NULL, NULL);
    tnk__srv_req_drop(req);
  }
}

/* Returns whether a request needs what other processes have recorded. */
static int needs_record(const tnk__srv_req_t *req) {
  static const char *const others[] = {"/health", "/healthz", "/readyz",
                                       "/metrics", "/v1/models"};

  for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
    if (strcmp(others[i], req->path) == 0)
      return 0;
  return 1;
}

void tnk__gw_handle(tnk__srv_req_t *req, void *user) {
  tnk_gateway_t *gateway = user;

  cut_slash(req);
  if (tnk__gw_record_is_shared(gateway->record) && needs_record(req))
    hold_back(gateway, req);
  else
    serve(gateway, req, NULL);
}
