#include "net/tls_error.h"

#include <mbedtls/error.h>
#include <mbedtls/pem.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>

#include "tnk/error.h"

/* A high-level code and a low-level one may be added up in one number. */
static int is_out_of_memory(int cause) {
  switch (cause) {
  case MBEDTLS_ERR_SSL_ALLOC_FAILED:
  case MBEDTLS_ERR_X509_ALLOC_FAILED:
  case MBEDTLS_ERR_PK_ALLOC_FAILED:
  case MBEDTLS_ERR_PEM_ALLOC_FAILED:
  case MBEDTLS_ERR_ECP_ALLOC_FAILED:
  case MBEDTLS_ERR_MD_ALLOC_FAILED:
  case MBEDTLS_ERR_CIPHER_ALLOC_FAILED:
    return 1;
  default:
    return -(-cause & 0x7f) == MBEDTLS_ERR_MPI_ALLOC_FAILED ||
           -(-cause & 0x7f) == MBEDTLS_ERR_ASN1_ALLOC_FAILED;
  }
}

int tnk__tls_code(int cause, int otherwise) {
  return is_out_of_memory(cause) ? TNK_ENOMEM : otherwise;
}

int tnk__tls_explain(tnk__peer_t *peer, const mbedtls_ssl_context *ssl,
                     int cause, char *text, size_t size) {
  uint32_t late = mbedtls_ssl_get_verify_result(ssl);
  char why[128];

  /* Some faults are only found after the chain was checked. */
  if (late != UINT32_MAX)
    peer->flags |= late;
  if (tnk__tls_code(cause, TNK_OK) == TNK_ENOMEM) {
    snprintf(text, size, "no memory for TLS with %s", peer->host);
    return TNK_ENOMEM;
  }
  if (peer->flags != 0) {
    tnk__peer_explain(peer, text, size);
    return TNK_ECERT;
  }
  if (cause == MBEDTLS_ERR_SSL_INVALID_RECORD) {
    snprintf(text, size, "%s does not speak TLS", peer->host);
    return TNK_ETLS;
  }
  mbedtls_strerror(cause, why, sizeof(why));
  snprintf(text, size, "TLS with %s: %s", peer->host, why);
  return TNK_ETLS;
}
