/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "server/request.h"
#include "server/slow.h"
#include "server/state.h"
#include "tnk/error.h"

/* Responses over HTTP/1.1. */

enum { MAX_REPLY_HEAD = 2048, MAX_SLICE = 256 * 1024 };

/* A response that is being written; freed when written. */
typedef struct {
  tnk__srv_write_t write;
  uint8_t *body;
  int close_after;
  char head[MAX_REPLY_HEAD];
} reply_t;

static tnk__srv_conn_t *conn_of(tnk__srv_req_t *req) {
  return tnk__container_of(req, tnk__srv_conn_t, h1.req);
}

static const tnk_allocator_t *alloc_of(const tnk__srv_conn_t *conn) {
  return conn->http->config.alloc;
}

static void reply_free(reply_t *reply) {
  const tnk_allocator_t *alloc = alloc_of(reply->write.conn);

  tnk__free(alloc, reply->body);
  tnk__free(alloc, reply);
}

/* Closing a connection would cut off a pending write, so it closes here. */
static void on_written(tnk__srv_write_t *write, int status) {
  reply_t *reply = tnk__container_of(write, reply_t, write);
  tnk__srv_conn_t *conn = write->conn;

  if (reply->close_after && conn->h1.drains && status == 0)
    tnk__srv_conn_drain(conn);
  else if (reply->close_after || status < 0)
    tnk__srv_conn_close(conn);
  reply_free(reply);
}

static void send_reply(tnk__srv_conn_t *conn, reply_t *reply, size_t n_head,
                       size_t n_body, int is_twice) {
  uv_buf_t bufs[4];
  unsigned n = 0;

  for (int i = 0; i <= is_twice; i++) {
    if (n_head > 0)
      bufs[n++] = uv_buf_init(reply->head, (unsigned)n_head);
    if (n_body > 0)
      bufs[n++] = uv_buf_init((char *)reply->body, (unsigned)n_body);
  }
  if (tnk__srv_write(&reply->write, conn, bufs, n, on_written) != 0) {
    reply_free(reply);
    tnk__srv_conn_close(conn);
  }
}

static reply_t *reply_new(tnk__srv_conn_t *conn) {
  reply_t *reply = tnk__malloc(alloc_of(conn), sizeof(*reply));

  if (reply == NULL)
    return NULL;
  reply->write.conn = conn;
  reply->body = NULL;
  reply->close_after = 0;
  return reply;
}

void tnk__srv_h1_send_continue(tnk__srv_conn_t *conn) {
  static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
  reply_t *reply = reply_new(conn);

  if (reply == NULL)
    return; /* most peers send the body after a timeout anyway */
  memcpy(reply->head, line, sizeof(line) - 1);
  send_reply(conn, reply, sizeof(line) - 1, 0, 0);
}

/* Continue with the next request, but never from inside this call. A handler
 * that answers a parked request may be called from anywhere, and must not run
 * the next request's handler on its stack. */
static void answered(tnk__srv_conn_t *conn) {
  tnk__srv_h1_t *h1 = &conn->h1;

  tnk__srv_req_shrink(&h1->req);
  conn->state = TNK__SRV_CONN_READING;
  h1->begun = 0;
  conn->served = 1;
  conn->active_ms = uv_now(conn->tcp.loop);
  llhttp_resume(&h1->parser);
  if (!h1->pumping && (h1->pending.len > 0 || conn->paused))
    tnk__srv_conn_go_on_later(conn);
}

/* ---- Slow responses ---- */

/* A response that is sent slowly. The connection stays in HANDLING until it is
 * sent, then continues or closes. Closing the connection earlier also frees
 * this. */
typedef struct tnk__srv_h1_trickle {
  tnk__srv_slow_t *slow;
  tnk__srv_conn_t *conn;
  uint8_t *body;
  size_t len;
  size_t n_sent;
  int close_after;
} trickle_t;

void tnk__srv_h1_stop_trickle(tnk__srv_conn_t *conn) {
  trickle_t *trickle = conn->h1.trickle;

  if (trickle == NULL)
    return;
  conn->h1.trickle = NULL;
  tnk__srv_slow_stop(trickle->slow);
  tnk__free(alloc_of(conn), trickle->body);
  tnk__free(alloc_of(conn), trickle);
}

/* Copy a piece, so that the body may be freed at any time. NULL: out of
 * memory. */
static reply_t *piece_new(trickle_t *trickle, size_t n) {
  reply_t *reply = reply_new(trickle->conn);

  if (reply == NULL)
    return NULL;
  reply->body = tnk__malloc(alloc_of(trickle->conn), n);
  if (reply->body == NULL) {
    reply_free(reply);
    return NULL;
  }
  memcpy(reply->body, trickle->body + trickle->n_sent, n);
  trickle->n_sent += n;
  return reply;
}

static void trickle_on(void *owner, uint64_t n_due) {
  trickle_t *trickle = owner;
  tnk__srv_conn_t *conn = trickle->conn;
  size_t n =
      (n_due < trickle->len ? (size_t)n_due : trickle->len) - trickle->n_sent;
  reply_t *reply;
  int goes_on;

  /* If the peer reads more slowly than this, the next tick tries again. */
  if (n == 0 || uv_stream_get_write_queue_size((uv_stream_t *)&conn->tcp) > 0)
    return;
  reply = piece_new(trickle, n);
  if (reply == NULL) {
    tnk__srv_conn_close(conn);
    return;
  }
  conn->active_ms = uv_now(conn->tcp.loop);
  if (trickle->n_sent < trickle->len) {
    send_reply(conn, reply, 0, n, 0);
    return;
  }
  goes_on = !trickle->close_after;
  reply->close_after = trickle->close_after;
  tnk__srv_h1_stop_trickle(conn);
  send_reply(conn, reply, 0, n, 0);
  if (goes_on && conn->state == TNK__SRV_CONN_HANDLING)
    answered(conn);
}

/* Takes the body on success. Returns TNK_OK or TNK_ENOMEM. */
static int trickle_start(tnk__srv_conn_t *conn, const tnk__srv_answer_t *answer,
                         int close_after) {
  trickle_t *trickle = tnk__calloc(alloc_of(conn), 1, sizeof(*trickle));

  if (trickle == NULL)
    return TNK_ENOMEM;
  trickle->slow =
      tnk__srv_slow_start(conn->http, answer->rate, trickle_on, trickle);
  if (trickle->slow == NULL) {
    tnk__free(alloc_of(conn), trickle);
    return TNK_ENOMEM;
  }
  trickle->conn = conn;
  trickle->body = answer->body;
  trickle->len = answer->n_sent;
  trickle->close_after = close_after;
  conn->h1.trickle = trickle;
  return TNK_OK;
}

/* ---- Whole responses ---- */

static const char *reason(int status) {
  static const struct {
    int status;
    const char *text;
  } known[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {302, "Found"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {416, "Range Not Satisfiable"},
      {422, "Unprocessable Entity"},
      {429, "Too Many Requests"},
      {402, "Payment Required"},
      {500, "Internal Server Error"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {501, "Not Implemented"},
      {504, "Gateway Timeout"},
  };

  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (known[i].status == status)
      return known[i].text;
  return "Status";
}

static int write_head(const tnk__srv_answer_t *answer, int keep_alive,
                      char *out) {
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

/* Send the head at once, and the body slowly. */
static void send_slowly(tnk__srv_conn_t *conn, reply_t *reply, size_t n_head,
                        const tnk__srv_answer_t *answer) {
  int close_after = reply->close_after;

  reply->body = NULL;
  reply->close_after = 0;
  send_reply(conn, reply, n_head, 0, 0);
  if (conn->state == TNK__SRV_CONN_HANDLING &&
      trickle_start(conn, answer, close_after) == TNK_OK)
    return;
  tnk__free(alloc_of(conn), answer->body);
  tnk__srv_conn_close(conn);
}

static void answer(tnk__srv_req_t *req, const tnk__srv_answer_t *answer) {
  tnk__srv_conn_t *conn = conn_of(req);
  size_t n_sent = req->is_head ? 0 : answer->n_sent;
  int goes_on = conn->h1.keep_alive && !tnk__srv_ends_conns(conn->http) &&
                !answer->is_goodbye;
  int keep_alive = goes_on && answer->n_sent == answer->announced;
  reply_t *reply = answer->status > 0 && conn->state == TNK__SRV_CONN_HANDLING
                       ? reply_new(conn)
                       : NULL;
  int n;

  if (reply == NULL) {
    tnk__free(alloc_of(conn), answer->body);
    tnk__srv_conn_close(conn);
    return;
  }
  reply->body = answer->body;
  reply->close_after = !keep_alive;
  n = write_head(answer, goes_on, reply->head);
  if (n < 0) {
    reply_free(reply);
    tnk__srv_conn_close(conn);
    return;
  }
  if (answer->rate > 0 && n_sent > 0) {
    send_slowly(conn, reply, (size_t)n, answer);
    return;
  }
  send_reply(conn, reply, (size_t)n, n_sent, answer->is_twice);
  if (conn->state == TNK__SRV_CONN_HANDLING && keep_alive)
    answered(conn);
}

static void drop(tnk__srv_req_t *req) {
  tnk__srv_conn_close(conn_of(req));
}

/* ---- Streamed responses ---- */

/* The last piece is sent in parts of at most MAX_SLICE bytes. Each one waits
 * until the previous one is written, so TLS holds only one encrypted part. */
typedef struct {
  tnk__srv_write_t write;
  uint8_t *body;
  size_t len;
  size_t n_sent;
  int close_after;
  char size[24]; /* size line of the chunk */
} last_t;

static void on_piece(tnk__srv_write_t *write, int status) {
  write->conn->h1.n_pieces--;
  on_written(write, status);
}

static void send_piece(tnk__srv_conn_t *conn, reply_t *reply, size_t n) {
  const uv_buf_t buf = uv_buf_init(reply->head, (unsigned)n);

  conn->active_ms = uv_now(conn->tcp.loop);
  conn->h1.n_pieces++;
  if (tnk__srv_write(&reply->write, conn, &buf, 1, on_piece) == 0)
    return;
  conn->h1.n_pieces--;
  reply_free(reply);
  tnk__srv_conn_close(conn);
}

/* HTTP/1.0 has no chunks. The end of the connection then ends the response. */
static void begin(tnk__srv_req_t *req, const tnk__srv_answer_t *head) {
  tnk__srv_conn_t *conn = conn_of(req);
  const llhttp_t *parser = &conn->h1.parser;
  reply_t *reply = reply_new(conn);
  int n;

  if (reply == NULL) {
    tnk__srv_conn_close(conn);
    return;
  }
  conn->h1.is_chunked = parser->http_major > 1 || parser->http_minor > 0;
  if (!conn->h1.is_chunked || tnk__srv_ends_conns(conn->http))
    conn->h1.keep_alive = 0;
  n = snprintf(reply->head, sizeof(reply->head),
               "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s%s%s\r\n", head->status,
               reason(head->status), head->content_type,
               conn->h1.is_chunked ? "Transfer-Encoding: chunked\r\n" : "",
               head->extra != NULL ? head->extra : "",
               conn->h1.keep_alive ? "" : "Connection: close\r\n");
  if (n < MAX_REPLY_HEAD) {
    send_piece(conn, reply, (size_t)n);
  } else {
    reply_free(reply);
    tnk__srv_conn_close(conn);
  }
}

static void keep(tnk__srv_req_t *req, const char *text) {
  tnk__srv_conn_t *conn = conn_of(req);
  size_t n_text = strlen(text);
  reply_t *reply = conn->h1.n_pieces == 0 && n_text <= TNK__SRV_MAX_KEEP
                       ? reply_new(conn)
                       : NULL;
  int n;

  if (reply == NULL)
    return;
  n = conn->h1.is_chunked
          ? snprintf(reply->head, sizeof(reply->head), "%zx\r\n%s\r\n", n_text,
                     text)
          : snprintf(reply->head, sizeof(reply->head), "%s", text);
  send_piece(conn, reply, (size_t)n);
}

static void last_free(last_t *last) {
  const tnk_allocator_t *alloc = alloc_of(last->write.conn);

  tnk__free(alloc, last->body);
  tnk__free(alloc, last);
}

static void send_slice(last_t *last);

static void on_slice(tnk__srv_write_t *write, int status) {
  last_t *last = tnk__container_of(write, last_t, write);
  tnk__srv_conn_t *conn = write->conn;

  if (status == 0 && last->n_sent < last->len) {
    send_slice(last);
    return;
  }
  if (status < 0 || last->close_after)
    tnk__srv_conn_close(conn);
  last_free(last);
}

static void send_slice(last_t *last) {
  static char ends[] = "\r\n0\r\n\r\n";
  tnk__srv_conn_t *conn = last->write.conn;
  size_t left = last->len - last->n_sent;
  size_t n = left < MAX_SLICE ? left : MAX_SLICE;
  int is_last = n == left;
  uv_buf_t bufs[3];
  unsigned n_bufs = 0;

  if (conn->h1.is_chunked && n > 0) {
    int n_size = snprintf(last->size, sizeof(last->size), "%zx\r\n", n);

    bufs[n_bufs++] = uv_buf_init(last->size, (unsigned)n_size);
  }
  bufs[n_bufs++] = uv_buf_init((char *)last->body + last->n_sent, (unsigned)n);
  if (conn->h1.is_chunked)
    bufs[n_bufs++] =
        n == 0 ? uv_buf_init(ends + 2, 5) : uv_buf_init(ends, is_last ? 7 : 2);
  last->n_sent += n;
  conn->active_ms = uv_now(conn->tcp.loop);
  if (tnk__srv_write(&last->write, conn, bufs, n_bufs, on_slice) != 0) {
    tnk__srv_conn_close(conn);
    last_free(last);
  } else if (is_last && !last->close_after &&
             conn->state == TNK__SRV_CONN_HANDLING) {
    answered(conn);
  }
}

static void finish(tnk__srv_req_t *req, uint8_t *body, size_t len) {
  tnk__srv_conn_t *conn = conn_of(req);
  last_t *last = conn->state == TNK__SRV_CONN_HANDLING
                     ? tnk__calloc(alloc_of(conn), 1, sizeof(*last))
                     : NULL;

  if (last == NULL) {
    tnk__free(alloc_of(conn), body);
    tnk__srv_conn_close(conn);
    return;
  }
  last->write.conn = conn;
  last->body = body;
  last->len = len;
  last->close_after = !conn->h1.keep_alive;
  send_slice(last);
}

const tnk__srv_req_ops_t tnk__srv_h1_ops = {"HTTP/1.1", answer, drop,
                                            begin,      keep,   finish};
