/* SPDX-License-Identifier: MIT */
#include "lib/io/net/stream.h"

#include <stdlib.h>

#include "net/secure.h"

static const test_cert_t good = {.dns = "good.test", .address = "127.0.0.1"};
TEST(B13_tls_writes_and_reads) {
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;

  secure_open(&secure, &good, &echoing);
  client->on_open = client_say_hello;
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  TEST_RUN_UNTIL(&world->context.uv, client->got.len == 11);
  CHECK_MEM(client->got.data, client->got.len, "hello world", 11);
  CHECK_INT(client->n_at_once, 1);
  CHECK_INT(client->n_written, 1);
  CHECK_INT(client->write_cause, 0);
  CHECK_INT(tnk__stream_n_sent(client->stream), 11);
  CHECK(strncmp(tnk__stream_tls_version(client->stream), "TLSv1.", 6) == 0);
  CHECK_INT(world->net->counters.n_handshakes, 1);
  CHECK_INT(world->net->counters.n_resumed, 0);
  client_finish(client, &world->context.uv);
  TEST_RUN_UNTIL(&world->context.uv, world->server.n_open == 0);
  CHECK_INT(world->server.n_goodbyes, 1);
  secure_close(&secure);
}

TEST(tls_understands_bytes_that_come_one_by_one) {
  static const test_server_options_t chopping = {.on_read = echo, .chop = 1};
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;

  secure_open(&secure, &good, &chopping);
  client->on_open = client_say_hello;
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv, client->got.len == 11);
  CHECK_MEM(client->got.data, client->got.len, "hello world", 11);
  secure_finish(&secure);
}

static void http_error(test_conn_t *conn, const unsigned char *data, size_t n) {
  static const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

  (void)data;
  (void)n;
  test_conn_write(conn, answer, sizeof(answer) - 1);
}

TEST(tls_to_a_server_without_tls) {
  const test_server_options_t plain = {.on_read = http_error};
  world_t world;
  client_t *client = &world.client;

  world_open(&world, &plain, NULL);
  CHECK_INT(client_open(client, world.net, "127.0.0.1", world.server.port, 1),
            TNK_OK);
  TEST_RUN_UNTIL(&world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ETLS);
  CHECK(strstr(client->text, "does not speak TLS") != NULL);
  world_finish(&world);
}

/* The server's part of the handshake ends early, after every so many bytes. */
TEST_LIMIT(handshake_cut_off_at_any_byte, 20) {
  size_t n;
  secure_t secure;
  world_t *world = &secure.world;
  int n_cut = 0;

  secure_open(&secure, &good, &silent);
  for (n = 1; n < 4000; n += 23) {
    client_t client = {0};
    world->server.options.cut_after = n;
    CHECK_INT(secure_connect(&secure, &client, "good.test"), TNK_OK);
    TEST_RUN_UNTIL(&world->context.uv, client.n_end + client.n_open > 0);
    if (client.n_open > 0) {
      client_finish(&client, &world->context.uv);
      break;
    }
    n_cut++;
    CHECK_INT(client.code, TNK_ECONN);
    CHECK(client.cause == UV_EOF || client.cause == UV_ECONNRESET);
    client_finish(&client, &world->context.uv);
  }
  CHECK(n_cut > 10);
  CHECK(n < 4000);
  secure_close(&secure);
}

/* Noise instead of the server's bytes, from every so many bytes on. */
TEST_LIMIT(handshake_with_noise_fails_cleanly, 20) {
  size_t n;
  secure_t secure;
  world_t *world = &secure.world;

  secure_open(&secure, &good, &silent);
  for (n = 0; n < 700; n += 31) {
    client_t client = {0};
    world->server.options.noise_at = n + 1;
    CHECK_INT(secure_connect(&secure, &client, "good.test"), TNK_OK);
    TEST_RUN_UNTIL(&world->context.uv,
                   client.n_end + client.n_open + world->server.n_ended > 0);
    if (client.n_end > 0)
      CHECK(client.code == TNK_ETLS || client.code == TNK_ECERT ||
            client.code == TNK_ECONN);
    CHECK_INT(client.n_open, 0);
    client_finish(&client, &world->context.uv);
    world->server.n_ended = 0;
  }
  secure_close(&secure);
}

/* An end without TLS's goodbye may be an attacker's. */
TEST(tls_tells_a_goodbye_from_a_cut) {
  secure_t secure;
  world_t *world = &secure.world;
  int i;

  secure_open(&secure, &good, &silent);
  for (i = 0; i < 3; i++) {
    client_t client = {0};
    CHECK_INT(secure_connect(&secure, &client, "good.test"), TNK_OK);
    TEST_RUN_UNTIL(&world->context.uv,
                   client.n_open && world->server.n_handshakes > i);
    test_conn_write(world->server.conns, "data", 4);
    if (i == 0)
      test_conn_end(world->server.conns);
    else if (i == 1)
      test_conn_cut(world->server.conns);
    else
      test_conn_reset(world->server.conns);
    TEST_RUN_UNTIL(&world->context.uv, client.n_end > 0);
    CHECK_INT(client.code, i == 0 ? TNK_OK : TNK_ECONN);
    if (i < 2)
      CHECK_MEM(client.got.data, client.got.len, "data", 4);
    CHECK_INT(client.cause, i == 0 ? 0 : i == 1 ? UV_EOF : UV_ECONNRESET);
    client_finish(&client, &world->context.uv);
  }
  secure_close(&secure);
}

static void welcome(test_conn_t *conn) {
  test_conn_write(conn, "welcome", 7);
}

static const test_server_options_t welcoming = {.on_open = welcome};

/* Until the first bytes came: TLS 1.3 sends its tickets before them. */
static void visit(secure_t *secure, const char *host) {
  client_t client = {0};

  CHECK_INT(secure_connect(secure, &client, host), TNK_OK);
  TEST_RUN_UNTIL(&secure->world.context.uv, client.n_read + client.n_end > 0);
  CHECK_STR(client.text, "");
  CHECK_INT(client.n_open, 1);
  client_finish(&client, &secure->world.context.uv);
}

TEST(tls_sessions_are_resumed) {
  secure_t secure;
  const tnk__net_counters_t *counters;

  secure_open(&secure, &good, &welcoming);
  tnk__context_fake_clock(&secure.world.context.loop, 1000);
  counters = &secure.world.net->counters;
  visit(&secure, "good.test");
  CHECK_INT(counters->n_resumed, 0);
  visit(&secure, "good.test");
  visit(&secure, "GOOD.test");
  CHECK_INT(counters->n_handshakes, 3);
  CHECK_INT(counters->n_resumed, 2);
  CHECK_INT(secure.world.server.n_resumed, 2);
  /* A resumed session does not live longer than the one it came from. */
  tnk__context_advance(&secure.world.context.loop, 3600 * 1000 - 1);
  visit(&secure, "good.test");
  CHECK_INT(counters->n_resumed, 3);
  tnk__context_advance(&secure.world.context.loop, 1);
  visit(&secure, "good.test");
  CHECK_INT(counters->n_resumed, 3);
  CHECK_INT(secure.world.server.n_resumed, 3);
  secure_close(&secure);
}

/* With TLS 1.3 the tickets follow the handshake. The client may read them
 * alone, before it writes its first byte. */
TEST(tls_writes_after_tickets_that_came_alone) {
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;

  secure_meet(&secure, &good, &echoing);
  TEST_RUN_UNTIL(&world->context.uv,
                 world->context.loop.counters.n_bytes_received ==
                     world->server.conns->n_sent);
  CHECK_INT(client_write(client, "hello ", 6, "world", 5), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv,
                 client->got.len == 11 || client->n_end > 0);
  CHECK_STR(client->text, "");
  CHECK_MEM(client->got.data, client->got.len, "hello world", 11);
  client_finish(client, &world->context.uv);
  world->server.options.on_open = welcome;
  visit(&secure, "good.test");
  CHECK_INT(world->net->counters.n_resumed, 1); /* the tickets were kept */
  secure_close(&secure);
}

/* mbedTLS checks no certificate in a resumed handshake, so the session of one
 * host must not vouch for another. */
TEST(tls_session_is_not_offered_to_another_host) {
  secure_t secure;
  client_t client = {0};

  secure_open(&secure, &good, &welcoming);
  visit(&secure, "good.test");
  CHECK_INT(secure_connect(&secure, &client, "bad.test"), TNK_OK);
  TEST_RUN_UNTIL(&secure.world.context.uv, client.n_end > 0);
  CHECK_INT(client.code, TNK_ECERT);
  client_finish(&client, &secure.world.context.uv);
  /* By its address it is the same server, but another name. */
  visit(&secure, "127.0.0.1");
  CHECK_INT(secure.world.net->counters.n_resumed, 0);
  visit(&secure, "good.test");
  CHECK_INT(secure.world.net->counters.n_resumed, 1);
  secure_close(&secure);
}

TEST(tls_without_tickets_shakes_hands_in_full) {
  const test_server_options_t options = {.no_tickets = 1, .on_open = welcome};
  secure_t secure;

  secure_open(&secure, &good, &options);
  visit(&secure, "good.test");
  visit(&secure, "good.test");
  CHECK_INT(secure.world.net->counters.n_handshakes, 2);
  CHECK_INT(secure.world.net->counters.n_resumed, 0);
  secure_close(&secure);
}

enum { LARGE = 3 * 1024 * 1024 + 77 };

static uint8_t *pattern(void) {
  uint8_t *bytes = malloc(LARGE);
  uint64_t state = 7;
  size_t i;

  for (i = 0; i < LARGE; i++)
    bytes[i] = (uint8_t)(test_random(&state) >> 40);
  return bytes;
}

TEST_LIMIT(tls_carries_much_in_both_directions, 20) {
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;
  uint8_t *bytes = pattern();

  secure_open(&secure, &good, &echoing);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv, client->n_open > 0);
  CHECK_INT(client_write(client, bytes, 100, bytes + 100, LARGE - 100), TNK_OK);
  CHECK_INT(client_write(client, "x", 1, NULL, 0), TNK_ECONN);
  TEST_RUN_UNTIL(&world->context.uv,
                 client->got.len == LARGE && client->n_written > 0);
  CHECK_MEM(client->got.data, client->got.len, bytes, LARGE);
  CHECK_INT(client->n_written, 1);
  CHECK_INT(tnk__stream_n_sent(client->stream), LARGE);
  CHECK_INT(client_write(client, "again", 5, NULL, 0), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv,
                 client->got.len == LARGE + 5 && client->n_written > 1);
  CHECK_INT(client->n_written, 2);
  client_finish(client, &world->context.uv);
  free(bytes);
  secure_close(&secure);
}

TEST(tls_write_waits_for_the_reader_and_can_be_dropped) {
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;
  size_t n = 32 * 1024 * 1024;
  uint8_t *bytes = calloc(1, n);
  uint64_t n_sent;
  int i;

  secure_meet(&secure, &good, &silent);
  test_conn_pause(world->server.conns, 1);
  CHECK_INT(client_write(client, bytes, n, NULL, 0), TNK_OK);
  for (i = 0; i < 200; i++)
    context_turn(&world->context);
  n_sent = tnk__stream_n_sent(client->stream);
  CHECK(n_sent > 0 && n_sent < n);
  CHECK_INT(client->n_written, 0);
  client_close(client);
  free(bytes);
  secure_finish(&secure);
}

TEST(tls_write_of_nothing_is_over_at_once) {
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;

  secure_open(&secure, &good, &silent);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv, client->n_open > 0);
  CHECK_INT(client_write(client, "", 0, NULL, 0), TNK_OK);
  CHECK_INT(client->n_at_once, 1);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  secure_finish(&secure);
}

/* What a kept connection meets when the server had closed it. */
TEST(tls_write_to_a_reset_connection_sends_nothing) {
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;

  secure_meet(&secure, &good, &silent);
  tnk__stream_pause(client->stream, 1);
  test_conn_reset(world->server.conns);
  TEST_RUN_UNTIL(&world->context.uv, world->server.n_open == 0);
  CHECK_INT(client_write(client, "request", 7, NULL, 0), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv, client->n_written > 0);
  CHECK(client->write_cause < 0);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  CHECK_INT(client_write(client, "again", 5, NULL, 0), TNK_ECONN);
  tnk__stream_pause(client->stream, 0);
  TEST_RUN_UNTIL(&world->context.uv, client->n_end > 0);
  CHECK_INT(client->n_written, 1);
  secure_finish(&secure);
}

/* Pauses in every on_read; the case lets it go on again. */
static void pause_reading(client_t *client) {
  client->is_calling++;
  tnk__stream_pause(client->stream, 1);
  client->is_calling--;
}

TEST_LIMIT(tls_paused_in_each_read_loses_nothing, 20) {
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;
  uint8_t *bytes = pattern();
  size_t n = 300000;
  int i;

  secure_open(&secure, &good, &silent);
  client->on_read = pause_reading;
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv,
                 client->n_open && world->server.n_handshakes);
  test_conn_write(world->server.conns, bytes, n);
  test_conn_end(world->server.conns);
  TEST_RUN_UNTIL(&world->context.uv, client->n_read == 1);
  for (i = 0; i < 10; i++)
    context_turn(&world->context);
  CHECK_INT(client->n_read, 1);
  while (client->n_end == 0) {
    client->is_calling++;
    tnk__stream_pause(client->stream, 0);
    client->is_calling--;
    context_turn(&world->context);
  }
  CHECK(client->n_read > 10);
  CHECK_INT(client->code, TNK_OK);
  CHECK_MEM(client->got.data, client->got.len, bytes, n);
  client_finish(client, &world->context.uv);
  free(bytes);
  secure_close(&secure);
}

TEST(A8_tls_handshake_meets_its_deadline) {
  const test_server_options_t options = {.deaf = 1};
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;

  secure_open(&secure, &good, &options);
  tnk__context_fake_clock(&world->context.loop, 1000);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv,
                 world->net->counters.n_connected > 0 &&
                     world->context.loop.counters.n_bytes_sent > 0);
  tnk__context_advance(&world->context.loop, 4999);
  CHECK_INT(client->n_end, 0);
  tnk__context_advance(&world->context.loop, 1);
  CHECK_INT(client->n_end, 1);
  CHECK_INT(client->code, TNK_ETIMEDOUT);
  CHECK(strstr(client->text, "TLS handshake with good.test") != NULL);
  secure_finish(&secure);
}

TEST(tls_deadline_ends_with_the_handshake) {
  secure_t secure;
  world_t *world = &secure.world;
  client_t *client = &world->client;

  secure_open(&secure, &good, &silent);
  tnk__context_fake_clock(&world->context.loop, 1000);
  CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
  TEST_RUN_UNTIL(&world->context.uv, client->n_open > 0);
  tnk__context_advance(&world->context.loop, 100000);
  CHECK_INT(client->n_end, 0);
  secure_finish(&secure);
}

static void say_much(client_t *client) {
  static const char body[LARGE];

  CHECK_INT(client_write(client, body, LARGE, NULL, 0), TNK_OK);
  CHECK_INT(client->n_at_once, 0);
}

static const char close_points[] = {'o', 'r', 'w', 'e'};

TEST(tls_may_be_closed_in_every_event) {
  size_t i;

  for (i = 0; i < sizeof(close_points); i++) {
    secure_t secure;
    client_t *client = &secure.world.client;
    secure_open(&secure, &good, &echoing);
    client->close_at = close_points[i];
    client->on_open = close_points[i] == 'w' ? say_much : client_say_hello;
    CHECK_INT(secure_connect(&secure, client, "good.test"), TNK_OK);
    if (close_points[i] == 'e') {
      TEST_RUN_UNTIL(&secure.world.context.uv, client->n_read > 0);
      test_conn_end(secure.world.server.conns);
    }
    TEST_RUN_UNTIL(&secure.world.context.uv, client->n_closed > 0);
    secure_finish(&secure);
  }
}

TEST_LIMIT(tls_may_be_closed_at_every_moment, 20) {
  secure_t secure;
  int n;

  secure_open(&secure, &good, &echoing);
  for (n = 0; n < 40; n++) {
    client_t client = {0};
    int i;
    if (n % 10 == 0)
      secure.world.server.options.chop = (size_t)n * 5;
    client.on_open = client_say_hello;
    CHECK_INT(secure_connect(&secure, &client, "good.test"), TNK_OK);
    for (i = 0; i < n % 20; i++)
      context_turn(&secure.world.context);
    client_finish(&client, &secure.world.context.uv);
  }
  secure_close(&secure);
}

TEST(many_tls_streams_at_once) {
  enum { N = 20 };
  client_t clients[N];
  secure_t secure;
  int i;

  memset(clients, 0, sizeof(clients));
  secure_open(&secure, &good, &echoing);
  for (i = 0; i < N; i++) {
    clients[i].on_open = client_say_hello;
    CHECK_INT(secure_connect(&secure, &clients[i], "good.test"), TNK_OK);
  }
  for (i = 0; i < N; i++) {
    TEST_RUN_UNTIL(&secure.world.context.uv, clients[i].got.len == 11);
    client_finish(&clients[i], &secure.world.context.uv);
  }
  secure_close(&secure);
}

/* One conversation; the outcome is that, or no memory. */
static void converse(secure_t *secure) {
  client_t client = {0};
  int err;

  client.on_open = client_say_hello;
  err = client_open(&client, secure->world.net, "127.0.0.1",
                    secure->world.server.port, 1);
  if (err != TNK_OK) {
    CHECK_INT(err, TNK_ENOMEM);
    CHECK(client.stream == NULL);
    return;
  }
  TEST_RUN_UNTIL(&secure->world.context.uv,
                 client.n_end > 0 || client.got.len == 11);
  if (client.n_end > 0)
    CHECK_INT(client.code, TNK_ENOMEM);
  client_finish(&client, &secure->world.context.uv);
}

TEST_LIMIT(tls_out_of_memory_is_reported_and_leaves_nothing, 30) {
  long n;

  for (n = 0; n < 100; n++) {
    secure_t secure;
    tnk__net_t *net;
    int failed;
    secure_open(&secure, &good, &echoing);
    tnk__net_unref(secure.world.net);
    secure.world.net = NULL;
    test_alloc_fail_at(n);
    if (tnk__net_new(&net, &secure.world.context.loop, secure.ca_path) ==
        TNK_OK) {
      secure.world.net = net;
      converse(&secure);
      converse(&secure);
    }
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    secure_close(&secure);
    if (!failed)
      break;
  }
  CHECK(n >= 10 && n < 100);
}
