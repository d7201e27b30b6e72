/* SPDX-License-Identifier: MIT */
#include "lib/io/http/conn.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/pool_parts.h"
#include "tnk/error.h"

/*
 *   CONNECTING --the stream is open--> OPEN --> ENDED
 *
 * This file has the parts common to both versions of HTTP: the stream, the
 * count of exchanges, and the idle time. When the stream is open, the pool
 * chooses the version. Its kind then reads and writes. The kind also decides
 * when the connection is OPEN and how many exchanges fit.
 *
 * CONNECTING becomes ENDED by a failure. OPEN becomes ENDED by the end of the
 * stream, by an error that the kind finds, or by idling too long. The
 * connection reports it to the pool, which closes it once the last exchange has
 * left.
 */

static const tnk__stream_events_t stream_events;

int tnk__conn_new(tnk__conn_t **out, tnk__http_t *http,
                  const tnk__origin_t *origin, const tnk__via_t *via,
                  tnk__alpn_t offer, const tnk__conn_events_t *events,
                  struct tnk__pool *pool) {
  const tnk_allocator_t *alloc = &http->context->alloc;
  tnk__conn_t *conn = tnk__calloc(alloc, 1, sizeof(*conn));
  int err;

  *out = NULL;
  if (conn == NULL)
    return TNK_ENOMEM;
  conn->http = http;
  conn->pool = pool;
  conn->events = events;
  if (!origin->is_tls && via != NULL && via->kind == TNK__PROXY_HTTP)
    conn->relay = via;
  conn->is_tls = origin->is_tls;
  conn->began_ms = tnk__context_now_ms(http->context);
  tnk__list_init(&conn->link);
  err = tnk__stream_open(&conn->stream, http->net, origin, via,
                         http->connect_timeout_ms, &stream_events, conn);
  if (err != TNK_OK) {
    tnk__free(alloc, conn);
    return err;
  }
  tnk__stream_offer(conn->stream, offer);
  http->n_connections++;
  conn->number = ++http->last_connection;
  if (http->n_connections > http->max_connections)
    http->max_connections = http->n_connections;
  *out = conn;
  return TNK_OK;
}

static void free_conn(tnk__conn_t *conn) {
  if (conn->kind != NULL)
    conn->kind->end(conn);
  tnk__free(&conn->http->context->alloc, conn);
}

void tnk__conn_close(tnk__conn_t *conn) {
  tnk__timer_stop(&conn->timer);
  tnk__list_remove(&conn->link);
  if (conn->kind != NULL && conn->kind->say_goodbye != NULL && !conn->has_ended)
    conn->kind->say_goodbye(conn);
  tnk__stream_close(conn->stream);
  conn->http->n_connections--;
  conn->state = TNK__CONN_ENDED;
  conn->is_closed = 1;
  if (conn->n_holds == 0)
    free_conn(conn);
}

void tnk__conn_hold(tnk__conn_t *conn) {
  conn->n_holds++;
}

int tnk__conn_release(tnk__conn_t *conn) {
  const int is_closed = conn->is_closed;

  if (--conn->n_holds == 0 && is_closed)
    free_conn(conn);
  return !is_closed;
}

int tnk__conn_is_reused(const tnk__conn_t *conn) {
  return conn->n_begun > 1;
}

tnk__exchange_t *tnk__conn_first(const tnk__conn_t *conn) {
  return conn->n_on > 0 ? conn->kind->first(conn) : NULL;
}

void tnk__conn_resume(tnk__exchange_t *ex) {
  ex->conn->kind->resume(ex->conn, ex);
}

void tnk__conn_go_on(tnk__exchange_t *ex) {
  ex->conn->kind->go_on(ex->conn, ex);
}

void tnk__conn_end(tnk__conn_t *conn) {
  conn->state = TNK__CONN_ENDED;
  conn->events->on_end(conn);
}

static void on_unused(tnk__timer_t *timer) {
  tnk__conn_end(tnk__container_of(timer, tnk__conn_t, timer));
}

/* An unused connection does not keep the program alive. */
static void become_idle(tnk__conn_t *conn) {
  tnk__stream_hold_loop(conn->stream, 0);
  tnk__timer_start_background(conn->http->context, &conn->timer,
                              conn->http->idle_timeout_ms, on_unused);
}

/* Detach the exchange from the connection. */
static void take_off(tnk__conn_t *conn, tnk__exchange_t *ex, int is_over) {
  conn->kind->part(conn, ex, is_over);
  ex->conn = NULL;
  conn->n_on--;
  conn->n_foreground -= !ex->background;
  if (conn->state != TNK__CONN_OPEN)
    return;
  if (conn->n_on == 0)
    become_idle(conn);
  else if (conn->n_foreground == 0)
    tnk__stream_hold_loop(conn->stream, 0);
}

void tnk__conn_abort(tnk__conn_t *conn, tnk__exchange_t *ex) {
  take_off(conn, ex, 0);
}

void tnk__conn_finish(tnk__conn_t *conn, tnk__exchange_t *ex, int err,
                      int cause) {
  take_off(conn, ex, err == TNK_OK);
  ex->is_final = conn->is_final;
  conn->events->on_result(conn, ex, err, cause);
}

int tnk__conn_send(tnk__conn_t *conn, tnk__exchange_t *ex) {
  int err;

  tnk__timer_stop(&conn->timer);
  ex->conn = conn;
  conn->n_begun++;
  conn->n_on++;
  conn->n_foreground += !ex->background;
  tnk__stream_hold_loop(conn->stream, conn->n_foreground > 0);
  err = conn->kind->send(conn, ex);
  if (err != TNK_OK)
    take_off(conn, ex, 0);
  return err;
}

void tnk__conn_ready(tnk__conn_t *conn) {
  conn->state = TNK__CONN_OPEN;
  become_idle(conn);
  conn->events->on_open(conn);
}

void tnk__conn_fail(tnk__conn_t *conn, int err, int cause) {
  tnk__timer_stop(&conn->timer);
  conn->state = TNK__CONN_ENDED;
  conn->events->on_fail(conn, err, cause);
}

/* Events of the stream. */

static void on_open(tnk__stream_t *stream) {
  tnk__conn_t *conn = stream->user;
  int err = TNK_EPROTO;

  conn->kind = conn->events->on_connect(conn);
  if (conn->kind != NULL)
    err = conn->kind->begin(conn);
  if (err == TNK_OK)
    tnk__conn_ready(conn);
  else if (err != TNK__CONN_LATER)
    tnk__conn_fail(conn, err, 0);
}

static void on_read(tnk__stream_t *stream, const uint8_t *data, size_t n) {
  tnk__conn_t *conn = stream->user;

  conn->pool->alive_ms = tnk__context_now_ms(conn->http->context);
  conn->kind->on_read(conn, data, n);
}

static void on_written(tnk__stream_t *stream, int cause) {
  tnk__conn_t *conn = stream->user;

  conn->kind->on_written(conn, cause);
}

static void log_end(const tnk__conn_t *conn, const tnk__net_error_t *error) {
  tnk__log(&conn->http->context->logger, TNK_LOG_DEBUG, "http",
           "connection ended while %s: %s",
           conn->state == TNK__CONN_CONNECTING ? "connecting"
           : conn->n_on > 0                    ? "in use"
                                               : "unused",
           error->text);
}

static void on_end(tnk__stream_t *stream, const tnk__net_error_t *error) {
  tnk__conn_t *conn = stream->user;

  log_end(conn, error);
  conn->has_ended = 1;
  conn->text = error->text;
  conn->is_final = error->is_final != 0;
  if (conn->state == TNK__CONN_CONNECTING) {
    /* It connected, and then the server sent nothing. */
    if (conn->kind != NULL)
      conn->refuses_http2 = 1;
    tnk__conn_fail(conn, error->code != TNK_OK ? error->code : TNK_ECONN,
                   error->cause);
  } else if (conn->n_on == 0) {
    tnk__conn_end(conn);
  } else {
    conn->kind->on_end(conn, error);
  }
}

static const tnk__stream_events_t stream_events = {
    .on_open = on_open,
    .on_read = on_read,
    .on_written = on_written,
    .on_end = on_end,
};
