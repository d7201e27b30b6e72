#include "lib/io/net/tls_alert.h"

#include <mbedtls/version.h>

/* mbedTLS reports only that an alert arrived. Its number is in the record that
 * was read last, in decrypted form. */
#if MBEDTLS_VERSION_MAJOR < 3
#define TNK__PRIVATE(member) member
#else
#define TNK__PRIVATE(member) MBEDTLS_PRIVATE(member)
#endif

#if MBEDTLS_VERSION_MAJOR >= 3 && defined(MBEDTLS_SSL_PROTO_TLS1_3)
#define VERSIONS "this build speaks TLS 1.2 and 1.3"
#else
#define VERSIONS "this build speaks at most TLS 1.2"
#endif
#define CLIENT_CERT "options cert_file and key_file"

static const struct {
  int alert;
  int is_final;
  const char *text;
} alerts[] = {
    {10, 0, "unexpected message"},
    {20, 0, "bad record MAC"},
    {22, 0, "record overflow"},
    {40, 1,
     "handshake failure: it knows none of the ciphers, curves and signatures "
     "of this build, or wants a client certificate (" CLIENT_CERT ")"},
    {41, 1, "no certificate: it wants a client certificate (" CLIENT_CERT ")"},
    {42, 1,
     "bad certificate: it does not accept the client's (" CLIENT_CERT ")"},
    {43, 1,
     "unsupported certificate: of a kind of client certificate that it "
     "does not take (" CLIENT_CERT ")"},
    {44, 1, "certificate revoked: the client's (" CLIENT_CERT ")"},
    {45, 1, "certificate expired: the client's (" CLIENT_CERT ")"},
    {46, 1,
     "certificate unknown: it does not accept the client's (" CLIENT_CERT ")"},
    {47, 1, "illegal parameter"},
    {48, 1,
     "unknown CA: it does not know who has signed the client's "
     "certificate (" CLIENT_CERT ")"},
    {49, 1, "access denied: to the client's certificate (" CLIENT_CERT ")"},
    {50, 0, "decode error"},
    {51, 0, "decrypt error"},
    {70, 1, "protocol version (" VERSIONS ")"},
    {71, 1,
     "insufficient security: it wants stronger ciphers or keys than "
     "this build has"},
    {80, 0, "internal error"},
    {86, 1, "inappropriate fallback"},
    {90, 0, "user canceled"},
    {109, 1, "missing extension"},
    {110, 1, "unsupported extension"},
    {112, 1, "unrecognized name: it serves no host of that name"},
    {113, 0, "bad certificate status response"},
    {116, 1,
     "certificate required: it wants a client certificate (" CLIENT_CERT ")"},
    {120, 1,
     "no application protocol: it speaks no version of HTTP that was "
     "offered"},
};

enum { N_ALERTS = sizeof(alerts) / sizeof(alerts[0]) };

int tnk__tls_alert(const mbedtls_ssl_context *ssl, int cause) {
  if (cause != MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE ||
      ssl->TNK__PRIVATE(in_msgtype) != MBEDTLS_SSL_MSG_ALERT ||
      ssl->TNK__PRIVATE(in_msg) == NULL)
    return -1;
  return ssl->TNK__PRIVATE(in_msg)[1];
}

const char *tnk__tls_alert_text(int alert) {
  for (int i = 0; i < N_ALERTS; i++)
    if (alerts[i].alert == alert)
      return alerts[i].text;
  return "an alert that has no name";
}

int tnk__tls_alert_is_final(int alert) {
  for (int i = 0; i < N_ALERTS; i++)
    if (alerts[i].alert == alert)
      return alerts[i].is_final;
  return 0;
}
