/* SPDX-License-Identifier: MIT */
#include "support/proxy.h"

#include <stdlib.h>
#include <string.h>

#include "support/test.h"

/* The way from one connection of the proxy's to the target. */
typedef struct test_pipe {
  test_proxy_t *proxy;
  struct test_pipe *next;
  test_conn_t *conn;
  uv_tcp_t tcp;
  uv_connect_t connect;
  int is_connected;
  int is_closing;
} test_pipe_t;

typedef struct {
  uv_write_t req;
  char data[];
} write_t;

static test_pipe_t *pipe_of(const test_proxy_t *proxy,
                            const test_conn_t *conn) {
  test_pipe_t *pipe = proxy->pipes;

  while (pipe != NULL && (pipe->conn != conn || pipe->is_closing))
    pipe = pipe->next;
  return pipe;
}

static int is_open(const test_proxy_t *proxy, const test_conn_t *conn) {
  const test_conn_t *at = proxy->server.conns;

  while (at != NULL && at != conn)
    at = at->next;
  return at != NULL;
}

static void on_closed(uv_handle_t *handle) {
  test_pipe_t *pipe = handle->data;
  test_pipe_t **at = &pipe->proxy->pipes;

  while (*at != pipe)
    at = &(*at)->next;
  *at = pipe->next;
  free(pipe);
}

static void pipe_close(test_pipe_t *pipe) {
  if (pipe == NULL || pipe->is_closing)
    return;
  pipe->is_closing = 1;
  uv_close((uv_handle_t *)&pipe->tcp, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  static char data[65536];

  (void)handle;
  (void)hint;
  *buf = uv_buf_init(data, sizeof(data));
}

static void on_target_read(uv_stream_t *stream, ssize_t n,
                           const uv_buf_t *buf) {
  test_pipe_t *pipe = stream->data;
  const int alive = is_open(pipe->proxy, pipe->conn);

  if (n > 0 && alive)
    test_conn_write(pipe->conn, buf->base, (size_t)n);
  if (n >= 0)
    return;
  if (alive && n == UV_ECONNRESET && pipe->proxy->is_front)
    test_conn_reset(pipe->conn);
  else if (alive)
    test_conn_end(pipe->conn);
  pipe_close(pipe);
}

static void on_connected(uv_connect_t *req, int status) {
  test_pipe_t *pipe = req->data;
  test_proxy_t *proxy = pipe->proxy;
  const char *agreement = proxy->agreement;
  static const unsigned char socks[] = {5, 0, 0, 1, 127, 0, 0, 1, 0, 80};

  if (status != 0 || !is_open(proxy, pipe->conn)) {
    if (proxy->is_front && is_open(proxy, pipe->conn))
      test_conn_reset(pipe->conn);
    pipe_close(pipe);
    return;
  }
  if (agreement == NULL)
    agreement = "HTTP/1.1 200 Connection established\r\n\r\n";
  pipe->is_connected = 1;
  CHECK_INT(uv_read_start((uv_stream_t *)&pipe->tcp, on_alloc, on_target_read),
            0);
  if (proxy->is_front)
    return;
  if (proxy->is_socks)
    test_conn_write(pipe->conn, socks, sizeof(socks));
  else
    test_conn_write(pipe->conn, agreement, strlen(agreement));
}

static void connect_to_target(test_proxy_t *proxy, test_conn_t *conn) {
  test_pipe_t *pipe = calloc(1, sizeof(*pipe));
  struct sockaddr_in address;

  CHECK(pipe != NULL);
  pipe->proxy = proxy;
  pipe->conn = conn;
  pipe->next = proxy->pipes;
  proxy->pipes = pipe;
  CHECK_INT(uv_tcp_init(proxy->server.listener.loop, &pipe->tcp), 0);
  pipe->tcp.data = pipe->connect.data = pipe;
  CHECK_INT(uv_ip4_addr("127.0.0.1", proxy->target_port, &address), 0);
  CHECK_INT(uv_tcp_connect(&pipe->connect, &pipe->tcp,
                           (const struct sockaddr *)&address, on_connected),
            0);
  /* Else a short write waits for the confirmation of the one before. */
  CHECK_INT(uv_tcp_nodelay(&pipe->tcp, 1), 0);
}

static void on_written(uv_write_t *req, int status) {
  (void)status;
  free(req->data);
}

static void pass_on(test_pipe_t *pipe, const unsigned char *data, size_t n) {
  write_t *write = malloc(sizeof(*write) + n);
  uv_buf_t buf;

  CHECK(write != NULL);
  memcpy(write->data, data, n);
  write->req.data = write;
  buf = uv_buf_init(write->data, (unsigned)n);
  pipe->proxy->n_up += n;
  CHECK_INT(
      uv_write(&write->req, (uv_stream_t *)&pipe->tcp, &buf, 1, on_written), 0);
}

/* What it says instead of connecting; 0: nothing, it connects. */
static int has_answered(const test_proxy_t *proxy, test_conn_t *conn) {
  if (proxy->answer == NULL)
    return 0;
  test_conn_write(conn, proxy->answer, strlen(proxy->answer));
  if (proxy->cuts == 2)
    test_conn_reset(conn);
  else if (proxy->cuts)
    test_conn_end(conn);
  return 1;
}

/* ---- SOCKS5, in messages that come whole ---- */

enum { GREETING = 0, LOGIN, REQUEST };

static void hear_greeting(test_proxy_t *proxy, test_conn_t *conn,
                          const unsigned char *data, size_t n) {
  const int method = proxy->method > 0 ? proxy->method : proxy->login ? 2 : 0;
  const unsigned char answer[] = {5, (unsigned char)method};

  CHECK(n >= 3 && data[0] == 5 && data[1] == n - 2);
  conn->user = (void *)(intptr_t)(method == 2 ? LOGIN : REQUEST);
  test_conn_write(conn, answer, 2);
}

static void hear_login(test_proxy_t *proxy, test_conn_t *conn,
                       const unsigned char *data, size_t n) {
  const size_t n_user = data[1];
  const char *blank = strchr(proxy->login, ' ');
  const size_t n_known = (size_t)(blank - proxy->login);
  unsigned char answer[] = {1, 0};

  CHECK(n > 2 + n_user && data[0] == 1 && n == 3 + n_user + data[2 + n_user]);
  answer[1] = n_user != n_known || n - 3 - n_user != strlen(blank + 1) ||
              memcmp(data + 2, proxy->login, n_user) != 0 ||
              memcmp(data + 3 + n_user, blank + 1, strlen(blank + 1)) != 0;
  conn->user = (void *)(intptr_t)REQUEST;
  test_conn_write(conn, answer, 2);
}

static void hear_socks(test_proxy_t *proxy, test_conn_t *conn,
                       const unsigned char *data, size_t n) {
  const unsigned char answer[] = {
      5, (unsigned char)proxy->reply, 0, 1, 0, 0, 0, 0, 0, 0};

  if (has_answered(proxy, conn))
    return;
  if ((intptr_t)conn->user == GREETING) {
    hear_greeting(proxy, conn, data, n);
    return;
  }
  if ((intptr_t)conn->user == LOGIN) {
    hear_login(proxy, conn, data, n);
    return;
  }
  CHECK(n < sizeof(proxy->head));
  memcpy(proxy->head, data, n);
  proxy->n_head = n;
  proxy->n_asked++;
  if (proxy->reply == 0)
    connect_to_target(proxy, conn);
  else
    test_conn_write(conn, answer, sizeof(answer));
}

/* The heads of several connections may arrive in turns, each in pieces. */
static int has_whole_head(test_proxy_t *proxy, test_conn_t *conn,
                          const unsigned char *data, size_t n) {
  CHECK(conn->n_head + n < sizeof(proxy->head));
  conn->head = realloc(conn->head, conn->n_head + n + 1);
  CHECK(conn->head != NULL);
  memcpy(conn->head + conn->n_head, data, n);
  conn->n_head += n;
  conn->head[conn->n_head] = '\0';
  if (strstr(conn->head, "\r\n\r\n") == NULL)
    return 0;
  proxy->n_head = conn->n_head;
  memcpy(proxy->head, conn->head, conn->n_head + 1);
  conn->n_head = 0;
  return 1;
}

static void on_read(test_conn_t *conn, const unsigned char *data, size_t n) {
  test_proxy_t *proxy = conn->server->options.user;
  test_pipe_t *pipe = pipe_of(proxy, conn);

  if (pipe != NULL) {
    /* Nobody may speak before the tunnel is there. */
    CHECK(pipe->is_connected || proxy->is_front);
    pass_on(pipe, data, n);
    return;
  }
  if (proxy->is_front)
    return; /* the target is gone, and so is this soon */
  if (proxy->is_socks) {
    hear_socks(proxy, conn, data, n);
    return;
  }
  if (!has_whole_head(proxy, conn, data, n))
    return;
  /* Nothing may follow it. */
  CHECK_INT(strstr(proxy->head, "\r\n\r\n") + 4 - proxy->head, proxy->n_head);
  proxy->n_asked++;
  if (!has_answered(proxy, conn))
    connect_to_target(proxy, conn);
}

static void on_front_open(test_conn_t *conn) {
  connect_to_target(conn->server->options.user, conn);
}

static void on_end(test_conn_t *conn) {
  test_proxy_t *proxy = conn->server->options.user;

  pipe_close(pipe_of(proxy, conn));
}

void test_proxy_open(test_proxy_t *proxy, uv_loop_t *loop, int target_port,
                     size_t chop) {
  const test_server_options_t options = {
      .on_read = on_read, .on_end = on_end, .chop = chop, .user = proxy};

  memset(proxy, 0, sizeof(*proxy));
  proxy->target_port = target_port;
  test_server_open(&proxy->server, loop, &options);
}

void test_front_open(test_proxy_t *front, uv_loop_t *loop, int target_port,
                     const test_identity_t *identity, const char *const *alpn) {
  const test_server_options_t options = {.identity = identity,
                                         .alpn = alpn,
                                         .on_open = on_front_open,
                                         .on_read = on_read,
                                         .on_end = on_end,
                                         .user = front};

  memset(front, 0, sizeof(*front));
  front->target_port = target_port;
  front->is_front = 1;
  test_server_open(&front->server, loop, &options);
}

void test_proxy_close(test_proxy_t *proxy) {
  for (test_pipe_t *pipe = proxy->pipes; pipe != NULL; pipe = pipe->next)
    pipe_close(pipe);
  test_server_close(&proxy->server);
  TEST_RUN_UNTIL(proxy->server.listener.loop, proxy->pipes == NULL);
}
