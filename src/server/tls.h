/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVER_TLS_H
#define TNK_SERVER_TLS_H

#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <uv.h>

#include "lib/base/buf.h"
#include "lib/base/list.h"
#include "server/http.h"
#include "tnk/common.h"

/* The server's side of TLS 1.2 or later. It does no I/O. Input is passed as a
 * window of bytes, and output is collected in a buffer. */

/* Certificate, private key and ticket keys of a server. */
typedef struct tnk__srv_tls tnk__srv_tls_t;

/* Read the files of the configuration. Returns TNK_OK, or a code with a
 * sentence in its `why` that names the file. */
int tnk__srv_tls_open(tnk__srv_tls_t **out, const tnk__srv_config_t *config,
                      int offers_h2);
void tnk__srv_tls_free(tnk__srv_tls_t *tls);

/* TLS state of a connection. */
typedef struct tnk__srv_tls_conn {
  mbedtls_ssl_context ssl;
  tnk__list_t link; /* in tnk__srv_t.shaking */
  tnk__srv_tls_t *tls;
  void *conn;
  const uint8_t *in; /* window of received bytes */
  size_t n_in;
  tnk__buf_t rest; /* received bytes that wait for a handshake step */
  tnk__buf_t out;  /* output to be sent */
  int is_open;     /* the handshake has ended */
  /* What is known of the certificate of the client. */
  int has_seen;           /* it has sent one */
  uint32_t flags;         /* why it is invalid, as mbedTLS says it */
  mbedtls_x509_time date; /* since when, or until when */
  char subject[TNK__SRV_SUBJECT];
} tnk__srv_tls_conn_t;

/* NULL: out of memory. */
tnk__srv_tls_conn_t *tnk__srv_tls_conn_new(tnk__srv_tls_t *tls, void *conn);
void tnk__srv_tls_conn_free(tnk__srv_tls_conn_t *conn);
/* Continue the handshake with the bytes in the window. Returns 1 if it has
 * ended, 0 if it waits for the peer, or a code of mbedTLS. */
int tnk__srv_tls_shake(tnk__srv_tls_conn_t *conn);
/* Why a handshake has failed with this code, if the certificate of the client
 * is the reason. Returns 0 if it is not. */
int tnk__srv_tls_why(const tnk__srv_tls_conn_t *conn, int code, char *out,
                     size_t size);
/* Returns the verified certificate of the client, or NULL. */
const mbedtls_x509_crt *tnk__srv_tls_client(const tnk__srv_tls_conn_t *conn);
/* Returns whether ALPN has selected HTTP/2. */
int tnk__srv_tls_wants_h2(const tnk__srv_tls_conn_t *conn);
/* Decrypt from the window. Returns the number of bytes. 0 means that more input
 * is needed. A negative value means the end of the stream or a failure. The
 * bytes are in a buffer of the server that the next call overwrites. */
int tnk__srv_tls_read(tnk__srv_tls_conn_t *conn, const char **data);
/* Encrypt. Returns TNK_OK, TNK_ENOMEM or TNK_ETLS. After a failure the
 * connection cannot be used any more. */
int tnk__srv_tls_seal(tnk__srv_tls_conn_t *conn, const uv_buf_t *bufs,
                      unsigned n);
/* Make the close alert. */
void tnk__srv_tls_end(tnk__srv_tls_conn_t *conn);

#endif
