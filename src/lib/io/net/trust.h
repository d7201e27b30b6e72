/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_NET_TRUST_H
#define TNK_LIB_IO_NET_TRUST_H

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>

#include "lib/io/loop/context.h"
#include "lib/io/loop/work.h"
#include "lib/io/net/stream.h"

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

/* The client certificate for servers that ask for one: its chain and its
 * private key. */
typedef struct {
  mbedtls_x509_crt chain;
  mbedtls_pk_context key;
} tnk__identity_t;

/* The reason why a file could not be used: "FILE: `text`". */
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

/* A request for the certificates. Embedded in its owner. */
typedef struct tnk__trust_waiter {
  tnk__list_t link;
  void (*done)(struct tnk__trust_waiter *self);
} tnk__trust_waiter_t;

typedef enum {
  TNK__TRUST_NONE,
  TNK__TRUST_LOADING,
  TNK__TRUST_READY
} tnk__trust_state_t;

/*
 * The data that all TLS streams of a net share: trusted certificates, random
 * generator, mbedTLS's settings. It takes about 0.5 MB for a system's store.
 * Once it is READY, only the state of the generator changes.
 */
typedef struct tnk__trust {
  tnk__context_t *context;
  tnk__trust_state_t state;
  int unwanted;  /* freed while LOADING; the end of loading frees the memory */
  char *ca_file; /* NULL: use the system's store */
  /* The client certificate. NULL: none. */
  char *cert_file;
  char *key_file;
  tnk__identity_t identity;
  tnk__identity_fault_t fault; /* set with TNK_EFILE */
  tnk__list_t waiters;
  tnk__deferred_t answer;
  tnk__work_t work;
  /* Result of the last loading: TNK_OK, TNK_ENOMEM, TNK_ECERT or TNK_ETLS;
   * TNK_EFILE for the files of the client certificate. */
  int err;
  int cause;
  mbedtls_entropy_context entropy;
  mbedtls_ctr_drbg_context rng;
  mbedtls_x509_crt chain;
  mbedtls_ssl_config configs[TNK__N_ALPN]; /* one for each ALPN offer */
} tnk__trust_t;

/* Create one without reading files. Returns TNK_OK or TNK_ENOMEM. */
int tnk__trust_new(tnk__trust_t **out, tnk__context_t *context,
                   const char *ca_file);
/* Set the client certificate. Its files are read together with the trusted
 * certificates. Call it at most once, before the reading. Returns TNK_OK or
 * TNK_ENOMEM. */
int tnk__trust_identify(tnk__trust_t *trust, const char *cert_file,
                        const char *key_file);
/* Free it. NULL does nothing. No request may be waiting. */
void tnk__trust_free(tnk__trust_t *trust);
/* Read the certificates on this thread. */
int tnk__trust_load(tnk__trust_t *trust);
/* Wait until the certificates are read. `done` is called once, later, unless
 * the waiter is forgotten before; `err` has the result. A failure is not kept:
 * the next waiter starts another attempt. */
void tnk__trust_wait(tnk__trust_t *trust, tnk__trust_waiter_t *waiter,
                     void (*done)(tnk__trust_waiter_t *self));
void tnk__trust_forget(tnk__trust_waiter_t *waiter);
/* Write why the last loading failed. */
void tnk__trust_explain(const tnk__trust_t *trust, char *text, size_t size);

#endif
