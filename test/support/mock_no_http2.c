/* SPDX-License-Identifier: MIT */
#include "support/mock_internal.h"
#include "support/test.h"

/* In the place of mock_http2.c where there is no nghttp2. */

void mock__http2_open(mock_conn_t *conn) {
  (void)conn;
  test_fail(__FILE__, __LINE__, "HTTP/2 without nghttp2");
}

void mock__http2_read(mock_conn_t *conn, const char *data, size_t n) {
  (void)conn;
  (void)data;
  (void)n;
}

void mock__http2_fill(mock_conn_t *conn) {
  (void)conn;
}

void mock__http2_flushed(mock_conn_t *conn) {
  (void)conn;
}

void mock__http2_lose(mock_conn_t *conn) {
  (void)conn;
}

void mock__http2_free(mock_conn_t *conn) {
  (void)conn;
}

size_t mock__http2_n_streams(const mock_conn_t *conn) {
  (void)conn;
  return 0;
}

void mock__http2_begin(mock_stream_t *stream, int status, const char *headers,
                       int is_empty) {
  (void)stream;
  (void)status;
  (void)headers;
  (void)is_empty;
}

void mock__http2_piece(mock_stream_t *stream, const void *data, size_t n) {
  (void)stream;
  (void)data;
  (void)n;
}

void mock__http2_end(mock_stream_t *stream) {
  (void)stream;
}

void mock__http2_cut(mock_stream_t *stream) {
  (void)stream;
}

void mock__http2_inform(mock_stream_t *stream, int status,
                        const char *headers) {
  (void)stream;
  (void)status;
  (void)headers;
}

void mock__http2_finish(mock_conn_t *conn) {
  (void)conn;
}

void mock__http2_nonsense(mock_stream_t *stream) {
  (void)stream;
}
