#include "http/conn.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "http/exchange.h"
#include "net/tunnel.h"
#include "tnk/error.h"

/*
 *   CONNECTING --on_open--> IDLE <--whole answer-- ACTIVE
 *                             '-----send------------->'
 *
 * Each of them goes to ENDED: by the end of the stream, by an answer that
 * cannot be trusted or followed by another, by bytes nobody asked for, by
 * staying unused too long. ENDED tells the pool, which closes. An answer that
 * is complete before the request is written ends the connection too, since the
 * rest of the request will not be written.
 *
 * A body that is fed goes out piece by piece: each is asked for when the one
 * before is written, in another turn of the loop, so that neither memory nor a
 * turn grows with the body.
 */

static const tnk__stream_events_t stream_events;

static void on_next(tnk__deferred_t *call);

int tnk__conn_new(tnk__conn_t **out, tnk__http_t *http,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  const tnk__conn_events_t *events, struct tnk__pool *pool) {
  const tnk_allocator_t *alloc = &http->context->alloc;
  tnk__conn_t *conn = tnk__calloc(alloc, 1, sizeof(*conn));
  int err;

  *out = NULL;
  if (conn == NULL)
    return TNK_ENOMEM;
  conn->http = http;
  conn->pool = pool;
  conn->events = events;
  conn->relay = origin->is_tls ? NULL : via;
  tnk__list_init(&conn->link);
  tnk__deferred_init(&conn->next, on_next);
  err = tnk__stream_open(&conn->stream, http->net, origin, via,
                         http->connect_timeout_ms, &stream_events, conn);
  if (err != TNK_OK) {
    tnk__free(alloc, conn);
    return err;
  }
  http->n_connections++;
  if (http->n_connections > http->max_connections)
    http->max_connections = http->n_connections;
  *out = conn;
  return TNK_OK;
}

void tnk__conn_close(tnk__conn_t *conn) {
  tnk__timer_stop(&conn->timer);
  tnk__list_remove(&conn->link);
  tnk__stream_close(conn->stream);
  conn->http->n_connections--;
  tnk__free(&conn->http->context->alloc, conn);
}

int tnk__conn_is_reused(const tnk__conn_t *conn) {
  return conn->n_exchanges > 1;
}

static void on_unused(tnk__timer_t *timer) {
  tnk__conn_t *conn = tnk__container_of(timer, tnk__conn_t, timer);

  conn->state = TNK__CONN_ENDED;
  conn->events->on_end(conn);
}

/* An unused connection does not keep the program alive. */
static void become_idle(tnk__conn_t *conn) {
  conn->state = TNK__CONN_IDLE;
  tnk__stream_hold_loop(conn->stream, 0);
  tnk__timer_start_background(conn->http->context, &conn->timer,
                              conn->http->idle_timeout_ms, on_unused);
}

/* Part the two; whether anything was sent is known from here on. */
static tnk__exchange_t *take_exchange(tnk__conn_t *conn) {
  tnk__exchange_t *ex = conn->ex;

  if (tnk__stream_n_sent(conn->stream) > conn->n_before)
    ex->sent = 1;
  tnk__defer_cancel(&conn->next);
  ex->conn = NULL;
  conn->ex = NULL;
  conn->reader = NULL;
  return ex;
}

static void finish(tnk__conn_t *conn, int err, int cause, int is_usable) {
  tnk__exchange_t *ex = take_exchange(conn);

  if (is_usable)
    become_idle(conn);
  else
    conn->state = TNK__CONN_ENDED;
  conn->events->on_result(conn, ex, err, cause);
}

void tnk__conn_abort(tnk__conn_t *conn) {
  take_exchange(conn);
  conn->state = TNK__CONN_ENDED;
}

/* libuv's type is not const, but what is written is only read. */
static void add_buf(uv_buf_t *bufs, unsigned *n_bufs, const void *data,
                    size_t len) {
  if (len == 0)
    return;
  bufs[*n_bufs].base = (char *)(uintptr_t)data;
  bufs[(*n_bufs)++].len = len;
}

/* Whether the request has pieces that were not asked for yet. */
static int is_feeding(const tnk__conn_t *conn) {
  const tnk__feed_t *feed = conn->ex->feed;

  return feed != NULL && conn->n_fed < feed->len;
}

/* Write `bufs`, and the next piece of the feed behind them. */
static int write_piece(tnk__conn_t *conn, uv_buf_t *bufs, unsigned n_bufs) {
  tnk__feed_t *feed = conn->ex->feed;
  int err;

  if (is_feeding(conn)) {
    size_t n = 0;
    const uint8_t *data = feed->piece(feed, conn->n_fed, &n);
    if (data == NULL)
      return TNK_ENOMEM;
    conn->n_fed += n;
    add_buf(bufs, &n_bufs, data, n);
  }
  err = tnk__stream_write(conn->stream, bufs, n_bufs);
  conn->is_writing = err == TNK_OK;
  if (err != TNK__STREAM_WRITTEN)
    return err;
  /* To make a piece is work, so the next one is for the next turn of the
   * loop. */
  if (is_feeding(conn)) {
    conn->is_writing = 1;
    tnk__defer(conn->http->context, &conn->next);
  }
  return TNK_OK;
}

int tnk__conn_send(tnk__conn_t *conn, tnk__exchange_t *ex) {
  uv_buf_t bufs[TNK__STREAM_MAX_BUFS];
  unsigned n_bufs = 0;
  int err;

  add_buf(bufs, &n_bufs, ex->head.data, ex->head.len);
  add_buf(bufs, &n_bufs, ex->body, ex->body_len);
  tnk__timer_stop(&conn->timer);
  tnk__stream_hold_loop(conn->stream, !ex->background);
  conn->ex = ex;
  ex->conn = conn;
  conn->n_exchanges++;
  conn->n_before = tnk__stream_n_sent(conn->stream);
  conn->n_fed = 0;
  conn->state = TNK__CONN_ACTIVE;
  err = write_piece(conn, bufs, n_bufs);
  if (err != TNK_OK) {
    tnk__conn_abort(conn);
    return err;
  }
  conn->http->context->counters.n_requests++;
  tnk__exchange_note_sent(ex);
  return TNK_OK;
}

static void on_open(tnk__stream_t *stream) {
  tnk__conn_t *conn = stream->user;

  become_idle(conn);
  conn->events->on_open(conn);
}

/* The proxy wants to know who we are; it has passed nothing on. */
static void refused(tnk__conn_t *conn) {
  char text[TNK__MAX_ERROR_TEXT];

  tnk__tunnel_explain(text, sizeof(text), conn->relay, "the request",
                      conn->ex->answer->status);
  conn->text = text;
  finish(conn, TNK_EPROXY, 0, 0);
}

static void complete(tnk__conn_t *conn, int is_open) {
  const tnk__response_t *answer = conn->ex->answer;

  if (conn->relay != NULL && answer->status == 407) {
    refused(conn);
    return;
  }
  finish(conn, TNK_OK, 0,
         is_open && answer->is_keep_alive && !conn->is_writing &&
             !conn->write_failed);
}

static void note_body(tnk__conn_t *conn, tnk__exchange_t *ex) {
  tnk__exchange_note_body(ex);
  if (ex->is_paused)
    tnk__stream_pause(conn->stream, 1);
}

static void on_read(tnk__stream_t *stream, const uint8_t *data, size_t n) {
  tnk__conn_t *conn = stream->user;
  tnk__exchange_t *ex = conn->ex;
  int err;

  if (ex == NULL) {
    /* Nothing was asked: it could be taken for the next answer. */
    conn->state = TNK__CONN_ENDED;
    conn->events->on_end(conn);
    return;
  }
  if (conn->reader == NULL)
    conn->reader = tnk__exchange_begin_answer(ex);
  err = conn->reader != NULL ? tnk__http_reader_feed(conn->reader, data, n)
                             : TNK_ENOMEM;
  if (err != TNK_OK)
    finish(conn, err, 0, 0);
  else if (conn->reader->state == TNK__HTTP_READ_DONE)
    complete(conn, 1);
  else if (ex->is_streamed)
    note_body(conn, ex);
}

static void on_written(tnk__stream_t *stream, int cause) {
  tnk__conn_t *conn = stream->user;
  uv_buf_t buf;
  int err = cause != 0 ? TNK_ECONN : TNK_OK;

  conn->is_writing = 0;
  if (err == TNK_OK && conn->ex != NULL && is_feeding(conn))
    err = write_piece(conn, &buf, 0);
  /* After a failure the server may still have said why; on_end follows. */
  conn->write_failed = err == TNK_ECONN;
  if (err == TNK_ENOMEM)
    finish(conn, err, 0, 0);
}

static void on_next(tnk__deferred_t *call) {
  on_written(tnk__container_of(call, tnk__conn_t, next)->stream, 0);
}

static void log_end(const tnk__conn_t *conn, const tnk__net_error_t *error) {
  tnk__log(&conn->http->context->logger, TNK_LOG_DEBUG, "http",
           "connection ended while %s: %s",
           conn->state == TNK__CONN_CONNECTING ? "connecting"
           : conn->ex != NULL                  ? "in use"
                                               : "unused",
           error->text);
}

static void on_end(tnk__stream_t *stream, const tnk__net_error_t *error) {
  tnk__conn_t *conn = stream->user;
  int err = error->code;

  log_end(conn, error);
  conn->text = error->text;
  if (conn->ex == NULL) {
    const int was_open = conn->state == TNK__CONN_IDLE;
    conn->state = TNK__CONN_ENDED;
    if (was_open)
      conn->events->on_end(conn);
    else
      conn->events->on_fail(conn, err != TNK_OK ? err : TNK_ECONN,
                            error->cause);
    return;
  }
  if (err == TNK_OK && conn->reader != NULL)
    err = tnk__http_reader_eof(conn->reader);
  else if (err == TNK_OK)
    err = TNK_ECONN;
  if (err == TNK_OK)
    complete(conn, 0);
  else
    finish(conn, err, error->cause, 0);
}

static const tnk__stream_events_t stream_events = {
    .on_open = on_open,
    .on_read = on_read,
    .on_written = on_written,
    .on_end = on_end,
};
