/* SPDX-License-Identifier: MIT */
/* Tunnels by SOCKS5, and what is carried by TLS to a proxy. */
#include "lib/io/net/stream.h"

#include <stdlib.h>

#include "net/secure.h"
#include "support/proxy.h"

typedef struct {
  secure_t secure;
  test_proxy_t proxy;
  test_identity_t own; /* the proxy's, where it speaks TLS */
  tnk__origin_t target;
  tnk__via_t via;
} way_t;

static const test_cert_t good = {.dns = "good.test", .address = "127.0.0.1"};

static void way_open(way_t *way, tnk__proxy_kind_t kind, size_t chop) {
  secure_open(&way->secure, &good, &echoing);
  test_proxy_open(&way->proxy, &way->secure.world.context.uv,
                  way->secure.world.server.port, chop);
  memset(&way->own, 0, sizeof(way->own));
  way->proxy.is_socks = kind != TNK__PROXY_HTTP;
  way->target = (tnk__origin_t){"good.test", 443, 1};
  way->via = (tnk__via_t){.host = "127.0.0.1",
                          .port = (uint16_t)way->proxy.server.port,
                          .name = "proxy.test:1080",
                          .kind = kind,
                          .target = &way->target};
}

static void way_close(way_t *way) {
  test_proxy_close(&way->proxy);
  secure_close(&way->secure);
  if (way->via.is_tls)
    test_identity_free(&way->own);
}

/* The proxy speaks TLS, as somebody whom the same authority knows. */
static void way_secure(way_t *way, const char *address) {
  const test_cert_t cert = {.address = address, .issuer = &way->secure.ca};

  test_identity_make(&way->own, &cert);
  way->proxy.server.options.identity = &way->own;
  test_server_configure(&way->proxy.server);
  way->via.is_tls = 1;
}

static int way_connect(way_t *way, client_t *client,
                       void (*on_open)(client_t *client)) {
  memset(client, 0, sizeof(*client));
  client->on_open = on_open;
  client->via = &way->via;
  return client_open(client, way->secure.world.net, way->target.host,
                     way->target.port, way->target.is_tls);
}

static void way_talks(way_t *way) {
  world_t *world = &way->secure.world;
  client_t *client = &world->client;

  CHECK_INT(way_connect(way, client, client_say_hello), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv,
                 client->got.len == 11 || client->n_end > 0);
  if (client->n_end > 0)
    test_fail(__FILE__, __LINE__, "%s", client->text);
  CHECK_MEM(client->got.data, client->got.len, "hello world", 11);
  CHECK_INT(tnk__stream_n_sent(client->stream), 11);
  client_finish(client, &world->context.uv);
}

static void way_fails(way_t *way, int code, const char *text) {
  client_t *client = &way->secure.world.client;

  CHECK_INT(way_connect(way, client, NULL), TNK_OK);
  TEST_RUN_UNTIL(&way->secure.world.context.uv, client->n_end > 0);
  CHECK_STR(client->text, text);
  CHECK_INT(client->code, code);
  CHECK_INT(client->n_open, 0);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  CHECK(strstr(client->text, "pass word") == NULL);
  client_finish(client, &way->secure.world.context.uv);
}

#define CHECK_ASKED(way, bytes)                                                \
  CHECK_MEM((way).proxy.head, (way).proxy.n_head, bytes, sizeof(bytes) - 1)

/* Nobody here knows where good.test is. */
TEST(A16_socks5h_hands_names_on) {
  for (size_t chop = 0; chop < 2; chop++) {
    way_t way;
    way_open(&way, TNK__PROXY_SOCKS5H, chop);
    way_talks(&way);
    CHECK_ASKED(way, "\x05\x01\x00\x03\x09good.test\x01\xbb");
    CHECK_INT(way.proxy.n_asked, 1);
    way_close(&way);
  }
}

TEST(A16_socks5_looks_names_up_here) {
  tnk__address_t addresses[2];
  way_t way;

  CHECK(tnk__address_parse(&addresses[0], "2001:db8::9"));
  CHECK(tnk__address_parse(&addresses[1], "192.0.2.7"));
  way_open(&way, TNK__PROXY_SOCKS5, 0);
  CHECK_INT(
      tnk__dns_learn(&way.secure.world.net->dns, "good.test", addresses, 2),
      TNK_OK);
  way_talks(&way);
  CHECK_ASKED(way, "\x05\x01\x00\x01\xc0\x00\x02\x07\x01\xbb");
  CHECK_INT(
      tnk__dns_learn(&way.secure.world.net->dns, "good.test", addresses, 1),
      TNK_OK);
  way_talks(&way);
  CHECK_ASKED(way, "\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00"
                   "\x00\x00\x00\x00\x00\x09\x01\xbb");
  way_close(&way);
}

/* An address is one, whoever looks names up. */
TEST(A16_addresses_are_not_looked_up) {
  way_t way;

  way_open(&way, TNK__PROXY_SOCKS5H, 0);
  way.target.host = "127.0.0.1";
  way_talks(&way);
  CHECK_ASKED(way, "\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb");
  CHECK_INT(way.secure.world.net->dns.n_lookups, 0);
  way_close(&way);
}

TEST(A16_socks_with_a_user) {
  way_t way;

  way_open(&way, TNK__PROXY_SOCKS5H, 1);
  way.via.user = "me";
  way.via.password = "pass word";
  way_talks(&way); /* whom it does not ask */
  way.proxy.login = "me pass word";
  way_talks(&way);
  way.proxy.login = "me other";
  way_fails(&way, TNK_EPROXY,
            "proxy proxy.test:1080 does not accept the user and password that "
            "it was given");
  way.via.user = way.via.password = NULL;
  way.proxy.method = 0xff;
  way_fails(&way, TNK_EPROXY,
            "proxy proxy.test:1080 wants a user and a password, as in "
            "socks5://USER:PASSWORD@HOST:PORT");
  way_close(&way);
}

TEST(A16_socks_refuses_in_words) {
  way_t way;

  way_open(&way, TNK__PROXY_SOCKS5H, 0);
  way.proxy.reply = 2;
  way_fails(&way, TNK_EPROXY,
            "proxy proxy.test:1080 refused: its rules do not let this host or "
            "port through");
  way.proxy.reply = 5;
  way_fails(&way, TNK_ECONN,
            "proxy proxy.test:1080 could not connect: connection refused");
  CHECK_INT(way.secure.world.server.n_accepted, 0);
  way_close(&way);
}

static void greet(test_conn_t *conn) {
  test_conn_write(conn, "\x05\x00\x05", 3);
}

static void cut(test_conn_t *conn, const unsigned char *data, size_t n) {
  (void)data;
  (void)n;
  test_conn_end(conn);
}

static void say_http(test_conn_t *conn, const unsigned char *data, size_t n) {
  (void)data;
  (void)n;
  test_conn_write(conn, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
}

TEST(A16_what_does_not_speak_socks) {
  way_t way;
  test_server_options_t *options = &way.proxy.server.options;

  way_open(&way, TNK__PROXY_SOCKS5H, 0);
  options->on_read = say_http;
  way_fails(&way, TNK_EPROTO, "proxy proxy.test:1080 does not speak SOCKS5");
  options->on_read = cut;
  way_fails(&way, TNK_ECONN,
            "proxy proxy.test:1080 closed the connection before it had "
            "connected to the server");
  way.via.port = 1;
  way_fails(&way, TNK_ECONN,
            "cannot connect to the proxy 127.0.0.1 port 1: connection refused");
  way_close(&way);
}

/* It says what it says before it has been greeted. */
TEST(A16_a_hasty_socks_proxy) {
  tnk__address_t address;
  way_t way;
  client_t *client = &way.secure.world.client;

  CHECK(tnk__address_parse(&address, "192.0.2.7"));
  way_open(&way, TNK__PROXY_SOCKS5, 0);
  way.proxy.server.options.on_open = greet;
  way.proxy.server.options.on_read = NULL;
  CHECK_INT(
      tnk__dns_learn(&way.secure.world.net->dns, "good.test", &address, 1),
      TNK_OK);
  CHECK_INT(way_connect(&way, client, NULL), TNK_OK);
  TEST_RUN_UNTIL(&way.secure.world.context.uv, client->n_end > 0);
  CHECK_STR(client->text, "proxy proxy.test:1080 answered before it was asked");
  CHECK_INT(client->code, TNK_EPROTO);
  client_finish(client, &way.secure.world.context.uv);
  way_close(&way);
}

/* Without TLS there is a tunnel as well, with a deadline of its own. */
TEST(A16_plain_streams_by_socks) {
  way_t way;
  world_t *world = &way.secure.world;
  client_t *client = &world->client;

  way_open(&way, TNK__PROXY_SOCKS5H, 0);
  way.target = (tnk__origin_t){"good.test", 80, 0};
  world->server.options.identity = NULL;
  test_server_configure(&world->server);
  way_talks(&way);
  CHECK_ASKED(way, "\x05\x01\x00\x03\x09good.test\x00\x50");
  tnk__context_fake_clock(&world->context.loop, 1000);
  way.proxy.server.options.deaf = 1;
  way.proxy.server.options.on_read = NULL;
  CHECK_INT(way_connect(&way, client, NULL), TNK_OK);
  for (int i = 0; i < 20; i++)
    uv_run(&world->context.uv, UV_RUN_NOWAIT);
  tnk__context_advance(&world->context.loop, 5000);
  TEST_RUN_UNTIL(&world->context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ETIMEDOUT);
  CHECK_STR(client->text, "proxy proxy.test:1080 took too long to connect");
  client_finish(client, &world->context.uv);
  way_close(&way);
}

/* ---- TLS to the proxy ---- */

static char big[300000];

static void say_much(client_t *client) {
  CHECK_INT(client_write(client, big, sizeof(big), NULL, 0), TNK_OK);
}

/* One TLS stream reads what the other has decrypted. */
TEST_LIMIT(A16_tls_inside_of_tls, 20) {
  static const char request[] = "CONNECT good.test:443 HTTP/1.1\r\n\r\n";
  way_t way;
  world_t *world = &way.secure.world;
  client_t *client = &world->client;

  for (size_t i = 0; i < sizeof(big); i++)
    big[i] = (char)(i * 7 + i / 251);
  way_open(&way, TNK__PROXY_HTTP, 0);
  way.via.request = request;
  way.via.request_len = sizeof(request) - 1;
  way_secure(&way, "127.0.0.1");
  way_talks(&way);
  CHECK_STR(way.proxy.head, request);
  CHECK_INT(way.proxy.server.n_handshakes, 1);
  CHECK_INT(way_connect(&way, client, say_much), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv,
                 client->got.len == sizeof(big) || client->n_end > 0);
  if (client->n_end > 0)
    test_fail(__FILE__, __LINE__, "%s", client->text);
  CHECK_MEM(client->got.data, client->got.len, big, sizeof(big));
  client_finish(client, &world->context.uv);
  way_close(&way);
}

/* What may be spoken with a server is not offered to a proxy before it. */
TEST(A16_a_proxy_with_tls_is_offered_http_1_1) {
  static const char *const alpn[] = {"h2", "http/1.1", NULL};
  way_t way;
  world_t *world = &way.secure.world;
  client_t *client = &world->client;

  way_open(&way, TNK__PROXY_HTTP, 0);
  way.proxy.server.options.alpn = alpn;
  way_secure(&way, "127.0.0.1");
  way.target.is_tls = 0;
  CHECK_INT(way_connect(&way, client, NULL), TNK_OK);
  tnk__stream_offer(client->stream, TNK__ALPN_BOTH);
  TEST_RUN_UNTIL(&world->context.uv, client->n_open > 0 || client->n_end > 0);
  CHECK_INT(client->n_end, 0);
  CHECK_STR(mbedtls_ssl_get_alpn_protocol(&way.proxy.server.conns->ssl),
            "http/1.1");
  CHECK(tnk__stream_chosen(client->stream) == NULL);
  client_finish(client, &world->context.uv);
  way_close(&way);
}

/* Nothing is said to a proxy that is not the one it should be. */
TEST(A16_the_certificate_of_the_proxy_is_checked) {
  way_t way;

  way_open(&way, TNK__PROXY_HTTP, 0);
  way.via.request = "x";
  way.via.request_len = 1;
  way_secure(&way, "127.0.0.2");
  way_fails(&way, TNK_ECERT, "certificate is for 127.0.0.2, not for 127.0.0.1");
  CHECK_INT(way.proxy.n_asked, 0);
  CHECK_INT(way.proxy.n_head, 0);
  way_close(&way);
}

/* ---- Endings ---- */

static void check_closing(tnk__proxy_kind_t kind, int is_tls, int n_turns) {
  tnk__address_t address;
  way_t way;
  client_t *client = &way.secure.world.client;

  CHECK(tnk__address_parse(&address, "192.0.2.7"));
  way_open(&way, kind, 0);
  way.via.user = "me";
  way.via.password = "pass";
  way.via.request = "CONNECT a:1 HTTP/1.1\r\n\r\n";
  way.via.request_len = strlen(way.via.request);
  way.proxy.login = "me pass";
  if (is_tls)
    way_secure(&way, "127.0.0.1");
  CHECK_INT(
      tnk__dns_learn(&way.secure.world.net->dns, "good.test", &address, 1),
      TNK_OK);
  CHECK_INT(way_connect(&way, client, client_say_hello), TNK_OK);
  for (int i = 0; i < n_turns; i++)
    uv_run(&way.secure.world.context.uv, UV_RUN_NOWAIT);
  client_finish(client, &way.secure.world.context.uv);
  way_close(&way);
}

/* In each state, and in each turn of the loop. */
TEST_LIMIT(A16_closing_what_goes_by_socks_at_any_time, 30) {
  for (int n_turns = 0; n_turns < 20; n_turns++) {
    check_closing(TNK__PROXY_SOCKS5, 0, n_turns);
    check_closing(TNK__PROXY_HTTP, 1, n_turns);
  }
}

static int converse(way_t *way, long fail_at) {
  world_t *world = &way->secure.world;
  client_t *client = &world->client;
  int failed;
  int err;

  CHECK_INT(tnk__net_load_trust(world->net, NULL, 0), TNK_OK);
  test_alloc_fail_at(fail_at);
  err = way_connect(way, client, client_say_hello);
  if (err != TNK_OK) {
    CHECK_INT(err, TNK_ENOMEM);
    test_alloc_fail_at(-1);
    tnk__buf_deinit(&client->got);
    return 1;
  }
  TEST_RUN_UNTIL(&world->context.uv,
                 client->got.len == 11 || client->n_end > 0);
  if (client->n_end > 0)
    CHECK_INT(client->code, TNK_ENOMEM);
  failed = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  client_finish(client, &world->context.uv);
  return failed;
}

static void check_memory(tnk__proxy_kind_t kind, int is_tls) {
  int failed = 1;

  for (long n = 0; failed; n++) {
    way_t way;
    way_open(&way, kind, 0);
    way.via.request = "CONNECT a:1 HTTP/1.1\r\n\r\n";
    way.via.request_len = strlen(way.via.request);
    if (is_tls)
      way_secure(&way, "127.0.0.1");
    failed = converse(&way, n);
    way_close(&way);
  }
}

TEST_LIMIT(A16_socks_and_tls_without_memory, 60) {
  check_memory(TNK__PROXY_SOCKS5H, 0);
  check_memory(TNK__PROXY_HTTP, 1);
}
