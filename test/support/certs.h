/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_CERTS_H
#define TNK_TEST_SUPPORT_CERTS_H

#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>

/* A key with its certificate, made at run time. */
typedef struct {
  mbedtls_pk_context key;
  mbedtls_x509_crt crt;
} test_identity_t;

/* What to certify. Zero is a good certificate that lasts. */
typedef struct {
  const char *subject;           /* NULL: "CN=test" */
  const char *dns;               /* a name, or NULL */
  const char *address;           /* in text, or NULL */
  const char *not_before;        /* YYYYMMDDhhmmss; NULL: 2020 */
  const char *not_after;         /* NULL: 2049 */
  const test_identity_t *issuer; /* NULL: signed by itself */
  int is_ca;
} test_cert_t;

void test_identity_make(test_identity_t *identity, const test_cert_t *cert);
void test_identity_free(test_identity_t *identity);
/* Write the certificate to a temporary PEM file; the name goes to `path`. */
void test_identity_save(const test_identity_t *identity, char *path,
                        size_t size);
/* Write the key to such a file; behind the certificate, if `with_cert`. */
void test_identity_save_key(const test_identity_t *identity, int with_cert,
                            char *path, size_t size);
/* Not random at all, so that runs are equal. */
int test_rng(void *user, unsigned char *out, size_t n);

#endif
