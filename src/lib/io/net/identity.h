#ifndef TNK_LIB_IO_NET_IDENTITY_H
#define TNK_LIB_IO_NET_IDENTITY_H

#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>

#include "tnk/common.h"

/* Who we are to servers that ask: a certificate, with those that vouch for it,
 * and the key to it. */
typedef struct {
  mbedtls_x509_crt chain;
  mbedtls_pk_context key;
} tnk__identity_t;

/* Why files could not be used: "FILE: `text`". */
typedef struct {
  const char *file; /* one of the two that were given */
  const char *text; /* static */
} tnk__identity_fault_t;

/* mbedTLS's way of asking for random bytes. */
typedef int (*tnk__identity_rng_t)(void *user, unsigned char *out, size_t n);

/*
 * Read the certificates of one file and the key of another, or of the same, in
 * PEM or DER. TNK_OK; TNK_ENOMEM; or TNK_EFILE with *fault, and then there is
 * nothing to be freed. What was read of the key is wiped. Any thread will do.
 */
int tnk__identity_read(tnk__identity_t *out, const char *cert_file,
                       const char *key_file, const tnk_allocator_t *alloc,
                       tnk__identity_rng_t rng, void *rng_user,
                       tnk__identity_fault_t *fault);
/* Free it, and wipe the key. */
void tnk__identity_free(tnk__identity_t *identity);

#endif
