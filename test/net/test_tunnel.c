/* SPDX-License-Identifier: MIT */
#include "lib/io/net/stream.h"

#include <stdlib.h>

#include "net/secure.h"
#include "support/proxy.h"

/* A server with TLS, and a proxy before it. The name of the server is known to
 * nobody here. */
typedef struct {
  secure_t secure;
  test_proxy_t proxy;
  tnk__via_t via;
} way_t;

static const test_cert_t good = {.dns = "good.test"};

#define CONNECT                                                                \
  "CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n"                  \
  "Proxy-Authorization: Basic c2VjcmV0\r\n\r\n"

static void way_open(way_t *way, const test_server_options_t *server,
                     size_t chop) {
  secure_open(&way->secure, &good, server);
  test_proxy_open(&way->proxy, &way->secure.world.context.uv,
                  way->secure.world.server.port, chop);
  way->via = (tnk__via_t){.host = "127.0.0.1",
                          .port = (uint16_t)way->proxy.server.port,
                          .name = "proxy.test:3128",
                          .request = CONNECT,
                          .request_len = sizeof(CONNECT) - 1,
                          .has_credentials = 1};
}

static void way_close(way_t *way) {
  test_proxy_close(&way->proxy);
  secure_close(&way->secure);
}

static int way_connect(way_t *way, client_t *client, const char *host) {
  client->via = &way->via;
  return client_open(client, way->secure.world.net, host, 443, 1);
}

/* Until it ends; what it ended with is in the client. */
static void way_fails(way_t *way, client_t *client, int code) {
  uv_loop_t *loop = &way->secure.world.context.uv;

  CHECK_INT(way_connect(way, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(loop, client->n_end > 0);
  if (client->code != code)
    test_fail(__FILE__, __LINE__, "%s: %s", tnk_err_name(client->code),
              client->text);
  CHECK_INT(client->n_open, 0);
  CHECK(strstr(client->text, "c2VjcmV0") == NULL);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  client_finish(client, loop);
}

static void check_talk(size_t chop) {
  way_t way;
  world_t *world = &way.secure.world;
  client_t *client = &world->client;

  way_open(&way, &echoing, chop);
  client->on_open = client_say_hello;
  CHECK_INT(way_connect(&way, client, "good.test"), TNK_OK);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  TEST_RUN_UNTIL(&world->context.uv, client->got.len == 11);
  CHECK_MEM(client->got.data, client->got.len, "hello world", 11);
  CHECK_INT(tnk__stream_n_sent(client->stream), 11);
  CHECK_STR(way.proxy.head, CONNECT);
  CHECK_INT(way.proxy.n_asked, 1);
  CHECK_INT(world->server.n_handshakes, 1);
  client_finish(client, &world->context.uv);
  TEST_RUN_UNTIL(&world->context.uv, world->server.n_open == 0);
  CHECK_INT(world->server.n_goodbyes, 1);
  way_close(&way);
}

TEST(A16_tls_inside_of_a_tunnel) {
  check_talk(0);
}

TEST(A16_a_tunnel_in_single_bytes) {
  check_talk(1);
}

/* What stands before the answer, or in it, does no harm. */
TEST_LIMIT(A16_answers_that_agree, 30) {
  static const char *const answers[] = {
      "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 Connection established\r\n\r\n",
      "HTTP/1.1 204 No\r\nX: y\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      "HTTP/1.1 103 Early\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      /* By RFC 9110 these lengths mean nothing. */
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"};

  for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
    way_t way;
    world_t *world = &way.secure.world;
    client_t *client = &world->client;
    way_open(&way, &echoing, i % 2);
    way.proxy.agreement = answers[i];
    client->on_open = client_say_hello;
    CHECK_INT(way_connect(&way, client, "good.test"), TNK_OK);
    TEST_RUN_UNTIL(&world->context.uv,
                   client->got.len == 11 || client->n_end > 0);
    if (client->n_end > 0)
      test_fail(__FILE__, __LINE__, "row %zu: %s", i, client->text);
    client_finish(client, &world->context.uv);
    way_close(&way);
  }
}

/* Whatever the proxy says of us is the same the next time, unless it is about
 * its own state. Its words are nowhere: they may be our credentials. */
static const struct {
  const char *answer;
  int code;
  const char *text;
} refusals[] = {
    {"HTTP/1.1 407 c2VjcmV0\r\nContent-Length: 3\r\n\r\nabc", TNK_EPROXY,
     "proxy proxy.test:3128 refused the tunnel: 407 Proxy Authentication "
     "Required: it rejects the given user and password"},
    {"HTTP/1.1 403 No\r\n\r\n", TNK_EPROXY,
     "proxy proxy.test:3128 refused the tunnel: 403 Forbidden: it does not "
     "allow this host or port"},
    {"HTTP/1.1 404 No\r\nTransfer-Encoding: gzip\r\n\r\n", TNK_EPROXY,
     "proxy proxy.test:3128 refused the tunnel: 404 Not Found: it is not a "
     "proxy, or does not find the host"},
    {"HTTP/1.0 401 c2VjcmV0\r\n\r\n", TNK_EPROXY,
     "proxy proxy.test:3128 refused the tunnel: 401 Unauthorized: it rejects "
     "the given user and password"},
    {"HTTP/1.1 400 No\r\n\r\n", TNK_EPROXY,
     "proxy proxy.test:3128 refused the tunnel: 400 Bad Request: it does not "
     "support CONNECT, or not to this host or port"},
    {"HTTP/1.1 500 No\r\n\r\n", TNK_ECONN,
     "proxy proxy.test:3128 refused the tunnel: 500 Internal Server Error: "
     "it failed, or could not find or reach the host"},
    {"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", TNK_EPROXY,
     "proxy proxy.test:3128 refused the tunnel: 302"},
    {"HTTP/1.1 429 Slow\r\n\r\n", TNK_ECONN,
     "proxy proxy.test:3128 refused the tunnel: 429 Too Many Requests"},
    {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 1000000000000\r\n\r\n",
     TNK_ECONN,
     "proxy proxy.test:3128 refused the tunnel: 502 Bad Gateway: it could "
     "not connect"},
    {"HTTP/1.1 503 x\r\n\r\n", TNK_ECONN,
     "proxy proxy.test:3128 refused the tunnel: 503 Service Unavailable"},
    {"HTTP/1.1 599 x\r\n\r\n", TNK_ECONN,
     "proxy proxy.test:3128 refused the tunnel: 599"},
    {"HTTP/1.1 200 OK\r\n\r\n\x16\x03\x03", TNK_EPROTO,
     "proxy proxy.test:3128 sent bytes that do not come from the server"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", TNK_EPROTO,
     "proxy proxy.test:3128 sent bytes that do not come from the server"},
    {"HTTP/1.1 101 Switching\r\n\r\n", TNK_EPROTO,
     "proxy proxy.test:3128 did not answer CONNECT in HTTP"},
    {"SSH-2.0-OpenSSH\r\n", TNK_EPROTO,
     "proxy proxy.test:3128 did not answer CONNECT in HTTP"},
    {"HTTP/2.0 200 OK\r\n\r\n", TNK_EPROTO,
     "proxy proxy.test:3128 did not answer CONNECT in HTTP"},
    {"HTTP/1.1 200 OK\r\nX: c2VjcmV0\r\n", TNK_ECONN,
     "proxy proxy.test:3128 closed the connection instead of answering "
     "CONNECT"},
    {"", TNK_ECONN,
     "proxy proxy.test:3128 closed the connection instead of answering "
     "CONNECT"},
};

TEST_LIMIT(A16_answers_that_refuse, 30) {
  for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
    way_t way;
    client_t *client = &way.secure.world.client;
    way_open(&way, &echoing, 0);
    way.proxy.answer = refusals[i].answer;
    way.proxy.cuts = 1;
    way_fails(&way, client, refusals[i].code);
    CHECK_STR(client->text, refusals[i].text);
    CHECK_INT(way.secure.world.server.n_accepted, 0);
    way_close(&way);
  }
}

TEST(A16_a_proxy_that_wants_a_user) {
  way_t way;
  client_t *client = &way.secure.world.client;

  way_open(&way, &echoing, 0);
  way.via.has_credentials = 0;
  way.proxy.answer = "HTTP/1.1 407 x\r\n\r\n";
  way_fails(&way, client, TNK_EPROXY);
  CHECK(strstr(client->text, "it requires a user and a password") != NULL);
  way_close(&way);
}

/* It goes on for ever, in heads and in headers; see http_read for the bound. */
TEST_LIMIT(A16_an_answer_without_an_end, 20) {
  static const char *const parts[] = {"HTTP/1.1 100 Continue\r\n\r\n",
                                      "X-Header: value\r\n", "x"};

  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    const size_t n = strlen(parts[i]);
    way_t way;
    client_t *client = &way.secure.world.client;
    char *answer = malloc(300000 + 32);
    char *at = answer;
    CHECK(answer != NULL);
    memcpy(at, "HTTP/1.1 200 OK\r\n", 17);
    for (at += i > 0 ? 17 : 0; at + n < answer + 300000; at += n)
      memcpy(at, parts[i], n);
    *at = '\0';
    way_open(&way, &echoing, 0);
    way.proxy.answer = answer;
    test_alloc_reset_peak();
    way_fails(&way, client, TNK_ETOOBIG);
    CHECK_STR(client->text, "proxy proxy.test:3128 answered CONNECT with a "
                            "head that is too large");
    CHECK(test_alloc_peak() < 512 * 1024);
    way_close(&way);
    free(answer);
  }
}

/* The certificate is the target's, whoever is in between. */
TEST(A16_the_certificate_is_checked_for_the_target) {
  way_t way;
  world_t *world = &way.secure.world;
  client_t *client = &world->client;

  way_open(&way, &echoing, 0);
  CHECK_INT(way_connect(&way, client, "other.test"), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ECERT);
  CHECK_STR(client->text, "certificate is for good.test, not for other.test");
  CHECK_INT(world->server.n_received, 0);
  client_finish(client, &world->context.uv);
  way_close(&way);
}

TEST(A16_no_proxy_is_there) {
  way_t way;
  client_t *client = &way.secure.world.client;
  char text[128];

  way_open(&way, &echoing, 0);
  way.via.port = 1;
  way_fails(&way, client, TNK_ECONN);
  snprintf(text, sizeof(text),
           "cannot connect to the proxy 127.0.0.1 port 1: connection refused");
  CHECK_STR(client->text, text);
  way_close(&way);
}

/* Slow proxies count in the time for connecting. */
TEST(A16_a_proxy_that_says_nothing) {
  way_t way;
  context_t *context = &way.secure.world.context;
  client_t *client = &way.secure.world.client;

  way_open(&way, &echoing, 0);
  tnk__context_fake_clock(&context->loop, 1000);
  way.proxy.answer = "HTTP/1.1 200";
  CHECK_INT(way_connect(&way, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&context->uv, way.proxy.n_asked > 0);
  tnk__context_advance(&context->loop, 4999);
  uv_run(&context->uv, UV_RUN_NOWAIT);
  CHECK_INT(client->n_end, 0);
  tnk__context_advance(&context->loop, 1);
  TEST_RUN_UNTIL(&context->uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ETIMEDOUT);
  CHECK_STR(client->text, "connecting to good.test port 443 through proxy "
                          "proxy.test:3128 took too long");
  client_finish(client, &context->uv);
  way_close(&way);
}

/* Closing in each state, and in each turn of the loop. */
TEST_LIMIT(A16_closing_at_any_time, 30) {
  for (int n_turns = 0; n_turns < 14; n_turns++) {
    way_t way;
    client_t *client = &way.secure.world.client;
    way_open(&way, &echoing, 0);
    client->on_open = client_say_hello;
    CHECK_INT(way_connect(&way, client, "good.test"), TNK_OK);
    for (int i = 0; i < n_turns; i++)
      uv_run(&way.secure.world.context.uv, UV_RUN_NOWAIT);
    client_finish(client, &way.secure.world.context.uv);
    way_close(&way);
  }
}

TEST_LIMIT(A16_tunnels_without_memory, 60) {
  int failed = 1;

  for (long n = 0; failed; n++) {
    way_t way;
    world_t *world = &way.secure.world;
    client_t *client = &world->client;
    int err;
    way_open(&way, &echoing, 0);
    CHECK_INT(tnk__net_load_trust(world->net, NULL, 0), TNK_OK);
    client->on_open = client_say_hello;
    test_alloc_fail_at(n);
    err = way_connect(&way, client, "good.test");
    if (err == TNK_OK) {
      TEST_RUN_UNTIL(&world->context.uv,
                     client->got.len == 11 || client->n_end > 0);
      if (client->n_end > 0)
        CHECK_INT(client->code, TNK_ENOMEM);
      failed = test_alloc_did_fail();
      test_alloc_fail_at(-1);
      client_finish(client, &world->context.uv);
    } else {
      CHECK_INT(err, TNK_ENOMEM);
      test_alloc_fail_at(-1);
      tnk__buf_deinit(&client->got);
    }
    way_close(&way);
  }
}
