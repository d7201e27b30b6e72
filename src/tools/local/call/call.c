/* SPDX-License-Identifier: MIT */
#include "tools/local/call/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/base/utf8.h"
#include "tools/local/base/clock.h"

/* ---- Answers ---- */

static void reply_with(tnk__srv_req_t *req, int status, const char *extra,
                       tnk__buf_t *buf) {
  size_t len = 0;
  uint8_t *body = tnk__buf_take(buf, &len);

  if (body == NULL) {
    tnk__buf_deinit(buf);
    tnk__srv_req_reply_text(req, 500, "text/plain", "Internal Server Error");
    return;
  }
  tnk__srv_req_reply(req, status, "application/json", extra, body, len);
}

void local_reply_buf(tnk__srv_req_t *req, int status, tnk__buf_t *buf) {
  /* A 429 needs a delay: without one, some clients retry at once and without
   * end. */
  reply_with(req, status, status == 429 ? "Retry-After: 1\r\n" : NULL, buf);
}

void local_reply_text(tnk__srv_req_t *req, int status, const char *json) {
  tnk__srv_req_reply_text(req, status, "application/json", json);
}

void local_out_begin(local_out_t *out, const tnk_allocator_t *alloc) {
  tnk__buf_init(&out->buf, alloc, (size_t)1 << 30);
  tnk__json_writer_init(&out->w, &out->buf);
  tnk__json_begin_object(&out->w);
}

void local_out_reply(local_out_t *out, tnk__srv_req_t *req, int status) {
  tnk__json_end(&out->w);
  /* Only the path can contain a string that is not UTF-8. */
  if (tnk__json_finish(&out->w) != TNK_OK)
    tnk__buf_deinit(&out->buf);
  local_reply_buf(req, status, &out->buf);
}

void local_reply_error(tnk__srv_req_t *req, int status, const char *format,
                       ...) {
  char text[1024];
  local_out_t out;
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  tnk__utf8_repair(text);
  local_out_begin(&out, req->http->config.alloc);
  tnk__json_put_text(&out.w, "detail", text);
  local_out_reply(&out, req, status);
}

void local_reply_invalid(tnk__srv_req_t *req, const char *type,
                         const char *member, const char *message) {
  local_out_t out;

  local_out_begin(&out, req->http->config.alloc);
  tnk__json_put_array(&out.w, "detail");
  tnk__json_begin_object(&out.w);
  tnk__json_put_text(&out.w, "type", type);
  tnk__json_put_array(&out.w, "loc");
  tnk__json_text(&out.w, "body");
  if (member != NULL)
    tnk__json_text(&out.w, member);
  tnk__json_end(&out.w);
  tnk__json_put_text(&out.w, "msg", message);
  tnk__json_end(&out.w);
  tnk__json_end(&out.w);
  local_out_reply(&out, req, 422);
}

void local_put_time(tnk__json_writer_t *w, const char *key, int64_t ms) {
  char text[32];

  local_time_text(ms, text);
  tnk__json_put_text(w, key, text);
}

/* Success statuses differ between servers. */
static int status_accepted(const local_server_t *server) {
  return server->options.sequence == LOCAL_STRICT ? 202 : 200;
}

void local_reply_future(local_call_t *call, const char *request_id,
                        const char *model_id, const char *ids) {
  local_out_t out;

  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "request_id", request_id);
  if (model_id != NULL)
    tnk__json_put_text(&out.w, "model_id", model_id);
  if (ids != NULL)
    tnk__json_put_raw(&out.w, "sample_sequence_ids", ids);
  local_out_reply(&out, call->req, status_accepted(call->server));
}

int local_status_created(const local_server_t *server) {
  return server->options.sequence == LOCAL_STRICT ? 201 : 200;
}

void local_hex(char *out, const unsigned char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++)
    snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

int local_random_hex(char *out, size_t n) {
  unsigned char bytes[32];
  int err = uv_random(NULL, NULL, bytes, n, 0, NULL);

  if (err == 0)
    local_hex(out, bytes, n);
  return err;
}

int64_t local_now_ms(const local_server_t *server) {
  return server->options.now_ms != NULL
             ? server->options.now_ms(server->options.user)
             : local_wall_ms();
}

const char *local_base_name(const local_server_t *server) {
  if (server->options.model != NULL)
    return server->options.model;
  return server->model_dir != NULL ? server->model_dir : TNK__LM_NAME;
}

const char *local_tokenizer_name(const local_server_t *server) {
  return server->model_dir != NULL ? server->model_dir : TNK__LM_TOKENIZER;
}

int local_is_base(const local_server_t *server, const char *name) {
  return strcmp(name, local_base_name(server)) == 0 ||
         (server->model_dir != NULL && strcmp(name, server->model_dir) == 0) ||
         strcmp(name, TNK__LM_NAME) == 0;
}

/* ---- Members of the body ---- */

static int refuse_member(local_call_t *call, tnk__json_has_t has,
                         const char *key, const char *type,
                         const char *message) {
  if (has == TNK__JSON_ABSENT)
    local_reply_invalid(call->req, "missing", key, "Field required");
  else
    local_reply_invalid(call->req, type, key, message);
  return 0;
}

int local_need_text(local_call_t *call, const char *key, const char **out) {
  tnk__json_has_t has = tnk__json_get_text(call->body, key, out);

  if (has == TNK__JSON_FOUND && strlen(*out) <= LOCAL_MAX_TEXT)
    return 1;
  return refuse_member(call, has, key, "string_type",
                       "Input should be a valid string");
}

int local_want_text(local_call_t *call, const char *key, const char **out) {
  tnk__json_has_t has = tnk__json_get_text(call->body, key, out);

  if (has == TNK__JSON_ABSENT || has == TNK__JSON_NULL)
    return 1;
  if (has == TNK__JSON_FOUND && strlen(*out) <= LOCAL_MAX_TEXT)
    return 1;
  return refuse_member(call, has, key, "string_type",
                       "Input should be a valid string");
}

int local_want_int(local_call_t *call, const char *key, int64_t min,
                   int64_t max, int64_t *out) {
  tnk__json_has_t has = tnk__json_get_int(call->body, key, min, max, out);

  if (has != TNK__JSON_WRONG)
    return 1;
  return refuse_member(call, has, key, "int_type",
                       "Input should be a valid integer in range");
}

int local_want_ttl(local_call_t *call, int64_t *out) {
  enum { HOUR = 3600, TEN_YEARS = 10 * 366 * 86400 };

  *out = 0;
  if (!local_want_int(call, "ttl_seconds", INT64_MIN, INT64_MAX, out))
    return 0;
  if (*out == 0 && !json_is_integer(json_object_get(call->body, "ttl_seconds")))
    return 1;
  if (*out >= HOUR && *out <= TEN_YEARS)
    return 1;
  local_reply_error(call->req, 400,
                    "ttl_seconds must be from 3600 to 315360000, or null");
  return 0;
}

int local_want_bool(local_call_t *call, const char *key, int *out) {
  tnk__json_has_t has = tnk__json_get_bool(call->body, key, out);

  if (has != TNK__JSON_WRONG)
    return 1;
  return refuse_member(call, has, key, "bool_type",
                       "Input should be a valid boolean");
}

int local_want_double(local_call_t *call, const json_t *object, const char *key,
                      double *out) {
  tnk__json_has_t has = tnk__json_get_double(object, key, out);

  if (has != TNK__JSON_WRONG)
    return 1;
  return refuse_member(call, has, key, "float_type",
                       "Input should be a valid number");
}

char *local_metadata(local_call_t *call) {
  const json_t *metadata = NULL;
  char *text;
  char *copy;

  if (tnk__json_get_object(call->body, "user_metadata", &metadata) !=
      TNK__JSON_FOUND)
    return NULL;
  text = json_dumps(metadata, JSON_COMPACT);
  copy = text != NULL ? tnk__strdup(call->server->alloc, text) : NULL;
  tnk__json_free_string(text);
  return copy;
}

/* An ended session is remembered for a while and answers 410 instead of 404, so
 * that clients can distinguish it from a wrong id. */
local_session_t *local_need_session(local_call_t *call) {
  const char *id;
  local_node_t *node;
  local_session_t *session;

  if (!local_need_text(call, "session_id", &id))
    return NULL;
  node = local_table_find(&call->server->sessions, id);
  if (node == NULL) {
    local_reply_error(call->req, 404, "Session not found: %s", id);
    return NULL;
  }
  session = tnk__container_of(node, local_session_t, node);
  if (session->finished) {
    local_reply_error(call->req, 410, "Session %s is finished", id);
    return NULL;
  }
  return session;
}
