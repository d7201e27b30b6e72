/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_NET_PEER_H
#define TNK_LIB_IO_NET_PEER_H

#include <mbedtls/ssl.h>

#include "lib/io/net/dns.h"

/*
 * The peer that a TLS stream expects, and the result of checking its
 * certificate. mbedTLS's check of the chain fills it. Only a line of text about
 * the certificate is kept.
 */
typedef struct {
  char host[TNK__DNS_MAX_HOST + 1]; /* lower case, without a final dot */
  int is_address;
  tnk__address_t address;
  /* Number of checked certificates; 0 after a resumed handshake. */
  size_t n_checked;
  uint32_t flags; /* MBEDTLS_X509_BADCERT_* flags of the whole chain */
  /* The trusted CA certificates. Must stay valid as long as the peer. */
  mbedtls_x509_crt *trusted;
  int no_memory; /* the check ran out of memory; `flags` are then meaningless */
  char names[160]; /* the names in the certificate */
  char date[16];   /* date on which it expired or becomes valid */
} tnk__peer_t;

/* Initialize it with a host name. Returns TNK_OK, or TNK_EDNS if the name is
 * too long or empty. */
int tnk__peer_init(tnk__peer_t *peer, const char *host);
/* Make the TLS stream verify this peer. Returns TNK_OK or mbedTLS's code. The
 * peer must stay valid as long as `ssl`. */
int tnk__peer_require(tnk__peer_t *peer, mbedtls_ssl_context *ssl);
/* Describe the fault of the certificate. */
void tnk__peer_explain(const tnk__peer_t *peer, char *text, size_t size);

/* Convert a code of mbedTLS: TNK_ENOMEM, or `otherwise` for any other code. */
int tnk__tls_code(int cause, int otherwise);

#endif
