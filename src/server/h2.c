/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/number.h"
#include "server/h2_state.h"
#include "tnk/error.h"

/*
 * A connection that speaks HTTP/2. nghttp2 does framing, header compression and
 * flow control. A request and its response are a stream.
 *
 *   ARRIVING --end of the peer's half--> HANDLING --answered--> ANSWERED
 *   ARRIVING --refused--> ANSWERED --sent--> freed
 *   any --reset, connection lost--> freed
 *
 * Handlers are called from nghttp2's callbacks, so they run inside nghttp2.
 * They only submit frames; h2_answer.c sends them afterwards.
 */

enum {
  STREAM_WINDOW = 1 << 20,
  CONNECTION_WINDOW = 16 << 20,
  /* Maximum number of resets by a peer before it gets GOAWAY. Starting and
   * canceling requests costs a peer almost nothing. */
  MAX_RESETS = 1000,
  RESETS_MS = 30000
};

/* Result of an nghttp2 callback: fails if the connection was closed in it. */
static int after(const tnk__srv_h2_t *h2) {
  return h2->conn->state == TNK__SRV_CONN_CLOSING ? NGHTTP2_ERR_CALLBACK_FAILURE
                                                  : 0;
}

/* ---- Streams ---- */

static void stream_free(tnk__srv_stream_t *stream) {
  tnk__srv_h2_t *h2 = stream->h2;
  const tnk_allocator_t *alloc = stream->req.http->config.alloc;

  tnk__list_remove(&stream->link);
  h2->n_streams--;
  h2->n_handling -= stream->state == TNK__SRV_STREAM_HANDLING;
  tnk__srv_h2_stop_slow(stream);
  tnk__srv_req_gone(&stream->req);
  tnk__srv_req_deinit(&stream->req);
  tnk__free(alloc, stream->body);
  tnk__free(alloc, stream);
}

static int on_begin_headers(nghttp2_session *session,
                            const nghttp2_frame *frame, void *user) {
  tnk__srv_h2_t *h2 = user;
  tnk__srv_t *http = h2->conn->http;
  tnk__srv_stream_t *stream;

  /* Ignore streams after the last id of our GOAWAY: the peer knows that they
   * were not processed. */
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST ||
      (h2->is_leaving && frame->hd.stream_id > h2->last_id))
    return 0;
  stream = tnk__calloc(http->config.alloc, 1, sizeof(*stream));
  if (stream == NULL)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  stream->h2 = h2;
  stream->id = frame->hd.stream_id;
  tnk__srv_req_init(&stream->req, http, &tnk__srv_h2_ops);
  stream->req.tls = h2->conn->tls;
  tnk__list_append(&h2->streams, &stream->link);
  h2->n_streams++;
  nghttp2_session_set_stream_user_data(session, stream->id, stream);
  return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code,
                           void *user) {
  tnk__srv_stream_t *stream = nghttp2_session_get_stream_user_data(session, id);

  (void)code;
  if (stream != NULL)
    stream_free(stream);
  return after(user);
}

/* ---- The request ---- */

static int is_name(const uint8_t *name, size_t n, const char *text) {
  return n == strlen(text) && memcmp(name, text, n) == 0;
}

static int add_method(tnk__srv_stream_t *stream, const uint8_t *value,
                      size_t n) {
  if (n == 0 || n >= sizeof(stream->method))
    return 400;
  memcpy(stream->method, value, n);
  stream->method[n] = '\0';
  return 0;
}

static int add_header(tnk__srv_req_t *req, const char *name, size_t n_name,
                      const char *value, size_t n_value) {
  int refusal = tnk__srv_req_add_name(req, name, n_name);

  if (refusal == 0)
    refusal = tnk__srv_req_end_name(req);
  if (refusal == 0)
    refusal = tnk__srv_req_add_value(req, value, n_value);
  return refusal == 0 ? tnk__srv_req_end_value(req) : refusal;
}

/* Returns 0 or a refusal. */
static int take_header(tnk__srv_stream_t *stream, const uint8_t *name,
                       size_t n_name, const uint8_t *value, size_t n_value) {
  tnk__srv_req_t *req = &stream->req;

  if (n_name == 0 || name[0] != ':')
    return add_header(req, (const char *)name, n_name, (const char *)value,
                      n_value);
  if (is_name(name, n_name, ":method"))
    return add_method(stream, value, n_value);
  if (is_name(name, n_name, ":path"))
    return tnk__buf_append(&req->url, value, n_value) == TNK_OK ? 0 : 414;
  if (is_name(name, n_name, ":authority"))
    return add_header(req, "host", 4, (const char *)value, n_value);
  return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t n_name, const uint8_t *value,
                     size_t n_value, uint8_t flags, void *user) {
  tnk__srv_stream_t *stream =
      nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

  (void)flags;
  (void)user;
  /* Ignore trailers. */
  if (stream != NULL && stream->refusal == 0 &&
      frame->headers.cat == NGHTTP2_HCAT_REQUEST)
    stream->refusal = take_header(stream, name, n_name, value, n_value);
  return 0;
}

static void take_in_hand(tnk__srv_stream_t *stream) {
  stream->state = TNK__SRV_STREAM_HANDLING;
  stream->h2->n_handling++;
}

static void refuse(tnk__srv_stream_t *stream, int refusal) {
  tnk__srv_h2_t *h2 = stream->h2;

  if (stream->state == TNK__SRV_STREAM_ARRIVING)
    take_in_hand(stream);
  if (refusal == TNK__SRV_REFUSE_FULL)
    tnk__srv_h2_leave(h2, stream->id);
  tnk__srv_req_refuse(&stream->req, refusal);
}

/* End a request without a response, as a hook has decided. */
static void end_unserved(tnk__srv_stream_t *stream) {
  const tnk__srv_end_t *end = &stream->req.end;

  stream->state = TNK__SRV_STREAM_ANSWERED;
  if (end->how == TNK__SRV_END_AWAY)
    tnk__srv_h2_leave(stream->h2, stream->id > 2 ? stream->id - 2 : 0);
  else if (end->how == TNK__SRV_END_CONN)
    tnk__srv_conn_reset(stream->h2->conn);
  else
    tnk__srv_h2_reset(stream, end->code);
}

static void send_continue(tnk__srv_stream_t *stream) {
  static const char status[] = "100";
  const nghttp2_nv nv = {(uint8_t *)":status", (uint8_t *)status, 7, 3,
                         NGHTTP2_NV_FLAG_NONE};

  /* A failure is harmless: most peers send the body after a timeout anyway. */
  (void)nghttp2_submit_headers(stream->h2->session, NGHTTP2_FLAG_NONE,
                               stream->id, NULL, &nv, 1, NULL);
}

/* If a header was refused, the head is incomplete and is not read. */
static int check_head(tnk__srv_stream_t *stream) {
  tnk__srv_req_t *req = &stream->req;
  const char *length;

  tnk__srv_req_set_method(req, stream->method);
  if (stream->refusal != 0)
    return stream->refusal;
  length = tnk__srv_req_header(req, "content-length");
  if (length != NULL)
    (void)tnk__text_u64(length, UINT64_MAX, &stream->announced);
  return stream->h2->conn->is_refused
             ? TNK__SRV_REFUSE_FULL
             : tnk__srv_req_end_head(req, stream->announced);
}

static void end_head(tnk__srv_stream_t *stream) {
  int refusal = check_head(stream);

  if (refusal == TNK__SRV_REFUSE_END)
    end_unserved(stream);
  else if (refusal != 0)
    refuse(stream, refusal);
  else if (tnk__srv_req_header(&stream->req, "expect") != NULL)
    send_continue(stream);
}

static void end_request(tnk__srv_stream_t *stream) {
  int refusal;

  stream->is_whole = 1;
  if (stream->state != TNK__SRV_STREAM_ARRIVING)
    return;
  take_in_hand(stream);
  stream->req.http->n_requests_h2++;
  refusal = tnk__srv_req_dispatch(&stream->req);
  if (refusal != 0)
    refuse(stream, refusal);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t n, void *user) {
  tnk__srv_stream_t *stream = nghttp2_session_get_stream_user_data(session, id);
  uint64_t had;
  int refusal;

  (void)flags;
  if (stream == NULL || stream->state != TNK__SRV_STREAM_ARRIVING)
    return 0;
  had = stream->req.body.len + n;
  refusal = tnk__srv_req_add_body(
      &stream->req, data, n,
      stream->announced > had ? stream->announced - had : 0);
  if (refusal != 0)
    refuse(stream, refusal);
  return after(user);
}

/* Count the resets of the peer, and end the connection if there are too
 * many. */
static void count_reset(tnk__srv_h2_t *h2) {
  uint64_t now = uv_now(h2->conn->tcp.loop);

  if (now - h2->resets_since_ms > RESETS_MS) {
    h2->resets_since_ms = now;
    h2->n_resets = 0;
  }
  if (++h2->n_resets > MAX_RESETS)
    (void)nghttp2_session_terminate_session(h2->session,
                                            NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *user) {
  tnk__srv_h2_t *h2 = user;
  tnk__srv_stream_t *stream =
      nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

  if (frame->hd.type == NGHTTP2_RST_STREAM)
    count_reset(h2);
  if (stream == NULL ||
      (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
    return after(h2);
  if (frame->hd.type == NGHTTP2_HEADERS &&
      frame->headers.cat == NGHTTP2_HCAT_REQUEST)
    end_head(stream);
  if (after(h2) == 0 && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
    end_request(stream);
  return after(h2);
}

/* ---- Shared by all connections ---- */

int tnk__srv_has_h2(void) {
  return 1;
}

void tnk__srv_h2_teardown(struct tnk__srv_h2_shared *shared) {
  if (shared == NULL)
    return;
  nghttp2_session_callbacks_del(shared->callbacks);
  nghttp2_option_del(shared->option);
  tnk__free(shared->alloc, shared);
}

int tnk__srv_h2_setup(struct tnk__srv_h2_shared **out,
                      const tnk_allocator_t *alloc) {
  struct tnk__srv_h2_shared *shared = tnk__calloc(alloc, 1, sizeof(*shared));

  *out = NULL;
  if (shared == NULL)
    return TNK_ENOMEM;
  shared->alloc = alloc;
  if (nghttp2_session_callbacks_new(&shared->callbacks) != 0 ||
      nghttp2_option_new(&shared->option) != 0) {
    tnk__srv_h2_teardown(shared);
    return TNK_ENOMEM;
  }
  /* conn.c has consumed the preface. */
  nghttp2_option_set_no_recv_client_magic(shared->option, 1);
  nghttp2_option_set_no_closed_streams(shared->option, 1);
  nghttp2_session_callbacks_set_on_begin_headers_callback(shared->callbacks,
                                                          on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(shared->callbacks,
                                                   on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(shared->callbacks,
                                                            on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(shared->callbacks,
                                                       on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(shared->callbacks,
                                                         on_stream_close);
  tnk__srv_h2_send_setup(shared->callbacks);
  *out = shared;
  return TNK_OK;
}

/* ---- The connection ---- */

static void *mem_malloc(size_t size, void *user) {
  return tnk__malloc(user, size);
}

static void mem_free(void *ptr, void *user) {
  tnk__free(user, ptr);
}

static void *mem_calloc(size_t n, size_t size, void *user) {
  return tnk__calloc(user, n, size);
}

static void *mem_realloc(void *ptr, size_t size, void *user) {
  return tnk__realloc(user, ptr, size);
}

static int open_session(tnk__srv_h2_t *h2) {
  const tnk__srv_t *http = h2->conn->http;
  const struct tnk__srv_h2_shared *shared = http->versions->h2;
  nghttp2_mem mem = {(void *)shared->alloc, mem_malloc, mem_free, mem_calloc,
                     mem_realloc};
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, http->config.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)TNK__MAX_REQUEST_HEAD}};

  if (nghttp2_session_server_new3(&h2->session, shared->callbacks, h2,
                                  shared->option, &mem) != 0 ||
      nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                              sizeof(settings) / sizeof(*settings)) != 0 ||
      nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                            CONNECTION_WINDOW) != 0)
    return TNK_ENOMEM;
  return TNK_OK;
}

static void input(tnk__srv_conn_t *conn, const char *data, size_t n) {
  tnk__srv_h2_t *h2 = conn->h2;
  ssize_t used;

  h2->in_session = 1;
  used = nghttp2_session_mem_recv(h2->session, (const uint8_t *)data, n);
  h2->in_session = 0;
  if (used < 0)
    tnk__srv_conn_close(conn);
  else
    tnk__srv_h2_flush(h2);
}

/* Another connection may be waiting to be accepted. This connection accepts no
 * new streams, so each response brings its end nearer. take() therefore lets a
 * held poll end early. */
static void go_on(tnk__srv_conn_t *conn) {
  tnk__srv_t *http = conn->http;

  tnk__srv_h2_flush(conn->h2);
  if (http->waiting && conn->state == TNK__SRV_CONN_READING &&
      conn->h2->is_leaving)
    http->take(http);
}

static int is_idle(const tnk__srv_conn_t *conn) {
  return conn->state == TNK__SRV_CONN_READING && conn->served &&
         conn->h2->n_streams == 0 && !conn->h2->is_writing;
}

static int waits_for_peer(const tnk__srv_conn_t *conn) {
  return conn->h2->n_handling == 0;
}

static void leave(tnk__srv_conn_t *conn) {
  tnk__srv_h2_leave(conn->h2,
                    nghttp2_session_get_last_proc_stream_id(conn->h2->session));
}

static void gone(tnk__srv_conn_t *conn) {
  TNK__LIST_FOREACH (node, &conn->h2->streams) {
    tnk__srv_stream_t *stream =
        tnk__container_of(node, tnk__srv_stream_t, link);

    tnk__srv_h2_stop_slow(stream);
    tnk__srv_req_gone(&stream->req);
  }
}

static void deinit(tnk__srv_conn_t *conn) {
  tnk__srv_h2_t *h2 = conn->h2;

  TNK__LIST_FOREACH_SAFE (node, next, &h2->streams) {
    stream_free(tnk__container_of(node, tnk__srv_stream_t, link));
  }
  nghttp2_session_del(h2->session);
  tnk__buf_deinit(&h2->out);
  tnk__buf_deinit(&h2->busy);
  tnk__free(conn->http->config.alloc, h2);
  tnk__srv_h1.deinit(conn);
}

static const tnk__srv_version_t version = {
    input, go_on, is_idle, waits_for_peer, leave, gone, deinit};

int tnk__srv_h2_start(tnk__srv_conn_t *conn) {
  const tnk_allocator_t *alloc = conn->http->config.alloc;
  tnk__srv_h2_t *h2 = tnk__calloc(alloc, 1, sizeof(*h2));

  if (h2 == NULL)
    return TNK_ENOMEM;
  h2->conn = conn;
  tnk__list_init(&h2->streams);
  tnk__buf_init(&h2->out, alloc, SIZE_MAX);
  tnk__buf_init(&h2->busy, alloc, SIZE_MAX);
  conn->h2 = h2;
  conn->version = &version;
  return open_session(h2);
}
