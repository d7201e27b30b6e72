/* SPDX-License-Identifier: MIT */
/* A service behind TLS that does not want to speak with us. */
#include <unistd.h>

#include "support/tls_server.h"

#include "task/script.h"

typedef struct {
  script_t script;
  test_server_t server;
  test_identity_t identity;
  char ca_path[256];
  unsigned char alert[7];
} world_t;

static void refuse(test_conn_t *conn, const unsigned char *data, size_t n) {
  world_t *world = conn->server->options.user;

  (void)data;
  (void)n;
  test_conn_write(conn, world->alert, sizeof(world->alert));
}

/* Every handshake is answered with that alert. */
static void world_open(world_t *world, unsigned char alert) {
  static const unsigned char record[] = {0x15, 3, 1, 0, 2, 2, 0};
  const test_cert_t cert = {.address = "127.0.0.1", .is_ca = 1};
  const test_server_options_t options = {.on_read = refuse, .user = world};
  tnk_service_options_t service = TNK_SERVICE_OPTIONS_INIT;
  char url[64];

  memset(world, 0, sizeof(*world));
  memcpy(world->alert, record, sizeof(record));
  world->alert[6] = alert;
  script_begin(&world->script);
  test_identity_make(&world->identity, &cert);
  test_identity_save(&world->identity, world->ca_path, sizeof(world->ca_path));
  test_server_open(&world->server, &world->script.uv, &options);
  snprintf(url, sizeof(url), "https://127.0.0.1:%d", world->server.port);
  service.base_url = url;
  service.ca_file = world->ca_path;
  script_open_service(&world->script, service);
}

static void world_close(world_t *world) {
  test_server_close(&world->server);
  script_close(&world->script);
  test_identity_free(&world->identity);
  CHECK_INT(unlink(world->ca_path), 0);
}

static void ask(world_t *world, outcome_t *outcome) {
  outcome_of(outcome, tnk_service_health(world->script.service));
  for (int i = 0; i < 100 && outcome->n_done == 0; i++)
    script_advance(&world->script, 30000);
  outcome_fails(&world->script, outcome, TNK_ETLS);
}

/* It would say the same the next time. */
TEST(a_refusal_of_the_handshake_is_not_repeated) {
  world_t world;
  outcome_t outcome;

  world_open(&world, 70);
  ask(&world, &outcome);
  CHECK(strstr(outcome.text, "127.0.0.1 refused the TLS handshake: protocol "
                             "version (this build speaks ") != NULL);
  CHECK_INT(world.server.n_accepted, 1);
  outcome_drop(&outcome);
  world_close(&world);
}

TEST(a_handshake_that_failed_by_accident_is_repeated) {
  world_t world;
  outcome_t outcome;

  world_open(&world, 80);
  ask(&world, &outcome);
  CHECK(strstr(outcome.text, "TLS handshake: internal error") != NULL);
  CHECK_INT(world.server.n_accepted, 11);
  outcome_drop(&outcome);
  world_close(&world);
}
