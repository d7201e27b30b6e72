/* SPDX-License-Identifier: MIT */
/* Servers that do not want to speak TLS with us, and what they say. */
#include "lib/io/net/stream.h"

#include <mbedtls/version.h>

#include "net/secure.h"

static const test_cert_t good = {.dns = "good.test"};

static unsigned char alert[] = {0x15, 3, 1, 0, 2, 2, 0};

/* Whatever it is asked, in the clear, as the first answer is. */
static void refuse(test_conn_t *conn, const unsigned char *data, size_t n) {
  (void)data;
  (void)n;
  test_conn_write(conn, alert, sizeof(alert));
}

/* A client whose handshake is answered with that alert. */
static void meet(secure_t *secure, unsigned char number, size_t chop) {
  client_t *client = &secure->world.client;
  test_server_options_t *options = &secure->world.server.options;

  alert[6] = number;
  secure_open(secure, &good, &silent);
  options->identity = NULL;
  options->on_read = refuse;
  options->chop = chop;
  CHECK_INT(secure_connect(secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure->world.context.uv, client->n_end > 0);
}

TEST_LIMIT(alerts_are_told_by_name,
           30){static const struct {unsigned char number;
int is_final;
const char *text;
}
rows[] = {
    {70, 1,
#if MBEDTLS_VERSION_MAJOR >= 3 && defined(MBEDTLS_SSL_PROTO_TLS1_3)
     "protocol version (this build speaks TLS 1.2 and 1.3)"},
#else
     "protocol version (this build speaks at most TLS 1.2)"},
#endif
    {40, 1,
     "handshake failure: it knows none of the ciphers, curves and signatures "
     "of this build, or wants a client certificate (options cert_file and "
     "key_file)"},
    {112, 1, "unrecognized name: it serves no host of that name"},
    {41, 1,
     "no certificate: it wants a client certificate (options cert_file and "
     "key_file)"},
    {116, 1,
     "certificate required: it wants a client certificate (options cert_file "
     "and key_file)"},
    {48, 1,
     "unknown CA: it does not know who has signed the client's certificate "
     "(options cert_file and key_file)"},
    {120, 1,
     "no application protocol: it supports no version of HTTP that was "
     "offered"},
    {80, 0, "internal error"},
    {51, 0, "decrypt error"},
    {200, 0, "an alert that has no name"},
};

for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
  secure_t secure;
  client_t *client = &secure.world.client;
  char text[320];
  meet(&secure, rows[i].number, i % 2);
  CHECK_INT(client->code, TNK_ETLS);
  CHECK_INT(client->is_final, rows[i].is_final);
  snprintf(text, sizeof(text), "good.test refused the TLS handshake: %s",
           rows[i].text);
  CHECK_STR(client->text, text);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  secure_finish(&secure);
}
}

static void end_at_once(test_conn_t *conn) {
  test_conn_end(conn);
}

static void cut_at_once(test_conn_t *conn) {
  test_conn_cut(conn);
}

/* As servers do that would have spoken HTTP/2, had it been agreed on. */
TEST(a_server_that_ends_without_a_word_may_want_http_2) {
  test_server_options_t options = {.on_open = end_at_once};

  for (int i = 0; i < 2; i++) {
    secure_t secure;
    client_t *client = &secure.world.client;
    options.on_open = i == 0 ? end_at_once : cut_at_once;
    secure_open(&secure, &good, &options);
    CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
    TEST_RUN_UNTIL(&secure.world.context.uv, client->n_end > 0);
    CHECK_INT(client->code, i == 0 ? TNK_OK : TNK_ECONN);
    CHECK(strstr(client->text, "before it sent anything; it may support only "
                               "HTTP/2") != NULL);
    CHECK_INT(client->is_final, 0);
    secure_finish(&secure);
  }
}

static void answer_and_end(test_conn_t *conn, const unsigned char *data,
                           size_t n) {
  test_conn_write(conn, data, n);
  test_conn_end(conn);
}

TEST(a_server_that_ends_after_an_answer_does_not) {
  const test_server_options_t options = {.on_read = answer_and_end};
  secure_t secure;
  client_t *client = &secure.world.client;

  secure_open(&secure, &good, &options);
  client->on_open = client_say_hello;
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client->n_end > 0);
  CHECK_STR(client->text, "connection ended by the server");
  secure_finish(&secure);
}
