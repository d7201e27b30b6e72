/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "support/mock_internal.h"
#include "support/test.h"

/*
 * A connection of HTTP/1.1 reads one request, waits for its answer, and reads
 * the next.
 */

/* The answer is out: the next request may come. */
static void end_request(mock_conn_t *conn) {
  conn->ends = 0;
  mock__message_part(&conn->message);
  if (conn->close_after)
    mock__close_conn(conn, 0);
}

void mock__http1_flushed(mock_conn_t *conn) {
  const mock_request_t *request = conn->message.request;

  if (conn->close_after ||
      (conn->ends && (request == NULL || request->is_complete)))
    end_request(conn);
}

static mock_conn_t *conn_of(llhttp_t *parser) {
  return parser->data;
}

static int on_text(llhttp_t *parser, const char *at, size_t n) {
  mock__add(&conn_of(parser)->message.text, at, n);
  return 0;
}

static int on_text_end(llhttp_t *parser) {
  mock__message_mark(&conn_of(parser)->message);
  return 0;
}

static int on_begin(llhttp_t *parser) {
  mock_conn_t *conn = conn_of(parser);

  /* The answer may be read before we are told that it was written. */
  if (conn->message.request != NULL && conn->ends && mock__is_flushed(conn))
    end_request(conn);
  if (!conn->is_closing && conn->message.request != NULL &&
      conn->server->is_lenient)
    mock__close_conn(conn, 1);
  if (conn->is_closing)
    return -1;
  mock__message_begin(&conn->message, conn);
  return 0;
}

static int on_head(llhttp_t *parser) {
  mock_conn_t *conn = conn_of(parser);

  mock__message_head(&conn->message,
                     llhttp_method_name((llhttp_method_t)parser->method));
  return conn->is_closing ? -1 : 0;
}

static int on_complete(llhttp_t *parser) {
  mock_conn_t *conn = conn_of(parser);

  mock__message_complete(&conn->message);
  if (!conn->is_closing && conn->message.request != NULL &&
      conn->message.request->is_answered)
    mock__flush(conn);
  return conn->is_closing ? HPE_PAUSED : 0;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_url = on_text,
    .on_url_complete = on_text_end,
    .on_header_field = on_text,
    .on_header_field_complete = on_text_end,
    .on_header_value = on_text,
    .on_header_value_complete = on_text_end,
    .on_headers_complete = on_head,
    .on_body = on_text,
    .on_message_complete = on_complete,
};

void mock__http1_init(mock_conn_t *conn) {
  llhttp_init(&conn->parser, HTTP_REQUEST, &settings);
  conn->parser.data = conn;
}

void mock__http1_read(mock_conn_t *conn, const char *data, size_t n) {
  const mock_request_t *request;

  if (llhttp_execute(&conn->parser, data, n) != HPE_OK && !conn->is_closing)
    test_fail(__FILE__, __LINE__, "the client sent no valid HTTP: %s",
              llhttp_get_error_reason(&conn->parser));
  request = conn->message.request;
  if (request != NULL && request->headers != NULL && !request->is_complete)
    mock__message_moved(&conn->message);
}
