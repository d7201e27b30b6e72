/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_NET_TLS_ERROR_H
#define TNK_LIB_IO_NET_TLS_ERROR_H

#include "lib/io/net/peer.h"

/* Returns whether the peer will end the handshake the same way the next time.
 */
int tnk__tls_is_final(const mbedtls_ssl_context *ssl, int cause);
/* Explain why a stream failed with mbedTLS's code `cause`. Returns TNK_ECERT,
 * TNK_ETLS or TNK_ENOMEM, and writes a sentence. */
int tnk__tls_explain(tnk__peer_t *peer, const mbedtls_ssl_context *ssl,
                     int cause, char *text, size_t size);

#endif
