/* SPDX-License-Identifier: MIT */
#include "server/state.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "server/tls.h"
#include "tnk/error.h"

/* ---- Writing ---- */

/* Output to the peer, in plain or through TLS. */

static void on_written(uv_write_t *uv, int status) {
  tnk__srv_write_t *write = tnk__container_of(uv, tnk__srv_write_t, uv);

  tnk__buf_deinit(&write->sealed);
  write->done(write, status);
}

/* Write all pending output of TLS. */
static int write_sealed(tnk__srv_write_t *write, tnk__srv_tls_conn_t *tls) {
  uv_buf_t buf;
  int err;

  write->sealed = tls->out;
  tnk__buf_init(&tls->out, write->sealed.alloc, write->sealed.max);
  if (write->sealed.err != TNK_OK) {
    err = write->sealed.err;
  } else {
    buf = uv_buf_init((char *)write->sealed.data, (unsigned)write->sealed.len);
    err = uv_write(&write->uv, (uv_stream_t *)&write->conn->tcp, &buf, 1,
                   on_written);
  }
  if (err != 0)
    tnk__buf_deinit(&write->sealed);
  return err;
}

int tnk__srv_write(tnk__srv_write_t *write, tnk__srv_conn_t *conn,
                   const uv_buf_t *bufs, unsigned n,
                   void (*done)(tnk__srv_write_t *write, int status)) {
  int err;

  write->conn = conn;
  write->done = done;
  tnk__buf_init(&write->sealed, conn->http->config.alloc, 0);
  if (conn->tls == NULL)
    return uv_write(&write->uv, (uv_stream_t *)&conn->tcp, bufs, n, on_written);
  err = tnk__srv_tls_seal(conn->tls, bufs, n);
  return err == TNK_OK ? write_sealed(write, conn->tls) : err;
}

/* ---- Writing: output of TLS itself ---- */

/* Ignore the status: a broken connection is noticed when reading. */
static void on_tls_written(tnk__srv_write_t *write, int status) {
  (void)status;
  tnk__free(write->conn->http->config.alloc, write);
}

int tnk__srv_write_tls(tnk__srv_conn_t *conn) {
  const tnk_allocator_t *alloc = conn->http->config.alloc;
  tnk__srv_write_t *write;
  int err;

  if (conn->tls->out.len == 0)
    return conn->tls->out.err;
  write = tnk__malloc(alloc, sizeof(*write));
  if (write == NULL)
    return TNK_ENOMEM;
  write->conn = conn;
  write->done = on_tls_written;
  err = write_sealed(write, conn->tls);
  if (err != 0)
    tnk__free(alloc, write);
  return err;
}

/* ---- The connection ---- */

/*
 * Input of a connection. TLS records are decrypted, and the version of HTTP is
 * determined. Over TLS the peer selects the version (ALPN). Without TLS the
 * first bytes show it.
 *
 * A TLS handshake takes milliseconds of CPU time. Each step of one waits for
 * its own turn of the loop. Even many handshakes at once then delay other
 * connections by only one step at a time.
 */

enum {
  /* Bytes to read and discard on a draining connection before it is closed. */
  MAX_DRAINED = 16 << 20,
  RESUMED_A_TURN = 16
};

/* The connection preface of HTTP/2 (RFC 9113, section 3.4). */
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { N_PREFACE = sizeof(preface) - 1 };

/* ---- The connection: version ---- */

static void begin_h2(tnk__srv_conn_t *conn, const char *rest, size_t n) {
  conn->sniffs = 0;
  if (tnk__srv_h2_start(conn) != TNK_OK)
    tnk__srv_conn_close(conn);
  else
    conn->version->input(conn, rest, n);
}

/* Start HTTP/1.1. The bytes held back so far are equal to the start of the
 * preface. */
static void begin_h1(tnk__srv_conn_t *conn, size_t n_held, const char *rest,
                     size_t n) {
  conn->sniffs = 0;
  if (n_held > 0)
    conn->version->input(conn, preface, n_held);
  if (conn->state != TNK__SRV_CONN_CLOSING)
    conn->version->input(conn, rest, n);
}

static void sniff(tnk__srv_conn_t *conn, const char *data, size_t n) {
  size_t held = conn->n_preface;
  size_t same = 0;

  while (same < n && held + same < N_PREFACE &&
         data[same] == preface[held + same])
    same++;
  conn->n_preface += same;
  if (conn->n_preface == N_PREFACE)
    begin_h2(conn, data + same, n - same);
  else if (same == n)
    return; /* wait for more bytes */
  else if (conn->wants_h2)
    tnk__srv_conn_close(conn);
  else
    begin_h1(conn, held, data, n);
}

static void input(tnk__srv_conn_t *conn, const char *data, size_t n) {
  if (conn->sniffs)
    sniff(conn, data, n);
  else
    conn->version->input(conn, data, n);
}

/* ---- The connection: reading ---- */

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  tnk__srv_conn_t *conn = tnk__container_of(handle, tnk__srv_conn_t, tcp);

  (void)hint;
  *buf = uv_buf_init(conn->http->scratch, TNK__SRV_SCRATCH);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

/* Start or stop reading, depending on the version of HTTP and on TLS. */
static void heed_pause(tnk__srv_conn_t *conn) {
  int wants = !conn->paused && (conn->tls == NULL || conn->tls->rest.len == 0);

  if (conn->state == TNK__SRV_CONN_CLOSING || wants == conn->is_reading)
    return;
  conn->is_reading = wants;
  if (!wants)
    uv_read_stop((uv_stream_t *)&conn->tcp);
  else if (uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read) != 0)
    tnk__srv_conn_close(conn);
}

static int is_served(const tnk__srv_conn_t *conn) {
  return conn->state == TNK__SRV_CONN_READING ||
         conn->state == TNK__SRV_CONN_HANDLING;
}

/* Decrypt and process the records in the input window. */
static void read_records(tnk__srv_conn_t *conn) {
  const char *data;
  int n = 1;

  while (is_served(conn) && n > 0) {
    n = tnk__srv_tls_read(conn->tls, &data);
    if (n > 0)
      input(conn, data, (size_t)n);
    else if (n < 0)
      tnk__srv_conn_close(conn);
  }
  conn->tls->n_in = 0;
  if (is_served(conn) && tnk__srv_write_tls(conn) != 0)
    tnk__srv_conn_close(conn);
}

/* Queue a handshake step until its turn. */
static void keep_handshake(tnk__srv_conn_t *conn, const char *data, size_t n) {
  tnk__srv_t *http = conn->http;

  if (tnk__buf_append(&conn->tls->rest, data, n) != TNK_OK) {
    tnk__srv_conn_close(conn);
    return;
  }
  tnk__list_append(&http->shaking, &conn->tls->link);
  uv_idle_start(&http->resumer, http->resume);
}

static void drain(tnk__srv_conn_t *conn, size_t n) {
  conn->n_drained += n;
  if (conn->n_drained > MAX_DRAINED)
    tnk__srv_conn_close(conn);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  tnk__srv_conn_t *conn = tnk__container_of(stream, tnk__srv_conn_t, tcp);

  if (n < 0) {
    tnk__srv_conn_close(conn);
    return;
  }
  conn->active_ms = uv_now(stream->loop);
  if (conn->state == TNK__SRV_CONN_DRAINING) {
    drain(conn, (size_t)n);
  } else if (conn->tls == NULL) {
    input(conn, buf->base, (size_t)n);
  } else if (!conn->tls->is_open) {
    keep_handshake(conn, buf->base, (size_t)n);
  } else {
    conn->tls->in = (const uint8_t *)buf->base;
    conn->tls->n_in = (size_t)n;
    read_records(conn);
  }
  heed_pause(conn);
}

/* ---- The connection: turns of the loop ---- */

static void report(const tnk__srv_conn_t *conn, int code) {
  const tnk__srv_config_t *config = &conn->http->config;
  char why[2 * TNK__SRV_SUBJECT];

  if (config->on_refused != NULL &&
      tnk__srv_tls_why(conn->tls, code, why, sizeof(why)))
    config->on_refused(why, config->user);
}

static void shake(tnk__srv_conn_t *conn) {
  tnk__srv_tls_conn_t *tls = conn->tls;
  int r;

  tls->in = tls->rest.data;
  tls->n_in = tls->rest.len;
  r = tnk__srv_tls_shake(tls);
  if (r < 0)
    report(conn, r);
  /* On failure this sends the alert of TLS. */
  if (tnk__srv_write_tls(conn) != 0 || r < 0) {
    tnk__srv_conn_close(conn);
    return;
  }
  if (r == 1 && tnk__srv_tls_wants_h2(tls))
    conn->sniffs = conn->wants_h2 = 1;
  if (r == 1)
    read_records(conn);
  tnk__buf_deinit(&tls->rest);
  heed_pause(conn);
}

void tnk__srv_conn_on_resume(uv_idle_t *idle) {
  tnk__srv_t *http = tnk__container_of(idle, tnk__srv_t, resumer);
  tnk__list_t *node = tnk__list_pop(&http->shaking);

  if (node != NULL)
    shake(tnk__container_of(node, tnk__srv_tls_conn_t, link)->conn);
  for (int i = 0; i < RESUMED_A_TURN; i++) {
    tnk__srv_conn_t *conn;

    node = tnk__list_pop(&http->resuming);
    if (node == NULL)
      break;
    conn = tnk__container_of(node, tnk__srv_conn_t, resume);
    conn->version->go_on(conn);
    heed_pause(conn);
  }
  if (tnk__list_empty(&http->resuming) && tnk__list_empty(&http->shaking))
    uv_idle_stop(idle);
}

/* ---- The connection: start ---- */

int tnk__srv_conn_init(tnk__srv_conn_t *conn, tnk__srv_t *http,
                       uv_loop_t *loop) {
  conn->http = http;
  conn->version = &tnk__srv_h1;
  conn->sniffs = http->versions->h2 != NULL;
  conn->active_ms = uv_now(loop);
  tnk__list_init(&conn->link);
  tnk__list_init(&conn->resume);
  tnk__srv_h1_init(conn);
  if (http->tls != NULL) {
    conn->tls = tnk__srv_tls_conn_new(http->tls, conn);
    if (conn->tls == NULL)
      return TNK_ENOMEM;
    conn->h1.req.tls = conn->tls;
  }
  if (uv_tcp_init(loop, &conn->tcp) == 0)
    return TNK_OK;
  tnk__srv_tls_conn_free(conn->tls);
  return TNK_ENOMEM;
}

void tnk__srv_conn_start(tnk__srv_conn_t *conn) {
  uv_tcp_nodelay(&conn->tcp, 1);
  heed_pause(conn);
}
