/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/h2.h"
#include "lib/policy/bounds.h"
#include "tnk/error.h"

/*
 * HTTP/2: many exchanges, each on a stream. The connection counts as connecting
 * until the server's SETTINGS have arrived. No request is therefore risked on a
 * server that speaks another protocol.
 *
 * Results of reading are reported after nghttp2 has returned. Output of nghttp2
 * is gathered in one buffer and written in the next turn of the loop, so all
 * requests of a turn are sent together. This repeats while there is more
 * output.
 *
 * After a GOAWAY of the server no new request is sent, and the responses that
 * it will still send are awaited. An abandoned exchange leaves its stream as an
 * orphan. The stream is reset while the budget of resets lasts. Otherwise it
 * counts as occupied until it ends, so that many cancels in a row trigger no
 * protection of the server.
 *
 * After a time of silence a PING checks whether the server still responds.
 */

/* Approximate size of a write. It suffices for the requests of a turn, and is
 * small enough that a request does not wait long behind an upload. */
#define OUT_ENOUGH ((size_t)64 * 1024)
/* Includes the last frame. */
#define OUT_MAX (4 * OUT_ENOUGH)

static void on_flush(tnk__deferred_t *call);
static void on_pulse(tnk__timer_t *timer);

static uint64_t now_of(const tnk__conn_t *conn) {
  return tnk__context_now_ms(conn->http->context);
}

static void flush_soon(tnk__conn_t *conn) {
  tnk__defer_last(conn->http->context, &conn->h2->flush);
}

static void on_no_settings(tnk__timer_t *timer) {
  tnk__conn_t *conn = tnk__container_of(timer, tnk__conn_t, timer);

  conn->text = "the server has agreed to HTTP/2 and does not begin with it";
  tnk__conn_fail(conn, TNK_ETIMEDOUT, 0);
}

static int begin(tnk__conn_t *conn) {
  const tnk_allocator_t *alloc = &conn->http->context->alloc;
  tnk__h2_t *h2 = tnk__calloc(alloc, 1, sizeof(*h2));

  if (h2 == NULL)
    return TNK_ENOMEM;
  conn->h2 = h2;
  h2->conn = conn;
  h2->alloc = alloc;
  tnk__h2_memory_init(&h2->memory, alloc);
  h2->peer_max = h2->own_max = TNK__H2_MAX_STREAMS;
  h2->n_resets = TNK__RESETS;
  h2->resets_ms = h2->alive_ms = now_of(conn);
  tnk__list_init(&h2->fresh);
  tnk__list_init(&h2->open);
  tnk__list_init(&h2->over);
  tnk__list_init(&h2->orphans);
  tnk__buf_init(&h2->out, alloc, OUT_MAX);
  tnk__deferred_init(&h2->flush, on_flush);
  if (tnk__h2_session_new(h2) != TNK_OK)
    return TNK_ENOMEM;
  tnk__timer_start(conn->http->context, &conn->timer,
                   conn->http->connect_timeout_ms, on_no_settings);
  flush_soon(conn);
  return TNK__CONN_LATER;
}

/* Our GOAWAY, for servers that expect one: no error, last stream 0. */
static const uint8_t goodbye[17] = {0, 0, 8, NGHTTP2_GOAWAY};

static void say_goodbye(tnk__conn_t *conn) {
  uv_buf_t buf;

  if (conn->h2 == NULL || conn->h2->is_writing || conn->h2->write_failed ||
      conn->h2->n_out == conn->h2->out.len)
    return; /* never in front of the connection preface, never within a frame */
  buf = uv_buf_init((char *)(uintptr_t)goodbye, sizeof(goodbye));
  (void)tnk__stream_write(conn->stream, &buf, 1);
}

static void drop_out(tnk__h2_t *h2) {
  h2->n_last = h2->out.len;
  tnk__wipe(h2->out.data, h2->out.len);
  tnk__buf_deinit(&h2->out);
}

static void end(tnk__conn_t *conn) {
  tnk__h2_t *h2 = conn->h2;
  tnk__list_t *node;

  if (h2 == NULL)
    return;
  tnk__timer_stop(&h2->pulse);
  tnk__defer_cancel(&h2->flush);
  tnk__h2_session_free(h2);
  while ((node = tnk__list_first(&h2->orphans)) != NULL)
    tnk__h2_stream_free(tnk__container_of(node, tnk__h2_stream_t, link));
  tnk__h2_memory_deinit(&h2->memory);
  drop_out(h2);
  tnk__free(h2->alloc, h2);
}

static size_t capacity(const tnk__conn_t *conn) {
  const tnk__h2_t *h2 = conn->h2;
  size_t max = TNK__H2_MAX_STREAMS;

  if (h2->is_draining || h2->broken != 0)
    return 0;
  if (h2->peer_max < max)
    max = h2->peer_max;
  return h2->own_max < max ? h2->own_max : max;
}

static size_t room(const tnk__conn_t *conn) {
  const size_t max = capacity(conn);

  return max > conn->h2->n_streams ? max - conn->h2->n_streams : 0;
}

static tnk__h2_stream_t *stream_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__h2_stream_t, link);
}

static tnk__exchange_t *first(const tnk__conn_t *conn) {
  tnk__list_t *node = tnk__list_first(&conn->h2->open);

  if (node == NULL)
    node = tnk__list_first(&conn->h2->fresh);
  if (node == NULL)
    node = tnk__list_first(&conn->h2->over);
  return node != NULL ? stream_at(node)->ex : NULL;
}

static int is_sending(const tnk__conn_t *conn, const tnk__exchange_t *ex) {
  (void)conn;
  return !ex->h2->is_sent || ex->h2->begins_at == UINT64_MAX;
}

/* Unsent bytes of the connection may belong to any stream. They are all counted
 * against this one. */
static uint64_t n_sent(const tnk__conn_t *conn, const tnk__exchange_t *ex) {
  const tnk__h2_stream_t *stream = ex->h2;
  const uint64_t written = tnk__stream_n_sent(conn->stream);
  const uint64_t n = ex->head.len + stream->n_body;
  const uint64_t unsent = conn->h2->n_out - written;

  if (written <= stream->begins_at)
    return 0;
  return n > unsent ? n - unsent : 0;
}

static int send_request(tnk__conn_t *conn, tnk__exchange_t *ex) {
  tnk__h2_t *h2 = conn->h2;

  ex->h2 = tnk__h2_stream_new(h2, ex);
  if (ex->h2 == NULL)
    return TNK_ENOMEM;
  if (conn->n_on == 1)
    h2->alive_ms = now_of(conn);
  flush_soon(conn);
  return TNK_OK;
}

static void part(tnk__conn_t *conn, tnk__exchange_t *ex, int is_over) {
  tnk__h2_stream_t *stream = ex->h2;

  (void)is_over;
  if (stream == NULL)
    return;
  if (!stream->is_unseen &&
      tnk__stream_n_sent(conn->stream) > stream->begins_at)
    ex->sent = 1;
  /* A server that sent ENHANCE_YOUR_CALM gets no immediate repeat; the owner
   * backs off. */
  ex->is_unseen =
      stream->is_unseen && conn->h2->goaway != NGHTTP2_ENHANCE_YOUR_CALM;
  ex->h2 = NULL;
  tnk__h2_stream_leave(stream);
  flush_soon(conn);
}

static void resume(tnk__conn_t *conn, tnk__exchange_t *ex) {
  tnk__h2_stream_t *stream = ex->h2;
  int err = 0;

  if (stream->n_held > 0 && !stream->is_closed)
    err = nghttp2_session_consume_stream(conn->h2->session, stream->id,
                                         stream->n_held);
  stream->n_held = 0;
  if (err != 0)
    conn->h2->broken = err;
  flush_soon(conn);
}

static void go_on(tnk__conn_t *conn, tnk__exchange_t *ex) {
  tnk__h2_stream_t *stream = ex->h2;

  if (stream == NULL || !stream->is_waiting)
    return;
  stream->is_waiting = 0;
  if (!stream->is_closed)
    nghttp2_session_resume_data(conn->h2->session, stream->id);
  flush_soon(conn);
}

/* ---- Reporting results ---- */

/* The server considers the request not meant for it, so it has not acted on
 * it. */
static int is_misdirected(const tnk__exchange_t *ex, int err) {
  return err == TNK_OK && ex->answer != NULL && ex->answer->status == 421 &&
         ex->n_unseen == 0 && !ex->is_streamed;
}

/* Report the exchange of a stream that is over. */
static void tell(tnk__conn_t *conn, tnk__h2_stream_t *stream,
                 const char *text) {
  tnk__exchange_t *ex = stream->ex;
  int err = stream->err;
  char words[TNK__MAX_ERROR_TEXT];

  if (is_misdirected(ex, err)) {
    tnk__exchange_forget_answer(ex);
    stream->is_unseen = 1;
    conn->h2->is_draining = 1;
    err = TNK_ECONN;
  } else if (err == TNK_OK && conn->h2->own_max < TNK__H2_MAX_STREAMS) {
    conn->h2->own_max++;
  }
  conn->text = NULL;
  if (stream->why != NULL) {
    snprintf(words, sizeof(words), "the server ended the request: %s",
             stream->why);
    conn->text = words;
  } else if (err != TNK_OK) {
    conn->text = text;
  }
  tnk__conn_finish(conn, ex, err, conn->h2->cause);
}

/* Report the results of reading. Returns 0 if the connection is gone. */
static int tell_all(tnk__conn_t *conn, const char *text) {
  tnk__list_t *node;
  size_t before;

  tnk__conn_hold(conn);
  while (!conn->is_closed && (node = tnk__list_first(&conn->h2->over)) != NULL)
    tell(conn, stream_at(node), text);
  if (conn->is_closed)
    return tnk__conn_release(conn);
  conn->text = NULL;
  conn->drains = conn->h2->is_draining;
  before = conn->h2->n_told_room;
  conn->h2->n_told_room = room(conn);
  if (conn->h2->wants_http1)
    conn->refuses_http2 = 3;
  if (conn->state == TNK__CONN_CONNECTING && conn->h2->has_settings)
    tnk__conn_ready(conn);
  else if (conn->state == TNK__CONN_OPEN && conn->n_on == 0 &&
           conn->h2->is_draining)
    tnk__conn_end(conn);
  else if (conn->state == TNK__CONN_OPEN && before != conn->h2->n_told_room)
    conn->events->on_room(conn);
  return tnk__conn_release(conn);
}

static void all_over(tnk__list_t *list, int err) {
  tnk__list_t *node;

  while ((node = tnk__list_first(list)) != NULL)
    tnk__h2_stream_over(stream_at(node), err, NULL);
}

/* End the connection and every exchange on it. */
static void fail(tnk__conn_t *conn, int err, int cause, const char *text) {
  tnk__h2_t *h2 = conn->h2;

  h2->cause = cause;
  if (conn->state == TNK__CONN_CONNECTING) {
    conn->text = text;
    tnk__conn_fail(conn, err, cause);
    return;
  }
  if (conn->n_on == 0) {
    tnk__conn_end(conn);
    return;
  }
  conn->state = TNK__CONN_ENDED;
  all_over(&h2->fresh, err);
  all_over(&h2->open, err);
  (void)tell_all(conn, text);
}

/* End it because the HTTP/2 session cannot continue. */
static void fail_session(tnk__conn_t *conn, int code) {
  tnk__h2_t *h2 = conn->h2;
  char text[TNK__MAX_ERROR_TEXT];

  if (code == NGHTTP2_ERR_NOMEM || h2->memory.was_refused) {
    fail(conn, TNK_ENOMEM, 0, NULL);
    return;
  }
  /* A GOAWAY of the server is not its fault. */
  if (!h2->is_draining)
    conn->refuses_http2 = 2;
  snprintf(text, sizeof(text), "the HTTP/2 connection to the server ended: %s",
           h2->why != NULL ? h2->why
           : code != 0     ? nghttp2_strerror(code)
                           : "the server asked to stop");
  fail(conn, h2->is_draining ? TNK_ECONN : TNK_EPROTO, 0, text);
}

/* ---- Writing ---- */

static void count_resets(tnk__h2_t *h2, uint64_t now) {
  h2->n_resets += (double)(now - h2->resets_ms) * (double)TNK__RESETS /
                  (double)TNK__RESETS_MS;
  if (h2->n_resets > TNK__RESETS)
    h2->n_resets = TNK__RESETS;
  h2->resets_ms = now;
}

static void submit_resets(tnk__conn_t *conn) {
  tnk__h2_t *h2 = conn->h2;

  if (tnk__list_empty(&h2->orphans))
    return;
  count_resets(h2, h2->now_ms);
  TNK__LIST_FOREACH_SAFE (node, next, &h2->orphans) {
    tnk__h2_stream_t *stream = stream_at(node);
    if (h2->n_resets < 1)
      return;
    if (!stream->needs_reset)
      continue;
    stream->needs_reset = 0;
    h2->n_resets--;
    if (nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, stream->id,
                                  NGHTTP2_CANCEL) != 0)
      h2->broken = NGHTTP2_ERR_NOMEM;
  }
}

/* Take one frame of nghttp2's output. Returns its size, 0 if there is none, or
 * an error code of nghttp2. */
static ssize_t take_frame(tnk__h2_t *h2) {
  const uint8_t *data;
  const ssize_t n = nghttp2_session_mem_send(h2->session, &data);

  if (n <= 0)
    return n;
  /* Reserve at once as much as the last write took. That is a lot if many
   * requests are sent. */
  if (h2->out.len == 0 && h2->n_last > 0)
    (void)tnk__buf_reserve(&h2->out, h2->n_last);
  if (tnk__buf_append(&h2->out, data, (size_t)n) != TNK_OK)
    return NGHTTP2_ERR_NOMEM;
  h2->n_out += (uint64_t)n;
  return n;
}

/* nghttp2 keeps no copy of a request's head. It therefore gets a request only
 * when it can write the head at once, before all bodies. Returns 0 or an error
 * code of nghttp2. */
static int write_head(tnk__h2_t *h2, tnk__h2_stream_t *stream) {
  ssize_t n = 1;

  if (tnk__h2_request(stream) != TNK_OK) {
    tnk__h2_stream_over(stream, TNK_ENOMEM, NULL);
    return 0;
  }
  while (n > 0 && stream->begins_at == UINT64_MAX && !stream->is_over)
    n = take_frame(h2);
  return n == 0 ? NGHTTP2_ERR_INVALID_STATE : n < 0 ? (int)n : 0;
}

/* Returns whether fresh streams can be submitted to nghttp2, or must be given
 * back. */
static int may_begin(const tnk__h2_t *h2) {
  return !tnk__list_empty(&h2->fresh) &&
         (h2->is_draining || h2->n_open < h2->peer_max);
}

/* Gather the output: the heads of fresh streams, then the rest. Returns 0 or an
 * error code of nghttp2. */
static int gather(tnk__h2_t *h2) {
  ssize_t n = 1;
  int code = 0;

  while (code == 0 && h2->out.len < OUT_ENOUGH && may_begin(h2))
    code = write_head(h2, stream_at(tnk__list_first(&h2->fresh)));
  while (code == 0 && n > 0 && h2->out.len < OUT_ENOUGH)
    n = take_frame(h2);
  return code != 0 ? code : n < 0 ? (int)n : 0;
}

/* A draining server accepts no fresh stream. */
static void give_back_fresh(tnk__h2_t *h2) {
  tnk__list_t *node;

  while (h2->is_draining && (node = tnk__list_first(&h2->fresh)) != NULL) {
    stream_at(node)->is_unseen = 1;
    tnk__h2_stream_over(stream_at(node), TNK_ECONN, NULL);
  }
}

/* Returns whether there is more output to write. */
static int wants_write(const tnk__h2_t *h2) {
  return nghttp2_session_want_write(h2->session) || may_begin(h2);
}

static int write_out(tnk__conn_t *conn) {
  tnk__h2_t *h2 = conn->h2;
  uv_buf_t buf = uv_buf_init((char *)h2->out.data, (unsigned)h2->out.len);
  int err = tnk__stream_write(conn->stream, &buf, 1);

  if (err == TNK__STREAM_WRITTEN) {
    drop_out(h2);
    if (wants_write(h2))
      flush_soon(conn);
  } else if (err == TNK_OK) {
    h2->is_writing = 1;
  } else {
    /* The server may have sent the reason; the end of the stream follows. */
    h2->write_failed = 1;
  }
  return err;
}

static void set_pulse(tnk__conn_t *conn) {
  tnk__h2_t *h2 = conn->h2;
  tnk__list_t *node = tnk__list_first(&h2->orphans);
  const uint64_t now = now_of(conn);
  uint64_t due_ms = h2->alive_ms + TNK__PING_AFTER_MS;

  if (h2->is_pinging && h2->pinged_ms == 0)
    h2->pinged_ms = now;
  if (h2->is_pinging)
    due_ms = h2->pinged_ms + TNK__PONG_MS;
  if (node != NULL && stream_at(node)->needs_reset)
    due_ms = now + TNK__RESETS_MS / TNK__RESETS;
  else if (conn->n_on == 0)
    return;
  if (!tnk__timer_is_active(&h2->pulse) || due_ms != h2->pulse.due_ms)
    tnk__timer_start_background(conn->http->context, &h2->pulse,
                                due_ms > now ? due_ms - now : 0, on_pulse);
}

/* The loop has polled its sockets since the time expired. */
static int is_dead(tnk__conn_t *conn) {
  char text[TNK__MAX_ERROR_TEXT];

  if (!conn->h2->is_doubted)
    return 0;
  snprintf(text, sizeof(text),
           "no byte arrived for %d s, and no response to a PING within %d s",
           TNK__PING_AFTER_MS / 1000, TNK__PONG_MS / 1000);
  fail(conn, TNK_ECONN, UV_ETIMEDOUT, text);
  return 1;
}

static void flush(tnk__conn_t *conn) {
  tnk__h2_t *h2 = conn->h2;
  int code;

  if (conn->state == TNK__CONN_ENDED || is_dead(conn))
    return;
  if (h2->is_writing || h2->write_failed) {
    set_pulse(conn);
    return;
  }
  h2->now_ms = now_of(conn);
  give_back_fresh(h2);
  submit_resets(conn);
  code = h2->broken != 0 ? h2->broken : gather(h2);
  if (code == 0 && h2->out.len > 0)
    (void)write_out(conn);
  if (code != 0) {
    fail_session(conn, code);
    return;
  }
  if (!tell_all(conn, NULL))
    return;
  if (!nghttp2_session_want_read(h2->session) && !h2->is_writing &&
      !nghttp2_session_want_write(h2->session) &&
      conn->state != TNK__CONN_ENDED)
    fail_session(conn, 0);
  else
    set_pulse(conn);
}

static void on_flush(tnk__deferred_t *call) {
  flush(tnk__container_of(call, tnk__h2_t, flush)->conn);
}

/* Bytes of the upload were accepted by the system. While an upload makes
 * progress, a PING and its response may be delayed behind it. */
static void on_written(tnk__conn_t *conn, int cause) {
  tnk__h2_t *h2 = conn->h2;

  h2->is_writing = 0;
  drop_out(h2);
  h2->write_failed = cause != 0;
  if (cause == 0) {
    h2->alive_ms = now_of(conn);
    h2->is_doubted = 0;
    h2->pinged_ms = 0;
  }
  flush(conn);
}

/* ---- Reading ---- */

static void on_read(tnk__conn_t *conn, const uint8_t *data, size_t n) {
  tnk__h2_t *h2 = conn->h2;
  ssize_t code;

  h2->alive_ms = h2->now_ms = now_of(conn);
  h2->is_pinging = h2->is_doubted = 0;
  code = nghttp2_session_mem_recv(h2->session, data, n);
  if (code < 0)
    fail_session(conn, (int)code);
  else if (tell_all(conn, NULL) && wants_write(h2))
    flush_soon(conn);
}

static void on_end(tnk__conn_t *conn, const tnk__net_error_t *error) {
  fail(conn, error->code != TNK_OK ? error->code : TNK_ECONN, error->cause,
       error->text);
}

static void on_pulse(tnk__timer_t *timer) {
  tnk__h2_t *h2 = tnk__container_of(timer, tnk__h2_t, pulse);
  tnk__conn_t *conn = h2->conn;
  const uint64_t silent_ms = now_of(conn) - h2->alive_ms;

  if (conn->n_on > 0 && h2->is_pinging) {
    h2->is_doubted = now_of(conn) - h2->pinged_ms >= TNK__PONG_MS;
  } else if (conn->n_on > 0 && silent_ms >= TNK__PING_AFTER_MS) {
    h2->is_pinging = 1;
    h2->pinged_ms = 0;
    if (nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL) != 0)
      h2->broken = NGHTTP2_ERR_NOMEM;
  }
  flush_soon(conn);
}

const tnk__conn_kind_t tnk__conn_h2 = {
    .name = "HTTP/2",
    .is_shared = 1,
    .begin = begin,
    .say_goodbye = say_goodbye,
    .end = end,
    .send = send_request,
    .part = part,
    .capacity = capacity,
    .room = room,
    .resume = resume,
    .go_on = go_on,
    .is_sending = is_sending,
    .n_sent = n_sent,
    .first = first,
    .on_read = on_read,
    .on_written = on_written,
    .on_end = on_end,
};
