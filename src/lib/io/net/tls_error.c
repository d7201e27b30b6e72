#include "lib/io/net/tls_error.h"

#include <mbedtls/error.h>
#include <mbedtls/version.h>
#include <stdio.h>

#include "lib/io/net/tls_alert.h"
#include "lib/io/net/tls_code.h"
#include "tnk/error.h"

#if MBEDTLS_VERSION_MAJOR < 3
#define BAD_VERSION MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION
#else
#define BAD_VERSION MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION
#endif

int tnk__tls_is_final(const mbedtls_ssl_context *ssl, int cause) {
  return cause == BAD_VERSION ||
         tnk__tls_alert_is_final(tnk__tls_alert(ssl, cause));
}

int tnk__tls_explain(tnk__peer_t *peer, const mbedtls_ssl_context *ssl,
                     int cause, char *text, size_t size) {
  uint32_t late = mbedtls_ssl_get_verify_result(ssl);
  char why[128];
  int alert;

  /* Some faults are found only after the check of the chain. */
  if (late != UINT32_MAX)
    peer->flags |= late;
  if (tnk__tls_code(cause, TNK_OK) == TNK_ENOMEM || peer->no_memory) {
    snprintf(text, size, "no memory for TLS with %s", peer->host);
    return TNK_ENOMEM;
  }
  if (peer->flags != 0) {
    tnk__peer_explain(peer, text, size);
    return TNK_ECERT;
  }
  alert = tnk__tls_alert(ssl, cause);
  if (alert >= 0) {
    snprintf(text, size, "%s refused the TLS handshake: %s", peer->host,
             tnk__tls_alert_text(alert));
    return TNK_ETLS;
  }
  if (cause == BAD_VERSION) {
    snprintf(text, size, "TLS with %s: it speaks no version from 1.2 on",
             peer->host);
    return TNK_ETLS;
  }
  if (cause == MBEDTLS_ERR_SSL_INVALID_RECORD) {
    snprintf(text, size, "%s does not speak TLS", peer->host);
    return TNK_ETLS;
  }
  mbedtls_strerror(cause, why, sizeof(why));
  snprintf(text, size, "TLS with %s: %s", peer->host, why);
  return TNK_ETLS;
}
