/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_TLS_H
#define TNK_LIB_BASE_TLS_H

#include <mbedtls/ssl.h>
#include <mbedtls/version.h>

/* The versions and curves of TLS, for clients and servers. Only who includes
 * this header needs mbedTLS. */

/* Requires TLS 1.2, and orders the curves by cost. The built-in order begins
 * with the most expensive one, which costs a third more for each handshake. All
 * but the first two curves serve peers with a key on that curve. */
static inline void tnk__tls_set_versions(mbedtls_ssl_config *config) {
#if MBEDTLS_VERSION_MAJOR >= 3
  static const uint16_t groups[] = {
      MBEDTLS_SSL_IANA_TLS_GROUP_X25519, MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1,
      MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1,
      MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1, MBEDTLS_SSL_IANA_TLS_GROUP_NONE};

  mbedtls_ssl_conf_min_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
  mbedtls_ssl_conf_groups(config, groups);
#else
  static const mbedtls_ecp_group_id curves[] = {
      MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1,
      MBEDTLS_ECP_DP_SECP384R1, MBEDTLS_ECP_DP_SECP521R1, MBEDTLS_ECP_DP_NONE};

  mbedtls_ssl_conf_min_version(config, MBEDTLS_SSL_MAJOR_VERSION_3,
                               MBEDTLS_SSL_MINOR_VERSION_3);
  mbedtls_ssl_conf_curves(config, curves);
#endif
}

#endif
