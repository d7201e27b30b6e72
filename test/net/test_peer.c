/* SPDX-License-Identifier: MIT */
#include "lib/io/net/peer.h"

#include "net/secure.h"

static const test_cert_t good = {.dns = "good.test", .address = "127.0.0.1"};

/* Connect to a server with that certificate; the text of the failure must
 * hold `why`. */
static void expect_refusal(const test_cert_t *cert, const char *host,
                           const char *why) {
  secure_t secure;
  client_t *client = &secure.world.client;

  secure_open(&secure, cert, &silent);
  CHECK_INT(secure_connect(&secure, client, host), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_end > 0);
  CHECK_INT(client->n_open, 0);
  CHECK_INT(client->code, TNK_ECERT);
  CHECK(client->cause < 0);
  CHECK_STR(client->text, why);
  secure_finish(&secure);
}

TEST(B13_certificate_for_somebody_else) {
  const test_cert_t other = {.dns = "other.example"};
  const test_cert_t common = {.subject = "CN=old.example"};
  const test_cert_t wild = {.dns = "*.example"};

  expect_refusal(&other, "good.test",
                 "certificate is for other.example, not for good.test");
  expect_refusal(&common, "good.test",
                 "certificate is for old.example, not for good.test");
  expect_refusal(&wild, "a.b.example",
                 "certificate is for *.example, not for a.b.example");
}

TEST(B13_certificate_out_of_its_time) {
  const test_cert_t expired = {.dns = "good.test",
                               .not_after = "20200203000000"};
  const test_cert_t future = {.dns = "good.test",
                              .not_before = "20480506000000"};

  expect_refusal(&expired, "good.test",
                 "certificate has expired on 2020-02-03");
  expect_refusal(&future, "good.test",
                 "certificate is not valid before 2048-05-06");
}

TEST(B13_certificate_with_several_faults) {
  const test_cert_t cert = {.dns = "other.example",
                            .not_after = "20200203000000"};

  expect_refusal(&cert, "good.test",
                 "certificate has expired on 2020-02-03; certificate is for "
                 "other.example, not for good.test");
}

TEST(B13_certificate_for_an_address) {
  const test_cert_t name_only = {.subject = "CN=127.0.0.1", .dns = "127.0.0.1"};
  const test_cert_t other = {.address = "127.0.0.9"};

  expect_refusal(&name_only, "127.0.0.1",
                 "certificate is for 127.0.0.1, not for 127.0.0.1");
  expect_refusal(&other, "127.0.0.1",
                 "certificate is for 127.0.0.9, not for 127.0.0.1");
}

static void expect_acceptance(const test_cert_t *cert, const char *host) {
  secure_t secure;
  client_t *client = &secure.world.client;

  secure_open(&secure, cert, &silent);
  CHECK_INT(secure_connect(&secure, client, host), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_open + client->n_end > 0);
  CHECK_STR(client->text, "");
  CHECK_INT(client->n_open, 1);
  secure_finish(&secure);
}

TEST(B13_names_that_fit) {
  const test_cert_t wild = {.dns = "*.example"};

  expect_acceptance(&good, "GOOD.test");
  expect_acceptance(&good, "good.test.");
  expect_acceptance(&good, "127.0.0.1");
  expect_acceptance(&wild, "a.example");
}

TEST(B13_authority_nobody_knows) {
  secure_t secure;
  client_t *client = &secure.world.client;
  test_identity_t other;
  char path[256];
  const test_cert_t authority = {.subject = "CN=test authority", .is_ca = 1};

  secure_open(&secure, &good, &silent);
  /* Of the same name, but with another key. */
  test_identity_make(&other, &authority);
  test_identity_save(&other, path, sizeof(path));
  secure_trust(&secure, path);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ECERT);
  CHECK_STR(client->text, "certificate is not signed by a trusted authority");
  client_finish(client, &secure.world.context.uv);
  CHECK_INT(unlink(path), 0);
  test_identity_free(&other);
  secure_close(&secure);
}

TEST(B13_certificate_signed_by_itself) {
  secure_t secure;
  client_t *client = &secure.world.client;
  test_identity_t lone;

  secure_open(&secure, &good, &silent);
  test_identity_make(&lone, &good);
  secure.world.server.options.identity = &lone;
  test_server_configure(&secure.world.server);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ECERT);
  CHECK_STR(client->text, "certificate is not signed by a trusted authority");
  secure_finish(&secure);
  test_identity_free(&lone);
}
