/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LOCAL_TLS_PEER_H
#define TNK_TEST_LOCAL_TLS_PEER_H

#include <mbedtls/ssl.h>
#include <stddef.h>

#include "support/certs.h"

/* The client's end of TLS, without any I/O: what comes is fed to it, and what
 * it says is collected. */

/* What peers of one server share: its identity in files, and what they want. */
typedef struct {
  test_identity_t identity;
  char cert[64];
  char key[64];
  mbedtls_ssl_config config;
  const char *alpn[3];         /* NULL at the end; none: not offered */
  mbedtls_ssl_session session; /* of the last handshake, */
  int has_session;             /* which the next one offers */
} tls_kit_t;

/* Make an identity for localhost and its files. Offers `alpn`, which may be
 * NULL and else ends with one. */
void tls_kit_open(tls_kit_t *kit, const char *const *alpn);
void tls_kit_close(tls_kit_t *kit);
/* Take TLS 1.2 alone, though there may be more. */
void tls_kit_only_1_2(tls_kit_t *kit);

typedef struct {
  mbedtls_ssl_context ssl;
  tls_kit_t *kit;
  const unsigned char *in;
  size_t n_in;
  char *out; /* to be sent by the caller, who frees it */
  size_t n_out;
  int is_open;
  int error;       /* of mbedTLS's, 0: none */
  int has_goodbye; /* the server has said it */
} tls_peer_t;

tls_peer_t *tls_peer_new(tls_kit_t *kit);
void tls_peer_free(tls_peer_t *peer);
/* Go on with the handshake, with what has come. */
void tls_peer_feed(tls_peer_t *peer, const void *data, size_t n,
                   void (*on_plain)(void *user, const char *data, size_t n),
                   void *user);
void tls_peer_write(tls_peer_t *peer, const void *data, size_t n);
/* The protocol that the server has chosen, or "". */
const char *tls_peer_alpn(const tls_peer_t *peer);

#endif
