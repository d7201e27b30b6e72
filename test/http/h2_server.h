/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_HTTP_H2_SERVER_H
#define TNK_TEST_HTTP_H2_SERVER_H

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "support/test.h"
#include "support/tls_server.h"

/* A server with TLS that speaks what ALPN says, and answers each request with
 * "ok". */
typedef struct {
  test_server_t tls;
  int holds;   /* answers nothing */
  int n_http1; /* requests */
  int n_http2;
} h2_server_t;

static ssize_t h2_server_body(nghttp2_session *session, int32_t id,
                              uint8_t *out, size_t room, uint32_t *flags,
                              nghttp2_data_source *source, void *user) {
  (void)session;
  (void)id;
  (void)room;
  (void)source;
  (void)user;
  memcpy(out, "ok", 2);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  return 2;
}

static int h2_server_on_frame(nghttp2_session *session,
                              const nghttp2_frame *frame, void *user) {
  static const uint8_t status[] = ":status";
  static const uint8_t ok[] = "200";
  const nghttp2_nv field = {(uint8_t *)(uintptr_t)status,
                            (uint8_t *)(uintptr_t)ok, 7, 3, 0};
  const nghttp2_data_provider body = {.read_callback = h2_server_body};
  h2_server_t *server = user;

  if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
      !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
    return 0;
  server->n_http2++;
  if (!server->holds)
    CHECK_INT(
        nghttp2_submit_response(session, frame->hd.stream_id, &field, 1, &body),
        0);
  return 0;
}

static void h2_server_flush(test_conn_t *conn) {
  const uint8_t *data;
  ssize_t n;

  while ((n = nghttp2_session_mem_send(conn->user, &data)) > 0)
    test_conn_write(conn, data, (size_t)n);
}

static void h2_server_on_open(test_conn_t *conn) {
  const char *chosen = mbedtls_ssl_get_alpn_protocol(&conn->ssl);
  nghttp2_session_callbacks *callbacks;
  nghttp2_session *session;

  conn->user = NULL;
  if (chosen == NULL || strcmp(chosen, "h2") != 0)
    return;
  CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
                                                       h2_server_on_frame);
  CHECK_INT(nghttp2_session_server_new(&session, callbacks,
                                       conn->server->options.user),
            0);
  nghttp2_session_callbacks_del(callbacks);
  CHECK_INT(nghttp2_submit_settings(session, 0, NULL, 0), 0);
  conn->user = session;
  h2_server_flush(conn);
}

static void h2_server_on_read(test_conn_t *conn, const unsigned char *data,
                              size_t n) {
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  h2_server_t *server = conn->server->options.user;

  if (conn->user != NULL) {
    CHECK_INT(nghttp2_session_mem_recv(conn->user, data, n), n);
    h2_server_flush(conn);
    return;
  }
  /* A head and its body come in a record each. */
  if (n >= 4 && memcmp(data, "POST", 4) == 0)
    return;
  CHECK_MEM(data, n, "body", 4);
  server->n_http1++;
  if (!server->holds)
    test_conn_write(conn, answer, sizeof(answer) - 1);
}

static void h2_server_on_end(test_conn_t *conn) {
  nghttp2_session_del(conn->user);
  conn->user = NULL;
}

/* `alpn` is what it chooses from; NULL: it does not know of it. */
static inline void h2_server_open(h2_server_t *server, uv_loop_t *uv,
                                  const test_identity_t *identity,
                                  const char *const *alpn) {
  const test_server_options_t options = {.identity = identity,
                                         .alpn = alpn,
                                         .on_open = h2_server_on_open,
                                         .on_read = h2_server_on_read,
                                         .on_end = h2_server_on_end,
                                         .user = server};

  memset(server, 0, sizeof(*server));
  test_server_open(&server->tls, uv, &options);
}

#endif
