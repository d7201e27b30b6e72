/* SPDX-License-Identifier: MIT */
#include "lib/io/net/trust.h"

#include <mbedtls/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "support/certs.h"
#include "support/test.h"

static void check_same_chain(const mbedtls_x509_crt *a,
                             const mbedtls_x509_crt *b) {
  while (a != NULL && b != NULL && a->version != 0 && b->version != 0) {
    CHECK_MEM(a->raw.p, a->raw.len, b->raw.p, b->raw.len);
    a = a->next;
    b = b->next;
  }
  CHECK((a == NULL || a->version == 0) && (b == NULL || b->version == 0));
}

/* What mbedTLS makes of the same bytes. */
static int check_parses(const void *data, size_t n) {
  unsigned char *text = malloc(n + 1);
  mbedtls_x509_crt ours;
  mbedtls_x509_crt theirs;
  int is_pem;
  int expected;
  int err;

  memcpy(text, data, n);
  text[n] = '\0';
  is_pem = strstr((char *)text, "-----BEGIN ") != NULL;
  mbedtls_x509_crt_init(&ours);
  mbedtls_x509_crt_init(&theirs);
  expected = mbedtls_x509_crt_parse(&theirs, text, n + (size_t)is_pem);
  err = tnk__ca_file_parse(&ours, text, n);
  CHECK_INT(err < 0, expected < 0);
  if (expected >= 0)
    CHECK_INT(err, expected);
  check_same_chain(&ours, &theirs);
  mbedtls_x509_crt_free(&ours);
  mbedtls_x509_crt_free(&theirs);
  free(text);
  return err;
}

static size_t make_pem(char *out, size_t size, const char *subject) {
  const test_cert_t cert = {.subject = subject, .is_ca = 1};
  test_identity_t identity;
  size_t n;

  test_identity_make(&identity, &cert);
  CHECK_INT(mbedtls_pem_write_buffer("-----BEGIN CERTIFICATE-----\n",
                                     "-----END CERTIFICATE-----\n",
                                     identity.crt.raw.p, identity.crt.raw.len,
                                     (unsigned char *)out, size, &n),
            0);
  test_identity_free(&identity);
  return n - 1;
}

static void with_crlf(char *out, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '\n')
      *out++ = '\r';
    *out++ = *text;
  }
  *out = '\0';
}

TEST_LIMIT(B13_files_of_certificates, 20) {
  static char one[4096], two[4096], crlf[8192], broken[4096], text[40000];
  size_t n;

  make_pem(one, sizeof(one), "CN=one");
  make_pem(two, sizeof(two), "CN=two");
  with_crlf(crlf, two);
  snprintf(broken, sizeof(broken), "%s", one);
  broken[60] = '!';
  CHECK_INT(check_parses(one, strlen(one)), 0);
  CHECK_INT(check_parses(crlf, strlen(crlf)), 0);
  snprintf(text, sizeof(text), "# a comment\n%s\nName: two\n%s# end", one,
           crlf);
  CHECK_INT(check_parses(text, strlen(text)), 0);
  /* One that is broken does not spoil the others. */
  snprintf(text, sizeof(text), "%s%s%s", one, broken, two);
  CHECK_INT(check_parses(text, strlen(text)), 1);
  CHECK(check_parses(broken, strlen(broken)) < 0);
  /* Base64, but no certificate. */
  snprintf(text, sizeof(text),
           "-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n%s",
           one);
  CHECK_INT(check_parses(text, strlen(text)), 1);
  /* Things of another kind are not looked at. */
  snprintf(text, sizeof(text),
           "-----BEGIN TRUSTED CERTIFICATE-----\nZm9v\n"
           "-----END TRUSTED CERTIFICATE-----\n%s",
           one);
  CHECK_INT(check_parses(text, strlen(text)), 0);
  /* The end of the file is missing. */
  n = strlen(one);
  snprintf(text, sizeof(text), "%s%s", one, two);
  CHECK_INT(check_parses(text, n + strlen(two) - 30), 0);
  CHECK(check_parses(one, n - 30) < 0);
  CHECK(check_parses("", 0) < 0);
  CHECK(check_parses("nothing", 7) < 0);
}

TEST(a_file_may_be_der) {
  const test_cert_t cert = {.subject = "CN=der", .is_ca = 1};
  test_identity_t identity;

  test_identity_make(&identity, &cert);
  CHECK_INT(check_parses(identity.crt.raw.p, identity.crt.raw.len), 0);
  CHECK(check_parses(identity.crt.raw.p, identity.crt.raw.len - 1) < 0);
  test_identity_free(&identity);
}

/* The store of the machine that runs this, if it has one at that place. */
TEST_LIMIT(B13_the_systems_store_is_read_as_mbedtls_reads_it, 20) {
  static const char path[] = "/etc/ssl/certs/ca-certificates.crt";
  mbedtls_x509_crt ours;
  mbedtls_x509_crt theirs;
  int expected;

  if (access(path, R_OK) != 0)
    return;
  mbedtls_x509_crt_init(&ours);
  mbedtls_x509_crt_init(&theirs);
  expected = mbedtls_x509_crt_parse_file(&theirs, path);
  CHECK_INT(tnk__ca_file_read(&ours, path, test_allocator()), expected);
  check_same_chain(&ours, &theirs);
  mbedtls_x509_crt_free(&ours);
  mbedtls_x509_crt_free(&theirs);
}

TEST(reading_a_file_reports_what_is_wrong) {
  const test_cert_t cert = {.subject = "CN=file", .is_ca = 1};
  test_identity_t identity;
  mbedtls_x509_crt chain;
  char path[300];

  test_identity_make(&identity, &cert);
  test_identity_save(&identity, path, sizeof(path));
  mbedtls_x509_crt_init(&chain);
  CHECK_INT(tnk__ca_file_read(&chain, "/nonexistent", test_allocator()),
            MBEDTLS_ERR_PK_FILE_IO_ERROR);
  CHECK_INT(tnk__ca_file_read(&chain, "/", test_allocator()),
            MBEDTLS_ERR_PK_FILE_IO_ERROR);
  CHECK_INT(tnk__ca_file_read(&chain, "/dev/zero", test_allocator()),
            MBEDTLS_ERR_PK_FILE_IO_ERROR);
  test_alloc_fail_at(0);
  CHECK_INT(tnk__ca_file_read(&chain, path, test_allocator()),
            MBEDTLS_ERR_X509_ALLOC_FAILED);
  test_alloc_fail_at(-1);
  CHECK_INT(tnk__ca_file_read(&chain, path, test_allocator()), 0);
  CHECK_INT(chain.version, 3);
  mbedtls_x509_crt_free(&chain);
  unlink(path);
  test_identity_free(&identity);
}
