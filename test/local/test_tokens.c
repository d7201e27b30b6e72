/* SPDX-License-Identifier: MIT */
/* A server that wants tokens instead of the key. */
#include "local/client.h"
#include "local/e2e.h"

static int status_with(rig_t *rig, const char *path, const char *key) {
  char header[400];

  snprintf(header, sizeof(header), "X-API-Key: %s\r\n", key);
  return rig_status(rig_send(rig, "POST", path, header, "{}", 2));
}

TEST(D2_server_takes_the_key_for_a_token_only) {
  static const char dynamic[] = "/api/v1/client/dynamic_config";
  static const char exchange[] = "/api/v1/auth/token";
  local_options_t options = LOCAL_OPTIONS_INIT;
  char token[300];
  exchange_t *x;
  rig_t rig;

  options.api_key = "tml-right";
  options.token_life_s = 60;
  rig_open(&rig, &options);
  CHECK_INT(status_with(&rig, "/api/v1/client/config", "tml-right"), 200);
  CHECK_INT(status_with(&rig, exchange, "tml-wrong"), 403);
  CHECK_INT(status_with(&rig, dynamic, "tml-right"), 401);
  x = rig_send(&rig, "POST", exchange, "X-API-Key: tml-right\r\n", "{}", 2);
  rig_wait(x, 1);
  CHECK_INT(x->status, 200);
  snprintf(token, sizeof(token), "%s", rig_text(x, "jwt"));
  rig_free(x);
  CHECK_INT(status_with(&rig, dynamic, token), 200);
  token[strlen(token) - 1] ^= 1;
  CHECK_INT(status_with(&rig, dynamic, token), 401);
  CHECK_INT(status_with(&rig, dynamic, strrchr(token, '.')), 401);
  CHECK_INT(status_with(&rig, dynamic, "."), 401);
  rig_close(&rig);
}

TEST(server_without_tokens_has_no_exchange) {
  rig_t rig;

  rig_open(&rig, NULL);
  CHECK_INT(status_with(&rig, "/api/v1/auth/token", "tml-x"), 404);
  rig_close(&rig);
}

static int64_t key_id(const exchange_t *x) {
  return json_integer_value(json_object_get(x->json, "key_id"));
}

/* Each key has an id of its own; what is revoked is not taken any more. */
TEST(P1_8_server_tells_of_keys_and_revokes_them) {
  static const char path[] = "/api/v1/auth/apikey/me";
  static const char config[] = "/api/v1/client/config";
  exchange_t *x;
  rig_t rig;
  int64_t id;

  rig_open(&rig, NULL);
  CHECK_INT(rig_status(rig_send(&rig, "GET", path, NULL, NULL, 0)), 401);
  x = rig_send(&rig, "GET", path, "X-API-Key: tml-a\r\n", NULL, 0);
  rig_wait(x, 1);
  CHECK_INT(x->status, 200);
  CHECK_STR(rig_text(x, "name"), "local");
  id = key_id(x);
  CHECK(id > 0);
  rig_free(x);
  x = rig_send(&rig, "GET", path, "X-API-Key: tml-b\r\n", NULL, 0);
  rig_wait(x, 1);
  CHECK(key_id(x) > 0 && key_id(x) != id);
  rig_free(x);
  CHECK_INT(status_with(&rig, config, "tml-a"), 200);
  CHECK_INT(rig_status(rig_send(&rig, "DELETE", path, "X-API-Key: tml-a\r\n",
                                NULL, 0)),
            200);
  CHECK_INT(status_with(&rig, config, "tml-a"), 401);
  CHECK_INT(status_with(&rig, config, "tml-b"), 200);
  rig_close(&rig);
}

static size_t n_exchanges(const e2e_t *e2e) {
  size_t n = 0;

  for (size_t i = 0; i < e2e->n_seen; i++)
    n += strcmp(e2e->seen[i].call, "token") == 0;
  return n;
}

TEST_LIMIT(D2_jwt_is_renewed_while_a_client_trains, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  e2e_t e2e;

  options.token_life_s = 1;
  e2e_open(&e2e, options);
  e2e_train(&e2e, 4);
  while (n_exchanges(&e2e) < 4)
    e2e_done(tnk_training_optim_step(e2e.training, NULL));
  e2e_close(&e2e);
}
