/* SPDX-License-Identifier: MIT */
#include "lib/io/net/tls_code.h"

#include <mbedtls/pem.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>

#include "tnk/error.h"

/* mbedTLS may add a high-level code and a low-level code to one number. */
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
