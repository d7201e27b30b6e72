/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "server/request.h"
#include "server/state.h"
#include "tnk/error.h"

/*
 * A connection that speaks HTTP/1.1 reads one request, passes it to the
 * handler, and reads the next one after the response:
 *
 *   READING --message complete--> HANDLING --answered--> READING
 *   READING --refused, answered--> DRAINING --end of stream--> CLOSING
 *   any --error, end of stream, answer without keep-alive--> CLOSING
 *
 * While a request is handled, the socket is still read, to notice a peer that
 * disconnects. Bytes that arrive meanwhile are kept in `pending`. Reading stops
 * when that is full.
 */

enum {
  MAX_PENDING = 64 * 1024,
  /* The most that one read may add: TLS may have held back one more record. */
  MAX_READ = TNK__SRV_SCRATCH + 16 * 1024
};

#define CONN(p) ((tnk__srv_conn_t *)(p)->data)

/* ---- Reading ---- */

/* Return value of a parser callback: a refusal stops the parser. */
static int heed(tnk__srv_conn_t *conn, int refusal) {
  conn->h1.refuse = refusal;
  return refusal == 0 ? 0 : HPE_USER;
}

static int on_begin(llhttp_t *parser) {
  tnk__srv_conn_t *conn = CONN(parser);

  tnk__srv_req_begin(&conn->h1.req);
  conn->h1.begun = 1;
  return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t n) {
  tnk__srv_conn_t *conn = CONN(parser);
  int err = tnk__buf_append(&conn->h1.req.url, at, n);

  return heed(conn, err == TNK_OK ? 0 : 414);
}

static int on_field(llhttp_t *parser, const char *at, size_t n) {
  tnk__srv_conn_t *conn = CONN(parser);

  return heed(conn, tnk__srv_req_add_name(&conn->h1.req, at, n));
}

static int on_field_complete(llhttp_t *parser) {
  tnk__srv_conn_t *conn = CONN(parser);

  return heed(conn, tnk__srv_req_end_name(&conn->h1.req));
}

static int on_value(llhttp_t *parser, const char *at, size_t n) {
  tnk__srv_conn_t *conn = CONN(parser);

  return heed(conn, tnk__srv_req_add_value(&conn->h1.req, at, n));
}

static int on_value_complete(llhttp_t *parser) {
  tnk__srv_conn_t *conn = CONN(parser);

  return heed(conn, tnk__srv_req_end_value(&conn->h1.req));
}

/* Returns the status for an unsupported body framing, or 0. Only "chunked" is
 * supported. HTTP/1.0 has no transfer codings. */
static int check_coding(const tnk__srv_req_t *req, const llhttp_t *parser) {
  const char *coding = tnk__srv_req_header(req, "transfer-encoding");

  if (coding == NULL)
    return 0;
  if (parser->http_major == 1 && parser->http_minor == 0)
    return 400;
  return strcasecmp(coding, "chunked") == 0 &&
                 tnk__srv_req_count(req, "transfer-encoding") == 1
             ? 0
             : 501;
}

static int on_headers_complete(llhttp_t *parser) {
  tnk__srv_conn_t *conn = CONN(parser);
  const llhttp_method_t method = (llhttp_method_t)llhttp_get_method(parser);
  int refusal;

  tnk__srv_req_set_method(&conn->h1.req, llhttp_method_name(method));
  /* Ignore requests to upgrade the protocol, as RFC 9110 allows (section
   * 7.8). */
  parser->upgrade = 0;
  /* Without chunks the end of the connection is the end of a response. */
  conn->h1.req.is_framed = parser->http_major > 1 || parser->http_minor > 0;
  refusal = conn->is_refused ? TNK__SRV_REFUSE_FULL
                             : check_coding(&conn->h1.req, parser);
  if (refusal == 0)
    refusal = tnk__srv_req_end_head(&conn->h1.req, parser->content_length);
  if (refusal == 0 && tnk__srv_req_header(&conn->h1.req, "expect") != NULL)
    tnk__srv_h1_send_continue(conn);
  return heed(conn, refusal);
}

/* Reject a chunk that exceeds the limit when its size is known. */
static int on_chunk_header(llhttp_t *parser) {
  tnk__srv_conn_t *conn = CONN(parser);
  size_t room = conn->http->config.max_body - conn->h1.req.body.len;

  return heed(conn, parser->content_length > room ? 413 : 0);
}

static int on_body(llhttp_t *parser, const char *at, size_t n) {
  tnk__srv_conn_t *conn = CONN(parser);

  return heed(conn, tnk__srv_req_add_body(&conn->h1.req, at, n,
                                          parser->content_length));
}

static int on_complete(llhttp_t *parser) {
  tnk__srv_conn_t *conn = CONN(parser);

  conn->h1.keep_alive = llhttp_should_keep_alive(parser);
  conn->state = TNK__SRV_CONN_HANDLING;
  return HPE_PAUSED;
}

void tnk__srv_h1_setup(llhttp_settings_t *settings) {
  llhttp_settings_init(settings);
  settings->on_message_begin = on_begin;
  settings->on_url = on_url;
  settings->on_header_field = on_field;
  settings->on_header_field_complete = on_field_complete;
  settings->on_header_value = on_value;
  settings->on_header_value_complete = on_value_complete;
  settings->on_headers_complete = on_headers_complete;
  settings->on_body = on_body;
  settings->on_chunk_header = on_chunk_header;
  settings->on_message_complete = on_complete;
}

void tnk__srv_h1_init(tnk__srv_conn_t *conn) {
  tnk__srv_h1_t *h1 = &conn->h1;

  tnk__srv_req_init(&h1->req, conn->http, &tnk__srv_h1_ops);
  llhttp_init(&h1->parser, HTTP_REQUEST, &conn->http->versions->h1);
  h1->parser.data = conn;
  tnk__buf_init(&h1->pending, conn->http->config.alloc, MAX_PENDING + MAX_READ);
}

/* ---- The complete request ---- */

static void refuse_now(tnk__srv_conn_t *conn, int refusal) {
  conn->h1.keep_alive = 0;
  conn->h1.drains = 1;
  conn->paused = 0; /* read and discard the rest */
  conn->state = TNK__SRV_CONN_HANDLING;
  tnk__srv_req_refuse(&conn->h1.req, refusal);
}

static void dispatch(tnk__srv_conn_t *conn) {
  int refusal = tnk__srv_req_dispatch(&conn->h1.req);

  if (refusal != 0)
    refuse_now(conn, refusal);
}

static void parse_failed(tnk__srv_conn_t *conn) {
  if (conn->h1.refuse != TNK__SRV_REFUSE_END)
    refuse_now(conn, conn->h1.refuse != 0 ? conn->h1.refuse : 400);
  else if (conn->h1.req.end.how != TNK__SRV_END_AWAY)
    tnk__srv_conn_reset(conn);
  else
    tnk__srv_conn_close(conn);
}

/* Keep bytes of later requests. */
static void set_aside(tnk__srv_conn_t *conn, const char *data, size_t n) {
  tnk__buf_t *pending = &conn->h1.pending;

  /* After a refusal the rest of the input is only discarded. */
  if (n == 0 || !conn->h1.keep_alive)
    return;
  if (tnk__buf_append(pending, data, n) != TNK_OK)
    tnk__srv_conn_close(conn);
  else if (pending->len >= MAX_PENDING)
    conn->paused = 1;
}

static void feed(tnk__srv_conn_t *conn, const char *data, size_t n) {
  tnk__srv_h1_t *h1 = &conn->h1;
  llhttp_errno_t err;
  size_t used;

  if (conn->state != TNK__SRV_CONN_READING || h1->pending.len > 0) {
    set_aside(conn, data, n);
    return;
  }
  err = llhttp_execute(&h1->parser, data, n);
  if (err == HPE_OK)
    return;
  if (err != HPE_PAUSED) {
    parse_failed(conn);
    return;
  }
  used = (size_t)(llhttp_get_error_pos(&h1->parser) - data);
  set_aside(conn, data + used, n - used);
  if (conn->state != TNK__SRV_CONN_CLOSING)
    dispatch(conn);
}

/* Process the input after the last request. This is a loop, because responses
 * that start the next request would nest one stack frame for each request in a
 * packet. */
static void pump(tnk__srv_conn_t *conn) {
  tnk__buf_t *pending = &conn->h1.pending;

  while (conn->state == TNK__SRV_CONN_READING && pending->len > 0) {
    /* Take the buffer first. set_aside() puts unused bytes back into a new
     * one. */
    tnk__buf_t taken = *pending;

    tnk__buf_init(pending, taken.alloc, taken.max);
    feed(conn, (const char *)taken.data, taken.len);
    tnk__buf_deinit(&taken);
  }
  if (conn->state == TNK__SRV_CONN_READING)
    conn->paused = 0;
}

static void go_on(tnk__srv_conn_t *conn) {
  conn->h1.pumping = 1;
  pump(conn);
  conn->h1.pumping = 0;
}

static void input(tnk__srv_conn_t *conn, const char *data, size_t n) {
  conn->h1.pumping = 1;
  feed(conn, data, n);
  pump(conn);
  conn->h1.pumping = 0;
}

/* ---- The connection ---- */

/* A connection before its first request is not idle: the peer would not know
 * why it was closed. */
static int is_idle(const tnk__srv_conn_t *conn) {
  return conn->state == TNK__SRV_CONN_READING && conn->served &&
         !conn->h1.begun && conn->h1.pending.len == 0;
}

static int waits_for_peer(const tnk__srv_conn_t *conn) {
  return conn->state != TNK__SRV_CONN_HANDLING;
}

static void leave(tnk__srv_conn_t *conn) {
  if (conn->state == TNK__SRV_CONN_READING && !conn->h1.begun &&
      conn->h1.pending.len == 0)
    tnk__srv_conn_close(conn);
  else
    conn->h1.keep_alive = 0;
}

static void gone(tnk__srv_conn_t *conn) {
  tnk__srv_h1_stop_trickle(conn);
  tnk__srv_req_gone(&conn->h1.req);
}

static void deinit(tnk__srv_conn_t *conn) {
  tnk__srv_req_deinit(&conn->h1.req);
  tnk__buf_deinit(&conn->h1.pending);
}

const tnk__srv_version_t tnk__srv_h1 = {input, go_on, is_idle, waits_for_peer,
                                        leave, gone,  deinit};
