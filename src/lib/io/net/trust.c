#include "lib/io/net/trust.h"

#include <mbedtls/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if MBEDTLS_VERSION_MAJOR >= 3
#include <psa/crypto.h>
#endif

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/io/net/ca_file.h"
#include "lib/io/net/tls_code.h"
#include "tnk/error.h"

/*
 * NONE until the first waiter or tnk__trust_load(). LOADING while the thread
 * pool reads. Then READY forever, or NONE again after a failure. The generator
 * is seeded together with the reading, because the kernel may block for
 * entropy.
 */
static const char *const system_files[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Alpine */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
    "/etc/ssl/ca-bundle.pem",             /* openSUSE */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem", /* the BSDs, macOS */
};

static const char *const alpn[TNK__N_ALPN][3] = {
    [TNK__ALPN_HTTP_1] = {"http/1.1", NULL},
    [TNK__ALPN_HTTP_2] = {"h2", NULL},
    [TNK__ALPN_BOTH] = {"h2", "http/1.1", NULL},
};

static const char *system_file(void) {
  const size_t n = sizeof(system_files) / sizeof(system_files[0]);
  size_t i;

  for (i = 0; i < n; i++)
    if (access(system_files[i], R_OK) == 0)
      return system_files[i];
  return system_files[0];
}

static const char *file_of(const tnk__trust_t *trust) {
  return trust->ca_file != NULL ? trust->ca_file : system_file();
}

void tnk__trust_explain(const tnk__trust_t *trust, char *text, size_t size) {
  if (trust->err == TNK_EFILE)
    snprintf(text, size, "the client's certificate cannot be used: %s: %s",
             trust->fault.file, trust->fault.text);
  else
    snprintf(text, size, "cannot use the trusted certificates in %s",
             file_of(trust));
}

static void init_parts(tnk__trust_t *trust) {
  mbedtls_entropy_init(&trust->entropy);
  mbedtls_ctr_drbg_init(&trust->rng);
  mbedtls_x509_crt_init(&trust->chain);
  for (int i = 0; i < TNK__N_ALPN; i++)
    mbedtls_ssl_config_init(&trust->configs[i]);
  mbedtls_x509_crt_init(&trust->identity.chain);
  mbedtls_pk_init(&trust->identity.key);
}

static void free_parts(tnk__trust_t *trust) {
  for (int i = 0; i < TNK__N_ALPN; i++)
    mbedtls_ssl_config_free(&trust->configs[i]);
  tnk__identity_free(&trust->identity);
  mbedtls_x509_crt_free(&trust->chain);
  mbedtls_ctr_drbg_free(&trust->rng);
  mbedtls_entropy_free(&trust->entropy);
}

/* Ordered by cost. All but the first two serve servers with a key on that
 * curve. The built-in order costs a third more for each handshake. */
#if MBEDTLS_VERSION_MAJOR >= 3
static const uint16_t groups[] = {
    MBEDTLS_SSL_IANA_TLS_GROUP_X25519, MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1, MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1,
    MBEDTLS_SSL_IANA_TLS_GROUP_NONE};

static void set_version(mbedtls_ssl_config *config) {
  mbedtls_ssl_conf_min_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
  mbedtls_ssl_conf_groups(config, groups);
#if defined(MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED)
  mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
      config, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
}
#else
static const mbedtls_ecp_group_id groups[] = {
    MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_SECP256R1,
    MBEDTLS_ECP_DP_SECP384R1, MBEDTLS_ECP_DP_SECP521R1, MBEDTLS_ECP_DP_NONE};

static void set_version(mbedtls_ssl_config *config) {
  mbedtls_ssl_conf_min_version(config, MBEDTLS_SSL_MAJOR_VERSION_3,
                               MBEDTLS_SSL_MINOR_VERSION_3);
  mbedtls_ssl_conf_curves(config, groups);
}
#endif

static int configure(tnk__trust_t *trust, tnk__alpn_t offer) {
  mbedtls_ssl_config *config = &trust->configs[offer];
  int err = mbedtls_ssl_config_defaults(config, MBEDTLS_SSL_IS_CLIENT,
                                        MBEDTLS_SSL_TRANSPORT_STREAM,
                                        MBEDTLS_SSL_PRESET_DEFAULT);

  if (err != 0)
    return err;
  set_version(config);
  mbedtls_ssl_conf_authmode(config, MBEDTLS_SSL_VERIFY_REQUIRED);
  mbedtls_ssl_conf_ca_chain(config, &trust->chain, NULL);
  if (trust->cert_file != NULL)
    err = mbedtls_ssl_conf_own_cert(config, &trust->identity.chain,
                                    &trust->identity.key);
  if (err != 0)
    return err;
  mbedtls_ssl_conf_rng(config, mbedtls_ctr_drbg_random, &trust->rng);
#if defined(MBEDTLS_SSL_RENEGOTIATION)
  mbedtls_ssl_conf_renegotiation(config, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
#endif
  return mbedtls_ssl_conf_alpn_protocols(config, (const char **)alpn[offer]);
}

/* Returns 0 on failure; nothing else is kept then either. */
static int load_identity(tnk__trust_t *trust) {
  int err = TNK_OK;

  if (trust->cert_file != NULL)
    err =
        tnk__identity_read(&trust->identity, trust->cert_file, trust->key_file,
                           &trust->context->alloc, mbedtls_ctr_drbg_random,
                           &trust->rng, &trust->fault);
  if (err == TNK_OK)
    return 1;
  free_parts(trust);
  trust->err = err;
  trust->cause = 0;
  return 0;
}

/* Runs on the thread pool or on the loop's thread. Accesses only the loaded
 * data, `err` and `cause`. mbedTLS uses its own allocator here. */
static void load(tnk__trust_t *trust) {
  int err;

  init_parts(trust);
  trust->err = TNK_ECERT;
  /* Negative: nothing usable. Positive: the number of certificates that could
   * not be parsed, which is normal in a system's store. */
  err =
      tnk__ca_file_read(&trust->chain, file_of(trust), &trust->context->alloc);
  if (err >= 0 && trust->chain.version == 0)
    err = MBEDTLS_ERR_X509_CERT_UNKNOWN_FORMAT;
  if (err >= 0) {
    trust->err = TNK_ETLS;
    err = mbedtls_ctr_drbg_seed(&trust->rng, mbedtls_entropy_func,
                                &trust->entropy, (const uint8_t *)"tnk", 3);
  }
  if (err == 0 && !load_identity(trust))
    return;
  for (int i = 0; i < TNK__N_ALPN && err == 0; i++)
    err = configure(trust, (tnk__alpn_t)i);
  trust->cause = err;
  trust->err = err == 0 ? TNK_OK : tnk__tls_code(err, trust->err);
  if (err != 0)
    free_parts(trust);
}

/* mbedTLS 3 keeps process-wide state for TLS 1.3. It locks that state only with
 * MBEDTLS_THREADING_C, so this runs on the loop's thread. */
static int init_process(void) {
#if MBEDTLS_VERSION_MAJOR >= 3
  return psa_crypto_init() == PSA_SUCCESS ? TNK_OK : TNK_ENOMEM;
#else
  return TNK_OK;
#endif
}

static void loaded(tnk__trust_t *trust) {
  char text[TNK__MAX_ERROR_TEXT];

  trust->state = trust->err == TNK_OK ? TNK__TRUST_READY : TNK__TRUST_NONE;
  if (trust->err == TNK_OK)
    return;
  tnk__trust_explain(trust, text, sizeof(text));
  tnk__log(&trust->context->logger, TNK_LOG_ERROR, "tls", "%s: %s", text,
           tnk_strerror(trust->err));
}

int tnk__trust_load(tnk__trust_t *trust) {
  if (trust->state != TNK__TRUST_NONE)
    return TNK_OK;
  if (init_process() != TNK_OK)
    return TNK_ENOMEM;
  load(trust);
  loaded(trust);
  return trust->err;
}

static void answer(tnk__deferred_t *call) {
  tnk__trust_t *trust = tnk__container_of(call, tnk__trust_t, answer);
  tnk__list_t now;
  tnk__list_t *node;

  tnk__list_move(&now, &trust->waiters);
  while ((node = tnk__list_pop(&now)) != NULL) {
    tnk__trust_waiter_t *waiter =
        tnk__container_of(node, tnk__trust_waiter_t, link);
    waiter->done(waiter);
  }
}

static void on_run(tnk__work_t *work) {
  load(tnk__container_of(work, tnk__trust_t, work));
}

static void on_done(tnk__work_t *work) {
  tnk__trust_t *trust = tnk__container_of(work, tnk__trust_t, work);

  loaded(trust);
  if (trust->unwanted)
    tnk__trust_free(trust);
  else
    answer(&trust->answer);
}

void tnk__trust_wait(tnk__trust_t *trust, tnk__trust_waiter_t *waiter,
                     void (*done)(tnk__trust_waiter_t *self)) {
  waiter->done = done;
  tnk__list_append(&trust->waiters, &waiter->link);
  if (trust->state == TNK__TRUST_LOADING)
    return;
  if (trust->state == TNK__TRUST_NONE) {
    int err = init_process();
    if (err == TNK_OK)
      err = tnk__work_start(trust->context, &trust->work, on_run, on_done);
    /* From here on `err` and `cause` belong to the thread pool. */
    if (err == 0) {
      trust->state = TNK__TRUST_LOADING;
      return;
    }
    trust->err = TNK_ENOMEM;
    trust->cause = err;
  }
  tnk__defer(trust->context, &trust->answer);
}

void tnk__trust_forget(tnk__trust_waiter_t *waiter) {
  tnk__list_remove(&waiter->link);
}

int tnk__trust_new(tnk__trust_t **out, tnk__context_t *context,
                   const char *ca_file) {
  const tnk_allocator_t *alloc = &context->alloc;
  tnk__trust_t *trust = tnk__calloc(alloc, 1, sizeof(*trust));

  *out = trust;
  if (trust == NULL)
    return TNK_ENOMEM;
  trust->context = context;
  tnk__list_init(&trust->waiters);
  tnk__deferred_init(&trust->answer, answer);
  if (ca_file == NULL)
    ca_file = getenv("SSL_CERT_FILE");
  if (ca_file == NULL || ca_file[0] == '\0')
    return TNK_OK;
  trust->ca_file = tnk__strdup(alloc, ca_file);
  return trust->ca_file != NULL ? TNK_OK : TNK_ENOMEM;
}

int tnk__trust_identify(tnk__trust_t *trust, const char *cert_file,
                        const char *key_file) {
  const tnk_allocator_t *alloc = &trust->context->alloc;

  trust->cert_file = tnk__strdup(alloc, cert_file);
  trust->key_file = tnk__strdup(alloc, key_file);
  return trust->cert_file != NULL && trust->key_file != NULL ? TNK_OK
                                                             : TNK_ENOMEM;
}

void tnk__trust_free(tnk__trust_t *trust) {
  const tnk_allocator_t *alloc;

  if (trust == NULL)
    return;
  if (trust->state == TNK__TRUST_LOADING) {
    trust->unwanted = 1;
    return;
  }
  alloc = &trust->context->alloc;
  tnk__defer_cancel(&trust->answer);
  if (trust->state == TNK__TRUST_READY)
    free_parts(trust);
  tnk__free(alloc, trust->ca_file);
  tnk__free(alloc, trust->cert_file);
  tnk__free(alloc, trust->key_file);
  tnk__free(alloc, trust);
}
