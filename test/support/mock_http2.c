/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "support/mock_session.h"
#include "support/test.h"

/*
 * HTTP/2 by nghttp2's session of a server. A stream is made with the first byte
 * of its head and ends with both its directions, or by a reset. nghttp2 must
 * not be asked to write while it reads, so answers made meanwhile go out after
 * that.
 */

static mock_session_t *session_of(void *user) {
  return user;
}

static mock_stream_t *stream_of(const mock_session_t *session, int32_t id) {
  return nghttp2_session_get_stream_user_data(session->nghttp2, id);
}

static void free_stream(mock_stream_t *stream) {
  tnk__list_remove(&stream->link);
  free(stream->message.text.data);
  free(stream->body.data);
  free(stream->trailers.data);
  free(stream);
}

/* Incoming. */

static int on_begin(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                    void *user) {
  mock_session_t *session = session_of(user);
  mock_server_t *server = session->conn->server;
  mock_stream_t *stream;

  if (session->conn->is_closing)
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
    return 0;
  stream = calloc(1, sizeof(*stream));
  CHECK(stream != NULL);
  stream->session = session;
  stream->id = frame->hd.stream_id;
  mock__message_begin(&stream->message, session->conn);
  stream->message.request->stream = stream;
  stream->message.request->stream_id = stream->id;
  tnk__list_append(&session->streams, &stream->link);
  server->h2.n_streams++;
  if (++session->n_streams > server->h2.most_streams)
    server->h2.most_streams = session->n_streams;
  CHECK_INT(nghttp2_session_set_stream_user_data(nghttp2, stream->id, stream),
            0);
  return 0;
}

static void add_text(mock_message_t *message, const void *text, size_t n) {
  mock__add(&message->text, text, n);
}

/* Of the pseudo headers, the path is the target and the authority is a Host;
 * the method waits at the start of the text, where nothing points. */
static int on_header(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                     const uint8_t *name, size_t n_name, const uint8_t *value,
                     size_t n_value, uint8_t flags, void *user) {
  mock_session_t *session = session_of(user);
  mock_stream_t *stream = stream_of(session, frame->hd.stream_id);
  mock_message_t *message;

  (void)nghttp2;
  (void)flags;
  if (stream == NULL || stream->message.request->headers != NULL)
    return 0;
  message = &stream->message;
  if (strcmp((const char *)name, ":authority") == 0) {
    name = (const uint8_t *)"host";
    n_name = 4;
  } else if (name[0] == ':') {
    if (strcmp((const char *)name, ":path") == 0)
      message->target_at = message->text.len;
    if (strcmp((const char *)name, ":method") == 0)
      message->method_at = message->text.len;
    add_text(message, value, n_value + 1);
    return 0;
  }
  CHECK(message->n_marks + 2 <=
        sizeof(message->marks) / sizeof(message->marks[0]));
  message->marks[message->n_marks++] = message->text.len;
  add_text(message, name, n_name + 1);
  message->marks[message->n_marks++] = message->text.len;
  add_text(message, value, n_value + 1);
  return 0;
}

static void read_head(mock_stream_t *stream) {
  char method[16];

  snprintf(method, sizeof(method), "%s",
           stream->message.text.data + stream->message.method_at);
  mock__message_head(&stream->message, method);
}

/* Counts a reset, and keeps the guard against too many. */
static void note_reset(mock_session_t *session) {
  mock_server_t *server = session->conn->server;
  const uint64_t now =
      server->clock != NULL ? tnk__context_now_ms(server->clock) : 0;
  size_t n;

  server->h2.n_resets++;
  session->resets =
      realloc(session->resets, (session->n_resets + 1) * sizeof(uint64_t));
  CHECK(session->resets != NULL);
  session->resets[session->n_resets++] = now;
  while (session->resets[session->first_reset] + server->h2.resets_ms < now)
    session->first_reset++;
  n = session->n_resets - session->first_reset;
  if (n > server->h2.most_resets)
    server->h2.most_resets = n;
  if (server->h2.max_resets == 0 || n <= server->h2.max_resets ||
      session->finishes)
    return;
  server->h2.n_calmed++;
  session->finishes = session->may_fail = 1;
  nghttp2_session_terminate_session(session->nghttp2,
                                    NGHTTP2_ENHANCE_YOUR_CALM);
}

static void note_ping(mock_session_t *session, const nghttp2_frame *frame) {
  mock_server_t *server = session->conn->server;

  if (frame->hd.flags & NGHTTP2_FLAG_ACK) {
    server->h2.n_pongs++;
    return;
  }
  server->h2.n_pings++;
  if (!server->h2.no_pongs)
    CHECK_INT(nghttp2_submit_ping(session->nghttp2, NGHTTP2_FLAG_ACK,
                                  frame->ping.opaque_data),
              0);
}

static void note_frame(mock_session_t *session, const nghttp2_frame *frame) {
  if (frame->hd.type == NGHTTP2_RST_STREAM)
    note_reset(session);
  else if (frame->hd.type == NGHTTP2_PING)
    note_ping(session, frame);
  else if (frame->hd.type == NGHTTP2_GOAWAY)
    session->conn->server->h2.n_goaways++;
}

static int on_frame(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                    void *user) {
  mock_session_t *session = session_of(user);
  mock_stream_t *stream;

  (void)nghttp2;
  if (session->conn->is_closing)
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  note_frame(session, frame);
  stream = stream_of(session, frame->hd.stream_id);
  if (stream == NULL || stream->message.request == NULL)
    return 0;
  if (frame->hd.type == NGHTTP2_HEADERS &&
      frame->headers.cat == NGHTTP2_HCAT_REQUEST)
    read_head(stream);
  if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
      (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) && !session->conn->is_closing)
    mock__message_complete(&stream->message);
  return session->conn->is_closing ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_data(nghttp2_session *nghttp2, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t n, void *user) {
  mock_session_t *session = session_of(user);
  mock_stream_t *stream = stream_of(session, id);

  (void)flags;
  if (session->conn->is_closing)
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  if (session->conn->server->h2.no_windows) {
    session->owed += n;
    if (stream != NULL)
      stream->owed += n;
  } else {
    CHECK_INT(nghttp2_session_consume(nghttp2, id, n), 0);
  }
  if (stream != NULL && !stream->message.request->is_complete) {
    add_text(&stream->message, data, n);
    mock__message_moved(&stream->message);
  }
  return 0;
}

/* Its request is answered, or lost when the answer was not sent to its end. */
static int on_stream_close(nghttp2_session *nghttp2, int32_t id, uint32_t code,
                           void *user) {
  mock_session_t *session = session_of(user);
  mock_stream_t *stream = stream_of(session, id);

  (void)code;
  if (stream == NULL || session->conn->is_closing)
    return 0;
  if (stream->is_sent)
    mock__message_part(&stream->message);
  else
    mock__message_lose(&stream->message);
  session->n_streams--;
  session->conn->server->h2.n_streams--;
  nghttp2_session_set_stream_user_data(nghttp2, id, NULL);
  free_stream(stream);
  return 0;
}

/* The client broke the protocol, unless the test had done so before. */
static int on_invalid(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                      int err, void *user) {
  mock_session_t *session = session_of(user);

  (void)nghttp2;
  if (err == NGHTTP2_ERR_REFUSED_STREAM)
    session->conn->server->h2.n_refused++;
  else if (!session->may_fail)
    test_fail(__FILE__, __LINE__,
              "the client sent no valid HTTP/2: %s, frame of type %d on %d",
              nghttp2_strerror(err), frame->hd.type, frame->hd.stream_id);
  return 0;
}

/* Outgoing. */

static int on_sent(nghttp2_session *nghttp2, const nghttp2_frame *frame,
                   void *user) {
  mock_session_t *session = session_of(user);
  mock_stream_t *stream;

  if (frame->hd.type == NGHTTP2_GOAWAY &&
      frame->goaway.error_code != NGHTTP2_NO_ERROR && !session->may_fail)
    test_fail(__FILE__, __LINE__, "the client sent no valid HTTP/2: %s (%.*s)",
              nghttp2_http2_strerror(frame->goaway.error_code),
              (int)frame->goaway.opaque_data_len,
              (const char *)frame->goaway.opaque_data);
  if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
      !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
    return 0;
  stream = stream_of(session, frame->hd.stream_id);
  if (stream == NULL)
    return 0;
  stream->is_sent = 1;
  /* The rest of the request is not wanted. */
  if (stream->has_rst ||
      (session->finishes && !stream->message.request->is_complete))
    CHECK_INT(nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, stream->id,
                                        stream->rst),
              0);
  return 0;
}

enum { MAX_HEADERS = 200 };

/* Headers of lines "Name: value\r\n"; returns how many. What only HTTP/1.1 has
 * is left out. Names are made lower case, in `text`, which they point to. */
static size_t split(char *text, nghttp2_nv *headers, size_t n) {
  char *end;

  for (char *line = text; (end = strstr(line, "\r\n")) != NULL;
       line = end + 2) {
    char *value = strchr(line, ':');
    CHECK(value != NULL && value < end && n < MAX_HEADERS);
    *end = '\0';
    for (char *c = line; c < value; c++)
      if (*c >= 'A' && *c <= 'Z')
        *c = (char)(*c - 'A' + 'a');
    *value++ = '\0';
    value += strspn(value, " ");
    if (strcmp(line, "connection") == 0 ||
        strcmp(line, "transfer-encoding") == 0)
      continue;
    headers[n++] = (nghttp2_nv){(uint8_t *)line, (uint8_t *)value, strlen(line),
                                strlen(value), NGHTTP2_NV_FLAG_NONE};
  }
  return n;
}

static char *copy_of(const char *text) {
  mock_text_t copy = {NULL, 0, 0};

  mock__add(&copy, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
  return copy.data;
}

static void send_trailers(mock_stream_t *stream) {
  nghttp2_nv headers[MAX_HEADERS];
  size_t n = split(stream->trailers.data, headers, 0);

  CHECK_INT(
      nghttp2_submit_trailer(stream->session->nghttp2, stream->id, headers, n),
      0);
}

static ssize_t read_body(nghttp2_session *nghttp2, int32_t id, uint8_t *out,
                         size_t size, uint32_t *flags,
                         nghttp2_data_source *source, void *user) {
  mock_stream_t *stream = source->ptr;
  size_t n = stream->body.len - stream->body_at;

  (void)user;
  if (n > size)
    n = size;
  if (n > 0)
    memcpy(out, stream->body.data + stream->body_at, n);
  stream->body_at += n;
  if (stream->is_ended && stream->body_at == stream->body.len) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->trailers.len > 0) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      send_trailers(stream);
    }
    return (ssize_t)n;
  }
  if (n == 0 && stream->is_cut)
    CHECK_INT(nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, id,
                                        NGHTTP2_INTERNAL_ERROR),
              0);
  return n > 0 ? (ssize_t)n : (ssize_t)NGHTTP2_ERR_DEFERRED;
}

void mock__http2_begin(mock_stream_t *stream, int status, const char *headers,
                       int is_empty) {
  nghttp2_data_provider provider = {{.ptr = stream}, read_body};
  nghttp2_nv nva[MAX_HEADERS];
  char *text = copy_of(headers);
  char code[8];
  size_t n;

  snprintf(code, sizeof(code), "%d", status);
  nva[0] = (nghttp2_nv){(uint8_t *)(uintptr_t) ":status", (uint8_t *)code, 7,
                        strlen(code), NGHTTP2_NV_FLAG_NONE};
  n = split(text, nva, 1);
  stream->has_begun = 1;
  CHECK_INT(nghttp2_submit_response(stream->session->nghttp2, stream->id, nva,
                                    n, is_empty ? NULL : &provider),
            0);
  free(text);
}

void mock__http2_inform(mock_stream_t *stream, int status,
                        const char *headers) {
  nghttp2_nv nva[MAX_HEADERS];
  char *text = copy_of(headers);
  char code[8];
  size_t n;

  snprintf(code, sizeof(code), "%d", status);
  nva[0] = (nghttp2_nv){(uint8_t *)(uintptr_t) ":status", (uint8_t *)code, 7,
                        strlen(code), NGHTTP2_NV_FLAG_NONE};
  n = split(text, nva, 1);
  CHECK_INT(nghttp2_submit_headers(stream->session->nghttp2, NGHTTP2_FLAG_NONE,
                                   stream->id, NULL, nva, n, NULL),
            0);
  free(text);
}

static void resume(mock_stream_t *stream) {
  /* Refused when it does not wait, which is as well. */
  nghttp2_session_resume_data(stream->session->nghttp2, stream->id);
}

void mock__http2_piece(mock_stream_t *stream, const void *data, size_t n) {
  mock__add(&stream->body, data, n);
  resume(stream);
}

void mock__http2_end(mock_stream_t *stream) {
  stream->is_ended = 1;
  resume(stream);
}

void mock__http2_cut(mock_stream_t *stream) {
  stream->is_cut = 1;
  if (stream->has_begun)
    resume(stream);
  else
    CHECK_INT(nghttp2_submit_rst_stream(stream->session->nghttp2,
                                        NGHTTP2_FLAG_NONE, stream->id,
                                        NGHTTP2_INTERNAL_ERROR),
              0);
}

void mock__http2_finish(mock_conn_t *conn) {
  mock_session_t *session = conn->session;

  if (session->finishes)
    return;
  session->finishes = 1;
  CHECK_INT(nghttp2_submit_goaway(
                session->nghttp2, NGHTTP2_FLAG_NONE,
                nghttp2_session_get_last_proc_stream_id(session->nghttp2),
                NGHTTP2_NO_ERROR, NULL, 0),
            0);
}

void mock__http2_fill(mock_conn_t *conn) {
  mock_session_t *session = conn->session;
  const uint8_t *data;
  ssize_t n = 0;

  if (session->is_reading || conn->server->h2.is_silent)
    return;
  while (conn->queue.len < 256 * 1024 &&
         (n = nghttp2_session_mem_send(session->nghttp2, &data)) > 0)
    mock__add(&conn->queue, data, (size_t)n);
  CHECK(n >= 0 || session->may_fail);
}

/* The session is over when it wants nothing any more. */
void mock__http2_flushed(mock_conn_t *conn) {
  mock_session_t *session = conn->session;

  if (!session->is_reading && !conn->server->h2.is_silent &&
      !nghttp2_session_want_read(session->nghttp2) &&
      !nghttp2_session_want_write(session->nghttp2))
    mock__close_conn(conn, 0);
}

void mock__http2_read(mock_conn_t *conn, const char *data, size_t n) {
  mock_session_t *session = conn->session;
  ssize_t taken;

  session->is_reading = 1;
  taken = nghttp2_session_mem_recv(session->nghttp2, (const uint8_t *)data, n);
  session->is_reading = 0;
  if (conn->is_closing)
    return;
  if (taken < 0 && session->may_fail) {
    mock__close_conn(conn, 0);
    return;
  }
  if (taken < 0)
    test_fail(__FILE__, __LINE__, "the client sent no valid HTTP/2: %s",
              nghttp2_strerror((int)taken));
  mock__flush(conn);
}

/* Sessions. */

static nghttp2_session *new_session(mock_session_t *session) {
  nghttp2_session_callbacks *callbacks;
  nghttp2_option *option;
  nghttp2_session *nghttp2;

  CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
  CHECK_INT(nghttp2_option_new(&option), 0);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                         on_stream_close);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks,
                                                               on_invalid);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_auto_ping_ack(option, 1);
#ifdef TNK_TEST_HAS_RESET_RATE
  /* The guard is ours, on the test's clock. */
  nghttp2_option_set_stream_reset_rate_limit(option, 1000000, 1000000);
#endif
  CHECK_INT(nghttp2_session_server_new2(&nghttp2, callbacks, session, option),
            0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  return nghttp2;
}

void mock__http2_settings(mock_session_t *session, size_t first) {
  const mock_server_t *server = session->conn->server;
  nghttp2_settings_entry entries[MOCK_MAX_SETTINGS];

  for (size_t i = first; i < server->h2.n_settings; i++)
    entries[i - first] = (nghttp2_settings_entry){(int32_t)server->h2.ids[i],
                                                  server->h2.values[i]};
  CHECK_INT(nghttp2_submit_settings(session->nghttp2, NGHTTP2_FLAG_NONE,
                                    entries, server->h2.n_settings - first),
            0);
}

void mock__http2_open(mock_conn_t *conn) {
  mock_session_t *session = calloc(1, sizeof(*session));

  CHECK(session != NULL);
  session->conn = conn;
  tnk__list_init(&session->streams);
  session->nghttp2 = new_session(session);
  conn->session = session;
  conn->server->h2.n_sessions++;
  mock__http2_settings(session, 0);
}

void mock__http2_lose(mock_conn_t *conn) {
  if (conn->session == NULL)
    return;
  TNK__LIST_FOREACH (node, &conn->session->streams) {
    mock_stream_t *stream = tnk__container_of(node, mock_stream_t, link);
    if (stream->is_sent)
      mock__message_part(&stream->message);
    else
      mock__message_lose(&stream->message);
  }
  conn->server->h2.n_streams -= conn->session->n_streams;
  conn->session->n_streams = 0;
}

void mock__http2_free(mock_conn_t *conn) {
  mock_session_t *session = conn->session;
  tnk__list_t *node;

  if (session == NULL)
    return;
  while ((node = tnk__list_first(&session->streams)) != NULL)
    free_stream(tnk__container_of(node, mock_stream_t, link));
  nghttp2_session_del(session->nghttp2);
  free(session->resets);
  free(session);
}

size_t mock__http2_n_streams(const mock_conn_t *conn) {
  return conn->session != NULL ? conn->session->n_streams : 0;
}
