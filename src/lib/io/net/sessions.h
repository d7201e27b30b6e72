#ifndef TNK_LIB_IO_NET_SESSIONS_H
#define TNK_LIB_IO_NET_SESSIONS_H

#include <mbedtls/ssl.h>

#include "lib/io/loop/context.h"

/*
 * TLS sessions that can be resumed, one an origin: a tenth of a millisecond
 * instead of five. A resumed session skips the check of the certificate, so it
 * is offered only to the host and port it came from, and only by the net it
 * was made in, whose settings are always the same.
 */
typedef struct tnk__sessions tnk__sessions_t;

/* Make an empty set. TNK_OK or TNK_ENOMEM. */
int tnk__sessions_new(tnk__sessions_t **out, tnk__context_t *context);
/* Free the set and its sessions; NULL does nothing. */
void tnk__sessions_free(tnk__sessions_t *sessions);
/* Offer the kept session, if there is one, in the handshake to come. */
void tnk__sessions_offer(tnk__sessions_t *sessions, const char *host,
                         uint16_t port, mbedtls_ssl_context *ssl);
/* Keep what the server gave. Failures only mean a full handshake later. One
 * that was itself resumed lives no longer than the one before, so that the
 * certificate is looked at again some day. */
void tnk__sessions_keep(tnk__sessions_t *sessions, const char *host,
                        uint16_t port, const mbedtls_ssl_context *ssl,
                        int resumed);
void tnk__sessions_forget(tnk__sessions_t *sessions, const char *host,
                          uint16_t port);

#endif
