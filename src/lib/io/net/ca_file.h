#ifndef TNK_LIB_IO_NET_CA_FILE_H
#define TNK_LIB_IO_NET_CA_FILE_H

#include <mbedtls/x509_crt.h>

#include "tnk/common.h"

/*
 * Append the certificates in a file of PEM, or the one in a file of DER, to
 * `chain`. Returns 0; or how many were not understood, which is normal in a
 * system's store; or mbedTLS's negative code when none was. Takes about 1 ms
 * for a system's store. Any thread will do.
 */
int tnk__ca_file_read(mbedtls_x509_crt *chain, const char *path,
                      const tnk_allocator_t *alloc);
/* Append the certificates in memory: `n` bytes and a NUL. The text is used up:
 * certificates are decoded where they stand. */
int tnk__ca_file_parse(mbedtls_x509_crt *chain, unsigned char *text, size_t n);

#endif
