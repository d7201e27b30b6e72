/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_NET_SESSIONS_H
#define TNK_LIB_IO_NET_SESSIONS_H

#include <mbedtls/ssl.h>

#include "lib/io/loop/context.h"

/*
 * Resumable TLS sessions, one for each origin. Resuming takes a tenth of a
 * millisecond instead of five. A resumed session skips the check of the
 * certificate. It is therefore offered only to the host and port that it came
 * from. It is used only by the net that created it, whose settings never
 * change.
 */
typedef struct tnk__sessions tnk__sessions_t;

/* Create an empty set. Returns TNK_OK or TNK_ENOMEM. */
int tnk__sessions_new(tnk__sessions_t **out, tnk__context_t *context);
/* Free the set and its sessions. NULL does nothing. */
void tnk__sessions_free(tnk__sessions_t *sessions);
/* Offer the kept session, if any, in the next handshake. */
void tnk__sessions_offer(tnk__sessions_t *sessions, const char *host,
                         uint16_t port, mbedtls_ssl_context *ssl);
/* Keep the session that the server issued. A failure only causes a full
 * handshake later. A session from a resumed handshake expires no later than the
 * previous one, so the certificate is checked again eventually. */
void tnk__sessions_keep(tnk__sessions_t *sessions, const char *host,
                        uint16_t port, const mbedtls_ssl_context *ssl,
                        int resumed);
void tnk__sessions_forget(tnk__sessions_t *sessions, const char *host,
                          uint16_t port);

#endif
