#ifndef TNK_LIB_IO_NET_PEER_H
#define TNK_LIB_IO_NET_PEER_H

#include <mbedtls/ssl.h>

#include "lib/io/net/dns.h"

/*
 * Who a TLS stream wants to talk to, and what its certificate says. Filled by
 * mbedTLS's check of the chain; nothing of the certificate is kept but a line
 * of text.
 */
typedef struct {
  char host[TNK__DNS_MAX_HOST + 1]; /* small letters, no final dot */
  int is_address;
  tnk__address_t address;
  size_t n_checked; /* certificates; 0 after a resumed handshake */
  uint32_t flags;   /* MBEDTLS_X509_BADCERT_*, of the whole chain */
  /* Whom its certificates are to be signed by; stays as long as the peer. */
  mbedtls_x509_crt *trusted;
  int no_memory;   /* there was none for the check, whatever `flags` say */
  char names[160]; /* whom the certificate is for */
  char date[16];   /* when it expired or becomes valid */
} tnk__peer_t;

/* Begin with a name. TNK_OK, or TNK_EDNS for one that is too long or empty. */
int tnk__peer_init(tnk__peer_t *peer, const char *host);
/* Make the stream check that it talks to this peer. TNK_OK or mbedTLS's code.
 * The peer must stay as long as `ssl`. */
int tnk__peer_require(tnk__peer_t *peer, mbedtls_ssl_context *ssl);
/* Write what is wrong with the certificate. */
void tnk__peer_explain(const tnk__peer_t *peer, char *text, size_t size);

#endif
