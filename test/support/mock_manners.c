/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "support/mock_session.h"
#include "support/test.h"

/* What tests do to sessions of HTTP/2. */

/* Does it to the open sessions of that number, or to all for MOCK_ALL, and lets
 * them say what there is to say. */
static void each(mock_server_t *server, int number,
                 void (*act)(mock_session_t *session, const void *how),
                 const void *how) {
  TNK__LIST_FOREACH_SAFE (node, next, &server->conns) {
    mock_conn_t *conn = tnk__container_of(node, mock_conn_t, link);
    if (conn->session == NULL ||
        (number != MOCK_ALL && conn->number != (size_t)number))
      continue;
    act(conn->session, how);
    mock__flush(conn);
  }
}

/* Settings. */

static void tell_last_setting(mock_session_t *session, const void *how) {
  (void)how;
  mock__http2_settings(session, session->conn->server->h2.n_settings - 1);
}

void mock_setting(mock_server_t *server, uint32_t id, uint32_t value) {
  size_t n = 0;

  /* The latest is the last one. */
  for (size_t i = 0; i < server->h2.n_settings; i++) {
    if (server->h2.ids[i] == id)
      continue;
    server->h2.ids[n] = server->h2.ids[i];
    server->h2.values[n++] = server->h2.values[i];
  }
  CHECK(n < MOCK_MAX_SETTINGS);
  server->h2.ids[n] = id;
  server->h2.values[n++] = value;
  server->h2.n_settings = n;
  each(server, MOCK_ALL, tell_last_setting, NULL);
}

uint32_t mock_client_setting(mock_server_t *server, int connection,
                             uint32_t id) {
  TNK__LIST_FOREACH (node, &server->conns) {
    mock_conn_t *conn = tnk__container_of(node, mock_conn_t, link);
    if (conn->session != NULL && conn->number == (size_t)connection)
      return nghttp2_session_get_remote_settings(conn->session->nghttp2,
                                                 (nghttp2_settings_id)id);
  }
  test_fail(__FILE__, __LINE__, "connection %d is none of HTTP/2", connection);
}

/* Answers. */

void mock_rst(mock_request_t *request, uint32_t code) {
  mock_stream_t *stream = request->stream;

  if (stream == NULL)
    return;
  if (request->is_answered && !stream->is_sent) {
    stream->has_rst = 1;
    stream->rst = code;
    return;
  }
  CHECK_INT(nghttp2_submit_rst_stream(stream->session->nghttp2,
                                      NGHTTP2_FLAG_NONE, stream->id, code),
            0);
  mock__flush(stream->session->conn);
}

void mock_rst_with(mock_request_t *request, void *user) {
  mock_rst(request, *(const uint32_t *)user);
}

void mock_end_with(mock_request_t *request, const char *trailers) {
  mock_stream_t *stream = request->stream;

  if (stream == NULL || request->is_answered)
    return;
  mock__add(&stream->trailers, trailers, strlen(trailers));
  mock_end(request, 0);
}

/* Connections. */

typedef struct {
  int32_t last;
  uint32_t code;
} goaway_t;

static void say_goaway(mock_session_t *session, const void *how) {
  const goaway_t *goaway = how;
  int32_t last = goaway->last;

  session->may_fail = 1;
  if (last == INT32_MAX) {
    CHECK_INT(nghttp2_submit_shutdown_notice(session->nghttp2), 0);
    return;
  }
  if (last == MOCK_LAST)
    last = nghttp2_session_get_last_proc_stream_id(session->nghttp2);
  session->finishes = 1;
  CHECK_INT(nghttp2_submit_goaway(session->nghttp2, NGHTTP2_FLAG_NONE, last,
                                  goaway->code, NULL, 0),
            0);
}

void mock_goaway(mock_server_t *server, int connection, int32_t last,
                 uint32_t code) {
  const goaway_t goaway = {last, code};

  each(server, connection, say_goaway, &goaway);
}

void mock_close_connection(mock_server_t *server, int connection, int reset) {
  TNK__LIST_FOREACH_SAFE (node, next, &server->conns) {
    mock_conn_t *conn = tnk__container_of(node, mock_conn_t, link);
    if (connection == MOCK_ALL || conn->number == (size_t)connection)
      mock__close_conn(conn, reset);
  }
}

typedef struct {
  uint8_t head[9];
  const void *payload;
  size_t n;
} frame_t;

static void say_frame(mock_session_t *session, const void *how) {
  const frame_t *frame = how;

  session->may_fail = 1;
  mock__http2_fill(session->conn);
  mock__add(&session->conn->queue, frame->head, sizeof(frame->head));
  mock__add(&session->conn->queue, frame->payload, frame->n);
}

void mock_frame(mock_server_t *server, int connection, uint8_t type,
                uint8_t flags, int32_t stream, const void *payload, size_t n) {
  mock_frame_of(server, connection, type, flags, stream, payload, n, n);
}

void mock_frame_of(mock_server_t *server, int connection, uint8_t type,
                   uint8_t flags, int32_t stream, const void *payload, size_t n,
                   size_t told) {
  const uint32_t id = (uint32_t)stream;
  const frame_t frame = {{(uint8_t)(told >> 16), (uint8_t)(told >> 8),
                          (uint8_t)told, type, flags, (uint8_t)(id >> 24),
                          (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id},
                         payload,
                         n};

  each(server, connection, say_frame, &frame);
}

/* A head without a status: "date", from the static table. */
void mock__http2_nonsense(mock_stream_t *stream) {
  mock_conn_t *conn = stream->session->conn;

  mock_frame(conn->server, (int)conn->number, MOCK_HEADERS,
             NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, stream->id,
             "\xa1", 1);
}

/* Manners. */

static void say_nothing(mock_session_t *session, const void *how) {
  (void)session;
  (void)how;
}

void mock_set_silent(mock_server_t *server, int silent) {
  server->h2.is_silent = silent;
  each(server, MOCK_ALL, say_nothing, NULL);
}

static void open_windows(mock_session_t *session, const void *how) {
  (void)how;
  TNK__LIST_FOREACH (node, &session->streams) {
    mock_stream_t *stream = tnk__container_of(node, mock_stream_t, link);
    CHECK_INT(
        nghttp2_session_consume(session->nghttp2, stream->id, stream->owed), 0);
    session->owed -= stream->owed;
    stream->owed = 0;
  }
  CHECK_INT(nghttp2_session_consume_connection(session->nghttp2, session->owed),
            0);
  session->owed = 0;
}

void mock_set_windows(mock_server_t *server, int open) {
  server->h2.no_windows = !open;
  if (open)
    each(server, MOCK_ALL, open_windows, NULL);
}

static void widen(mock_session_t *session, const void *how) {
  const int32_t *n = how;

  CHECK_INT(nghttp2_session_set_local_window_size(session->nghttp2,
                                                  NGHTTP2_FLAG_NONE, 0, *n),
            0);
}

void mock_set_connection_window(mock_server_t *server, int32_t n) {
  each(server, MOCK_ALL, widen, &n);
}
