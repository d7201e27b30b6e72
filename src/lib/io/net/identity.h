#ifndef TNK_LIB_IO_NET_IDENTITY_H
#define TNK_LIB_IO_NET_IDENTITY_H

#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>

#include "tnk/common.h"

/* The client certificate for servers that ask for one: its chain and its
 * private key. */
typedef struct {
  mbedtls_x509_crt chain;
  mbedtls_pk_context key;
} tnk__identity_t;

/* Why a file could not be used: "FILE: `text`". */
typedef struct {
  const char *file; /* one of the two given files */
  const char *text; /* static string */
} tnk__identity_fault_t;

/* The type of mbedTLS's random generator functions. */
typedef int (*tnk__identity_rng_t)(void *user, unsigned char *out, size_t n);

/*
 * Read the certificates of one file and the key of another or the same file, in
 * PEM or DER. Returns TNK_OK, TNK_ENOMEM, or TNK_EFILE with *fault set. After
 * an error nothing must be freed. The buffer of the key is wiped. Safe on any
 * thread.
 */
int tnk__identity_read(tnk__identity_t *out, const char *cert_file,
                       const char *key_file, const tnk_allocator_t *alloc,
                       tnk__identity_rng_t rng, void *rng_user,
                       tnk__identity_fault_t *fault);
/* Free it, and wipe the key. */
void tnk__identity_free(tnk__identity_t *identity);

#endif
