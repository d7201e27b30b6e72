#include "base/alloc.h"
#include "local/http/conn.h"
#include "tnk/error.h"

/*
 * An answer whose body trickles out. The request stays in hand meanwhile; then
 * the connection goes on, or closes. If it closes first, so does the timer.
 */

enum { TICK_MS = 5 };

typedef struct local_slow {
  uv_timer_t timer;
  local_conn_t *conn; /* NULL once it is over */
  local_http_t *http;
  uint8_t *body;
  size_t len;
  size_t n_sent;
  uint64_t rate;
  uint64_t began_ms;
  int close_after;
} local_slow_t;

static void on_closed(uv_handle_t *handle) {
  local_slow_t *slow =
      tnk__container_of((uv_timer_t *)handle, local_slow_t, timer);
  local_http_t *http = slow->http;

  tnk__free(http->config.alloc, slow->body);
  tnk__free(http->config.alloc, slow);
  local_http_release(http);
}

static void stop(local_conn_t *conn) {
  local_slow_t *slow = conn->slow;

  conn->slow = NULL;
  conn->on_close = NULL;
  uv_close((uv_handle_t *)&slow->timer, on_closed);
}

/* As much as is due; the first byte is at once. */
static void on_tick(uv_timer_t *timer) {
  local_slow_t *slow = tnk__container_of(timer, local_slow_t, timer);
  local_conn_t *conn = slow->conn;
  uint64_t due = 1 + (uv_now(timer->loop) - slow->began_ms) * slow->rate / 1000;
  uv_buf_t buf;
  int n;

  if (due > slow->len)
    due = slow->len;
  if (due <= slow->n_sent)
    return;
  buf = uv_buf_init((char *)slow->body + slow->n_sent,
                    (unsigned)(due - slow->n_sent));
  n = uv_try_write((uv_stream_t *)&conn->tcp, &buf, 1);
  /* The peer reads more slowly than it is sent; the next tick tries again. */
  if (n == UV_EAGAIN)
    return;
  if (n < 0) {
    local_conn_close(conn);
    return;
  }
  slow->n_sent += (size_t)n;
  conn->active_ms = uv_now(timer->loop);
  if (slow->n_sent < slow->len)
    return;
  n = slow->close_after;
  stop(conn);
  if (n)
    local_conn_close(conn);
  else
    local_conn_answered(conn);
}

int local_slow_start(local_conn_t *conn, uint8_t *body, size_t len,
                     uint64_t rate, int close_after) {
  local_http_t *http = conn->http;
  local_slow_t *slow = tnk__calloc(http->config.alloc, 1, sizeof(*slow));

  if (slow == NULL)
    return TNK_ENOMEM;
  uv_timer_init(conn->tcp.loop, &slow->timer);
  http->n_open++;
  slow->conn = conn;
  slow->http = http;
  slow->body = body;
  slow->len = len;
  slow->rate = rate;
  slow->began_ms = uv_now(conn->tcp.loop);
  slow->close_after = close_after;
  conn->slow = slow;
  conn->on_close = stop;
  uv_timer_start(&slow->timer, on_tick, 0, TICK_MS);
  return TNK_OK;
}
