#include "lib/base/alloc.h"
#include "server/state.h"
#include "server/tls.h"
#include "tnk/error.h"

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

/* ---- Output of TLS itself ---- */

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
