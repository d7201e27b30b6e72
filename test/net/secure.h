/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_NET_SECURE_H
#define TNK_TEST_NET_SECURE_H

#include <unistd.h>

#include "net/client.h"
#include "support/certs.h"

/* A world whose server has a certificate, of an authority that the client
 * trusts by way of a file. */
typedef struct {
  world_t world;
  test_identity_t ca;
  test_identity_t identity;
  char ca_path[256];
} secure_t;

/* `cert` without its issuer, which becomes the authority. */
static inline void secure_open(secure_t *secure, const test_cert_t *cert,
                               const test_server_options_t *options) {
  const test_cert_t authority = {.subject = "CN=test authority", .is_ca = 1};
  test_cert_t leaf = *cert;
  test_server_options_t with = *options;

  memset(secure, 0, sizeof(*secure));
  test_identity_make(&secure->ca, &authority);
  test_identity_save(&secure->ca, secure->ca_path, sizeof(secure->ca_path));
  leaf.issuer = &secure->ca;
  test_identity_make(&secure->identity, &leaf);
  with.identity = &secure->identity;
  world_open(&secure->world, &with, secure->ca_path);
}

static inline void secure_close(secure_t *secure) {
  world_close(&secure->world);
  test_identity_free(&secure->identity);
  test_identity_free(&secure->ca);
  CHECK_INT(unlink(secure->ca_path), 0);
}

/* Its client ends as well. */
static inline void secure_finish(secure_t *secure) {
  client_finish(&secure->world.client, &secure->world.context.uv);
  secure_close(secure);
}

/* From now on connections trust this file; NULL: the system's. */
static inline void secure_trust(secure_t *secure, const char *ca_file) {
  tnk__net_unref(secure->world.net);
  CHECK_INT(
      tnk__net_new(&secure->world.net, &secure->world.context.loop, ca_file),
      TNK_OK);
}

/* Names are resolved without asking anybody. */
static inline void secure_learn(secure_t *secure, const char *host) {
  tnk__address_t address;

  CHECK(tnk__address_parse(&address, "127.0.0.1"));
  CHECK_INT(tnk__dns_learn(&secure->world.net->dns, host, &address, 1), TNK_OK);
}

static inline int secure_connect(secure_t *secure, client_t *client,
                                 const char *host) {
  secure_learn(secure, host);
  return client_open(client, secure->world.net, host, secure->world.server.port,
                     1);
}

/* A secure world whose client and server have met. */
static inline void secure_meet(secure_t *secure, const test_cert_t *cert,
                               const test_server_options_t *options) {
  secure_open(secure, cert, options);
  CHECK_INT(secure_connect(secure, &secure->world.client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure->world.context.uv,
                 secure->world.client.n_open &&
                     secure->world.server.n_handshakes);
}

#endif
