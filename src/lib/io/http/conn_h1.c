/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/io/http/conn.h"
#include "lib/io/http/exchange.h"
#include "tnk/error.h"

/*
 * HTTP/1.1: one exchange at a time. The connection ends if a response cannot be
 * trusted, is followed by another one, or was not requested. It also ends if a
 * response is complete before the request is written, because the rest of the
 * request will not be sent.
 *
 * A body from a feed is sent piece by piece. Each piece is requested when the
 * previous one is written, in another turn of the loop. Neither memory nor the
 * length of a turn then depends on the size of the body.
 */

static void on_next(tnk__deferred_t *call);

static int begin(tnk__conn_t *conn) {
  tnk__deferred_init(&conn->h1.next, on_next);
  return TNK_OK;
}

static void end(tnk__conn_t *conn) {
  tnk__defer_cancel(&conn->h1.next);
}

static size_t capacity(const tnk__conn_t *conn) {
  (void)conn;
  return 1;
}

static size_t room(const tnk__conn_t *conn) {
  return conn->h1.ex == NULL;
}

static tnk__exchange_t *first(const tnk__conn_t *conn) {
  return conn->h1.ex;
}

static int is_sending(const tnk__conn_t *conn, const tnk__exchange_t *ex) {
  (void)ex;
  return conn->h1.is_writing;
}

static uint64_t n_sent(const tnk__conn_t *conn, const tnk__exchange_t *ex) {
  (void)ex;
  return tnk__stream_n_sent(conn->stream) - conn->h1.n_before;
}

static void resume(tnk__conn_t *conn, tnk__exchange_t *ex) {
  (void)ex;
  tnk__stream_pause(conn->stream, 0);
}

static void go_on(tnk__conn_t *conn, tnk__exchange_t *ex) {
  if (conn->h1.ex != ex || !conn->h1.is_waiting)
    return;
  conn->h1.is_waiting = 0;
  tnk__defer(conn->http->context, &conn->h1.next);
}

static void part(tnk__conn_t *conn, tnk__exchange_t *ex, int is_over) {
  if (tnk__stream_n_sent(conn->stream) > conn->h1.n_before)
    ex->sent = 1;
  tnk__defer_cancel(&conn->h1.next);
  conn->h1.is_waiting = 0;
  conn->h1.ex = NULL;
  conn->h1.reader = NULL;
  if (!is_over)
    conn->state = TNK__CONN_ENDED;
}

/* uv_buf_t has no const pointer, but the data is only read. */
static void add_buf(uv_buf_t *bufs, unsigned *n_bufs, const void *data,
                    size_t len) {
  if (len == 0)
    return;
  bufs[*n_bufs].base = (char *)(uintptr_t)data;
  bufs[(*n_bufs)++].len = len;
}

/* Returns whether the feed has pieces that were not requested yet. */
static int is_feeding(const tnk__conn_t *conn) {
  const tnk__feed_t *feed = conn->h1.ex->feed;

  return feed != NULL && conn->h1.n_fed < feed->len;
}

/* Write `bufs`, followed by the next piece of the feed. */
static int write_piece(tnk__conn_t *conn, uv_buf_t *bufs, unsigned n_bufs) {
  tnk__feed_t *feed = conn->h1.ex->feed;
  int err;

  if (is_feeding(conn)) {
    size_t n = 0;
    const uint8_t *data = feed->piece(feed, conn->h1.n_fed, &n);
    if (data == NULL)
      return TNK_ENOMEM;
    if (n == 0 && n_bufs == 0) {
      conn->h1.is_writing = conn->h1.is_waiting = 1;
      return TNK_OK;
    }
    conn->h1.n_fed += n;
    add_buf(bufs, &n_bufs, data, n);
  }
  err = tnk__stream_write(conn->stream, bufs, n_bufs);
  conn->h1.is_writing = err == TNK_OK;
  if (err != TNK__STREAM_WRITTEN)
    return err;
  /* Producing a piece takes time, so the next one waits for the next turn of
   * the loop. */
  if (is_feeding(conn)) {
    conn->h1.is_writing = 1;
    tnk__defer(conn->http->context, &conn->h1.next);
  }
  return TNK_OK;
}

static int send_request(tnk__conn_t *conn, tnk__exchange_t *ex) {
  uv_buf_t bufs[TNK__STREAM_MAX_BUFS];
  unsigned n_bufs = 0;
  int err;

  add_buf(bufs, &n_bufs, ex->head.data, ex->head.len);
  add_buf(bufs, &n_bufs, ex->body, ex->body_len);
  conn->h1.ex = ex;
  conn->h1.n_before = tnk__stream_n_sent(conn->stream);
  conn->h1.n_fed = 0;
  err = write_piece(conn, bufs, n_bufs);
  if (err != TNK_OK)
    return err;
  conn->http->context->counters.n_requests++;
  tnk__exchange_note_sent(ex);
  return TNK_OK;
}

static void finish(tnk__conn_t *conn, int err, int cause, int is_usable) {
  if (!is_usable)
    conn->state = TNK__CONN_ENDED;
  tnk__conn_finish(conn, conn->h1.ex, err, cause);
}

/* The proxy requires credentials. It has passed nothing on. */
static void refused(tnk__conn_t *conn) {
  char text[TNK__MAX_ERROR_TEXT];

  tnk__tunnel_explain(text, sizeof(text), conn->relay, "the request",
                      conn->h1.ex->answer->status);
  conn->text = text;
  finish(conn, TNK_EPROXY, 0, 0);
}

/* A 400 without a body does not come from a service. Something in front of it
 * rejected this connection, and will reject later requests on it as well. */
static int is_rebuff(const tnk__response_t *answer) {
  return answer->status == 400 && answer->body.len == 0;
}

/* A proxy that limits the connections of a client returns the same 403 as one
 * that forbids a host, and keeps the connection open. Squid identifies itself
 * in a header. */
static int is_denied(const tnk__conn_t *conn, const tnk__response_t *answer) {
  return conn->relay != NULL && answer->status == 403 &&
         tnk__response_header(answer, "x-squid-error") != NULL;
}

static void complete(tnk__conn_t *conn, int is_open) {
  const tnk__response_t *answer = conn->h1.ex->answer;

  if (conn->relay != NULL && answer->status == 407) {
    refused(conn);
    return;
  }
  conn->is_denied = is_denied(conn, answer);
  finish(conn, TNK_OK, 0,
         is_open && answer->is_keep_alive && !is_rebuff(answer) &&
             !conn->is_denied && !conn->h1.is_writing &&
             !conn->h1.write_failed);
}

static void note_body(tnk__conn_t *conn, tnk__exchange_t *ex) {
  tnk__exchange_note_body(ex, tnk__context_now_ms(conn->http->context));
  if (ex->is_paused)
    tnk__stream_pause(conn->stream, 1);
}

static void on_read(tnk__conn_t *conn, const uint8_t *data, size_t n) {
  tnk__exchange_t *ex = conn->h1.ex;
  int err;

  if (ex == NULL) {
    /* Nothing was requested: the bytes could be mistaken for the next
     * response. */
    tnk__conn_end(conn);
    return;
  }
  if (conn->h1.reader == NULL)
    conn->h1.reader = tnk__exchange_begin_answer(ex);
  err = conn->h1.reader != NULL
            ? tnk__http_reader_feed(conn->h1.reader, data, n)
            : TNK_ENOMEM;
  if (err != TNK_OK)
    finish(conn, err, 0, 0);
  else if (conn->h1.reader->state == TNK__HTTP_READ_DONE)
    complete(conn, 1);
  else
    note_body(conn, ex);
}

static void on_written(tnk__conn_t *conn, int cause) {
  uv_buf_t buf;
  int err = cause != 0 ? TNK_ECONN : TNK_OK;

  conn->h1.is_writing = 0;
  if (err == TNK_OK && conn->h1.ex != NULL && is_feeding(conn))
    err = write_piece(conn, &buf, 0);
  /* The server may have sent the reason before the failure; on_end follows. */
  conn->h1.write_failed = err == TNK_ECONN;
  if (err == TNK_ENOMEM)
    finish(conn, err, 0, 0);
  else if (conn->h1.ex != NULL && !conn->h1.is_writing)
    tnk__exchange_note_out(conn->h1.ex,
                           tnk__context_now_ms(conn->http->context));
}

static void on_next(tnk__deferred_t *call) {
  on_written(tnk__container_of(call, tnk__conn_t, h1.next), 0);
}

static void on_end(tnk__conn_t *conn, const tnk__net_error_t *error) {
  int err = error->code;

  if (err == TNK_OK && conn->h1.reader != NULL)
    err = tnk__http_reader_eof(conn->h1.reader);
  else if (err == TNK_OK)
    err = TNK_ECONN;
  if (err == TNK_OK)
    complete(conn, 0);
  else
    finish(conn, err, error->cause, 0);
}

const tnk__conn_kind_t tnk__conn_h1 = {
    .name = "HTTP/1.1",
    .begin = begin,
    .end = end,
    .capacity = capacity,
    .send = send_request,
    .part = part,
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
