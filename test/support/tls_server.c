/* SPDX-License-Identifier: MIT */
#include "support/tls_server.h"

#include <mbedtls/version.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/tls.h"
#include "support/port.h"
#include "support/test.h"

enum { READ_SIZE = 65536 };

static int depth;

static void flush(test_conn_t *conn);

int test_server_depth(void) {
  return depth;
}

static test_conn_t *conn_of(void *handle) {
  return ((uv_handle_t *)handle)->data;
}

/* Tickets are mbedTLS's own; those that are accepted are counted. */
static int parse_ticket(void *user, mbedtls_ssl_session *session,
                        unsigned char *ticket, size_t n) {
  test_server_t *server = user;
  int err = mbedtls_ssl_ticket_parse(&server->tickets, session, ticket, n);

  server->n_resumed += err == 0;
  return err;
}

static int write_ticket(void *user, const mbedtls_ssl_session *session,
                        unsigned char *start, const unsigned char *end,
                        size_t *n, uint32_t *lifetime) {
  test_server_t *server = user;

  return mbedtls_ssl_ticket_write(&server->tickets, session, start, end, n,
                                  lifetime);
}

void test_server_configure(test_server_t *server) {
  const test_identity_t *identity = server->options.identity;
  mbedtls_ssl_config *config = &server->config;

  mbedtls_ssl_config_free(config);
  mbedtls_ssl_ticket_free(&server->tickets);
  mbedtls_ssl_config_init(config);
  mbedtls_ssl_ticket_init(&server->tickets);
  if (identity == NULL)
    return;
  CHECK_INT(mbedtls_ssl_config_defaults(config, MBEDTLS_SSL_IS_SERVER,
                                        MBEDTLS_SSL_TRANSPORT_STREAM,
                                        MBEDTLS_SSL_PRESET_DEFAULT),
            0);
  mbedtls_ssl_conf_rng(config, test_rng, NULL);
  CHECK_INT(mbedtls_ssl_conf_own_cert(config,
                                      (mbedtls_x509_crt *)&identity->crt,
                                      (mbedtls_pk_context *)&identity->key),
            0);
  if (server->options.client_ca != NULL) {
    mbedtls_ssl_conf_authmode(config, MBEDTLS_SSL_VERIFY_REQUIRED);
    mbedtls_ssl_conf_ca_chain(
        config, (mbedtls_x509_crt *)&server->options.client_ca->crt, NULL);
  }
  if (server->options.alpn != NULL)
    CHECK_INT(mbedtls_ssl_conf_alpn_protocols(
                  config, (const char **)(uintptr_t)server->options.alpn),
              0);
#if MBEDTLS_VERSION_MAJOR < 3
  if (server->options.is_old)
    mbedtls_ssl_conf_max_version(config, MBEDTLS_SSL_MAJOR_VERSION_3,
                                 MBEDTLS_SSL_MINOR_VERSION_2);
#endif
#if MBEDTLS_VERSION_MAJOR >= 3
  if (server->options.is_tls_1_2)
    mbedtls_ssl_conf_max_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
#endif
#if defined(MBEDTLS_SSL_RENEGOTIATION)
  if (server->options.may_renegotiate)
    mbedtls_ssl_conf_renegotiation(config, MBEDTLS_SSL_RENEGOTIATION_ENABLED);
#endif
  tnk__tls_set_versions(config);
  if (server->options.no_tickets)
    return;
  CHECK_INT(mbedtls_ssl_ticket_setup(&server->tickets, test_rng, NULL,
                                     MBEDTLS_CIPHER_AES_256_GCM, 86400),
            0);
  mbedtls_ssl_conf_session_tickets_cb(config, write_ticket, parse_ticket,
                                      server);
}

/* Connections use the settings until they are gone. */
static void release(test_server_t *server) {
  if (--server->n_handles > 0)
    return;
  mbedtls_ssl_config_free(&server->config);
  mbedtls_ssl_ticket_free(&server->tickets);
}

static void on_handle_closed(uv_handle_t *handle) {
  test_conn_t *conn = conn_of(handle);

  if (--conn->n_handles > 0)
    return;
  conn->server->n_open--;
  mbedtls_ssl_free(&conn->ssl);
  release(conn->server);
  free(conn->out);
  free(conn->head);
  free(conn);
}

static void unlink_conn(test_conn_t *conn) {
  test_conn_t **at = &conn->server->conns;

  while (*at != conn)
    at = &(*at)->next;
  *at = conn->next;
}

void test_conn_cut(test_conn_t *conn) {
  if (conn->is_closing)
    return;
  conn->is_closing = 1;
  unlink_conn(conn);
  uv_close((uv_handle_t *)&conn->trickle, on_handle_closed);
  uv_close((uv_handle_t *)&conn->tcp, on_handle_closed);
}

void test_conn_reset(test_conn_t *conn) {
  if (conn->is_closing)
    return;
  conn->is_closing = 1;
  unlink_conn(conn);
  uv_close((uv_handle_t *)&conn->trickle, on_handle_closed);
  CHECK_INT(uv_tcp_close_reset(&conn->tcp, on_handle_closed), 0);
}

void test_conn_end(test_conn_t *conn) {
  if (conn->is_closing)
    return;
  if (conn->is_open && conn->server->options.identity != NULL) {
    mbedtls_ssl_close_notify(&conn->ssl);
    flush(conn);
  }
  test_conn_cut(conn);
}

/* 1: the connection has come to its end, and nothing more is sent. */
static int has_ended(test_conn_t *conn) {
  const test_server_options_t *options = &conn->server->options;

  if (options->end == TEST_LIVES || conn->n_sent < options->end_after)
    return 0;
  conn->out_len = 0;
  uv_idle_stop(&conn->trickle);
  if (options->end == TEST_ENDS)
    test_conn_cut(conn);
  else if (options->end == TEST_RESETS)
    test_conn_reset(conn);
  return 1;
}

static void on_trickle(uv_idle_t *idle) {
  test_conn_t *conn = conn_of(idle);
  const test_server_options_t *options = &conn->server->options;
  size_t n = conn->out_len;
  uv_buf_t buf;
  int r;

  if (has_ended(conn))
    return;
  if (options->end != TEST_LIVES && n > options->end_after - conn->n_sent)
    n = options->end_after - conn->n_sent;
  if (options->chop > 0 && n > options->chop)
    n = options->chop;
  if (options->cut_after > 0 && n > options->cut_after - conn->n_sent)
    n = options->cut_after - conn->n_sent;
  buf = uv_buf_init((char *)conn->out, (unsigned)n);
  r = n > 0 ? uv_try_write((uv_stream_t *)&conn->tcp, &buf, 1) : 0;
  if (r > 0) {
    conn->n_sent += (size_t)r;
    conn->out_len -= (size_t)r;
    memmove(conn->out, conn->out + r, conn->out_len);
  }
  if ((r < 0 && r != UV_EAGAIN) ||
      (options->cut_after > 0 && conn->n_sent >= options->cut_after))
    test_conn_cut(conn);
  else if (conn->out_len == 0)
    uv_idle_stop(idle);
}

/* Send what can be sent now, the rest from the idle handle. */
static void flush(test_conn_t *conn) {
  if (conn->out_len == 0 || conn->is_closing)
    return;
  uv_idle_start(&conn->trickle, on_trickle);
  if (conn->server->options.chop == 0)
    on_trickle(&conn->trickle);
}

static int bio_send(void *user, const unsigned char *data, size_t n) {
  test_conn_t *conn = user;
  size_t noise = conn->server->options.noise_at - 1 - conn->n_sent;

  conn->out = realloc(conn->out, conn->out_len + n + 1);
  CHECK(conn->out != NULL);
  memcpy(conn->out + conn->out_len, data, n);
  /* Before the first byte, or without noise, this wraps around. */
  if (noise >= conn->out_len && noise - conn->out_len < n)
    conn->out[noise] ^= 0x55;
  conn->out_len += n;
  return (int)n;
}

static int bio_recv(void *user, unsigned char *data, size_t n) {
  test_conn_t *conn = user;

  if (conn->in_len == 0)
    return MBEDTLS_ERR_SSL_WANT_READ;
  if (n > conn->in_len)
    n = conn->in_len;
  memcpy(data, conn->in, n);
  conn->in += n;
  conn->in_len -= n;
  return (int)n;
}

void test_conn_write(test_conn_t *conn, const void *data, size_t n) {
  const unsigned char *at = data;

  if (conn->is_closing)
    return;
  conn->n_written += n;
  if (conn->server->options.identity == NULL) {
    bio_send(conn, data, n);
  } else {
    while (n > 0) {
      int r = mbedtls_ssl_write(&conn->ssl, at, n);
      CHECK(r > 0);
      at += r;
      n -= (size_t)r;
    }
  }
  flush(conn);
}

static void deliver(test_conn_t *conn, const unsigned char *data, size_t n) {
  conn->server->n_received += n;
  if (conn->server->options.on_read != NULL)
    conn->server->options.on_read(conn, data, n);
}

static void opened(test_conn_t *conn) {
  conn->is_open = 1;
  conn->server->n_handshakes++;
  if (conn->server->options.on_open != NULL)
    conn->server->options.on_open(conn);
}

static void peer_ended(test_conn_t *conn) {
  conn->server->n_ended++;
  if (!conn->is_closing && conn->server->options.on_end != NULL)
    conn->server->options.on_end(conn);
  test_conn_cut(conn);
}

/* Read records until there is no more. */
static void run_tls(test_conn_t *conn) {
  unsigned char plain[16384];
  int r = 0;

  if (!conn->is_open) {
    do
      r = mbedtls_ssl_handshake(&conn->ssl);
    while (r == MBEDTLS_ERR_SSL_WANT_READ && conn->in_len > 0);
    /* As other servers do, and mbedTLS does not. */
    if (r == MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE)
      mbedtls_ssl_send_alert_message(&conn->ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL,
                                     MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE);
    flush(conn);
    if (r == 0)
      opened(conn);
  }
  while (conn->is_open && !conn->is_closing) {
    r = mbedtls_ssl_read(&conn->ssl, plain, sizeof(plain));
    if (r > 0)
      deliver(conn, plain, (size_t)r);
    else if (r != MBEDTLS_ERR_SSL_WANT_READ || conn->in_len == 0)
      break;
  }
  if (conn->is_closing || r == MBEDTLS_ERR_SSL_WANT_READ)
    return;
  conn->server->n_goodbyes += r == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY;
  flush(conn);
  peer_ended(conn);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  static _Thread_local char memory[READ_SIZE];

  (void)handle;
  (void)hint;
  *buf = uv_buf_init(memory, sizeof(memory));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  test_conn_t *conn = conn_of(stream);

  depth++;
  if (n < 0) {
    conn->server->n_resets += n == UV_ECONNRESET;
    peer_ended(conn);
  } else if (conn->server->options.identity == NULL) {
    deliver(conn, (unsigned char *)buf->base, (size_t)n);
  } else {
    conn->in = (unsigned char *)buf->base;
    conn->in_len = (size_t)n;
    run_tls(conn);
  }
  depth--;
}

void test_conn_pause(test_conn_t *conn, int paused) {
  if (conn->is_closing)
    return;
  if (paused)
    uv_read_stop((uv_stream_t *)&conn->tcp);
  else
    uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
}

static void on_connection(uv_stream_t *listener, int status) {
  test_server_t *server = listener->data;
  test_conn_t *conn;

  depth++;
  conn = calloc(1, sizeof(*conn));
  CHECK_INT(status, 0);
  CHECK(conn != NULL);
  conn->server = server;
  conn->next = server->conns;
  server->conns = conn;
  server->n_accepted++;
  server->n_open++;
  server->n_handles++;
  CHECK_INT(uv_tcp_init(listener->loop, &conn->tcp), 0);
  CHECK_INT(uv_idle_init(listener->loop, &conn->trickle), 0);
  conn->n_handles = 2;
  conn->tcp.data = conn;
  conn->trickle.data = conn;
  mbedtls_ssl_init(&conn->ssl);
  CHECK_INT(uv_accept(listener, (uv_stream_t *)&conn->tcp), 0);
  uv_tcp_nodelay(&conn->tcp, 1);
  if (server->options.identity != NULL) {
    CHECK_INT(mbedtls_ssl_setup(&conn->ssl, &server->config), 0);
    mbedtls_ssl_set_bio(&conn->ssl, conn, bio_send, bio_recv, NULL);
  }
  test_conn_pause(conn, server->options.deaf);
  if (!has_ended(conn) && server->options.identity == NULL)
    opened(conn);
  depth--;
}

/* The listener is bound. */
static void start_listening(test_server_t *server) {
  uv_os_fd_t fd;

  CHECK_INT(uv_fileno((uv_handle_t *)&server->listener, &fd), 0);
  CHECK_INT(port_bound(fd), 0);
  CHECK_INT(uv_listen((uv_stream_t *)&server->listener, 128, on_connection), 0);
}

void test_server_open(test_server_t *server, uv_loop_t *loop,
                      const test_server_options_t *options) {
  const char *address =
      options->address != NULL ? options->address : "127.0.0.1";
  struct sockaddr_storage name;
  int n = sizeof(name);

  memset(server, 0, sizeof(*server));
  server->options = *options;
  mbedtls_ssl_config_init(&server->config);
  mbedtls_ssl_ticket_init(&server->tickets);
  test_server_configure(server);
  CHECK_INT(uv_tcp_init(loop, &server->listener), 0);
  server->listener.data = server;
  server->n_handles = 1;
  memset(&name, 0, sizeof(name));
  if (strchr(address, ':') != NULL)
    CHECK_INT(uv_ip6_addr(address, 0, (struct sockaddr_in6 *)&name), 0);
  else
    CHECK_INT(uv_ip4_addr(address, 0, (struct sockaddr_in *)&name), 0);
  CHECK_INT(uv_tcp_bind(&server->listener, (struct sockaddr *)&name, 0), 0);
  start_listening(server);
  CHECK_INT(uv_tcp_getsockname(&server->listener, (struct sockaddr *)&name, &n),
            0);
  /* The port stands at the same place in both families. */
  server->port = ntohs(((struct sockaddr_in *)&name)->sin_port);
}

static void on_listener_closed(uv_handle_t *handle) {
  test_server_t *server = handle->data;

  server->is_gone = 1;
  release(server);
}

static void close_listener(test_server_t *server) {
  if (!server->is_deaf)
    uv_close((uv_handle_t *)&server->listener, on_listener_closed);
  server->is_deaf = 1;
}

void test_server_stop_listening(test_server_t *server) {
  if (server->is_deaf)
    return;
  close_listener(server);
  server->held = port_hold((uint16_t)server->port);
}

void test_server_listen_again(test_server_t *server) {
  uv_loop_t *loop = server->listener.loop;

  if (!server->is_deaf)
    return;
  while (!server->is_gone)
    uv_run(loop, UV_RUN_NOWAIT);
  server->is_deaf = server->is_gone = 0;
  if (server->n_handles == 0)
    test_server_configure(server); /* it went with the last handle */
  CHECK_INT(uv_tcp_init(loop, &server->listener), 0);
  server->listener.data = server;
  server->n_handles++;
  if (server->held <= 0)
    server->held = port_hold((uint16_t)server->port);
  CHECK_INT(uv_tcp_open(&server->listener, server->held), 0);
  server->held = 0;
  start_listening(server);
}

void test_server_close(test_server_t *server) {
  while (server->conns != NULL)
    test_conn_cut(server->conns);
  close_listener(server);
  port_release(&server->held);
}
