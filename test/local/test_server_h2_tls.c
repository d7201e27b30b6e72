/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "h2_client.h"
#include "support/test.h"

/* HTTP/2 over TLS. */

static const char *const h2_alone[] = {"h2", NULL};
static const local_options_t defaults = LOCAL_OPTIONS_INIT;

TEST(many_requests_over_one_handshake) {
  h2_client_t *client;
  h2_stream_t *streams[200];
  tls_kit_t kit;
  rig_t rig;

  tls_kit_open(&kit, h2_alone);
  rig_open_tls(&rig, defaults, &kit);
  client = h2_open(&rig);
  CHECK_STR(tls_peer_alpn(client->x->tls), "h2");
  for (int i = 0; i < 200; i++)
    streams[i] = h2_get(client, "/api/v1/healthz");
  for (int i = 0; i < 200; i++) {
    CHECK_INT(h2_status(streams[i]), 200);
    CHECK_STR(streams[i]->body, "{\"status\":\"ok\"}");
  }
  h2_close(client);
  rig_close(&rig);
  tls_kit_close(&kit);
}

/* Who has agreed on HTTP/2 speaks that. */
TEST(another_version_than_was_agreed_upon) {
  exchange_t *x;
  tls_kit_t kit;
  rig_t rig;

  tls_kit_open(&kit, h2_alone);
  rig_open_tls(&rig, defaults, &kit);
  x = rig_send(&rig, "GET", "/api/v1/healthz", NULL, NULL, 0);
  rig_wait(x, 1);
  CHECK(x->closed && x->n_done == 0);
  rig_free(x);
  rig_close(&rig);
  tls_kit_close(&kit);
}

TEST_LIMIT(requests_without_memory, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  tls_kit_t kit;
  int hit = 1;
  rig_t rig;

  options.alloc = test_allocator();
  tls_kit_open(&kit, h2_alone);
  rig_open_tls(&rig, options, &kit);
  for (long n = 0; hit; n++) {
    h2_client_t *client;
    h2_stream_t *stream;

    test_alloc_fail_at(n);
    client = h2_open(&rig);
    if (!client->x->closed) {
      stream = h2_get(client, "/api/v1/healthz");
      h2_wait(stream);
    }
    hit = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    h2_close(client);
  }
  rig_close(&rig);
  CHECK_INT(test_alloc_live(), 0);
  tls_kit_close(&kit);
}
