/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "server/state.h"
#include "server/tls.h"
#include "tnk/error.h"

/* ---- Lifetime ---- */

/*
 * The end of connections. A closing connection is removed from the server at
 * once, and freed when libuv has closed its handle.
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

/* ---- Listening ---- */

/*
 * The listener: open, then closing. Closing closes it and every connection. The
 * last handle that libuv closes runs `closed_cb`.
 */

/* Maximum number of excess connections that wait for a request and get 503.
 * Further ones are closed. */
enum { MAX_REFUSED = 64 };

#define CONN(node) tnk__container_of(node, tnk__srv_conn_t, link)

static void on_listener_closed(uv_handle_t *handle) {
  tnk__srv_release(tnk__container_of(handle, tnk__srv_t, listener));
}

static void on_resumer_closed(uv_handle_t *handle) {
  tnk__srv_release(tnk__container_of((uv_idle_t *)handle, tnk__srv_t, resumer));
}

/* libuv reports no other connection until this one has been accepted. A
 * connection that is not served is therefore accepted and closed. */
static void refuse_one(tnk__srv_t *http, int is_reset);

static void on_refused(uv_handle_t *handle) {
  tnk__srv_t *http = tnk__container_of((uv_tcp_t *)handle, tnk__srv_t, refused);

  http->refusing = 0;
  if (http->refuse_again)
    http->take(http);
  tnk__srv_release(http);
}

static void refuse_one(tnk__srv_t *http, int is_reset) {
  http->refuse_again = http->refusing;
  if (http->refusing || uv_tcp_init(http->listener.loop, &http->refused) != 0)
    return;
  http->refusing = 1;
  http->n_open++;
  uv_accept((uv_stream_t *)&http->listener, (uv_stream_t *)&http->refused);
  if (!is_reset || uv_tcp_close_reset(&http->refused, on_refused) != 0)
    uv_close((uv_handle_t *)&http->refused, on_refused);
}

static void accept_one(tnk__srv_t *http, int is_refused) {
  uv_stream_t *stream = (uv_stream_t *)&http->listener;
  tnk__srv_conn_t *conn = tnk__calloc(http->config.alloc, 1, sizeof(*conn));

  http->waiting = 0;
  http->refuse_again = 0;
  if (conn == NULL || tnk__srv_conn_init(conn, http, stream->loop) != 0) {
    tnk__free(http->config.alloc, conn);
    refuse_one(http, 0);
    return;
  }
  conn->is_refused = is_refused;
  tnk__list_append(&http->conns, &conn->link);
  http->n_conns++;
  if (http->n_conns > http->most_conns)
    http->most_conns = http->n_conns;
  http->n_refused += (size_t)is_refused;
  http->n_open++;
  http->n_accepted++;
  if (uv_accept(stream, (uv_stream_t *)&conn->tcp) != 0)
    tnk__srv_conn_close(conn);
  else if (http->config.hooks != NULL &&
           http->config.hooks->refuses(http->config.hooks_user))
    tnk__srv_conn_reset(conn);
  else
    tnk__srv_conn_start(conn);
}

/* Close the connection that has been idle for longest. Returns 0 if none is
 * idle. */
static int close_idle(tnk__srv_t *http) {
  tnk__srv_conn_t *idlest = NULL;

  TNK__LIST_FOREACH (node, &http->conns) {
    tnk__srv_conn_t *conn = CONN(node);

    if (conn->version->is_idle(conn) &&
        (idlest == NULL || conn->active_ms < idlest->active_ms))
      idlest = conn;
  }
  if (idlest == NULL)
    return 0;
  tnk__srv_conn_close(idlest);
  return 1;
}

/* Refuse a connection as load balancers do. */
static void refuse(tnk__srv_t *http) {
  http->waiting = 0;
  if (http->config.full == TNK__SRV_FULL_503 && http->n_refused < MAX_REFUSED)
    accept_one(http, 1);
  else
    refuse_one(http, http->config.full == TNK__SRV_FULL_RESET);
}

/* Accept the waiting connection if there is capacity. libuv reports no other
 * one until then. The others wait in the kernel's queue and need not connect
 * again. */
static void take(tnk__srv_t *http) {
  if (http->closing || http->draining)
    return;
  if (http->n_conns - http->n_refused < http->config.max_conns) {
    accept_one(http, 0);
    return;
  }
  if (http->config.full != TNK__SRV_FULL_WAIT)
    refuse(http);
  /* When that connection's handle is closed, take() is called again. */
  else if (!close_idle(http) && http->config.on_full != NULL)
    http->config.on_full(http->config.user);
}

static void on_connection(uv_stream_t *stream, int status) {
  tnk__srv_t *http = tnk__container_of(stream, tnk__srv_t, listener);

  if (status < 0 || http->closing || http->draining)
    return;
  http->waiting = 1;
  take(http);
}

/* The option must be set before bind(), so the socket is made here. */
static int share_listener(tnk__srv_t *http, int family) {
  int fd = tnk__srv_socket(family);
  int err = fd < 0 ? fd : tnk__srv_share(fd);

  if (err == 0)
    err = uv_tcp_open(&http->listener, fd);
  if (err != 0 && fd >= 0)
    (void)close(fd);
  return err;
}

static int bind_listener(tnk__srv_t *http) {
  struct sockaddr_storage addr;
  int len = sizeof(addr);
  /* Numeric addresses only: resolving a name could select another host. */
  int err = tnk__srv_address(&addr, http->config.host, http->config.port);

  if (err == 0 && http->config.shares_port)
    err = share_listener(http, addr.ss_family);
  if (err < 0)
    return err;
  err = uv_tcp_bind(&http->listener, (struct sockaddr *)&addr, 0);
  if (err < 0)
    return err;
  err = uv_listen((uv_stream_t *)&http->listener, 1024, on_connection);
  if (err < 0)
    return err;
  err = uv_tcp_getsockname(&http->listener, (struct sockaddr *)&addr, &len);
  if (err < 0)
    return err;
  http->port = addr.ss_family == AF_INET6
                   ? ntohs(((struct sockaddr_in6 *)&addr)->sin6_port)
                   : ntohs(((struct sockaddr_in *)&addr)->sin_port);
  return 0;
}

/* A peer that disconnects must cause only a write error. libuv's writes raise
 * SIGPIPE as well. */
static void block_sigpipe(void) {
  sigset_t set;

  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Free the objects that all connections share. */
static void free_parts(tnk__srv_t *http) {
  const tnk_allocator_t *alloc = http->config.alloc;

  tnk__srv_tls_free(http->tls);
  if (http->versions != NULL)
    tnk__srv_h2_teardown(http->versions->h2);
  tnk__free(alloc, http->versions);
  tnk__free(alloc, http->scratch);
  http->tls = NULL;
  http->versions = NULL;
  http->scratch = NULL;
}

static int make_parts(tnk__srv_t *http) {
  tnk__srv_config_t *config = &http->config;
  int err;

  http->scratch = tnk__malloc(config->alloc, TNK__SRV_SCRATCH);
  http->versions = tnk__calloc(config->alloc, 1, sizeof(*http->versions));
  if (http->scratch == NULL || http->versions == NULL)
    return TNK_ENOMEM;
  tnk__srv_h1_setup(&http->versions->h1);
  err = tnk__srv_h2_setup(&http->versions->h2, config->alloc);
  if (err != TNK_OK || config->tls_cert == NULL)
    return err;
  return tnk__srv_tls_open(&http->tls, config, http->versions->h2 != NULL);
}

int tnk__srv_open(tnk__srv_t *http, uv_loop_t *loop,
                  const tnk__srv_config_t *config) {
  int err;

  block_sigpipe();
  *http = (tnk__srv_t){.config = *config};
  if (config->max_streams == 0)
    http->config.max_streams = TNK__SRV_STREAMS;
  tnk__list_init(&http->conns);
  tnk__list_init(&http->resuming);
  tnk__list_init(&http->shaking);
  http->resume = tnk__srv_conn_on_resume;
  http->take = take;
  http->free_parts = free_parts;
  err = make_parts(http);
  if (err == TNK_OK)
    err = uv_tcp_init(loop, &http->listener);
  if (err < 0) {
    free_parts(http);
    return err;
  }
  uv_idle_init(loop, &http->resumer);
  http->n_open = 2;
  return bind_listener(http);
}

void tnk__srv_sweep(tnk__srv_t *http, uint64_t since_ms) {
  TNK__LIST_FOREACH_SAFE (node, next, &http->conns) {
    tnk__srv_conn_t *conn = CONN(node);

    if (conn->active_ms < since_ms && conn->version->waits_for_peer(conn))
      tnk__srv_conn_close(conn);
  }
}

void tnk__srv_drain(tnk__srv_t *http) {
  if (http->closing || http->draining || http->n_open == 0)
    return;
  http->draining = 1;
  uv_close((uv_handle_t *)&http->listener, on_listener_closed);
  TNK__LIST_FOREACH_SAFE (node, next, &http->conns) {
    CONN(node)->version->leave(CONN(node));
  }
}

void tnk__srv_close(tnk__srv_t *http, void (*closed)(void *user), void *user) {
  if (http->closing)
    return;
  http->closing = 1;
  http->closed_cb = closed;
  http->closed_user = user;
  if (http->n_open == 0) {
    closed(user);
    return;
  }
  TNK__LIST_FOREACH_SAFE (node, next, &http->conns) {
    tnk__srv_conn_close(CONN(node));
  }
  uv_close((uv_handle_t *)&http->resumer, on_resumer_closed);
  if (!http->draining)
    uv_close((uv_handle_t *)&http->listener, on_listener_closed);
}
