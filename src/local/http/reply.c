#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "local/http/conn.h"
#include "local/http/fault_calls.h"
#include "tnk/error.h"

/* What handlers do with a request: answer it, now or later. */

enum { MAX_REPLY_HEAD = 1024 };

/* One answer on its way out; freed when written. */
typedef struct {
  uv_write_t write;
  local_conn_t *conn;
  const tnk_allocator_t *alloc;
  uint8_t *body;
  int close_after;
  char head[MAX_REPLY_HEAD];
} reply_t;

static void on_written(uv_write_t *write, int status) {
  reply_t *reply = tnk__container_of(write, reply_t, write);

  if (reply->close_after && reply->conn->drains && status == 0)
    local_conn_drain(reply->conn);
  else if (reply->close_after || status < 0)
    local_conn_close(reply->conn);
  tnk__free(reply->alloc, reply->body);
  tnk__free(reply->alloc, reply);
}

static void send_reply(local_conn_t *conn, reply_t *reply, size_t n_head,
                       size_t n_body, int is_twice) {
  uv_buf_t bufs[4];
  unsigned n = 0;

  for (int i = 0; i <= is_twice; i++) {
    bufs[n++] = uv_buf_init(reply->head, (unsigned)n_head);
    if (n_body > 0)
      bufs[n++] = uv_buf_init((char *)reply->body, (unsigned)n_body);
  }
  if (uv_write(&reply->write, (uv_stream_t *)&conn->tcp, bufs, n, on_written) !=
      0) {
    tnk__free(reply->alloc, reply->body);
    tnk__free(reply->alloc, reply);
    local_conn_close(conn);
  }
}

static reply_t *reply_new(local_conn_t *conn) {
  const tnk_allocator_t *alloc = conn->http->config.alloc;
  reply_t *reply = tnk__malloc(alloc, sizeof(*reply));

  if (reply == NULL)
    return NULL;
  reply->conn = conn;
  reply->alloc = alloc;
  reply->body = NULL;
  reply->close_after = 0;
  return reply;
}

void local_conn_send_continue(local_conn_t *conn) {
  static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
  reply_t *reply = reply_new(conn);

  if (reply == NULL)
    return; /* peers send the body after a while anyway */
  memcpy(reply->head, line, sizeof(line) - 1);
  send_reply(conn, reply, sizeof(line) - 1, 0, 0);
}

static const char *reason(int status) {
  static const struct {
    int status;
    const char *text;
  } known[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {302, "Found"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {422, "Unprocessable Entity"},
      {429, "Too Many Requests"},
      {402, "Payment Required"},
      {500, "Internal Server Error"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
  };

  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (known[i].status == status)
      return known[i].text;
  return "Status";
}

static int write_head(const local_answer_t *answer, int keep_alive, char *out) {
  const char *extra = answer->extra != NULL ? answer->extra : "";
  int n = snprintf(out, MAX_REPLY_HEAD,
                   "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n"
                   "Content-Length: %" PRIu64 "\r\n%s%s%s%s\r\n",
                   answer->status, reason(answer->status), answer->content_type,
                   answer->announced, extra, answer->line,
                   answer->line[0] != '\0' ? "\r\n" : "",
                   keep_alive ? "" : "Connection: close\r\n");

  return n < MAX_REPLY_HEAD ? n : -1;
}

/* The head at once, the rest bit by bit. */
static void send_slowly(local_conn_t *conn, reply_t *reply, size_t n_head,
                        const local_answer_t *answer) {
  int close_after = reply->close_after;

  reply->body = NULL;
  reply->close_after = 0;
  send_reply(conn, reply, n_head, 0, 0);
  if (conn->state == LOCAL_CONN_HANDLING &&
      local_slow_start(conn, answer->body, answer->n_sent, answer->rate,
                       close_after) == TNK_OK)
    return;
  tnk__free(conn->http->config.alloc, answer->body);
  local_conn_close(conn);
}

/* Takes the body. */
static void send_answer(local_conn_t *conn, const local_answer_t *answer) {
  size_t n_sent = conn->req.is_head ? 0 : answer->n_sent;
  int keep_alive = conn->keep_alive && answer->n_sent == answer->announced &&
                   !conn->http->waiting;
  reply_t *reply = answer->status > 0 && conn->state == LOCAL_CONN_HANDLING
                       ? reply_new(conn)
                       : NULL;
  int n;

  if (reply == NULL) {
    tnk__free(conn->http->config.alloc, answer->body);
    local_conn_close(conn);
    return;
  }
  reply->body = answer->body;
  reply->close_after = !keep_alive;
  n = write_head(answer, conn->keep_alive && !conn->http->waiting, reply->head);
  if (n < 0) {
    on_written(&reply->write, UV_E2BIG);
    return;
  }
  if (answer->rate > 0 && n_sent > 0) {
    send_slowly(conn, reply, (size_t)n, answer);
    return;
  }
  send_reply(conn, reply, (size_t)n, n_sent, answer->is_twice);
  if (conn->state == LOCAL_CONN_HANDLING && keep_alive)
    local_conn_answered(conn);
}

void local_req_reply(local_req_t *req, int status, const char *content_type,
                     const char *extra, uint8_t *body, size_t len) {
  local_conn_t *conn = tnk__container_of(req, local_conn_t, req);
  const local_http_config_t *config = &req->http->config;
  local_answer_t answer = {.status = status,
                           .content_type = content_type,
                           .extra = extra,
                           .body = body,
                           .len = len,
                           .announced = len,
                           .n_sent = len};

  req->on_gone = NULL;
  if (config->on_answer != NULL)
    config->on_answer(req, status, body, len, config->user);
  if (config->faults != NULL)
    local_fault_shape(req, &answer);
  if (config->on_reply != NULL)
    config->on_reply(req, answer.status, config->user);
  send_answer(conn, &answer);
}

void local_req_reply_text(local_req_t *req, int status,
                          const char *content_type, const char *text) {
  local_conn_t *conn = tnk__container_of(req, local_conn_t, req);
  const tnk_allocator_t *alloc = conn->http->config.alloc;
  size_t len = strlen(text);
  char *copy = tnk__strndup(alloc, text, len);

  if (copy == NULL) {
    local_conn_close(conn);
    return;
  }
  local_req_reply(req, status, content_type, NULL, (uint8_t *)copy, len);
}

/* The answer given here is never seen: local_fault_shape() puts the fault in
 * its place, and hears of all answers, these included. */
int local_fault_answers(local_req_t *req) {
  if (req->fault.kind == LOCAL_FAULT_NONE || req->fault.after)
    return 0;
  local_req_reply(req, 500, "application/json", NULL, NULL, 0);
  return 1;
}

void local_req_drop(local_req_t *req) {
  req->on_gone = NULL;
  local_conn_close(tnk__container_of(req, local_conn_t, req));
}

void local_req_park(local_req_t *req,
                    void (*on_gone)(local_req_t *req, void *user), void *user) {
  req->on_gone = on_gone;
  req->user = user;
}
