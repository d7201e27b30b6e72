#include "server/h2_state.h"
#include "tnk/error.h"

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
