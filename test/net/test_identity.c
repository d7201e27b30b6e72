/* SPDX-License-Identifier: MIT */
/* Certificates of ours: files of all kinds, and servers that ask for one. */
#include "lib/io/net/trust.h"

#include <stdlib.h>

#include "lib/io/net/stream.h"
#include "net/secure.h"

static const test_cert_t good = {.dns = "good.test"};

/* ---- Memory that tells what is freed ---- */

enum { HEADER = 16 };

static int n_left; /* blocks that held a key when they were freed */

static void *told_malloc(size_t size, void *user) {
  char *block = malloc(size + HEADER);

  (void)user;
  memcpy(block, &size, sizeof(size));
  return block + HEADER;
}

static void *told_calloc(size_t n, size_t size, void *user) {
  return memset(told_malloc(n * size, user), 0, n * size);
}

static void told_free(void *ptr, void *user) {
  char *block = ptr;
  size_t size;

  (void)user;
  if (ptr == NULL)
    return;
  memcpy(&size, block - HEADER, sizeof(size));
  for (size_t i = 0; i + 11 <= size; i++)
    n_left += memcmp(block + i, "PRIVATE KEY", 11) == 0;
  free(block - HEADER);
}

static void *told_realloc(void *ptr, size_t size, void *user) {
  void *more = told_malloc(size, user);
  size_t n = 0;

  if (ptr != NULL)
    memcpy(&n, (char *)ptr - HEADER, sizeof(n));
  if (ptr != NULL)
    memcpy(more, ptr, n < size ? n : size);
  told_free(ptr, user);
  return more;
}

static const tnk_allocator_t told = {.malloc = told_malloc,
                                     .calloc = told_calloc,
                                     .realloc = told_realloc,
                                     .free = told_free};

/* ---- Files ---- */

static void save_text(const char *text, char *path, size_t size) {
  const char *dir = getenv("TMPDIR");
  int fd;

  snprintf(path, size, "%s/tnk-test-XXXXXX", dir != NULL ? dir : "/tmp");
  fd = mkstemp(path);
  CHECK(fd >= 0);
  CHECK_INT(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

static int read_pair(const char *cert, const char *key,
                     tnk__identity_fault_t *fault) {
  tnk__identity_t identity;
  int err =
      tnk__identity_read(&identity, cert, key, &told, test_rng, NULL, fault);

  if (err == TNK_OK)
    tnk__identity_free(&identity);
  CHECK_INT(n_left, 0);
  return err;
}

static void check_fault(const char *cert, const char *key, const char *file,
                        const char *text) {
  tnk__identity_fault_t fault;

  CHECK_INT(read_pair(cert, key, &fault), TNK_EFILE);
  CHECK_STR(fault.file, file);
  CHECK_STR(fault.text, text);
}

/* Encrypted ones in both forms of PEM; there is no key in them. */
#define ENCRYPTED_8                                                            \
  "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"                                    \
  "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgAAAAAAAAAAAICCAAw\n"         \
  "-----END ENCRYPTED PRIVATE KEY-----\n"
#define ENCRYPTED_1                                                            \
  "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"                   \
  "DEK-Info: AES-128-CBC,00000000000000000000000000000000\n\n"                 \
  "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgAAAAAAAAAAAICCAAw\n"         \
  "-----END EC PRIVATE KEY-----\n"

TEST(files_that_cannot_be_used_are_named_with_the_reason) {
  static const char *const encrypted[] = {ENCRYPTED_8, ENCRYPTED_1};
  test_identity_t one, other;
  char cert[256], key[256], both[256], wrong[256], text[256];
  tnk__identity_fault_t fault;

  test_identity_make(&one, &good);
  test_identity_make(&other, &good);
  test_identity_save(&one, cert, sizeof(cert));
  test_identity_save_key(&one, 0, key, sizeof(key));
  test_identity_save_key(&one, 1, both, sizeof(both));
  test_identity_save_key(&other, 0, wrong, sizeof(wrong));
  CHECK_INT(read_pair(cert, key, &fault), TNK_OK);
  CHECK_INT(read_pair(both, both, &fault), TNK_OK);
  check_fault(cert, wrong, wrong, "the key does not belong to the certificate");
  check_fault(cert, cert, cert,
              "it has no private key that this build of mbedTLS supports");
  check_fault("/nowhere.pem", key, "/nowhere.pem",
              "it cannot be read as certificates");
  check_fault(cert, "/nowhere.pem", "/nowhere.pem",
              "it cannot be read as a key");
  check_fault(key, key, key, "it cannot be read as certificates");
  check_fault(cert, "/dev/zero", "/dev/zero", "it cannot be read as a key");
  for (int i = 0; i < 2; i++) {
    save_text(encrypted[i], text, sizeof(text));
    check_fault(cert, text, text,
                "the key is encrypted; store it without a password");
    CHECK_INT(unlink(text), 0);
  }
  unlink(cert);
  unlink(key);
  unlink(both);
  unlink(wrong);
  test_identity_free(&one);
  test_identity_free(&other);
}

/* ---- Servers that ask ---- */

typedef struct {
  secure_t secure;
  test_identity_t own;
  char both[256];
} asking_t;

/* The client's certificate is of the same authority as the server's. */
static void asking_open(asking_t *asking) {
  const test_cert_t cert = {.subject = "CN=client",
                            .issuer = &asking->secure.ca};

  secure_open(&asking->secure, &good, &echoing);
  asking->secure.world.server.options.client_ca = &asking->secure.ca;
  test_server_configure(&asking->secure.world.server);
  test_identity_make(&asking->own, &cert);
  test_identity_save_key(&asking->own, 1, asking->both, sizeof(asking->both));
}

static void asking_close(asking_t *asking) {
  secure_close(&asking->secure);
  test_identity_free(&asking->own);
  CHECK_INT(unlink(asking->both), 0);
}

/* One conversation, or its end. */
static void meet(asking_t *asking) {
  client_t *client = &asking->secure.world.client;

  memset(client, 0, sizeof(*client));
  client->on_open = client_say_hello;
  CHECK_INT(secure_connect(&asking->secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&asking->secure.world.context.uv,
                 client->got.len == 11 || client->n_end > 0);
}

static void part(asking_t *asking) {
  client_finish(&asking->secure.world.client, &asking->secure.world.context.uv);
}

TEST(a_server_that_asks_gets_the_certificate) {
  asking_t asking;

  asking_open(&asking);
  CHECK_INT(
      tnk__net_identify(asking.secure.world.net, asking.both, asking.both),
      TNK_OK);
  for (int i = 0; i < 2; i++) {
    meet(&asking);
    if (asking.secure.world.client.n_end > 0)
      test_fail(__FILE__, __LINE__, "%s", asking.secure.world.client.text);
    part(&asking);
  }
  CHECK_INT(asking.secure.world.server.n_handshakes, 2);
  asking_close(&asking);
}

/* It says so by an alert. In TLS 1.3 that comes after the handshake, where a
 * server by mbedTLS 3.6 writes it with keys that are over, and others do not.
 */
TEST(a_server_that_asks_in_vain_refuses_for_good) {
  asking_t asking;
  client_t *client = &asking.secure.world.client;

  asking_open(&asking);
  asking.secure.world.server.options.is_tls_1_2 = 1;
  test_server_configure(&asking.secure.world.server);
  meet(&asking);
  CHECK_INT(client->code, TNK_ETLS);
  if (!client->is_final)
    test_fail(__FILE__, __LINE__, "%d: %s", client->cause, client->text);
  CHECK(strstr(client->text, "good.test refused the TLS handshake: ") != NULL);
  CHECK(strstr(client->text, "client certificate") != NULL);
  part(&asking);
  asking_close(&asking);
}

/* A session of somebody with a certificate is not for somebody without. */
TEST(sessions_are_kept_apart_by_certificate) {
  asking_t asking;
  client_t *client = &asking.secure.world.client;

  asking_open(&asking);
  CHECK_INT(
      tnk__net_identify(asking.secure.world.net, asking.both, asking.both),
      TNK_OK);
  meet(&asking);
  CHECK_INT(client->n_end, 0);
  part(&asking);
  secure_trust(&asking.secure, asking.secure.ca_path);
  meet(&asking);
  CHECK_INT(client->code, TNK_ETLS);
  part(&asking);
  CHECK_INT(asking.secure.world.server.n_resumed, 0);
  asking_close(&asking);
}

TEST(a_certificate_that_cannot_be_used_ends_the_stream) {
  asking_t asking;
  client_t *client = &asking.secure.world.client;

  asking_open(&asking);
  CHECK_INT(tnk__net_identify(asking.secure.world.net, "/nowhere.pem", "/x"),
            TNK_OK);
  meet(&asking);
  CHECK_INT(client->code, TNK_EFILE);
  CHECK_INT(client->is_final, 1);
  CHECK_STR(client->text, "the client's certificate cannot be used: "
                          "/nowhere.pem: it cannot be read as certificates");
  part(&asking);
  asking_close(&asking);
}
