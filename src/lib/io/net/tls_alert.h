#ifndef TNK_LIB_IO_NET_TLS_ALERT_H
#define TNK_LIB_IO_NET_TLS_ALERT_H

#include <mbedtls/ssl.h>

/* The fatal alert by which the peer ended it: its number (RFC 8446, 6), or -1
 * when `cause`, a code of mbedTLS's, is not about one. */
int tnk__tls_alert(const mbedtls_ssl_context *ssl, int cause);
/* What an alert means: its name, and what to do about it. Static. */
const char *tnk__tls_alert_text(int alert);
/* Whether the peer will say the same the next time. */
int tnk__tls_alert_is_final(int alert);

#endif
