#ifndef TNK_SERVER_TLS_H
#define TNK_SERVER_TLS_H

#include <mbedtls/ssl.h>
#include <uv.h>

#include "lib/base/buf.h"
#include "lib/base/list.h"
#include "tnk/common.h"

/* The server's end of TLS, 1.2 or later. Does no I/O: bytes of the wire come
 * in by windows, and what goes out waits in a buffer. */

/* The certificate, its key and the keys of tickets: of a server. */
typedef struct tnk__srv_tls tnk__srv_tls_t;

/* Read the files. TNK_OK, or a code with a sentence in `why` that names the
 * file. */
int tnk__srv_tls_open(tnk__srv_tls_t **out, const tnk_allocator_t *alloc,
                      const char *cert, const char *key, int offers_h2,
                      char *why, size_t n_why);
void tnk__srv_tls_free(tnk__srv_tls_t *tls);

/* Of a connection. */
typedef struct tnk__srv_tls_conn {
  mbedtls_ssl_context ssl;
  tnk__list_t link; /* in tnk__srv_t.shaking */
  tnk__srv_tls_t *tls;
  void *conn;
  const uint8_t *in; /* the window into what has come */
  size_t n_in;
  tnk__buf_t rest; /* has come and waits for the handshake's turn */
  tnk__buf_t out;  /* waits to be sent */
  int is_open;     /* the handshake is over */
} tnk__srv_tls_conn_t;

/* NULL: no memory. */
tnk__srv_tls_conn_t *tnk__srv_tls_conn_new(tnk__srv_tls_t *tls, void *conn);
void tnk__srv_tls_conn_free(tnk__srv_tls_conn_t *conn);
/* Go on with the handshake, out of the window. 1: it is over; 0: it waits for
 * the peer; else a code of mbedTLS's. */
int tnk__srv_tls_shake(tnk__srv_tls_conn_t *conn);
/* Whether the peer has chosen HTTP/2. */
int tnk__srv_tls_wants_h2(const tnk__srv_tls_conn_t *conn);
/* Read out of the window. The bytes, in memory of the server's that the next
 * call overwrites; 0 of them when there are no more; negative at the end of the
 * stream, in whatever way it came. */
int tnk__srv_tls_read(tnk__srv_tls_conn_t *conn, const char **data);
/* Encrypt. TNK_OK, TNK_ENOMEM or TNK_ETLS, after which it is of no more use. */
int tnk__srv_tls_seal(tnk__srv_tls_conn_t *conn, const uv_buf_t *bufs,
                      unsigned n);
/* Say goodbye. */
void tnk__srv_tls_end(tnk__srv_tls_conn_t *conn);

#endif
