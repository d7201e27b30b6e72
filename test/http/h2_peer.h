/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_HTTP_H2_PEER_H
#define TNK_TEST_HTTP_H2_PEER_H

#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/mock_http2.h"
#include "support/test.h"

/* nghttp2's own client on a socket, for tests of the scripted server. */

enum { H2_MAX_STREAMS = 64 };

typedef struct {
  int status;
  int n_informs;
  char header[64]; /* x-header, of a head or of trailers */
  char body[256];
  size_t n_body; /* of which `body` keeps the start */
  int is_ended;  /* with END_STREAM */
  int is_closed;
  uint32_t code; /* with which it was closed */
  const char *upload;
  size_t n_upload;
} h2_stream_t;

typedef struct {
  uv_loop_t *uv;
  uv_tcp_t tcp;
  uv_connect_t connect;
  uv_write_t write;
  nghttp2_session *nghttp2;
  h2_stream_t streams[H2_MAX_STREAMS]; /* by (id - 1) / 2 */
  char *out;                           /* being written */
  int is_ended;
  int n_settings;
  int n_acks;
  int n_pongs;
  int n_goaways;
  int32_t last; /* of the latest GOAWAY */
  uint32_t code;
} h2_peer_t;

static inline h2_stream_t *h2_stream(h2_peer_t *peer, int32_t id) {
  const int32_t i = (id - 1) / 2;

  return id > 0 && i < H2_MAX_STREAMS ? &peer->streams[i] : NULL;
}

static int h2_on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                        const uint8_t *name, size_t n_name,
                        const uint8_t *value, size_t n_value, uint8_t flags,
                        void *user) {
  h2_stream_t *stream = h2_stream(user, frame->hd.stream_id);

  (void)nghttp2;
  (void)n_name;
  (void)flags;
  if (strcmp((const char *)name, ":status") == 0) {
    const int status = atoi((const char *)value);
    stream->n_informs += status < 200;
    stream->status = status;
  } else if (strcmp((const char *)name, "x-header") == 0) {
    CHECK(n_value < sizeof(stream->header));
    memcpy(stream->header, value, n_value + 1);
  }
  return 0;
}

static int h2_on_data(nghttp2_session *nghttp2, uint8_t flags, int32_t id,
                      const uint8_t *data, size_t n, void *user) {
  h2_stream_t *stream = h2_stream(user, id);

  (void)nghttp2;
  (void)flags;
  for (size_t i = 0; i < n && stream->n_body + i < sizeof(stream->body) - 1;
       i++)
    stream->body[stream->n_body + i] = (char)data[i];
  stream->n_body += n;
  return 0;
}

static int h2_on_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                       void *user) {
  h2_peer_t *peer = user;
  const int is_ack = frame->hd.flags & NGHTTP2_FLAG_ACK;

  (void)nghttp2;
  if (frame->hd.type == NGHTTP2_SETTINGS) {
    peer->n_acks += is_ack;
    peer->n_settings += !is_ack;
  } else if (frame->hd.type == NGHTTP2_PING) {
    peer->n_pongs += is_ack;
  } else if (frame->hd.type == NGHTTP2_GOAWAY) {
    peer->n_goaways++;
    peer->last = frame->goaway.last_stream_id;
    peer->code = frame->goaway.error_code;
  } else if ((frame->hd.type == NGHTTP2_HEADERS ||
              frame->hd.type == NGHTTP2_DATA) &&
             (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
    h2_stream(peer, frame->hd.stream_id)->is_ended = 1;
  }
  return 0;
}

static int h2_on_close(nghttp2_session *nghttp2, int32_t id, uint32_t code,
                       void *user) {
  h2_stream_t *stream = h2_stream(user, id);

  (void)nghttp2;
  stream->is_closed = 1;
  stream->code = code;
  return 0;
}

static void h2_on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
  static _Thread_local char space[65536];

  (void)handle;
  (void)size;
  *buf = uv_buf_init(space, sizeof(space));
}

static inline void h2_flush(h2_peer_t *peer);

static void h2_on_written(uv_write_t *write, int status) {
  h2_peer_t *peer = write->handle->data;

  free(peer->out);
  peer->out = NULL;
  if (status == 0)
    h2_flush(peer);
}

/* Write what the session has to say. */
static inline void h2_flush(h2_peer_t *peer) {
  const uint8_t *data;
  size_t len = 0;
  ssize_t n;
  uv_buf_t buf;

  if (peer->out != NULL || peer->is_ended)
    return;
  while ((n = nghttp2_session_mem_send(peer->nghttp2, &data)) > 0) {
    peer->out = realloc(peer->out, len + (size_t)n);
    CHECK(peer->out != NULL);
    memcpy(peer->out + len, data, (size_t)n);
    len += (size_t)n;
  }
  CHECK_INT(n, 0);
  if (len == 0)
    return;
  buf = uv_buf_init(peer->out, (unsigned)len);
  CHECK_INT(
      uv_write(&peer->write, (uv_stream_t *)&peer->tcp, &buf, 1, h2_on_written),
      0);
}

static void h2_on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *buf) {
  h2_peer_t *peer = tcp->data;

  if (n < 0) {
    peer->is_ended = n == UV_EOF ? 1 : 2;
    return;
  }
  CHECK_INT(nghttp2_session_mem_recv(peer->nghttp2, (const uint8_t *)buf->base,
                                     (size_t)n),
            n);
  h2_flush(peer);
}

static void h2_on_connect(uv_connect_t *connect, int status) {
  CHECK_INT(status, 0);
  CHECK_INT(uv_read_start(connect->handle, h2_on_alloc, h2_on_read), 0);
  h2_flush(connect->handle->data);
}

static inline void h2_open(h2_peer_t *peer, uv_loop_t *uv,
                           mock_server_t *mock) {
  nghttp2_session_callbacks *callbacks;
  struct sockaddr_in address;

  memset(peer, 0, sizeof(*peer));
  peer->uv = uv;
  CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, h2_on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                            h2_on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, h2_on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                         h2_on_close);
  CHECK_INT(nghttp2_session_client_new(&peer->nghttp2, callbacks, peer), 0);
  nghttp2_session_callbacks_del(callbacks);
  CHECK_INT(nghttp2_submit_settings(peer->nghttp2, NGHTTP2_FLAG_NONE, NULL, 0),
            0);
  CHECK_INT(uv_tcp_init(uv, &peer->tcp), 0);
  peer->tcp.data = peer;
  CHECK_INT(uv_ip4_addr("127.0.0.1", mock_port(mock), &address), 0);
  CHECK_INT(uv_tcp_connect(&peer->connect, &peer->tcp,
                           (const struct sockaddr *)&address, h2_on_connect),
            0);
}

static inline void h2_close(h2_peer_t *peer) {
  uv_close((uv_handle_t *)&peer->tcp, NULL);
  uv_run(peer->uv, UV_RUN_NOWAIT);
  nghttp2_session_del(peer->nghttp2);
  free(peer->out);
}

static ssize_t h2_read_body(nghttp2_session *nghttp2, int32_t id, uint8_t *out,
                            size_t size, uint32_t *flags,
                            nghttp2_data_source *source, void *user) {
  h2_stream_t *stream = h2_stream(user, id);
  const size_t n = stream->n_upload < size ? stream->n_upload : size;

  (void)nghttp2;
  (void)source;
  memcpy(out, stream->upload, n);
  stream->upload += n;
  stream->n_upload -= n;
  if (stream->n_upload == 0)
    *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)n;
}

static inline nghttp2_nv h2_pair(const char *name, const char *value) {
  return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value,
                      strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* Send a request; returns its stream. */
static inline h2_stream_t *h2_send(h2_peer_t *peer, const char *method,
                                   const char *target, const char *body,
                                   size_t n_body) {
  nghttp2_data_provider provider = {{.ptr = NULL}, h2_read_body};
  const nghttp2_nv head[] = {h2_pair(":method", method),
                             h2_pair(":scheme", "http"),
                             h2_pair(":authority", "mock"),
                             h2_pair(":path", target), h2_pair("x-one", "1")};
  const int32_t id = nghttp2_submit_request(
      peer->nghttp2, NULL, head, 5, n_body > 0 ? &provider : NULL, NULL);
  h2_stream_t *stream = h2_stream(peer, id);

  CHECK(stream != NULL);
  stream->upload = body;
  stream->n_upload = n_body;
  h2_flush(peer);
  return stream;
}

static inline void h2_wait(h2_peer_t *peer, const int *flag, int n) {
  while (*flag < n)
    uv_run(peer->uv, UV_RUN_ONCE);
}

#endif
