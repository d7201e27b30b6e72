#ifndef TNK_LIB_IO_NET_TLS_ALERT_H
#define TNK_LIB_IO_NET_TLS_ALERT_H

#include <mbedtls/ssl.h>

/* The number of the fatal alert by which the peer ended the stream (RFC 8446,
 * 6). -1 if `cause`, a code of mbedTLS, does not mean an alert. */
int tnk__tls_alert(const mbedtls_ssl_context *ssl, int cause);
/* The meaning of an alert: its name and a remedy. A static string. */
const char *tnk__tls_alert_text(int alert);
/* Whether the peer will send the same alert the next time. */
int tnk__tls_alert_is_final(int alert);

#endif
