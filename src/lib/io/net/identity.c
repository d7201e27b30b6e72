#include "lib/io/net/identity.h"

#include <mbedtls/version.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/io/net/ca_file.h"
#include "lib/io/net/tls_code.h"
#include "tnk/error.h"

enum { MAX_FILE = 64 * 1024 };

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

static int fail(tnk__identity_fault_t *fault, const char *file,
                const char *text) {
  *fault = (tnk__identity_fault_t){file, text};
  return TNK_EFILE;
}

/* Read a file and append a NUL. Returns its size. Returns 0 if it cannot be
 * read, is empty, or is larger than such files are. The file is unbuffered, so
 * no copy stays in stdio. */
static size_t read_file(char *out, const char *path) {
  FILE *file = fopen(path, "re");
  size_t n = 0;

  if (file == NULL)
    return 0;
  setvbuf(file, NULL, _IONBF, 0);
  n = fread(out, 1, MAX_FILE, file);
  if (ferror(file) || n == MAX_FILE)
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
    return fail(fault, path,
                "the key is encrypted; it is needed without a password");
  return fail(fault, path,
              "no private key in it that this build of mbedTLS knows");
}

/* Either file may contain the key, so both are read into `text`, which is
 * wiped. */
static int read_chain(tnk__identity_t *out, const char *path, char *text,
                      tnk__identity_fault_t *fault) {
  const size_t n = read_file(text, path);
  int err = MBEDTLS_ERR_PK_FILE_IO_ERROR;

  if (n > 0)
    err = tnk__ca_file_parse(&out->chain, (unsigned char *)text, n);
  if (err == 0)
    return TNK_OK;
  if (err < 0 && tnk__tls_code(err, TNK_OK) == TNK_ENOMEM)
    return TNK_ENOMEM;
  return fail(fault, path, "it cannot be read as certificates");
}

static int read_both(tnk__identity_t *out, const char *cert_file,
                     const char *key_file, char *text, tnk__identity_rng_t rng,
                     void *rng_user, tnk__identity_fault_t *fault) {
  int err = read_chain(out, cert_file, text, fault);
  int differs;
  size_t n;

  if (err != TNK_OK)
    return err;
  n = read_file(text, key_file);
  if (n == 0)
    return fail(fault, key_file, "it cannot be read as a key");
  err = parse_key(out, key_file, text, n, rng, rng_user, fault);
  if (err != TNK_OK)
    return err;
  differs = CHECK_PAIR(&out->chain.pk, &out->key, rng, rng_user);
  if (differs == 0)
    return TNK_OK;
  return tnk__tls_code(differs, TNK_OK) == TNK_ENOMEM
             ? TNK_ENOMEM
             : fail(fault, key_file, "the key is not that of the certificate");
}

int tnk__identity_read(tnk__identity_t *out, const char *cert_file,
                       const char *key_file, const tnk_allocator_t *alloc,
                       tnk__identity_rng_t rng, void *rng_user,
                       tnk__identity_fault_t *fault) {
  char *text = tnk__malloc(alloc, MAX_FILE + 1);
  int err = TNK_ENOMEM;

  mbedtls_x509_crt_init(&out->chain);
  mbedtls_pk_init(&out->key);
  *fault = (tnk__identity_fault_t){0};
  if (text == NULL)
    return err;
  err = read_both(out, cert_file, key_file, text, rng, rng_user, fault);
  tnk__wipe(text, MAX_FILE + 1);
  tnk__free(alloc, text);
  if (err != TNK_OK)
    tnk__identity_free(out);
  return err;
}

void tnk__identity_free(tnk__identity_t *identity) {
  mbedtls_x509_crt_free(&identity->chain);
  mbedtls_pk_free(&identity->key);
}
