/* SPDX-License-Identifier: MIT */
#include "h2_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

static h2_stream_t *stream_of(nghttp2_session *session, int32_t id) {
  return nghttp2_session_get_stream_user_data(session, id);
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t n,
                       int flags, void *user) {
  h2_client_t *client = user;

  (void)session;
  (void)flags;
  if (client->x->closed)
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  rig_more(client->x, data, n);
  return (ssize_t)n;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t n_name, const uint8_t *value,
                     size_t n_value, uint8_t flags, void *user) {
  h2_stream_t *stream = stream_of(session, frame->hd.stream_id);
  size_t n = strlen(stream->head);

  (void)flags;
  (void)user;
  if (n_name == 7 && memcmp(name, ":status", 7) == 0)
    stream->status = atoi((const char *)value);
  snprintf(stream->head + n, sizeof(stream->head) - n, "%.*s: %.*s\n",
           (int)n_name, name, (int)n_value, value);
  return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t n, void *user) {
  h2_stream_t *stream = stream_of(session, id);

  (void)flags;
  (void)user;
  stream->body = realloc(stream->body, stream->n_body + n + 1);
  CHECK(stream->body != NULL);
  memcpy(stream->body + stream->n_body, data, n);
  stream->n_body += n;
  stream->body[stream->n_body] = '\0';
  return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *user) {
  h2_client_t *client = user;
  h2_stream_t *stream = stream_of(session, frame->hd.stream_id);

  if (frame->hd.type == NGHTTP2_SETTINGS)
    client->n_settings += !(frame->hd.flags & NGHTTP2_FLAG_ACK);
  if (frame->hd.type == NGHTTP2_GOAWAY) {
    client->n_goaway++;
    client->last_id = frame->goaway.last_stream_id;
    client->code = frame->goaway.error_code;
  }
  if (stream == NULL)
    return 0;
  if (frame->hd.type == NGHTTP2_HEADERS && stream->status == 100)
    stream->n_continue++;
  if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
      (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
    stream->is_done = 1;
    stream->order = ++client->n_done;
  }
  return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code,
                    void *user) {
  h2_stream_t *stream = stream_of(session, id);

  (void)user;
  if (stream == NULL)
    return 0;
  stream->is_closed = 1;
  stream->code = code;
  return 0;
}

static void on_bytes(exchange_t *x, const char *data, size_t n) {
  h2_client_t *client = x->user;

  CHECK(nghttp2_session_mem_recv(client->session, (const uint8_t *)data, n) >=
        0);
  h2_flush(client);
}

void h2_flush(h2_client_t *client) {
  if (!client->x->closed && (client->x->tls == NULL || client->x->tls->is_open))
    (void)nghttp2_session_send(client->session);
}

static void make_session(h2_client_t *client) {
  nghttp2_session_callbacks *callbacks;

  CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
  nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  CHECK_INT(nghttp2_session_client_new(&client->session, callbacks, client), 0);
  nghttp2_session_callbacks_del(callbacks);
}

/* The preface goes out with the connection itself: the session would send it
 * before there is one. */
h2_client_t *h2_open(rig_t *rig) {
  h2_client_t *client = calloc(1, sizeof(*client));

  CHECK(client != NULL);
  client->x = rig_raw(rig, "", 0);
  client->x->on_bytes = on_bytes;
  client->x->user = client;
  make_session(client);
  CHECK_INT(nghttp2_submit_settings(client->session, 0, NULL, 0), 0);
  while (rig->tls != NULL ? !client->x->tls->is_open && !client->x->closed
                          : !uv_is_writable((uv_stream_t *)&client->x->tcp))
    uv_run(&rig->loop, UV_RUN_ONCE);
  h2_flush(client);
  return client;
}

void h2_close(h2_client_t *client) {
  rig_free(client->x);
  nghttp2_session_del(client->session);
  for (size_t i = 0; i < client->n_streams; i++) {
    free(client->streams[i]->body);
    free(client->streams[i]);
  }
  free(client);
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf,
                         size_t n, uint32_t *flags, nghttp2_data_source *source,
                         void *user) {
  h2_stream_t *stream = source->ptr;

  (void)session;
  (void)id;
  (void)user;
  n = n < stream->n_out ? n : stream->n_out;
  if (n == 0 && stream->holds)
    return NGHTTP2_ERR_DEFERRED;
  memcpy(buf, stream->out, n);
  stream->out += n;
  stream->n_out -= n;
  if (stream->n_out == 0 && !stream->holds)
    *flags |= NGHTTP2_DATA_FLAG_EOF;
  return (ssize_t)n;
}

static nghttp2_nv pair(const char *name, const char *value) {
  return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name),
                      strlen(value), 0};
}

static h2_stream_t *start(h2_client_t *client, const char *method,
                          const char *path, const char *const *headers,
                          const void *body, size_t n, int holds) {
  h2_stream_t *stream = calloc(1, sizeof(*stream));
  const nghttp2_data_provider out = {{.ptr = stream}, read_body};
  nghttp2_nv nv[300] = {pair(":method", method), pair(":path", path),
                        pair(":scheme", "http"), pair(":authority", "x")};
  size_t n_nv = 4;

  CHECK(stream != NULL && client->n_streams < H2_MAX_STREAMS);
  while (headers != NULL && *headers != NULL && n_nv < 300) {
    nv[n_nv++] = pair(headers[0], headers[1]);
    headers += 2;
  }
  client->streams[client->n_streams++] = stream;
  stream->client = client;
  stream->out = body;
  stream->n_out = n;
  stream->holds = holds;
  stream->id = nghttp2_submit_request(client->session, NULL, nv, n_nv,
                                      n > 0 || holds ? &out : NULL, stream);
  CHECK(stream->id > 0);
  h2_flush(client);
  return stream;
}

h2_stream_t *h2_send(h2_client_t *client, const char *method, const char *path,
                     const char *const *headers, const void *body, size_t n) {
  return start(client, method, path, headers, body, n, 0);
}

h2_stream_t *h2_begin(h2_client_t *client, const char *path, const char *length,
                      const void *body, size_t n) {
  const char *headers[] = {"content-length", length, NULL};

  return start(client, "POST", path, length != NULL ? headers : NULL, body, n,
               1);
}

h2_stream_t *h2_get(h2_client_t *client, const char *path) {
  return start(client, "GET", path, NULL, NULL, 0, 0);
}

h2_stream_t *h2_post(h2_client_t *client, const char *call, const char *json) {
  static const char *const headers[] = {"content-type", "application/json",
                                        NULL};
  char path[256];

  snprintf(path, sizeof(path), "/api/v1/%s", call);
  return start(client, "POST", path, headers, json, strlen(json), 0);
}

void h2_reset(h2_stream_t *stream, uint32_t code) {
  CHECK_INT(
      nghttp2_submit_rst_stream(stream->client->session, 0, stream->id, code),
      0);
  h2_flush(stream->client);
}

void h2_wait(h2_stream_t *stream) {
  while (!stream->is_closed && !stream->client->x->closed)
    uv_run(&stream->client->x->rig->loop, UV_RUN_ONCE);
}

void h2_wait_closed(h2_client_t *client) {
  while (!client->x->closed)
    uv_run(&client->x->rig->loop, UV_RUN_ONCE);
}

int h2_status(h2_stream_t *stream) {
  h2_wait(stream);
  return stream->status;
}
