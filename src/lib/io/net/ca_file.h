#ifndef TNK_LIB_IO_NET_CA_FILE_H
#define TNK_LIB_IO_NET_CA_FILE_H

#include <mbedtls/x509_crt.h>

#include "tnk/common.h"

/*
 * Append the certificates of a PEM file, or the certificate of a DER file, to
 * `chain`. Returns 0, or the number of certificates that could not be parsed,
 * which is normal in a system's store. If none could be parsed, returns
 * mbedTLS's negative code. Takes about 1 ms for a system's store. Safe on any
 * thread.
 */
int tnk__ca_file_read(mbedtls_x509_crt *chain, const char *path,
                      const tnk_allocator_t *alloc);
/* Append the certificates in memory: `n` bytes and a NUL. The text is
 * overwritten, because certificates are decoded in place. */
int tnk__ca_file_parse(mbedtls_x509_crt *chain, unsigned char *text, size_t n);

#endif
