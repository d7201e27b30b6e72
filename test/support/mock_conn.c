#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "support/mock_internal.h"
#include "support/test.h"

/*
 * A connection reads one request, waits for its answer, and reads the next.
 */

void mock__add(mock_text_t *text, const void *data, size_t n) {
  if (text->len + n + 1 > text->cap) {
    text->cap = 2 * (text->len + n + 1);
    text->data = realloc(text->data, text->cap);
    CHECK(text->data != NULL);
  }
  if (n > 0)
    memcpy(text->data + text->len, data, n);
  text->len += n;
  text->data[text->len] = '\0';
}

/* Connections. */

static void on_conn_closed(uv_handle_t *handle) {
  mock_conn_t *conn = handle->data;
  mock_server_t *server = conn->server;

  free(conn->text.data);
  free(conn->out.data);
  free(conn->queue.data);
  free(conn);
  mock__release_handle(server);
}

static void set_pointers(mock_conn_t *conn);

/* Part the request from its connection; it keeps its text. */
static void detach(mock_conn_t *conn) {
  mock_request_t *request = conn->request;

  if (request == NULL)
    return;
  request->conn = NULL;
  if (!request->is_complete && request->headers != NULL) {
    request->is_gone = 1;
    set_pointers(conn);
    conn->text = (mock_text_t){NULL, 0, 0};
  } else if (!request->is_complete) {
    /* Not even its head has come: nobody knows it. */
    free(request);
  }
  conn->request = NULL;
}

void mock__close_conn(mock_conn_t *conn, int reset) {
  if (conn->is_closing)
    return;
  conn->is_closing = 1;
  conn->server->n_open--;
  tnk__list_remove(&conn->link);
  if (conn->request != NULL)
    conn->request->is_gone = 1;
  detach(conn);
  if (!reset || uv_tcp_close_reset(&conn->tcp, on_conn_closed) != 0)
    uv_close((uv_handle_t *)&conn->tcp, on_conn_closed);
}

/* The answer is out: the next request may come. */
static void end_request(mock_conn_t *conn) {
  conn->ends = 0;
  detach(conn);
  if (conn->close_after)
    mock__close_conn(conn, 0);
}

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

static int is_flushed(const mock_conn_t *conn) {
  return conn->out_at == conn->out.len && conn->queue.len == 0;
}

void mock__flush(mock_conn_t *conn) {
  uv_buf_t buf;
  size_t n;

  if (conn->is_writing || conn->is_closing)
    return;
  if (is_flushed(conn)) {
    if (conn->close_after ||
        (conn->ends && (conn->request == NULL || conn->request->is_complete)))
      end_request(conn);
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
  conn->is_writing = 1;
  if (uv_write(&conn->write, (uv_stream_t *)&conn->tcp, &buf, 1, on_write) != 0)
    mock__close_conn(conn, 0);
}

/* Reading. */

static mock_conn_t *conn_of(llhttp_t *parser) {
  return parser->data;
}

static int on_text(llhttp_t *parser, const char *at, size_t n) {
  mock__add(&conn_of(parser)->text, at, n);
  return 0;
}

static int on_text_end(llhttp_t *parser) {
  mock_conn_t *conn = conn_of(parser);

  mock__add(&conn->text, "", 1);
  CHECK(conn->n_marks < sizeof(conn->marks) / sizeof(conn->marks[0]));
  conn->marks[conn->n_marks++] = conn->text.len;
  return 0;
}

static int on_begin(llhttp_t *parser) {
  mock_conn_t *conn = conn_of(parser);
  mock_request_t *request = calloc(1, sizeof(*request));

  CHECK(request != NULL);
  /* The answer may be read before we are told that it was written. */
  if (conn->request != NULL && conn->ends && is_flushed(conn))
    end_request(conn);
  /* A second request before the answer would be pipelining. */
  CHECK(conn->request == NULL);
  request->server = conn->server;
  request->conn = conn;
  request->connection = conn->number;
  conn->request = request;
  conn->text = (mock_text_t){NULL, 0, 0};
  conn->n_marks = 0;
  return 0;
}

/* Point the request into its text, which may have moved. */
static void set_pointers(mock_conn_t *conn) {
  mock_request_t *request = conn->request;
  char *text = conn->text.data;

  request->text = text;
  request->target = text;
  request->path = text + conn->path_at;
  request->body = (uint8_t *)text + conn->path_at + strlen(request->path) + 1;
  request->body_len =
      (size_t)((uint8_t *)text + conn->text.len - request->body);
}

static int on_head(llhttp_t *parser) {
  mock_conn_t *conn = conn_of(parser);
  mock_server_t *server = conn->server;
  mock_request_t *request = conn->request;
  size_t n = strcspn(conn->text.data, "?");
  size_t i = 0;

  /* Of a whole URL, as a proxy gets it, the host is no part of the path. */
  if (strncmp(conn->text.data, "http://", 7) == 0)
    i = 7 + strcspn(conn->text.data + 7, "/");
  /* The path goes behind the headers, the body behind the path. */
  conn->path_at = conn->text.len;
  for (; i < n; i++) {
    char c = conn->text.data[i];
    mock__add(&conn->text, &c, 1);
  }
  mock__add(&conn->text, "", 1);
  request->method = llhttp_method_name((llhttp_method_t)parser->method);
  request->n_headers = conn->n_marks / 2;
  request->headers = malloc((conn->n_marks + 1) * sizeof(size_t));
  CHECK(request->headers != NULL);
  memcpy(request->headers, conn->marks, conn->n_marks * sizeof(size_t));
  set_pointers(conn);
  server->requests = realloc(server->requests, (server->n_requests + 1) *
                                                   sizeof(mock_request_t *));
  CHECK(server->requests != NULL);
  server->requests[server->n_requests++] = request;
  if (server->on_head != NULL)
    server->on_head(request, server->on_head_user);
  return conn->is_closing ? -1 : 0;
}

static int on_complete(llhttp_t *parser) {
  mock_conn_t *conn = conn_of(parser);
  mock_request_t *request = conn->request;

  set_pointers(conn);
  request->is_complete = 1;
  /* The request keeps its text. */
  conn->text = (mock_text_t){NULL, 0, 0};
  if (request->is_answered)
    mock__flush(conn);
  else
    mock__handle(request);
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

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
  static _Thread_local char space[65536];

  (void)handle;
  (void)size;
  *buf = uv_buf_init(space, sizeof(space));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  mock_conn_t *conn = stream->data;

  if (n < 0) {
    mock__close_conn(conn, 0);
    return;
  }
  if (n == 0)
    return;
  if (llhttp_execute(&conn->parser, buf->base, (size_t)n) != HPE_OK &&
      !conn->is_closing)
    test_fail(__FILE__, __LINE__, "the client sent no valid HTTP: %s",
              llhttp_get_error_reason(&conn->parser));
  if (conn->request != NULL && conn->request->headers != NULL &&
      !conn->request->is_complete)
    set_pointers(conn);
}

void mock__start_reading(mock_conn_t *conn) {
  CHECK_INT(uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read), 0);
}

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
  llhttp_init(&conn->parser, HTTP_REQUEST, &settings);
  conn->parser.data = conn;
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
