/* SPDX-License-Identifier: MIT */
#include "lib/io/net/tls_error.h"

#include <mbedtls/error.h>
#include <mbedtls/version.h>
#include <stdio.h>

#include "tnk/error.h"

#if MBEDTLS_VERSION_MAJOR < 3
#define BAD_VERSION MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION
#else
#define BAD_VERSION MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION
#endif

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
     "unsupported certificate: it does not accept this kind of client "
     "certificate (" CLIENT_CERT ")"},
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
     "no application protocol: it supports no version of HTTP that was "
     "offered"},
};

enum { N_ALERTS = sizeof(alerts) / sizeof(alerts[0]) };

/* The number of the fatal alert by which the peer ended the stream (RFC 8446,
 * 6). -1 if `cause`, a code of mbedTLS, does not mean an alert. */
static int alert_of(const mbedtls_ssl_context *ssl, int cause) {
  if (cause != MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE ||
      ssl->TNK__PRIVATE(in_msgtype) != MBEDTLS_SSL_MSG_ALERT ||
      ssl->TNK__PRIVATE(in_msg) == NULL)
    return -1;
  return ssl->TNK__PRIVATE(in_msg)[1];
}

/* The meaning of an alert: its name and a remedy. */
static const char *text_of_alert(int alert) {
  for (int i = 0; i < N_ALERTS; i++)
    if (alerts[i].alert == alert)
      return alerts[i].text;
  return "an alert that has no name";
}

/* Returns whether the peer will send the same alert the next time. */
static int is_final(int alert) {
  for (int i = 0; i < N_ALERTS; i++)
    if (alerts[i].alert == alert)
      return alerts[i].is_final;
  return 0;
}

int tnk__tls_is_final(const mbedtls_ssl_context *ssl, int cause) {
  return cause == BAD_VERSION || is_final(alert_of(ssl, cause));
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
  alert = alert_of(ssl, cause);
  if (alert >= 0) {
    snprintf(text, size, "%s refused the TLS handshake: %s", peer->host,
             text_of_alert(alert));
    return TNK_ETLS;
  }
  if (cause == BAD_VERSION) {
    snprintf(text, size, "TLS with %s: it supports no version from 1.2 on",
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
