/* SPDX-License-Identifier: MIT */
/* What the client does not agree to, whatever the server wants. */
#include "lib/io/net/stream.h"

#include <mbedtls/version.h>

#include "net/secure.h"

/* What Mbed TLS 3 has left out needs no refusal. */
#if MBEDTLS_VERSION_MAJOR < 3
static const test_cert_t good = {.dns = "good.test"};
#endif

TEST(B13_tls_1_1_is_refused) {
#if MBEDTLS_VERSION_MAJOR < 3
  const test_server_options_t options = {.is_old = 1};
  secure_t secure;
  client_t *client = &secure.world.client;

  secure_open(&secure, &good, &options);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ETLS);
  CHECK_STR(client->text,
            "TLS with good.test: it supports no version from 1.2 on");
  CHECK_INT(client->is_final, 1);
  client_finish(client, &secure.world.context.uv);
  CHECK_INT(secure.world.server.n_handshakes, 0);
  secure_close(&secure);
#else
  test_skip("this mbedTLS does not have it");
#endif
}

#if defined(MBEDTLS_SSL_RENEGOTIATION) && MBEDTLS_VERSION_MAJOR < 3
static void ask_again(test_conn_t *conn, const unsigned char *data, size_t n) {
  (void)data;
  (void)n;
  CHECK_INT(mbedtls_ssl_renegotiate(&conn->ssl), 0);
  test_conn_write(conn, "still here", 10);
}

/* The request is answered with a warning, and the stream goes on. */
TEST(tls_does_not_renegotiate) {
  const test_server_options_t options = {.may_renegotiate = 1,
                                         .on_read = ask_again};
  secure_t secure;
  client_t *client = &secure.world.client;

  secure_open(&secure, &good, &options);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_open > 0);
  CHECK_INT(client_write(client, "x", 1, NULL, 0), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv,
                 client->got.len > 0 || client->n_end > 0);
  CHECK_MEM(client->got.data, client->got.len, "still here", 10);
  CHECK_INT(secure.world.server.n_handshakes, 1);
  CHECK_INT(secure.world.net->counters.n_handshakes, 1);
  secure_finish(&secure);
}
#endif
