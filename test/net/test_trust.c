/* SPDX-License-Identifier: MIT */
#include "lib/io/net/trust.h"

#include <stdlib.h>

#include "net/secure.h"

static const test_cert_t good = {.dns = "good.test"};

TEST(B13_ca_file_that_is_missing) {
  world_t world;
  client_t *client = &world.client;

  world_open(&world, &silent, "/nonexistent/ca.pem");
  CHECK_INT(client_open(client, world.net, "127.0.0.1", world.server.port, 1),
            TNK_OK);
  TEST_RUN_UNTIL(&world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ECERT);
  CHECK(strstr(client->text, "/nonexistent/ca.pem") != NULL);
  CHECK_INT(world.context.n_errors, 1);
  client_finish(client, &world.context.uv);
  CHECK_INT(tnk__net_load_trust(world.net, NULL, 0), TNK_ECERT);
  world_close(&world);
}

TEST(B13_ca_file_without_certificates) {
  char path[] = "/tmp/tnk-test-XXXXXX";
  world_t world;
  int fd = mkstemp(path);

  CHECK(fd >= 0);
  CHECK_INT(write(fd, "not a certificate\n", 18), 18);
  close(fd);
  world_open(&world, &silent, path);
  CHECK_INT(tnk__net_load_trust(world.net, NULL, 0), TNK_ECERT);
  world_close(&world);
  world_open(&world, &silent, "/dev/null");
  CHECK_INT(tnk__net_load_trust(world.net, NULL, 0), TNK_ECERT);
  world_close(&world);
  unlink(path);
}

/* A failure is not kept: the file may have been put right. */
TEST(trust_is_read_again_after_a_failure) {
  char elsewhere[300];
  secure_t secure;
  client_t *client = &secure.world.client;
  client_t second = {0};

  secure_open(&secure, &good, &silent);
  snprintf(elsewhere, sizeof(elsewhere), "%s.away", secure.ca_path);
  CHECK_INT(rename(secure.ca_path, elsewhere), 0);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ECERT);
  client_finish(client, &secure.world.context.uv);
  CHECK_INT(rename(elsewhere, secure.ca_path), 0);
  CHECK_INT(secure_connect(&secure, &second, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, second.n_open + second.n_end > 0);
  CHECK_INT(second.n_open, 1);
  client_finish(&second, &secure.world.context.uv);
  secure_close(&secure);
}

static void connect_with(secure_t *secure, const char *ca_file, int load) {
  client_t client = {0};

  tnk__net_unref(secure->world.net);
  CHECK_INT(
      tnk__net_new(&secure->world.net, &secure->world.context.loop, ca_file),
      TNK_OK);
  if (load)
    CHECK_INT(tnk__net_load_trust(secure->world.net, NULL, 0), TNK_OK);
  CHECK_INT(secure_connect(secure, &client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure->world.context.uv, client.n_open + client.n_end > 0);
  CHECK_STR(client.text, "");
  client_finish(&client, &secure->world.context.uv);
}

TEST(B13_ssl_cert_file_is_used_unless_a_file_is_given) {
  secure_t secure;

  secure_open(&secure, &good, &silent);
  CHECK_INT(setenv("SSL_CERT_FILE", secure.ca_path, 1), 0);
  connect_with(&secure, NULL, 0);
  CHECK_INT(setenv("SSL_CERT_FILE", "/nonexistent/ca.pem", 1), 0);
  connect_with(&secure, secure.ca_path, 0);
  connect_with(&secure, secure.ca_path, 1);
  unsetenv("SSL_CERT_FILE");
  secure_close(&secure);
}

/* An unknown authority, or no store on this machine: refused either way. */
TEST(B13_the_systems_store_does_not_trust_a_test) {
  secure_t secure;
  client_t *client = &secure.world.client;

  unsetenv("SSL_CERT_FILE");
  secure_open(&secure, &good, &silent);
  secure_trust(&secure, NULL);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ECERT);
  secure_finish(&secure);
}

TEST(a_net_may_go_while_its_certificates_are_read) {
  secure_t secure;
  client_t *client = &secure.world.client;

  secure_open(&secure, &good, &silent);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  client_close(client);
  secure_close(&secure);
  CHECK_INT(client->n_closed, 1);
}

TEST(trust_that_was_read_stays) {
  secure_t secure;
  tnk__net_t *net;

  secure_open(&secure, &good, &silent);
  net = secure.world.net;
  CHECK_INT(net->trust->state, TNK__TRUST_NONE);
  CHECK_INT(tnk__net_load_trust(net, NULL, 0), TNK_OK);
  CHECK_INT(net->trust->state, TNK__TRUST_READY);
  CHECK_INT(tnk__net_load_trust(net, NULL, 0), TNK_OK);
  secure_close(&secure);
}
