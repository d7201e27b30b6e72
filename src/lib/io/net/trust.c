/* SPDX-License-Identifier: MIT */
#include "lib/io/net/trust.h"

#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <mbedtls/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if MBEDTLS_VERSION_MAJOR >= 3
#include <psa/crypto.h>
#endif

#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/base/tls.h"
#include "lib/io/net/peer.h"
#include "tnk/error.h"

/* ---- Trusted certificates ---- */

/*
 * mbedTLS can read such files itself. But its base64 decoder runs in constant
 * time, which is meant for private keys. It took nine tenths of the time for a
 * system's store.
 */

enum { PIECE_SIZE = 64 * 1024 };

static const char begin_mark[] = "-----BEGIN CERTIFICATE-----";
static const char end_mark[] = "-----END CERTIFICATE-----";

/* Find the next certificate at or after `at`: the text between its two marker
 * lines, or NULL. *behind is where to continue the search. */
static char *next_block(char *at, size_t *n, char **behind) {
  char *start = strstr(at, begin_mark);
  char *stop;

  if (start == NULL)
    return NULL;
  start += sizeof(begin_mark) - 1;
  stop = strstr(start, end_mark);
  if (stop == NULL)
    return NULL;
  *n = (size_t)(stop - start);
  *behind = stop + sizeof(end_mark) - 1;
  return start;
}

static int parse_block(mbedtls_x509_crt *chain, char *text, size_t n) {
  uint8_t *der = (uint8_t *)text;

  n = tnk__base64_read_lines(der, text, n);
  if (n == SIZE_MAX)
    return MBEDTLS_ERR_PEM_INVALID_DATA;
  return mbedtls_x509_crt_parse_der(chain, der, n);
}

int tnk__ca_file_parse(mbedtls_x509_crt *chain, unsigned char *text, size_t n) {
  char *at = (char *)text;
  char *block;
  size_t len;
  int n_bad = 0;
  int n_good = 0;
  int first = MBEDTLS_ERR_X509_CERT_UNKNOWN_FORMAT;

  if (strstr(at, begin_mark) == NULL)
    return mbedtls_x509_crt_parse_der(chain, text, n);
  while ((block = next_block(at, &len, &at)) != NULL) {
    int err = parse_block(chain, block, len);
    if (err == MBEDTLS_ERR_X509_ALLOC_FAILED)
      return err;
    if (err == 0)
      n_good++;
    else if (n_bad++ == 0)
      first = err;
  }
  return n_good > 0 ? n_bad : first;
}

/* Returns 0 or a code of mbedTLS. */
static int read_store(tnk__buf_t *out, const char *path) {
  FILE *file = fopen(path, "re");
  size_t n = 1;
  int is_bad;

  if (file == NULL)
    return MBEDTLS_ERR_PK_FILE_IO_ERROR;
  while (n > 0) {
    uint8_t *to = tnk__buf_reserve(out, PIECE_SIZE);
    n = to != NULL ? fread(to, 1, PIECE_SIZE, file) : 0;
    out->len += n;
  }
  is_bad = ferror(file) || out->err == TNK_ETOOBIG;
  fclose(file);
  if (is_bad)
    return MBEDTLS_ERR_PK_FILE_IO_ERROR;
  return out->err == TNK_OK ? 0 : MBEDTLS_ERR_X509_ALLOC_FAILED;
}

int tnk__ca_file_read(mbedtls_x509_crt *chain, const char *path,
                      const tnk_allocator_t *alloc) {
  tnk__buf_t text;
  int err;

  tnk__buf_init(&text, alloc, TNK__MAX_CA_FILE);
  err = read_store(&text, path);
  if (err == 0)
    err = tnk__buf_cstr(&text) != NULL
              ? tnk__ca_file_parse(chain, text.data, text.len)
              : MBEDTLS_ERR_X509_ALLOC_FAILED;
  tnk__buf_deinit(&text);
  return err;
}

/* ---- The client certificate ---- */

enum { MAX_SECRET = 64 * 1024 };

/* Since version 3, mbedTLS uses random numbers to protect its arithmetic. */
#if MBEDTLS_VERSION_MAJOR >= 3
#define PARSE(key, text, n, rng, user)                                         \
  mbedtls_pk_parse_key(key, text, n, NULL, 0, rng, user)
#define CHECK_PAIR(pub, key, rng, user)                                        \
  mbedtls_pk_check_pair(pub, key, rng, user)
#else
#define PARSE(key, text, n, rng, user)                                         \
  ((void)(rng), (void)(user), mbedtls_pk_parse_key(key, text, n, NULL, 0))
#define CHECK_PAIR(pub, key, rng, user)                                        \
  ((void)(rng), (void)(user), mbedtls_pk_check_pair(pub, key))
#endif

static int unusable(tnk__identity_fault_t *fault, const char *file,
                    const char *text) {
  *fault = (tnk__identity_fault_t){file, text};
  return TNK_EFILE;
}

/* Read a file and append a NUL. Returns its size. Returns 0 if it cannot be
 * read, is empty, or is larger than such files are. The file is unbuffered, so
 * no copy stays in stdio. */
static size_t read_secret(char *out, const char *path) {
  FILE *file = fopen(path, "re");
  size_t n = 0;

  if (file == NULL)
    return 0;
  setvbuf(file, NULL, _IONBF, 0);
  n = fread(out, 1, MAX_SECRET, file);
  if (ferror(file) || n == MAX_SECRET)
    n = 0;
  out[n] = '\0';
  fclose(file);
  return n;
}

/* For PEM, mbedTLS requires the NUL to be included. */
static int parse_key(tnk__identity_t *out, const char *path, const char *text,
                     size_t n, tnk__identity_rng_t rng, void *rng_user,
                     tnk__identity_fault_t *fault) {
  const int is_pem = strstr(text, "-----BEGIN ") != NULL;
  const int err = PARSE(&out->key, (const unsigned char *)text,
                        is_pem ? n + 1 : n, rng, rng_user);

  if (err == 0)
    return TNK_OK;
  if (tnk__tls_code(err, TNK_OK) == TNK_ENOMEM)
    return TNK_ENOMEM;
  if (err == MBEDTLS_ERR_PK_PASSWORD_REQUIRED ||
      err == MBEDTLS_ERR_PK_PASSWORD_MISMATCH ||
      strstr(text, "ENCRYPTED") != NULL)
    return unusable(fault, path,
                    "the key is encrypted; store it without a password");
  return unusable(fault, path,
                  "it has no private key that this build of mbedTLS supports");
}

/* Either file may contain the key, so both are read into `text`, which is
 * wiped. */
static int read_chain(tnk__identity_t *out, const char *path, char *text,
                      tnk__identity_fault_t *fault) {
  const size_t n = read_secret(text, path);
  int err = MBEDTLS_ERR_PK_FILE_IO_ERROR;

  if (n > 0)
    err = tnk__ca_file_parse(&out->chain, (unsigned char *)text, n);
  if (err == 0)
    return TNK_OK;
  if (err < 0 && tnk__tls_code(err, TNK_OK) == TNK_ENOMEM)
    return TNK_ENOMEM;
  return unusable(fault, path, "it cannot be read as certificates");
}

static int read_both(tnk__identity_t *out, const char *cert_file,
                     const char *key_file, char *text, tnk__identity_rng_t rng,
                     void *rng_user, tnk__identity_fault_t *fault) {
  int err = read_chain(out, cert_file, text, fault);
  int differs;
  size_t n;

  if (err != TNK_OK)
    return err;
  n = read_secret(text, key_file);
  if (n == 0)
    return unusable(fault, key_file, "it cannot be read as a key");
  err = parse_key(out, key_file, text, n, rng, rng_user, fault);
  if (err != TNK_OK)
    return err;
  differs = CHECK_PAIR(&out->chain.pk, &out->key, rng, rng_user);
  if (differs == 0)
    return TNK_OK;
  return tnk__tls_code(differs, TNK_OK) == TNK_ENOMEM
             ? TNK_ENOMEM
             : unusable(fault, key_file,
                        "the key does not belong to the certificate");
}

int tnk__identity_read(tnk__identity_t *out, const char *cert_file,
                       const char *key_file, const tnk_allocator_t *alloc,
                       tnk__identity_rng_t rng, void *rng_user,
                       tnk__identity_fault_t *fault) {
  char *text = tnk__malloc(alloc, MAX_SECRET + 1);
  int err = TNK_ENOMEM;

  mbedtls_x509_crt_init(&out->chain);
  mbedtls_pk_init(&out->key);
  *fault = (tnk__identity_fault_t){0};
  if (text == NULL)
    return err;
  err = read_both(out, cert_file, key_file, text, rng, rng_user, fault);
  tnk__wipe(text, MAX_SECRET + 1);
  tnk__free(alloc, text);
  if (err != TNK_OK)
    tnk__identity_free(out);
  return err;
}

void tnk__identity_free(tnk__identity_t *identity) {
  mbedtls_x509_crt_free(&identity->chain);
  mbedtls_pk_free(&identity->key);
}

/* ---- Loading both ---- */

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
    [TNK__ALPN_NONE] = {NULL},
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

static void set_versions(mbedtls_ssl_config *config) {
  tnk__tls_set_versions(config);
#if defined(MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED)
  mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
      config, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
}

static int configure(tnk__trust_t *trust, tnk__alpn_t offer) {
  mbedtls_ssl_config *config = &trust->configs[offer];
  int err = mbedtls_ssl_config_defaults(config, MBEDTLS_SSL_IS_CLIENT,
                                        MBEDTLS_SSL_TRANSPORT_STREAM,
                                        MBEDTLS_SSL_PRESET_DEFAULT);

  if (err != 0)
    return err;
  set_versions(config);
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
  return alpn[offer][0] != NULL ? mbedtls_ssl_conf_alpn_protocols(
                                      config, (const char **)alpn[offer])
                                : 0;
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
