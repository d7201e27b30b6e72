/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/h2.h"
#include "tnk/error.h"

/*
 * The callbacks of nghttp2. They call no owner except through on_sent, which
 * only takes a note. An exchange that ends moves its stream to `over`. The
 * connection evaluates all changes when nghttp2 has returned.
 *
 * nghttp2 checks frames, headers and lengths. It bounds unacknowledged frames
 * and CONTINUATION. This file bounds the rest: the fields of a response, and
 * frames without use.
 */

/* Flow control windows: how much the server may send ahead for one response,
 * and for all responses. */
#define STREAM_WINDOW (1 * TNK__MIB)
#define WINDOW (16 * TNK__MIB)
/* Limit of consecutive frames without use. Each frame that we send may cause
 * one of each type, so this is far more than a server needs. */
enum { MAX_IDLE_FRAMES = 10000 };

/* ---- Streams ---- */

tnk__h2_stream_t *tnk__h2_stream_new(tnk__h2_t *h2, tnk__exchange_t *ex) {
  tnk__h2_stream_t *stream = tnk__calloc(h2->alloc, 1, sizeof(*stream));

  if (stream == NULL)
    return NULL;
  stream->h2 = h2;
  stream->ex = ex;
  stream->begins_at = UINT64_MAX;
  tnk__list_init(&stream->link);
  tnk__list_append(&h2->fresh, &stream->link);
  h2->n_streams++;
  return stream;
}

void tnk__h2_stream_free(tnk__h2_stream_t *stream) {
  tnk__list_remove(&stream->link);
  if (!stream->is_closed)
    stream->h2->n_streams--;
  tnk__free(stream->h2->alloc, stream);
}

void tnk__h2_stream_over(tnk__h2_stream_t *stream, int err, const char *why) {
  tnk__h2_t *h2 = stream->h2;

  if (stream->ex == NULL || stream->err != TNK_OK || stream->is_over)
    return;
  stream->is_over = 1;
  stream->err = err;
  stream->why = why;
  tnk__list_remove(&stream->link);
  tnk__list_append(&h2->over, &stream->link);
}

void tnk__h2_stream_leave(tnk__h2_stream_t *stream) {
  tnk__h2_t *h2 = stream->h2;

  stream->ex = NULL;
  stream->reader = NULL;
  if (stream->id == 0 || stream->is_closed) {
    tnk__h2_stream_free(stream);
    return;
  }
  /* A stream that is complete in both directions closes without a reset. */
  stream->needs_reset = !stream->is_sent || !stream->is_answered;
  tnk__list_remove(&stream->link);
  if (stream->is_sent)
    tnk__list_append(&h2->orphans, &stream->link);
  else
    tnk__list_prepend(&h2->orphans, &stream->link);
}

/* The meaning of a code of RST_STREAM or GOAWAY, as text. */
static const char *words_of(uint32_t code) {
  static const char *const words[] = {
      [NGHTTP2_NO_ERROR] = "without an error (NO_ERROR)",
      [NGHTTP2_PROTOCOL_ERROR] =
          "it reported invalid HTTP/2 from this client (PROTOCOL_ERROR)",
      [NGHTTP2_INTERNAL_ERROR] = "it failed (INTERNAL_ERROR)",
      [NGHTTP2_FLOW_CONTROL_ERROR] =
          "it reported invalid HTTP/2 from this client (FLOW_CONTROL_ERROR)",
      [NGHTTP2_SETTINGS_TIMEOUT] =
          "it waited for its settings to be accepted (SETTINGS_TIMEOUT)",
      [NGHTTP2_STREAM_CLOSED] =
          "it reported invalid HTTP/2 from this client (STREAM_CLOSED)",
      [NGHTTP2_FRAME_SIZE_ERROR] =
          "it reported invalid HTTP/2 from this client (FRAME_SIZE_ERROR)",
      [NGHTTP2_REFUSED_STREAM] =
          "it cannot take the request now (REFUSED_STREAM)",
      [NGHTTP2_CANCEL] = "it canceled the request (CANCEL)",
      [NGHTTP2_COMPRESSION_ERROR] =
          "it reported invalid HTTP/2 from this client (COMPRESSION_ERROR)",
      [NGHTTP2_CONNECT_ERROR] = "a tunnel behind it broke (CONNECT_ERROR)",
      [NGHTTP2_ENHANCE_YOUR_CALM] =
          "it wants fewer requests (ENHANCE_YOUR_CALM)",
      [NGHTTP2_INADEQUATE_SECURITY] =
          "it wants better encryption (INADEQUATE_SECURITY)",
      [NGHTTP2_HTTP_1_1_REQUIRED] = "it wants HTTP/1.1 (HTTP_1_1_REQUIRED)",
  };

  return code < sizeof(words) / sizeof(words[0])
             ? words[code]
             : "for a reason that HTTP/2 does not know";
}

/* ---- Reading ---- */

static tnk__h2_stream_t *stream_of(nghttp2_session *session, int32_t id) {
  return nghttp2_session_get_stream_user_data(session, id);
}

/* Returns whether the rest of the response is ignored. */
static int is_ignored(const tnk__h2_stream_t *stream) {
  return stream == NULL || stream->ex == NULL || stream->is_over;
}

/* nghttp2 resets a stream with a body that is too short and one with a body
 * that is too long with the same code. The length distinguishes them. Padding
 * makes a frame longer, which is rare; a short body is then taken for a wrong
 * one. */
static int is_cut_short(const tnk__h2_stream_t *stream, uint32_t code) {
  return !stream->was_reset && code == NGHTTP2_PROTOCOL_ERROR &&
         stream->reader != NULL && stream->reader->is_last &&
         tnk__h2_reader_is_short(stream->reader) &&
         stream->reader->n_framed < stream->reader->n_told;
}

static void note_frame(nghttp2_session *session, const nghttp2_frame_hd *hd) {
  tnk__h2_stream_t *stream;

  if (hd->type != NGHTTP2_DATA && hd->type != NGHTTP2_HEADERS)
    return;
  stream = stream_of(session, hd->stream_id);
  if (is_ignored(stream) || stream->reader == NULL)
    return;
  stream->reader->n_framed = stream->reader->n_body;
  if (hd->type == NGHTTP2_DATA)
    stream->reader->n_framed += hd->length;
  stream->reader->is_last = (hd->flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd,
                          void *user) {
  tnk__h2_t *h2 = user;

  note_frame(session, hd);
  if (++h2->n_idle_frames <= MAX_IDLE_FRAMES)
    return 0;
  h2->why = "it keeps sending frames without content";
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *session,
                            const nghttp2_frame *frame, void *user) {
  tnk__h2_stream_t *stream = stream_of(session, frame->hd.stream_id);

  (void)user;
  if (is_ignored(stream) || stream->reader != NULL)
    return 0;
  stream->reader = tnk__exchange_begin_h2(stream->ex);
  if (stream->reader == NULL)
    tnk__h2_stream_over(stream, TNK_ENOMEM, NULL);
  return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t n_name, const uint8_t *value,
                     size_t n_value, uint8_t flags, void *user) {
  tnk__h2_stream_t *stream = stream_of(session, frame->hd.stream_id);
  int err;

  (void)flags;
  (void)user;
  /* Frames of an orphan are skipped. Refusing them would cause a reset outside
   * of the budget. */
  if (stream == NULL || stream->ex == NULL)
    return 0;
  /* The rest of the fields is skipped, and the stream is reset. */
  if (is_ignored(stream) || stream->reader == NULL)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  err = tnk__h2_reader_field(stream->reader, name, n_name, value, n_value);
  if (err == TNK_OK)
    return 0;
  tnk__h2_stream_over(stream, err, NULL);
  return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t n, void *user) {
  tnk__h2_t *h2 = user;
  tnk__h2_stream_t *stream = stream_of(session, id);
  int err;

  (void)flags;
  /* The window of an abandoned stream is not opened again. */
  if (is_ignored(stream) || stream->reader == NULL)
    return nghttp2_session_consume_connection(session, n) == 0
               ? 0
               : NGHTTP2_ERR_CALLBACK_FAILURE;
  h2->n_idle_frames = 0;
  err = tnk__h2_reader_body(stream->reader, data, n);
  if (err != TNK_OK)
    tnk__h2_stream_over(stream, err, NULL);
  else
    tnk__exchange_note_body(stream->ex, h2->now_ms);
  if (err == TNK_OK && !stream->ex->is_paused)
    err = nghttp2_session_consume(session, id, n);
  else
    err = nghttp2_session_consume_connection(session, n);
  if (stream->ex->is_paused)
    stream->n_held += n;
  return err == 0 ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* The last frame of a response. The unsent rest of the request is dropped. */
static void on_answered(tnk__h2_stream_t *stream) {
  int err;

  stream->is_answered = 1;
  if (is_ignored(stream))
    return;
  err =
      stream->reader != NULL ? tnk__h2_reader_end(stream->reader) : TNK_EPROTO;
  tnk__h2_stream_over(stream, err, NULL);
}

static void on_message_frame(tnk__h2_t *h2, const nghttp2_frame *frame,
                             tnk__h2_stream_t *stream) {
  int err;

  if (frame->hd.type == NGHTTP2_HEADERS && !is_ignored(stream) &&
      stream->reader != NULL) {
    err = tnk__h2_reader_fields_end(stream->reader);
    if (err != TNK_OK)
      tnk__h2_stream_over(stream, err, NULL);
    else if (stream->reader->state == TNK__HTTP_READ_BODY) {
      h2->n_idle_frames = 0;
      tnk__exchange_note_body(stream->ex, h2->now_ms);
    }
  }
  if (stream != NULL && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
    on_answered(stream);
}

static void on_goaway(tnk__h2_t *h2, const nghttp2_goaway *goaway) {
  h2->is_draining = 1;
  if (goaway->error_code == NGHTTP2_NO_ERROR)
    return;
  h2->goaway = goaway->error_code;
  h2->why = words_of(goaway->error_code);
  h2->wants_http1 = goaway->error_code == NGHTTP2_HTTP_1_1_REQUIRED ||
                    goaway->error_code == NGHTTP2_INADEQUATE_SECURITY;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *user) {
  tnk__h2_t *h2 = user;
  tnk__h2_stream_t *stream = NULL;

  if (frame->hd.stream_id > 0)
    stream = stream_of(session, frame->hd.stream_id);
  switch (frame->hd.type) {
  case NGHTTP2_HEADERS:
  case NGHTTP2_DATA:
    on_message_frame(h2, frame, stream);
    break;
  case NGHTTP2_RST_STREAM:
    if (stream != NULL)
      stream->was_reset = 1;
    break;
  case NGHTTP2_SETTINGS:
    if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
      break;
    h2->has_settings = 1;
    h2->peer_max = nghttp2_session_get_remote_settings(
        session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    break;
  case NGHTTP2_GOAWAY:
    on_goaway(h2, &frame->goaway);
    break;
  default:
    break;
  }
  return 0;
}

/* The end of a stream whose exchange is still active. */
static void on_cut(tnk__h2_stream_t *stream, uint32_t code) {
  tnk__h2_t *h2 = stream->h2;

  switch (code) {
  case NGHTTP2_REFUSED_STREAM:
    stream->is_unseen = stream->ex->answer == NULL;
    /* The server has less capacity than it announced. */
    if (stream->was_reset)
      h2->own_max = (uint32_t)(h2->n_streams > 2 ? h2->n_streams - 1 : 1);
    break;
  case NGHTTP2_HTTP_1_1_REQUIRED:
    stream->is_unseen = stream->ex->answer == NULL;
    h2->wants_http1 = h2->is_draining = 1;
    break;
  default:
    break;
  }
  if (is_cut_short(stream, code))
    /* The response was cut off. Over HTTP/1.1 the end of a connection does the
     * same. */
    tnk__h2_stream_over(stream, TNK_ECONN,
                        "its response is shorter than its content-length");
  else if (!stream->was_reset && code != NGHTTP2_NO_ERROR &&
           code != NGHTTP2_REFUSED_STREAM)
    /* nghttp2 has rejected the response. */
    tnk__h2_stream_over(stream, TNK_EPROTO, NULL);
  else
    tnk__h2_stream_over(stream, TNK_ECONN, words_of(code));
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code,
                    void *user) {
  tnk__h2_t *h2 = user;
  tnk__h2_stream_t *stream = stream_of(session, id);

  if (stream == NULL)
    return 0;
  if (!is_ignored(stream))
    on_cut(stream, code);
  stream->is_closed = 1;
  h2->n_streams--;
  h2->n_open--;
  if (stream->ex == NULL)
    tnk__h2_stream_free(stream);
  return 0;
}

/* After this nghttp2 resets the stream or ends the connection. */
static int on_invalid(nghttp2_session *session, const nghttp2_frame *frame,
                      int code, void *user) {
  tnk__h2_t *h2 = user;

  (void)session;
  (void)frame;
  h2->why = nghttp2_strerror(code);
  return 0;
}

/* ---- Writing ---- */

static int before_frame(nghttp2_session *session, const nghttp2_frame *frame,
                        void *user) {
  tnk__h2_t *h2 = user;
  tnk__h2_stream_t *stream;

  if (frame->hd.type != NGHTTP2_HEADERS)
    return 0;
  stream = stream_of(session, frame->hd.stream_id);
  if (stream == NULL || stream->begins_at != UINT64_MAX)
    return 0;
  stream->begins_at = h2->n_out;
  h2->n_idle_frames = 0;
  if (stream->ex == NULL)
    return 0;
  h2->conn->http->context->counters.n_requests++;
  tnk__exchange_note_sent(stream->ex);
  return 0;
}

static void set_callbacks(nghttp2_session_callbacks *callbacks) {
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks,
                                                        on_begin_frame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
                                                          on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
  nghttp2_session_callbacks_set_before_frame_send_callback(callbacks,
                                                           before_frame);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks,
                                                               on_invalid);
}

static int new_session(tnk__h2_t *h2, nghttp2_session_callbacks *callbacks) {
  nghttp2_mem mem = tnk__h2_memory_for_nghttp2(&h2->memory);
  nghttp2_option *option;
  int err;

  if (nghttp2_option_new(&option) != 0)
    return NGHTTP2_ERR_NOMEM;
  /* The window is opened only when the bytes are wanted. */
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  err = nghttp2_session_client_new3(&h2->session, callbacks, h2, option, &mem);
  nghttp2_option_del(option);
  return err;
}

int tnk__h2_session_new(tnk__h2_t *h2) {
  static const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, TNK__MAX_RESPONSE_HEAD},
  };
  nghttp2_session_callbacks *callbacks;
  int err;

  if (nghttp2_session_callbacks_new(&callbacks) != 0)
    return TNK_ENOMEM;
  set_callbacks(callbacks);
  err = new_session(h2, callbacks);
  nghttp2_session_callbacks_del(callbacks);
  if (err == 0)
    err = nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                                  sizeof(settings) / sizeof(settings[0]));
  if (err == 0)
    err = nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE,
                                                0, (int32_t)WINDOW);
  return err == 0 ? TNK_OK : TNK_ENOMEM;
}

void tnk__h2_session_free(tnk__h2_t *h2) {
  nghttp2_session_del(h2->session);
  h2->session = NULL;
}
