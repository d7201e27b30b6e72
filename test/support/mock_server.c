/* SPDX-License-Identifier: MIT */
#include "support/mock_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "support/mock_internal.h"
#include "support/port.h"
#include "support/test.h"

static void free_request(mock_request_t *request) {
  free(request->text);
  free(request->headers);
  free(request);
}

static void free_rules(tnk__list_t *list) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(list)) != NULL) {
    mock_rule_t *rule = tnk__container_of(node, mock_rule_t, link);
    free(rule->method);
    free(rule->path);
    free(rule->json);
    free(rule);
  }
}

void mock__release_handle(mock_server_t *server) {
  if (--server->n_handles > 0)
    return;
  for (size_t i = 0; i < server->n_requests; i++)
    free_request(server->requests[i]);
  free(server->requests);
  free_rules(&server->once);
  free_rules(&server->rules);
  free(server);
}

static int matches(const mock_rule_t *rule, const mock_request_t *request) {
  return (rule->method == NULL || strcmp(rule->method, request->method) == 0) &&
         (rule->path == NULL || strcmp(rule->path, request->path) == 0);
}

static void run_rule(const mock_rule_t *rule, mock_request_t *request) {
  if (rule->handler != NULL)
    rule->handler(request, rule->user);
  else
    mock_reply_json(request, rule->status, rule->json);
}

void mock__handle(mock_request_t *request) {
  mock_server_t *server = request->server;

  TNK__LIST_FOREACH_SAFE (node, next, &server->once) {
    mock_rule_t *rule = tnk__container_of(node, mock_rule_t, link);
    if (matches(rule, request)) {
      tnk__list_t used;
      tnk__list_init(&used);
      tnk__list_remove(&rule->link);
      tnk__list_append(&used, &rule->link);
      run_rule(rule, request);
      free_rules(&used);
      if (!server->passes)
        return;
      server->passes = 0;
    }
  }
  TNK__LIST_FOREACH (node, &server->rules) {
    const mock_rule_t *rule = tnk__container_of(node, mock_rule_t, link);
    if (matches(rule, request)) {
      run_rule(rule, request);
      if (!server->passes)
        return;
      server->passes = 0;
    }
  }
  mock_reply_json(request, 404, "{\"detail\":\"the mock has no answer\"}");
}

void mock_pass(mock_request_t *request) {
  request->server->passes = 1;
}

/* What is held. */

static int is_held(const mock_request_t *request) {
  return request->is_complete && !request->is_answered && !request->is_gone;
}

size_t mock_release(mock_server_t *server, int status, const char *json) {
  size_t n_before = server->n_requests;
  size_t n = 0;

  for (size_t i = 0; i < n_before; i++) {
    if (is_held(server->requests[i])) {
      mock_reply_json(server->requests[i], status, json);
      n++;
    }
  }
  return n;
}

/* Opening, closing, rules. */

/* A socket on a port that no recent server of this thread had. The system may
 * give one out again, and a client that remembers a server by its address, as
 * back-offs are remembered, would take the new one for the old. Linux gives out
 * a quarter of its 28,000 ports here, so they are used again after 5,000. */
static int bind_fresh_port(uint16_t *port) {
  enum { MAX_USED = 5000 };
  static _Thread_local uint8_t is_used[65536];
  static _Thread_local size_t n_used;
  const int yes = 1;
  struct sockaddr_in address;
  socklen_t size = sizeof(address);
  int fd = -1;

  CHECK_INT(uv_ip4_addr("127.0.0.1", 0, &address), 0);
  do {
    if (fd >= 0)
      close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
    address.sin_port = 0;
    CHECK_INT(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
  } while (is_used[*port]);
  if (++n_used == MAX_USED) {
    memset(is_used, 0, sizeof(is_used));
    n_used = 0;
  }
  is_used[*port] = 1;
  return fd;
}

static void listen_on_held(mock_server_t *server) {
  CHECK_INT(port_bound(server->held), 0);
  CHECK_INT(uv_tcp_open(&server->listener, server->held), 0);
  server->held = 0;
  CHECK_INT(
      uv_listen((uv_stream_t *)&server->listener, 4096, mock__on_connection),
      0);
}

mock_server_t *mock_open(uv_loop_t *uv) {
  mock_server_t *server = calloc(1, sizeof(*server));

  CHECK(server != NULL);
  server->uv = uv;
  server->is_listening = 1;
  tnk__list_init(&server->once);
  tnk__list_init(&server->rules);
  tnk__list_init(&server->conns);
  tnk__list_init(&server->delayed);
  CHECK_INT(uv_tcp_init(uv, &server->listener), 0);
  CHECK_INT(uv_idle_init(uv, &server->spin), 0);
  server->n_handles = 2;
  server->listener.data = server;
  server->spin.data = server;
  uv_unref((uv_handle_t *)&server->listener);
  server->held = bind_fresh_port(&server->port);
  listen_on_held(server);
  snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u",
           (unsigned)server->port);
  return server;
}

static void on_handle_closed(uv_handle_t *handle) {
  mock_server_t *server = handle->data;

  server->is_listener_closed |= handle == (uv_handle_t *)&server->listener;
  mock__release_handle(server);
}

static void close_listener(mock_server_t *server) {
  if (server->is_listening)
    uv_close((uv_handle_t *)&server->listener, on_handle_closed);
  server->is_listening = 0;
}

void mock_stop_listening(mock_server_t *server) {
  if (!server->is_listening)
    return;
  close_listener(server);
  server->held = port_hold(server->port);
}

void mock_listen_again(mock_server_t *server) {
  CHECK(!server->is_listening);
  while (!server->is_listener_closed)
    uv_run(server->uv, UV_RUN_ONCE);
  server->is_listener_closed = 0;
  CHECK_INT(uv_tcp_init(server->uv, &server->listener), 0);
  server->n_handles++;
  server->listener.data = server;
  server->is_listening = 1;
  uv_unref((uv_handle_t *)&server->listener);
  if (server->held <= 0)
    server->held = port_hold(server->port);
  listen_on_held(server);
}

void mock_close(mock_server_t *server) {
  tnk__list_t *node;

  server->is_closing = 1;
  while ((node = tnk__list_first(&server->conns)) != NULL)
    mock__close_conn(tnk__container_of(node, mock_conn_t, link), 0);
  mock__forget_delayed(server);
  uv_close((uv_handle_t *)&server->spin, on_handle_closed);
  close_listener(server);
  port_release(&server->held);
}

uint16_t mock_port(const mock_server_t *server) {
  return server->port;
}

const char *mock_url(const mock_server_t *server) {
  return server->url;
}

static mock_rule_t *new_rule(const char *method, const char *path) {
  mock_rule_t *rule = calloc(1, sizeof(*rule));

  CHECK(rule != NULL);
  rule->method = mock__copy(method);
  rule->path = mock__copy(path);
  return rule;
}

void mock_on(mock_server_t *server, const char *method, const char *path,
             mock_handler_t handler, void *user) {
  mock_rule_t *rule = new_rule(method, path);

  rule->handler = handler;
  rule->user = user;
  tnk__list_prepend(&server->rules, &rule->link);
}

void mock_once(mock_server_t *server, const char *method, const char *path,
               mock_handler_t handler, void *user) {
  mock_rule_t *rule = new_rule(method, path);

  rule->handler = handler;
  rule->user = user;
  tnk__list_append(&server->once, &rule->link);
}

void mock_json(mock_server_t *server, const char *method, const char *path,
               int status, const char *json) {
  mock_rule_t *rule = new_rule(method, path);

  rule->status = status;
  rule->json = mock__copy(json);
  tnk__list_prepend(&server->rules, &rule->link);
}

void mock_json_once(mock_server_t *server, const char *method, const char *path,
                    int status, const char *json) {
  mock_rule_t *rule = new_rule(method, path);

  rule->status = status;
  rule->json = mock__copy(json);
  tnk__list_append(&server->once, &rule->link);
}

/* What came. */

size_t mock_n_requests(const mock_server_t *server) {
  return server->n_requests;
}

mock_request_t *mock_request(const mock_server_t *server, size_t i) {
  CHECK(i < server->n_requests);
  return server->requests[i];
}

mock_request_t *mock_find(const mock_server_t *server, const char *method,
                          const char *path, size_t i) {
  for (size_t k = 0; k < server->n_requests; k++) {
    mock_request_t *request = server->requests[k];
    if ((method == NULL || strcmp(request->method, method) == 0) &&
        (path == NULL || strcmp(request->path, path) == 0) && i-- == 0)
      return request;
  }
  return NULL;
}

size_t mock_count(const mock_server_t *server, const char *method,
                  const char *path) {
  size_t n = 0;

  while (mock_find(server, method, path, n) != NULL)
    n++;
  return n;
}

size_t mock_n_held(const mock_server_t *server) {
  size_t n = 0;

  for (size_t i = 0; i < server->n_requests; i++)
    n += is_held(server->requests[i]) ? 1 : 0;
  return n;
}

const char *mock_header(const mock_request_t *request, const char *name) {
  for (size_t i = 0; i < request->n_headers; i++)
    if (strcasecmp(request->text + request->headers[2 * i], name) == 0)
      return request->text + request->headers[2 * i + 1];
  return NULL;
}

size_t mock_n_bytes(const mock_server_t *server) {
  return server->n_bytes;
}

size_t mock_n_connections(const mock_server_t *server) {
  return server->n_connections;
}

size_t mock_n_open(const mock_server_t *server) {
  return server->n_open;
}

int mock_is_writing(const mock_server_t *server) {
  TNK__LIST_FOREACH (node, &server->conns)
    if (tnk__container_of_const(node, mock_conn_t, link)->is_writing)
      return 1;
  return 0;
}

/* Waiting. */

static void run_once(mock_server_t *server) {
  if (server->is_listening)
    uv_ref((uv_handle_t *)&server->listener);
  uv_run(server->uv, UV_RUN_ONCE);
  if (server->is_listening)
    uv_unref((uv_handle_t *)&server->listener);
}

void mock_wait(mock_server_t *server, size_t n_requests) {
  while (server->n_requests < n_requests)
    run_once(server);
}

void mock_wait_flag(mock_server_t *server, const int *flag, int n) {
  while (*flag < n)
    run_once(server);
}

void mock_wait_open(mock_server_t *server, size_t n_open) {
  while (server->n_open != n_open)
    run_once(server);
}

static void on_spin(uv_idle_t *idle) {
  (void)idle;
}

void mock_turns(mock_server_t *server, int n) {
  uv_idle_start(&server->spin, on_spin);
  while (n-- > 0)
    uv_run(server->uv, UV_RUN_NOWAIT);
  uv_idle_stop(&server->spin);
}

/* Manners. */

void mock_set_clock(mock_server_t *server, struct tnk__context *loop) {
  server->clock = loop;
}

void mock_set_drip(mock_server_t *server, int drip) {
  server->drip = drip;
}

void mock_set_lenient(mock_server_t *server, int lenient) {
  server->is_lenient = lenient;
}

void mock_set_headers(mock_server_t *server, const char *lines) {
  server->headers = lines;
}

void mock_set_reading(mock_server_t *server, int reading) {
  server->is_deaf = !reading;
  TNK__LIST_FOREACH (node, &server->conns) {
    mock_conn_t *conn = tnk__container_of(node, mock_conn_t, link);
    uv_read_stop((uv_stream_t *)&conn->tcp);
    if (reading)
      mock__start_reading(conn);
  }
}

void mock_on_head(mock_server_t *server, mock_handler_t handler, void *user) {
  server->on_head = handler;
  server->on_head_user = user;
}

void mock_close_idle(mock_server_t *server, int reset) {
  TNK__LIST_FOREACH_SAFE (node, next, &server->conns) {
    mock_conn_t *conn = tnk__container_of(node, mock_conn_t, link);
    if (mock__is_idle(conn))
      mock__close_conn(conn, reset);
  }
}

void mock_close_all(mock_server_t *server, int reset) {
  TNK__LIST_FOREACH_SAFE (node, next, &server->conns)
    mock__close_conn(tnk__container_of(node, mock_conn_t, link), reset);
}

void mock_write_idle(mock_server_t *server, const char *text) {
  TNK__LIST_FOREACH (node, &server->conns) {
    mock_conn_t *conn = tnk__container_of(node, mock_conn_t, link);
    if (mock__is_idle(conn)) {
      mock__add(&conn->queue, text, strlen(text));
      mock__flush(conn);
    }
  }
}
