#include "base/alloc.h"
#include "local/http/conn.h"

/*
 * How requests and connections end: a request that has been answered makes its
 * connection ready for the next one, a connection that closes is forgotten at
 * once and freed when libuv lets go of it.
 */

enum {
  /* A request's memory above this is not kept for the next one. */
  KEEP_CAPACITY = 16 * 1024
};

void local_http_release(local_http_t *http) {
  if (--http->n_open > 0 || !http->closing)
    return;
  tnk__free(http->config.alloc, http->scratch);
  http->scratch = NULL;
  http->closed_cb(http->closed_user);
}

static void on_conn_closed(uv_handle_t *handle) {
  local_conn_t *conn = tnk__container_of(handle, local_conn_t, tcp);
  local_http_t *http = conn->http;

  tnk__buf_deinit(&conn->req.head);
  tnk__buf_deinit(&conn->req.body);
  tnk__buf_deinit(&conn->url);
  tnk__buf_deinit(&conn->pending);
  tnk__free(http->config.alloc, conn);
  if (http->waiting)
    http->take(http);
  local_http_release(http);
}

static void end(local_conn_t *conn, int is_reset) {
  int parked = conn->state == LOCAL_CONN_HANDLING && conn->req.on_gone != NULL;

  if (conn->state == LOCAL_CONN_CLOSING)
    return;
  conn->state = LOCAL_CONN_CLOSING;
  tnk__list_remove(&conn->link);
  tnk__list_remove(&conn->resume);
  conn->http->n_conns--;
  if (conn->on_close != NULL)
    conn->on_close(conn);
  if (!is_reset || uv_tcp_close_reset(&conn->tcp, on_conn_closed) != 0)
    uv_close((uv_handle_t *)&conn->tcp, on_conn_closed);
  if (parked)
    conn->req.on_gone(&conn->req, conn->req.user);
}

void local_conn_close(local_conn_t *conn) {
  end(conn, 0);
}

void local_conn_reset(local_conn_t *conn) {
  end(conn, 1);
}

static void on_shutdown(uv_shutdown_t *req, int status) {
  local_conn_t *conn = tnk__container_of(req, local_conn_t, shutdown);

  if (status < 0)
    local_conn_close(conn);
}

void local_conn_drain(local_conn_t *conn) {
  if (conn->state == LOCAL_CONN_CLOSING)
    return;
  conn->state = LOCAL_CONN_DRAINING;
  if (uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shutdown) != 0)
    local_conn_close(conn);
}

/* A connection may live for long after one large request. */
static void shrink(tnk__buf_t *buf) {
  if (buf->cap > KEEP_CAPACITY)
    tnk__buf_deinit(buf);
  else
    tnk__buf_clear(buf);
}

/* Whoever answers a parked request may be in the middle of anything, and must
 * not find the next request's handler under its feet. */
void local_conn_answered(local_conn_t *conn) {
  local_http_t *http = conn->http;

  shrink(&conn->req.head);
  shrink(&conn->req.body);
  conn->state = LOCAL_CONN_READING;
  conn->begun = 0;
  conn->served = 1;
  conn->active_ms = uv_now(conn->tcp.loop);
  llhttp_resume(&conn->parser);
  if (conn->pumping || (conn->pending.len == 0 && !conn->paused))
    return;
  /* It may be in line still: more bytes came, so that another request was
   * taken up before its turn. A node must not be linked twice. */
  if (!tnk__list_empty(&conn->resume))
    return;
  tnk__list_append(&http->resuming, &conn->resume);
  uv_idle_start(&http->resumer, http->resume);
}
