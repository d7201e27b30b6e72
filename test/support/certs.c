/* SPDX-License-Identifier: MIT */
#include "support/certs.h"

#include <arpa/inet.h>
#include <mbedtls/asn1.h>
#include <mbedtls/ecp.h>
#include <mbedtls/oid.h>
#include <mbedtls/pem.h>
#include <mbedtls/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

enum { SAN_DNS = 0x82, SAN_ADDRESS = 0x87 };

int test_rng(void *user, unsigned char *out, size_t n) {
  static uint64_t state = 0x746e6b;
  size_t i;

  (void)user;
  for (i = 0; i < n; i++)
    out[i] = (unsigned char)(test_random(&state) >> 32);
  return 0;
}

static size_t add_name(uint8_t *to, uint8_t tag, const void *data, size_t n) {
  to[0] = tag;
  to[1] = (uint8_t)n;
  memcpy(to + 2, data, n);
  return n + 2;
}

/* A subjectAltName, short enough for lengths of one byte. */
static void set_names(mbedtls_x509write_cert *write, const test_cert_t *cert) {
  uint8_t der[120];
  uint8_t address[16];
  size_t n = 2;

  if (cert->dns != NULL) {
    CHECK(strlen(cert->dns) < 80);
    n += add_name(der + n, SAN_DNS, cert->dns, strlen(cert->dns));
  }
  if (cert->address != NULL && inet_pton(AF_INET, cert->address, address) == 1)
    n += add_name(der + n, SAN_ADDRESS, address, 4);
  else if (cert->address != NULL &&
           inet_pton(AF_INET6, cert->address, address) == 1)
    n += add_name(der + n, SAN_ADDRESS, address, 16);
  if (n == 2)
    return;
  der[0] = MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE;
  der[1] = (uint8_t)(n - 2);
  CHECK_INT(mbedtls_x509write_crt_set_extension(
                write, MBEDTLS_OID_SUBJECT_ALT_NAME,
                MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), 0, der, n),
            0);
}

static void make_key(mbedtls_pk_context *key) {
  mbedtls_pk_init(key);
  CHECK_INT(mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)),
            0);
  CHECK_INT(mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key),
                                test_rng, NULL),
            0);
}

static void sign(mbedtls_x509write_cert *write, test_identity_t *identity) {
  uint8_t der[2048];
  int n = mbedtls_x509write_crt_der(write, der, sizeof(der), test_rng, NULL);

  CHECK(n > 0);
  mbedtls_x509_crt_init(&identity->crt);
  CHECK_INT(mbedtls_x509_crt_parse_der(
                &identity->crt, der + sizeof(der) - (size_t)n, (size_t)n),
            0);
}

static void set_serial(mbedtls_x509write_cert *write) {
#if MBEDTLS_VERSION_NUMBER >= 0x03040000
  unsigned char serial[] = {7};

  CHECK_INT(mbedtls_x509write_crt_set_serial_raw(write, serial, sizeof(serial)),
            0);
#else
  mbedtls_mpi serial;

  mbedtls_mpi_init(&serial);
  CHECK_INT(mbedtls_mpi_lset(&serial, 7), 0);
  CHECK_INT(mbedtls_x509write_crt_set_serial(write, &serial), 0);
  mbedtls_mpi_free(&serial);
#endif
}

static const char *or_else(const char *text, const char *otherwise) {
  return text != NULL ? text : otherwise;
}

void test_identity_make(test_identity_t *identity, const test_cert_t *cert) {
  const test_identity_t *issuer =
      cert->issuer != NULL ? cert->issuer : identity;
  const char *subject = or_else(cert->subject, "CN=test");
  mbedtls_x509write_cert write;
  char issuer_name[128];

  make_key(&identity->key);
  snprintf(issuer_name, sizeof(issuer_name), "%s", subject);
  if (cert->issuer != NULL)
    CHECK(mbedtls_x509_dn_gets(issuer_name, sizeof(issuer_name),
                               &issuer->crt.subject) > 0);
  mbedtls_x509write_crt_init(&write);
  mbedtls_x509write_crt_set_md_alg(&write, MBEDTLS_MD_SHA256);
  mbedtls_x509write_crt_set_subject_key(&write, &identity->key);
  mbedtls_x509write_crt_set_issuer_key(&write,
                                       (mbedtls_pk_context *)&issuer->key);
  CHECK_INT(mbedtls_x509write_crt_set_subject_name(&write, subject), 0);
  CHECK_INT(mbedtls_x509write_crt_set_issuer_name(&write, issuer_name), 0);
  set_serial(&write);
  CHECK_INT(mbedtls_x509write_crt_set_validity(
                &write, or_else(cert->not_before, "20200101000000"),
                or_else(cert->not_after, "20491231235959")),
            0);
  CHECK_INT(mbedtls_x509write_crt_set_basic_constraints(&write, cert->is_ca,
                                                        cert->is_ca ? 1 : -1),
            0);
  set_names(&write, cert);
  sign(&write, identity);
  mbedtls_x509write_crt_free(&write);
}

void test_identity_free(test_identity_t *identity) {
  mbedtls_x509_crt_free(&identity->crt);
  mbedtls_pk_free(&identity->key);
}

/* A temporary file with a name of its own. */
static void save(const unsigned char *text, size_t n, char *path, size_t size) {
  const char *dir = getenv("TMPDIR");
  int fd;

  snprintf(path, size, "%s/tnk-test-XXXXXX", dir != NULL ? dir : "/tmp");
  fd = mkstemp(path);
  CHECK(fd >= 0);
  CHECK_INT(write(fd, text, n), n);
  close(fd);
}

/* The certificate as PEM; its length. */
static size_t write_cert(const test_identity_t *identity, unsigned char *pem,
                         size_t size) {
  size_t n;

  CHECK_INT(mbedtls_pem_write_buffer(
                "-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n",
                identity->crt.raw.p, identity->crt.raw.len, pem, size, &n),
            0);
  return n - 1;
}

void test_identity_save(const test_identity_t *identity, char *path,
                        size_t size) {
  unsigned char pem[4096];

  save(pem, write_cert(identity, pem, sizeof(pem)), path, size);
}

void test_identity_save_key(const test_identity_t *identity, int with_cert,
                            char *path, size_t size) {
  unsigned char pem[8192];
  size_t n = with_cert ? write_cert(identity, pem, sizeof(pem)) : 0;

  CHECK_INT(mbedtls_pk_write_key_pem((mbedtls_pk_context *)&identity->key,
                                     pem + n, sizeof(pem) - n),
            0);
  save(pem, strlen((const char *)pem), path, size);
}
