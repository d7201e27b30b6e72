/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "server/h2_state.h"
#include "tnk/error.h"

/* ---- Sending ---- */

/*
 * Output of HTTP/2. nghttp2 fills `out` as far as the peer's windows allow, and
 * all of it is written at once. Frames that are made during a write wait for
 * its end. Responses of one turn of the loop therefore share one write.
 */

enum {
  /* Stop making frames when this many bytes are ready. */
  MAX_READY = 256 * 1024,
  /* A larger buffer is freed after use. */
  KEEP_CAPACITY = 64 * 1024
};

static int has_room(const tnk__srv_h2_t *h2) {
  return h2->out.len < MAX_READY;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t n,
                       int flags, void *user) {
  tnk__srv_h2_t *h2 = user;

  (void)session;
  (void)flags;
  if (!has_room(h2))
    return NGHTTP2_ERR_WOULDBLOCK;
  return tnk__buf_append(&h2->out, data, n) == TNK_OK
             ? (ssize_t)n
             : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* Append the header of a DATA frame and a part of the body. With
 * NGHTTP2_DATA_FLAG_NO_COPY nghttp2 does not copy the body, so this is its only
 * copy. */
static int on_send_data(nghttp2_session *session, nghttp2_frame *frame,
                        const uint8_t *head, size_t n,
                        nghttp2_data_source *source, void *user) {
  enum { N_HEAD = 9 };
  tnk__srv_stream_t *stream = source->ptr;
  tnk__srv_h2_t *h2 = user;

  (void)session;
  (void)frame;
  if (!has_room(h2))
    return NGHTTP2_ERR_WOULDBLOCK;
  tnk__buf_append(&h2->out, head, N_HEAD);
  if (tnk__buf_append(&h2->out, stream->body + stream->n_sent, n) != TNK_OK)
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  stream->n_sent += n;
  return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame,
                         void *user) {
  tnk__srv_stream_t *stream =
      nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

  (void)user;
  if (stream == NULL ||
      (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
    return 0;
  if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
    /* The response is complete before the request: the peer need not send the
     * rest. */
    if (!stream->is_whole)
      (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id,
                                      NGHTTP2_NO_ERROR);
  } else if (stream->is_cut && stream->n_sent == stream->n_body) {
    (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id,
                                    NGHTTP2_INTERNAL_ERROR);
  }
  return 0;
}

void tnk__srv_h2_send_setup(nghttp2_session_callbacks *callbacks) {
  nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks,
                                                       on_frame_sent);
}

static void on_written(tnk__srv_write_t *write, int status) {
  tnk__srv_conn_t *conn = write->conn;
  tnk__srv_h2_t *h2 = conn->h2;

  h2->is_writing = 0;
  if (h2->busy.cap > KEEP_CAPACITY)
    tnk__buf_deinit(&h2->busy);
  else
    tnk__buf_clear(&h2->busy);
  conn->active_ms = uv_now(conn->tcp.loop);
  if (status < 0)
    tnk__srv_conn_close(conn);
  else
    tnk__srv_h2_flush(h2);
}

/* Swap the buffers and write. Returns 0 or a code. */
static int write_ready(tnk__srv_h2_t *h2) {
  tnk__buf_t ready = h2->out;
  uv_buf_t buf = uv_buf_init((char *)ready.data, (unsigned)ready.len);

  h2->out = h2->busy;
  h2->busy = ready;
  h2->is_writing = 1;
  return tnk__srv_write(&h2->write, h2->conn, &buf, 1, on_written);
}

static int make_frames(tnk__srv_h2_t *h2) {
  int err;

  h2->in_session = 1;
  err = nghttp2_session_send(h2->session);
  h2->in_session = 0;
  return err == 0 ? h2->out.err : err;
}

void tnk__srv_h2_flush(tnk__srv_h2_t *h2) {
  tnk__srv_conn_t *conn = h2->conn;

  if (h2->is_writing || h2->in_session || conn->state != TNK__SRV_CONN_READING)
    return;
  if (make_frames(h2) != 0)
    tnk__srv_conn_close(conn);
  else if (conn->state != TNK__SRV_CONN_READING)
    return; /* the end of a stream may have closed it */
  else if (h2->out.len > 0) {
    if (write_ready(h2) != 0)
      tnk__srv_conn_close(conn);
  } else if (!nghttp2_session_want_read(h2->session) &&
             !nghttp2_session_want_write(h2->session)) {
    tnk__srv_conn_drain(conn);
  }
}

/* ---- Answers ---- */

/* Responses over HTTP/2. They are submitted to nghttp2, and sent from the
 * loop. */

enum { MAX_HEADERS = 16, MAX_NAMES = 1024 };

static tnk__srv_stream_t *stream_of(tnk__srv_req_t *req) {
  return tnk__container_of(req, tnk__srv_stream_t, req);
}

/* Inside a callback of nghttp2 nothing is needed: its caller sends
 * afterwards. */
static void send_later(tnk__srv_h2_t *h2) {
  if (!h2->in_session)
    tnk__srv_conn_go_on_later(h2->conn);
}

/* A failed submission is out of memory. No frame could report it, so close. */
static void heed(tnk__srv_h2_t *h2, int err) {
  if (err != 0)
    tnk__srv_conn_close(h2->conn);
  else
    send_later(h2);
}

void tnk__srv_h2_leave(tnk__srv_h2_t *h2, int32_t last_id) {
  if (h2->is_leaving)
    return;
  h2->is_leaving = 1;
  h2->last_id = last_id;
  heed(h2, nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE, last_id,
                                 NGHTTP2_NO_ERROR, NULL, 0));
}

void tnk__srv_h2_reset(tnk__srv_stream_t *stream, uint32_t code) {
  stream->state = TNK__SRV_STREAM_ANSWERED;
  heed(stream->h2,
       nghttp2_submit_rst_stream(stream->h2->session, NGHTTP2_FLAG_NONE,
                                 stream->id, code));
}

/* ---- Answers: the head ---- */

typedef struct {
  nghttp2_nv nv[MAX_HEADERS];
  size_t n;
  char names[MAX_NAMES]; /* lowercase, as HTTP/2 requires */
  size_t n_names;
} head_t;

static void add(head_t *head, const char *name, size_t n_name,
                const char *value, size_t n_value) {
  char *copy = head->names + head->n_names;

  if (head->n == MAX_HEADERS || n_name > MAX_NAMES - head->n_names)
    return;
  for (size_t i = 0; i < n_name; i++)
    copy[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + ('a' - 'A')
                                                      : name[i]);
  head->n_names += n_name;
  head->nv[head->n++] = (nghttp2_nv){(uint8_t *)copy, (uint8_t *)value, n_name,
                                     n_value, NGHTTP2_NV_FLAG_NONE};
}

/* Add header lines in the format of HTTP/1.1, which handlers and hooks use. */
static void add_lines(head_t *head, const char *lines) {
  while (lines != NULL && *lines != '\0') {
    size_t n = strcspn(lines, "\r\n");
    size_t n_name = strcspn(lines, ":");
    size_t at = n_name + 1;

    while (at < n && lines[at] == ' ')
      at++;
    if (n_name < n)
      add(head, lines, n_name, lines + at, n - at);
    lines += n;
    lines += strspn(lines, "\r\n");
  }
}

/* ---- Answers: the body ---- */

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf,
                         size_t n, uint32_t *flags, nghttp2_data_source *source,
                         void *user) {
  const tnk__srv_stream_t *stream = source->ptr;
  size_t due = stream->n_body;

  (void)session;
  (void)id;
  (void)buf;
  (void)user;
  if (stream->slow != NULL && stream->n_due < due)
    due = (size_t)stream->n_due;
  if (n > due - stream->n_sent)
    n = due - stream->n_sent;
  /* A body that is cut before its first byte sends no DATA frame. A reset
   * follows the head. */
  if (n == 0 &&
      (stream->n_sent < stream->n_body || stream->is_cut || stream->is_open))
    return NGHTTP2_ERR_DEFERRED;
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (stream->n_sent + n == stream->n_body && !stream->is_open)
    *flags |= NGHTTP2_DATA_FLAG_EOF |
              (stream->is_cut ? (uint32_t)NGHTTP2_DATA_FLAG_NO_END_STREAM : 0);
  return (ssize_t)n;
}

void tnk__srv_h2_stop_slow(tnk__srv_stream_t *stream) {
  if (stream->slow != NULL)
    tnk__srv_slow_stop(stream->slow);
  stream->slow = NULL;
}

static void on_due(void *owner, uint64_t n_due) {
  tnk__srv_stream_t *stream = owner;

  stream->n_due = n_due;
  /* This fails if the stream waits for the peer's window instead of data. */
  (void)nghttp2_session_resume_data(stream->h2->session, stream->id);
  send_later(stream->h2);
  if (n_due >= stream->n_body)
    tnk__srv_h2_stop_slow(stream);
}

/* ---- Answers: whole responses ---- */

/* Returns 0 on success. */
static int submit(tnk__srv_stream_t *stream, const tnk__srv_answer_t *answer) {
  const nghttp2_data_provider body = {{.ptr = stream}, read_body};
  char status[16];
  char length[32];
  head_t head = {.n = 0};
  int n_status = snprintf(status, sizeof(status), "%d", answer->status);
  int n_length =
      snprintf(length, sizeof(length), "%" PRIu64, answer->announced);
  int has_body = stream->n_body > 0 || stream->is_cut || stream->is_open;

  add(&head, ":status", 7, status, (size_t)n_status);
  add(&head, "content-type", 12, answer->content_type,
      strlen(answer->content_type));
  if (!stream->is_open)
    add(&head, "content-length", 14, length, (size_t)n_length);
  add_lines(&head, answer->extra);
  add_lines(&head, answer->line);
  return nghttp2_submit_response(stream->h2->session, stream->id, head.nv,
                                 head.n, has_body ? &body : NULL);
}

static void take_body(tnk__srv_stream_t *stream,
                      const tnk__srv_answer_t *answer) {
  stream->body = answer->body;
  if (stream->req.is_head)
    return;
  stream->n_body = answer->n_sent;
  stream->is_cut = answer->n_sent != answer->announced;
  /* Without memory for the timer the body is sent at once. */
  if (answer->rate > 0)
    stream->slow =
        tnk__srv_slow_start(stream->req.http, answer->rate, on_due, stream);
}

static void not_answer(tnk__srv_stream_t *stream,
                       const tnk__srv_answer_t *answer) {
  if (answer->ends_conn)
    tnk__srv_conn_close(stream->h2->conn);
  else
    tnk__srv_h2_reset(stream, NGHTTP2_INTERNAL_ERROR);
}

static void answer(tnk__srv_req_t *req, const tnk__srv_answer_t *answer) {
  tnk__srv_stream_t *stream = stream_of(req);
  tnk__srv_h2_t *h2 = stream->h2;
  tnk__srv_conn_t *conn = h2->conn;

  if (conn->state == TNK__SRV_CONN_CLOSING ||
      stream->state != TNK__SRV_STREAM_HANDLING) {
    tnk__free(req->http->config.alloc, answer->body);
    return;
  }
  stream->state = TNK__SRV_STREAM_ANSWERED;
  h2->n_handling--;
  conn->served = 1;
  conn->active_ms = uv_now(conn->tcp.loop);
  take_body(stream, answer);
  if (answer->is_goodbye || tnk__srv_ends_conns(req->http))
    tnk__srv_h2_leave(h2, nghttp2_session_get_last_proc_stream_id(h2->session));
  if (answer->status < 0)
    not_answer(stream, answer);
  else if (submit(stream, answer) != 0)
    tnk__srv_h2_reset(stream, NGHTTP2_INTERNAL_ERROR);
  else
    send_later(h2);
}

static void drop(tnk__srv_req_t *req) {
  tnk__srv_stream_t *stream = stream_of(req);
  tnk__srv_h2_t *h2 = stream->h2;

  if (h2->conn->state == TNK__SRV_CONN_CLOSING ||
      stream->state != TNK__SRV_STREAM_HANDLING)
    return;
  h2->n_handling--;
  tnk__srv_h2_reset(stream, NGHTTP2_INTERNAL_ERROR);
}

/* ---- Answers: streamed responses ---- */

/* Resume a body that waits for data. This fails if it waits for something
 * else. */
static void go_on(tnk__srv_stream_t *stream) {
  (void)nghttp2_session_resume_data(stream->h2->session, stream->id);
  send_later(stream->h2);
}

static void begin(tnk__srv_req_t *req, const tnk__srv_answer_t *head) {
  tnk__srv_stream_t *stream = stream_of(req);

  stream->is_open = 1;
  if (submit(stream, head) != 0)
    tnk__srv_conn_close(stream->h2->conn);
  else
    send_later(stream->h2);
}

static void keep(tnk__srv_req_t *req, const char *text) {
  tnk__srv_stream_t *stream = stream_of(req);
  const tnk_allocator_t *alloc = req->http->config.alloc;
  size_t n = strlen(text);
  char *copy = stream->n_sent == stream->n_body && n <= TNK__SRV_MAX_KEEP
                   ? tnk__strndup(alloc, text, n)
                   : NULL;

  if (copy == NULL)
    return;
  tnk__free(alloc, stream->body);
  stream->body = (uint8_t *)copy;
  stream->n_body = n;
  stream->n_sent = 0;
  go_on(stream);
}

/* Prepend the unsent rest of the previous piece. Returns 0 on success. */
static int put_first(tnk__srv_stream_t *stream, uint8_t **body, size_t *len) {
  const tnk_allocator_t *alloc = stream->req.http->config.alloc;
  size_t n = stream->n_body - stream->n_sent;
  uint8_t *both;

  if (n == 0)
    return 0;
  both = *len < SIZE_MAX - n ? tnk__malloc(alloc, n + *len) : NULL;
  if (both == NULL)
    return -1;
  memcpy(both, stream->body + stream->n_sent, n);
  if (*len > 0)
    memcpy(both + n, *body, *len);
  tnk__free(alloc, *body);
  *body = both;
  *len += n;
  return 0;
}

static void finish(tnk__srv_req_t *req, uint8_t *body, size_t len) {
  tnk__srv_stream_t *stream = stream_of(req);
  tnk__srv_h2_t *h2 = stream->h2;
  const tnk_allocator_t *alloc = req->http->config.alloc;

  if (h2->conn->state == TNK__SRV_CONN_CLOSING ||
      stream->state != TNK__SRV_STREAM_HANDLING) {
    tnk__free(alloc, body);
    return;
  }
  stream->state = TNK__SRV_STREAM_ANSWERED;
  stream->is_open = 0;
  h2->n_handling--;
  h2->conn->served = 1;
  h2->conn->active_ms = uv_now(h2->conn->tcp.loop);
  if (put_first(stream, &body, &len) != 0) {
    tnk__free(alloc, body);
    tnk__srv_h2_reset(stream, NGHTTP2_INTERNAL_ERROR);
    return;
  }
  tnk__free(alloc, stream->body);
  stream->body = body;
  stream->n_body = len;
  stream->n_sent = 0;
  go_on(stream);
}

const tnk__srv_req_ops_t tnk__srv_h2_ops = {"HTTP/2", answer, drop,
                                            begin,    keep,   finish};
