/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/zstd.h"
#include "tools/local/call/call.h"
#include "tools/local/fault/calls.h"
#include "tools/local/links/link.h"
#include "tools/local/sample/sampler.h"
#include "tools/local/server/parts.h"
#include "tools/local/train/model.h"

/*
 * From a request to its handler: route, key, body, observer, fault, handler.
 * Any failure on the way is answered here. The control endpoint of faults and
 * links to files are not in the table.
 */

enum {
  NO_BODY = 1, /* the body is not read */
  PROTO = 2,   /* accepts protobuf and JSON */
  OPEN = 4,    /* needs no API key */
  ONCE = 8,    /* a repeat with its idempotency key gets the first answer */
  RAW = 16,    /* accepts the key itself even if tokens are required */
  WORK = 32    /* starts work; refused while the server drains */
};

typedef struct {
  const char *method;
  const char *path; /* below /api/v1; a star matches one part */
  void (*handle)(local_call_t *call);
  int flags;
} route_t;

static const route_t routes[] = {
    {"GET", "/healthz", local_healthz, NO_BODY | OPEN},
    {"GET", "/get_server_capabilities", local_capabilities, NO_BODY},
    {"POST", "/client/config", local_client_config, RAW},
    {"POST", "/auth/token", local_auth_token, RAW},
    {"GET", "/auth/apikey/me", local_get_key, NO_BODY | RAW},
    {"DELETE", "/auth/apikey/me", local_revoke_key, NO_BODY | RAW},
    {"POST", "/client/dynamic_config", local_dynamic_config, 0},
    {"POST", "/telemetry", local_telemetry, 0},
    {"POST", "/create_session", local_create_session, ONCE | WORK},
    {"POST", "/session_heartbeat", local_session_heartbeat, 0},
    {"POST", "/sessions/*/finish", local_finish_session, 0},
    {"POST", "/sessions/search", local_search_sessions, 0},
    {"PUT", "/sessions/*/project", local_move_session, 0},
    {"GET", "/sessions/*", local_get_session, NO_BODY},
    {"GET", "/sessions", local_list_sessions, NO_BODY},
    {"POST", "/create_model", local_create_model, ONCE | WORK},
    {"POST", "/get_info", local_get_info, 0},
    {"POST", "/unload_model", local_unload_model, ONCE},
    {"POST", "/forward_backward", local_forward_backward, PROTO | ONCE | WORK},
    {"POST", "/forward", local_forward, ONCE | WORK},
    {"POST", "/optim_step", local_optim_step, ONCE | WORK},
    {"POST", "/save_weights", local_save_weights, ONCE | WORK},
    {"POST", "/save_weights_for_sampler", local_save_for_sampler, ONCE | WORK},
    {"POST", "/save_weights_external", local_save_external, ONCE | WORK},
    {"POST", "/load_weights", local_load_weights, ONCE | WORK},
    {"POST", "/create_sampling_session", local_create_sampling_session,
     ONCE | WORK},
    {"POST", "/join_sampling_session", local_join_sampling_session,
     ONCE | WORK},
    {"POST", "/asample", local_asample, ONCE | WORK},
    {"POST", "/stream_sample", local_stream_sample, WORK},
    {"GET", "/samplers/*", local_get_sampler, NO_BODY},
    {"POST", "/retrieve_future", local_retrieve_future, 0},
    {"POST", "/retrieve_futures", local_retrieve_futures, 0},
    {"POST", "/cancel_future", local_cancel_future, 0},
    {"POST", "/weights_info", local_weights_info, 0},
    {"GET", "/training_runs", local_list_runs, NO_BODY},
    {"GET", "/training_runs/*", local_get_run, NO_BODY},
    {"GET", "/training_runs/*/checkpoints", local_list_run_checkpoints,
     NO_BODY},
    {"DELETE", "/training_runs/*/checkpoints/*/*", local_delete_checkpoint,
     NO_BODY},
    {"POST", "/training_runs/*/checkpoints/*/*/publish", local_publish,
     NO_BODY},
    {"DELETE", "/training_runs/*/checkpoints/*/*/publish", local_unpublish,
     NO_BODY},
    {"PUT", "/training_runs/*/checkpoints/*/*/ttl", local_set_ttl, 0},
    {"GET", "/training_runs/*/checkpoints/*/*/external_weights_urls",
     local_external_urls, NO_BODY},
    {"GET", "/training_runs/*/checkpoints/*/*/archive", local_archive, NO_BODY},
    {"GET", "/sessions/*/trace_export", local_trace_export, NO_BODY},
    {"GET", "/billing/usage/events", local_usage, NO_BODY},
    {"GET", "/audit", local_audit, NO_BODY},
    {"GET", "/checkpoints", local_list_checkpoints, NO_BODY},
    {"POST", "/copy_weights", local_copy_weights, ONCE | WORK},
    {"GET", "/billing/usage/checkpoints/current", local_storage, NO_BODY},
};

/* ---- Matching ---- */

/* MAX_PARTS is the number of parts in the longest route. */
enum { MAX_PARTS = 8, MAX_PATH_TEXT = 1024 };

/* Split the path in place. Returns 0 if there are too many parts. */
static size_t split(char *text, char *parts[MAX_PARTS]) {
  size_t n = 0;

  while (*text == '/') {
    *text++ = '\0';
    if (n == MAX_PARTS)
      return 0;
    parts[n++] = text;
    text += strcspn(text, "/");
  }
  return *text == '\0' ? n : 0;
}

static int matches(const char *pattern, char *const *parts, size_t n,
                   char *args[3]) {
  size_t i = 0;
  size_t n_args = 0;

  for (; *pattern == '/'; i++) {
    size_t len = strcspn(++pattern, "/");

    if (i == n || parts[i][0] == '\0')
      return 0;
    if (*pattern == '*')
      args[n_args++] = parts[i];
    else if (strlen(parts[i]) != len || memcmp(parts[i], pattern, len) != 0)
      return 0;
    pattern += len;
  }
  return i == n;
}

/* Returns NULL with *status 404 or 405. */
static const route_t *find(const char *method, char *const *parts, size_t n,
                           char *args[3], int *status) {
  *status = 404;
  /* Handled like GET; the body is omitted. */
  if (strcmp(method, "HEAD") == 0)
    method = "GET";
  if (n < 3 || strcmp(parts[0], "api") != 0 || strcmp(parts[1], "v1") != 0)
    return NULL;
  for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++) {
    if (!matches(routes[i].path, parts + 2, n - 2, args))
      continue;
    if (strcmp(routes[i].method, method) == 0)
      return &routes[i];
    *status = 405;
  }
  return NULL;
}

/* ---- Key ---- */

/* Takes the same time for every wrong key. */
static int same_key(const char *a, const char *b) {
  size_t n = strlen(b);
  unsigned char diff = strlen(a) != n;

  for (size_t i = 0; i < n && a[i] != '\0'; i++)
    diff |= (unsigned char)(a[i] ^ b[i]);
  return diff == 0;
}

/* Returns 0 if answered. */
static int check_key(const local_server_t *server, tnk__srv_req_t *req) {
  const char *key = tnk__srv_req_header(req, "x-api-key");

  if (local_key_is_revoked(server, key)) {
    local_reply_text(req, 401, "{\"detail\":\"The API key is revoked\"}");
    return 0;
  }
  /* A browser sends the origin of the page; no page may use a server without a
   * key. */
  if (server->options.api_key == NULL) {
    if (tnk__srv_req_header(req, "origin") == NULL)
      return 1;
    local_reply_text(req, 403, "{\"detail\":\"Not for web pages\"}");
    return 0;
  }
  if (key == NULL) {
    local_reply_text(req, 401, "{\"detail\":\"Missing API key\"}");
    return 0;
  }
  if (!same_key(key, server->options.api_key)) {
    local_reply_text(req, 403, "{\"detail\":\"Invalid API key\"}");
    return 0;
  }
  return 1;
}

static int check_token(const local_server_t *server, tnk__srv_req_t *req) {
  static const char text[] = "{\"detail\":\"Invalid token\"}";
  const char *token = tnk__srv_req_header(req, "x-api-key");
  uint8_t *body;

  if (token != NULL && local_token_is_valid(server, token))
    return 1;
  body = (uint8_t *)tnk__strdup(server->alloc, text);
  tnk__srv_req_reply(req, 401, "application/json",
                     "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n",
                     body, body != NULL ? sizeof(text) - 1 : 0);
  return 0;
}

/* Returns 0 if answered. */
static int check_credential(const local_server_t *server, tnk__srv_req_t *req,
                            int flags) {
  if (flags & OPEN)
    return 1;
  return server->options.token_life_s != 0 && !(flags & RAW)
             ? check_token(server, req)
             : check_key(server, req);
}

/* ---- Body ---- */

/* Decompress in place; returns 0 if answered. */
static int decompress(local_server_t *server, tnk__srv_req_t *req) {
  const char *encoding = tnk__srv_req_header(req, "content-encoding");
  tnk__unzstd_t unzstd;
  tnk__buf_t plain;
  int err;

  if (encoding == NULL || strcmp(encoding, "identity") == 0 ||
      encoding[0] == '\0')
    return 1;
  if (strcmp(encoding, "zstd") != 0) {
    local_reply_invalid(req, "value_error", NULL,
                        "Only the content encoding zstd is served");
    return 0;
  }
  tnk__buf_init(&plain, server->alloc, server->options.max_body);
  tnk__unzstd_init(&unzstd, server->alloc);
  err = tnk__unzstd_feed(&unzstd, &plain, req->body.data, req->body.len);
  if (err == TNK_OK)
    err = tnk__unzstd_finish(&unzstd);
  tnk__unzstd_deinit(&unzstd);
  if (err == TNK_OK) {
    tnk__buf_deinit(&req->body);
    req->body = plain;
    return 1;
  }
  tnk__buf_deinit(&plain);
  if (err == TNK_ETOOBIG)
    local_reply_text(req, 413, "{\"detail\":\"Request body is too large\"}");
  else if (err == TNK_ENOMEM)
    local_reply_text(req, 503, "{\"detail\":\"Out of memory\"}");
  else
    local_reply_invalid(req, "value_error", NULL, "Invalid zstd body");
  return 0;
}

static int is_proto(const tnk__srv_req_t *req) {
  const char *type = tnk__srv_req_header(req, "content-type");

  return type != NULL && strstr(type, "application/x-protobuf") != NULL;
}

/* ---- Observer ---- */

static const char *header_or_empty(const tnk__srv_req_t *req,
                                   const char *name) {
  const char *value = tnk__srv_req_header(req, name);

  return value != NULL ? value : "";
}

static local_seen_t seen_of(const tnk__srv_req_t *req) {
  return (local_seen_t){.method = req->method,
                        .path = req->path,
                        .seq_id = req->seq_id,
                        .n = req->tag,
                        .version = req->ops->name,
                        .accept = header_or_empty(req, "accept"),
                        .idempotency_key =
                            header_or_empty(req, "x-idempotency-key")};
}

void local_route_replied(tnk__srv_req_t *req, int status, void *user) {
  const local_server_t *server = user;
  local_seen_t seen;

  if (server->options.on_request == NULL || req->tag == 0)
    return;
  seen = seen_of(req);
  seen.status = status;
  server->options.on_request(server->options.user, &seen);
}

/* Returns 1 if a fault has answered. */
static int observe(local_server_t *server, tnk__srv_req_t *req) {
  local_seen_t seen;

  if (server->options.on_request != NULL) {
    seen = seen_of(req);
    seen.body = req->body.data;
    seen.n_body = req->body.len;
    server->options.on_request(server->options.user, &seen);
  }
  return local_fault_answers(req);
}

/* ---- All together ---- */

static int parse_body(local_call_t *call, int flags, json_t **json) {
  tnk__srv_req_t *req = call->req;
  int err;

  *json = NULL;
  if ((flags & NO_BODY) || ((flags & PROTO) && is_proto(req)))
    return 1;
  err = tnk__json_parse(json, req->body.data, req->body.len);
  if (err != TNK_OK) {
    if (err == TNK_ENOMEM)
      local_reply_text(req, 503, "{\"detail\":\"Out of memory\"}");
    else
      local_reply_invalid(req, "json_invalid", NULL,
                          "JSON decode error: no JSON, or a number that is "
                          "too large");
    return 0;
  }
  if (!json_is_object(*json)) {
    json_decref(*json);
    *json = NULL;
    local_reply_invalid(req, "model_attributes_type", NULL,
                        "Input should be a valid dictionary");
    return 0;
  }
  return 1;
}

/* A client may have used the number of a request that is refused for its
 * members, as for any other request that is refused at once. */
static void refuse_number(const local_call_t *call, int64_t seq) {
  const char *id = tnk__json_str(call->body, "model_id");
  local_node_t *node =
      id != NULL ? local_table_find(&call->server->models, id) : NULL;

  if (node != NULL)
    local_model_refuse(tnk__container_of(node, local_model_t, node), seq);
}

static void handle(local_call_t *call, const route_t *route, int64_t seq) {
  if (call->body != NULL &&
      call->server->options.members == LOCAL_MEMBERS_STRICT &&
      !local_members_check(call, route->path))
    refuse_number(call, seq);
  else if (!(route->flags & ONCE) || !local_keys_answer(call))
    route->handle(call);
}

static void serve(local_call_t *call, const route_t *route) {
  tnk__srv_req_t *req = call->req;
  tnk__buf_t body;
  json_t *json;
  int64_t seq = -1;

  if (!check_credential(call->server, req, route->flags))
    return;
  if ((route->flags & WORK) && call->server->drains) {
    /* Clients retry it, possibly with the next server on this port. */
    local_reply_error(req, 503, "The server is shutting down");
    return;
  }
  if (!decompress(call->server, req) || !parse_body(call, route->flags, &json))
    return;
  if (json != NULL)
    tnk__json_get_int(json, "seq_id", INT64_MIN, INT64_MAX, &seq);
  else if (route->flags & PROTO)
    seq = local_scan_seq(req->body.data, req->body.len);
  req->seq_id = seq;
  if (!observe(call->server, req)) {
    /* The body must outlive the answer, which ends the request. */
    body = req->body;
    tnk__buf_init(&req->body, body.alloc, body.max);
    call->body = json;
    call->bytes = body.data;
    call->n_bytes = body.len;
    handle(call, route, seq);
    tnk__buf_deinit(&body);
  }
  json_decref(json);
}

void local_route(tnk__srv_req_t *req, void *user) {
  char text[MAX_PATH_TEXT];
  char *parts[MAX_PARTS];
  local_call_t call = {.server = user, .req = req};
  const route_t *route = NULL;
  int status = 404;
  size_t n_path = strlen(req->path);

  req->tag = req->n;
  if (strcmp(req->path, LOCAL_FAULTS_PATH) == 0) {
    if (check_key(call.server, req) &&
        !local_faults_control(call.server->options.faults, req))
      local_reply_error(req, 404, "Not Found");
    return;
  }
  /* A link replaces the key. */
  if (strncmp(req->path, LOCAL_FILES_PATH, sizeof(LOCAL_FILES_PATH) - 1) == 0) {
    if (!observe(call.server, req))
      local_download(&call);
    return;
  }
  if (n_path < sizeof(text)) {
    size_t n;

    memcpy(text, req->path, n_path + 1);
    n = split(text, parts);
    route = find(req->method, parts, n, call.args, &status);
  }
  if (route == NULL) {
    if (observe(call.server, req))
      return;
    local_reply_text(req, status,
                     status == 404 ? "{\"detail\":\"Not Found\"}"
                                   : "{\"detail\":\"Method Not Allowed\"}");
    return;
  }
  serve(&call, route);
}
