#ifndef TNK_LIB_IO_NET_TRUST_H
#define TNK_LIB_IO_NET_TRUST_H

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>

#include "lib/io/loop/context.h"
#include "lib/io/net/identity.h"
#include "lib/io/loop/work.h"
#include "lib/io/net/stream.h"

/* Somebody who needs the certificates. Embedded in its owner. */
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
 * What all TLS streams of a net share: the certificates that are trusted, the
 * random generator, mbedTLS's settings. About 0.5 MB for a system's store.
 * Once READY it is only read, but for the generator's state.
 */
typedef struct tnk__trust {
  tnk__context_t *context;
  tnk__trust_state_t state;
  int unwanted;  /* freed while LOADING; the end of that frees it */
  char *ca_file; /* NULL: look for the system's */
  /* Who we are, for servers that ask. NULL: nobody. */
  char *cert_file;
  char *key_file;
  tnk__identity_t identity;
  tnk__identity_fault_t fault; /* with TNK_EFILE */
  tnk__list_t waiters;
  tnk__deferred_t answer;
  tnk__work_t work;
  /* Of the last loading: TNK_OK, TNK_ENOMEM, TNK_ECERT, TNK_ETLS, and TNK_EFILE
   * for the files of our own certificate. */
  int err;
  int cause;
  mbedtls_entropy_context entropy;
  mbedtls_ctr_drbg_context rng;
  mbedtls_x509_crt chain;
  mbedtls_ssl_config configs[TNK__N_ALPN]; /* they differ in what they offer */
} tnk__trust_t;

/* Make one that has read nothing yet. TNK_OK or TNK_ENOMEM. */
int tnk__trust_new(tnk__trust_t **out, tnk__context_t *context,
                   const char *ca_file);
/* Say who we are; the files are read with the certificates. Once, before those
 * are. TNK_OK or TNK_ENOMEM. */
int tnk__trust_identify(tnk__trust_t *trust, const char *cert_file,
                        const char *key_file);
/* Free it; NULL does nothing. Nobody may be waiting. */
void tnk__trust_free(tnk__trust_t *trust);
/* Read the certificates on this thread. */
int tnk__trust_load(tnk__trust_t *trust);
/* Wait until they are read: `done` is called once, later, unless it is
 * forgotten before; `err` tells how it went. A failure is not kept: the next
 * waiter tries anew. */
void tnk__trust_wait(tnk__trust_t *trust, tnk__trust_waiter_t *waiter,
                     void (*done)(tnk__trust_waiter_t *self));
void tnk__trust_forget(tnk__trust_waiter_t *waiter);
/* Write why the last loading failed. */
void tnk__trust_explain(const tnk__trust_t *trust, char *text, size_t size);

#endif
