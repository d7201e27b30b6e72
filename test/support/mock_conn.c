/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/alloc.h"
#include "support/mock_internal.h"
#include "support/test.h"

/*
 * The wire: accepts, reads, writes, closes. The first bytes of a connection
 * tell its version: no method of HTTP/1.1 begins with "PRI", which begins the
 * preface of HTTP/2.
 */

static void on_conn_closed(uv_handle_t *handle) {
  mock_conn_t *conn = handle->data;
  mock_server_t *server = conn->server;

  mock__http2_free(conn);
  free(conn->message.text.data);
  free(conn->out.data);
  free(conn->queue.data);
  free(conn);
  mock__release_handle(server);
}

void mock__close_conn(mock_conn_t *conn, int reset) {
  if (conn->is_closing)
    return;
  conn->is_closing = 1;
  conn->server->n_open--;
  tnk__list_remove(&conn->link);
  mock__message_lose(&conn->message);
  mock__http2_lose(conn);
  if (!reset || uv_tcp_close_reset(&conn->tcp, on_conn_closed) != 0)
    uv_close((uv_handle_t *)&conn->tcp, on_conn_closed);
}

int mock__is_idle(const mock_conn_t *conn) {
  return conn->message.request == NULL && mock__http2_n_streams(conn) == 0;
}

/* Writing. */

static void on_write(uv_write_t *write, int status) {
  mock_conn_t *conn = tnk__container_of(write, mock_conn_t, write);

  conn->is_writing = 0;
  if (conn->is_closing)
    return;
  if (status < 0) {
    mock__close_conn(conn, 0);
    return;
  }
  mock__flush(conn);
}

int mock__is_flushed(const mock_conn_t *conn) {
  return conn->out_at == conn->out.len && conn->queue.len == 0;
}

void mock__flush(mock_conn_t *conn) {
  uv_buf_t buf;
  size_t n;

  if (conn->is_writing || conn->is_closing)
    return;
  if (conn->session != NULL && mock__is_flushed(conn))
    mock__http2_fill(conn);
  if (mock__is_flushed(conn)) {
    if (conn->session != NULL)
      mock__http2_flushed(conn);
    else
      mock__http1_flushed(conn);
    return;
  }
  if (conn->out_at == conn->out.len) {
    mock_text_t swap = conn->out;
    conn->out = conn->queue;
    conn->queue = swap;
    conn->queue.len = conn->out_at = 0;
  }
  n = conn->server->drip ? 1 : conn->out.len - conn->out_at;
  buf = uv_buf_init(conn->out.data + conn->out_at, (unsigned)n);
  conn->out_at += n;
  conn->server->n_bytes += n;
  conn->is_writing = 1;
  if (uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &buf, 1, on_write) != 0)
    mock__close_conn(conn, 0);
}

/* Reading. */

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
  static _Thread_local char space[65536];

  (void)handle;
  (void)size;
  *buf = uv_buf_init(space, sizeof(space));
}

static void read_bytes(mock_conn_t *conn, const char *data, size_t n) {
  if (conn->is_refused)
    return;
  if (conn->session != NULL)
    mock__http2_read(conn, data, n);
  else
    mock__http1_read(conn, data, n);
}

/* As a server of HTTP/1.1 does, to which the preface is no request. */
static void refuse_preface(mock_conn_t *conn) {
  static const char answer[] = "HTTP/1.1 400 Bad Request\r\n"
                               "Content-Length: 0\r\n"
                               "Connection: close\r\n\r\n";

  conn->is_refused = 1;
  conn->close_after = 1;
  mock__add(&conn->queue, answer, sizeof(answer) - 1);
  mock__flush(conn);
}

static void refuse_http1(mock_conn_t *conn) {
  static const char answer[] = {0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7,
                                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

  conn->is_refused = 1;
  conn->close_after = 1;
  mock__add(&conn->queue, answer, sizeof(answer));
  mock__flush(conn);
}

/* Keeps the first bytes until they tell the version; returns how many of these
 * it has taken. */
static size_t read_first(mock_conn_t *conn, const char *data, size_t n) {
  static const char preface[] = "PRI";
  const size_t size = sizeof(conn->first);
  size_t taken = 0;

  while (conn->n_first < size && taken < n) {
    conn->first[conn->n_first++] = data[taken++];
    if (memcmp(conn->first, preface, conn->n_first) != 0)
      break;
    if (conn->n_first == size && conn->server->h2.is_unknown)
      refuse_preface(conn);
    else if (conn->n_first == size)
      mock__http2_open(conn);
    else if (taken == n)
      return taken; /* it may still be either */
  }
  if (taken > 0) {
    const size_t n_first = conn->n_first;
    conn->n_first = size;
    if (conn->session == NULL && conn->server->h2.is_alone)
      refuse_http1(conn);
    read_bytes(conn, conn->first, n_first);
  }
  return taken;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  mock_conn_t *conn = stream->data;
  size_t taken;

  if (n < 0) {
    mock__close_conn(conn, 0);
    return;
  }
  if (n == 0)
    return;
  conn->server->n_bytes += (size_t)n;
  taken = read_first(conn, buf->base, (size_t)n);
  if ((size_t)n > taken && !conn->is_closing)
    read_bytes(conn, buf->base + taken, (size_t)n - taken);
}

void mock__start_reading(mock_conn_t *conn) {
  CHECK_INT(uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read), 0);
}

/* Accepting. */

static mock_conn_t *new_conn(mock_server_t *server) {
  mock_conn_t *conn = calloc(1, sizeof(*conn));

  CHECK(conn != NULL);
  CHECK_INT(uv_tcp_init(server->uv, &conn->tcp), 0);
  conn->tcp.data = conn;
  conn->server = server;
  return conn;
}

static void begin(mock_conn_t *conn) {
  mock_server_t *server = conn->server;

  uv_tcp_nodelay(&conn->tcp, 1);
  uv_unref((uv_handle_t *)&conn->tcp);
  conn->number = server->n_connections++;
  server->n_open++;
  server->n_handles++;
  tnk__list_append(&server->conns, &conn->link);
  mock__http1_init(conn);
  if (!server->is_deaf)
    mock__start_reading(conn);
}

/* Takes all connections that wait. From 1.45 on libuv hands out one a turn, and
 * requests would not be seen in the order in which they were sent. */
void mock__on_connection(uv_stream_t *listener, int status) {
  mock_server_t *server = listener->data;
  mock_conn_t *conn = new_conn(server);
  uv_os_fd_t listening;
  int fd;

  CHECK_INT(status, 0);
  CHECK_INT(uv_accept(listener, (uv_stream_t *)&conn->tcp), 0);
  begin(conn);
  CHECK_INT(uv_fileno((uv_handle_t *)listener, &listening), 0);
  while ((fd = accept(listening, NULL, NULL)) >= 0) {
    conn = new_conn(server);
    CHECK_INT(uv_tcp_open(&conn->tcp, fd), 0);
    begin(conn);
  }
}
