#ifndef TNK_NET_TLS_ERROR_H
#define TNK_NET_TLS_ERROR_H

#include "net/peer.h"

/* mbedTLS's code as one of ours: TNK_ENOMEM, or `otherwise`. */
int tnk__tls_code(int cause, int otherwise);
/* Why a stream failed with mbedTLS's code `cause`: TNK_ECERT, TNK_ETLS or
 * TNK_ENOMEM, and a sentence. */
int tnk__tls_explain(tnk__peer_t *peer, const mbedtls_ssl_context *ssl,
                     int cause, char *text, size_t size);

#endif
