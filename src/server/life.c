#include "lib/base/alloc.h"
#include "server/state.h"
#include "server/tls.h"

/*
 * How connections end. A closing connection is removed from the server at once,
 * and freed when libuv has closed its handle.
 */

void tnk__srv_release(tnk__srv_t *http) {
  if (--http->n_open > 0 || !http->closing)
    return;
  http->free_parts(http);
  http->closed_cb(http->closed_user);
}

static void on_conn_closed(uv_handle_t *handle) {
  tnk__srv_conn_t *conn = tnk__container_of(handle, tnk__srv_conn_t, tcp);
  tnk__srv_t *http = conn->http;

  conn->version->deinit(conn);
  tnk__srv_tls_conn_free(conn->tls);
  tnk__free(http->config.alloc, conn);
  if (http->waiting)
    http->take(http);
  tnk__srv_release(http);
}

/* Send the TLS close alert if that is possible at once. Do not wait for the
 * peer's alert. */
static void say_goodbye(tnk__srv_conn_t *conn) {
  uv_stream_t *stream = (uv_stream_t *)&conn->tcp;
  tnk__buf_t *out = &conn->tls->out;
  uv_buf_t buf;

  if (conn->state == TNK__SRV_CONN_DRAINING || out->len > 0 ||
      uv_stream_get_write_queue_size(stream) > 0)
    return;
  tnk__srv_tls_end(conn->tls);
  buf = uv_buf_init((char *)out->data, (unsigned)out->len);
  if (out->len > 0)
    (void)uv_try_write(stream, &buf, 1);
}

static void end(tnk__srv_conn_t *conn, int is_reset) {
  if (conn->state == TNK__SRV_CONN_CLOSING)
    return;
  if (conn->tls != NULL) {
    tnk__list_remove(&conn->tls->link);
    if (!is_reset)
      say_goodbye(conn);
  }
  conn->state = TNK__SRV_CONN_CLOSING;
  tnk__list_remove(&conn->link);
  tnk__list_remove(&conn->resume);
  conn->http->n_conns--;
  conn->http->n_refused -= (size_t)conn->is_refused;
  if (!is_reset || uv_tcp_close_reset(&conn->tcp, on_conn_closed) != 0)
    uv_close((uv_handle_t *)&conn->tcp, on_conn_closed);
  conn->version->gone(conn);
}

void tnk__srv_conn_close(tnk__srv_conn_t *conn) {
  end(conn, 0);
}

void tnk__srv_conn_reset(tnk__srv_conn_t *conn) {
  end(conn, 1);
}

static void on_shutdown(uv_shutdown_t *req, int status) {
  tnk__srv_conn_t *conn = tnk__container_of(req, tnk__srv_conn_t, shutdown);

  if (status < 0)
    tnk__srv_conn_close(conn);
}

void tnk__srv_conn_drain(tnk__srv_conn_t *conn) {
  if (conn->state == TNK__SRV_CONN_CLOSING ||
      conn->state == TNK__SRV_CONN_DRAINING)
    return;
  conn->state = TNK__SRV_CONN_DRAINING;
  if (conn->tls != NULL) {
    tnk__srv_tls_end(conn->tls);
    if (tnk__srv_write_tls(conn) != 0) {
      tnk__srv_conn_close(conn);
      return;
    }
  }
  if (uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shutdown) != 0)
    tnk__srv_conn_close(conn);
}

void tnk__srv_conn_go_on_later(tnk__srv_conn_t *conn) {
  tnk__srv_t *http = conn->http;

  /* It may still be queued: more bytes arrived, and another request was handled
   * before its turn. A node must not be linked twice. */
  if (!tnk__list_empty(&conn->resume) || conn->state == TNK__SRV_CONN_CLOSING)
    return;
  tnk__list_append(&http->resuming, &conn->resume);
  uv_idle_start(&http->resumer, http->resume);
}
