/* SPDX-License-Identifier: MIT */
#include "lib/io/net/stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/client.h"

TEST(tcp_writes_and_reads) {
  world_t world;
  client_t *client = &world.client;

  world_open(&world, &echoing, NULL);
  client->on_open = client_say_hello;
  world_connect(&world, client, "127.0.0.1");
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  TEST_RUN_UNTIL(&world.context.uv, client->got.len == 11);
  CHECK_MEM(client->got.data, client->got.len, "hello world", 11);
  CHECK_INT(client->n_open, 1);
  CHECK_INT(client->n_at_once, 1);
  CHECK_INT(client->n_written, 1);
  CHECK_INT(client->write_cause, 0);
  CHECK_INT(tnk__stream_n_sent(client->stream), 11);
  CHECK_INT(world.net->counters.n_connected, 1);
  CHECK_INT(world.context.loop.counters.n_bytes_sent, 11);
  CHECK_INT(world.context.loop.counters.n_bytes_received, 11);
  world_finish(&world);
}

TEST(tcp_speaks_ipv6) {
  static const test_server_options_t options = {.address = "::1",
                                                .on_read = echo};
  world_t world;
  uv_interface_address_t *list;
  int n;
  int i;
  int found = 0;

  CHECK_INT(uv_interface_addresses(&list, &n), 0);
  for (i = 0; i < n; i++)
    found |= list[i].address.address4.sin_family == AF_INET6;
  uv_free_interface_addresses(list, n);
  if (!found)
    test_skip("no IPv6 on this machine");
  world_open(&world, &options, NULL);
  world.client.on_open = client_say_hello;
  world_connect(&world, &world.client, "::1");
  TEST_RUN_UNTIL(&world.context.uv, world.client.got.len == 11);
  world_finish(&world);
}

/* Open a listener only to learn a port that nobody listens on any more. */
static int dead_port(uv_loop_t *loop) {
  test_server_t server;

  test_server_open(&server, loop, &silent);
  test_server_close(&server);
  uv_run(loop, UV_RUN_NOWAIT);
  return server.port;
}

TEST(tcp_refused_says_so) {
  world_t world;
  client_t *client = &world.client;
  int port;

  world_open(&world, &silent, NULL);
  port = dead_port(&world.context.uv);
  CHECK_INT(client_open(client, world.net, "127.0.0.1", port, 0), TNK_OK);
  TEST_RUN_UNTIL(&world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ECONN);
  CHECK_INT(client->cause, UV_ECONNREFUSED);
  CHECK(strstr(client->text, "127.0.0.1") != NULL);
  CHECK(strstr(client->text, "connection refused") != NULL);
  CHECK_INT(client->n_open, 0);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  world_finish(&world);
}

TEST(an_orderly_end_is_no_error_and_a_reset_is_one) {
  world_t world;
  client_t *client = &world.client;
  client_t second = {0};

  world_meet(&world, &silent);
  test_conn_write(world.server.conns, "bye", 3);
  test_conn_end(world.server.conns);
  TEST_RUN_UNTIL(&world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_OK);
  CHECK_INT(client->got.len, 3);
  client_finish(client, &world.context.uv);

  world_connect(&world, &second, "127.0.0.1");
  TEST_RUN_UNTIL(&world.context.uv, second.n_open && world.server.n_open);
  test_conn_write(world.server.conns, "cut", 3);
  test_conn_reset(world.server.conns);
  TEST_RUN_UNTIL(&world.context.uv, second.n_end > 0);
  CHECK_INT(second.code, TNK_ECONN);
  CHECK_INT(second.cause, UV_ECONNRESET);
  client_finish(&second, &world.context.uv);
  world_close(&world);
}

/* The kernel accepts for a listener that nobody serves, so a deadline can only
 * be seen where nothing answers at all: the look-up is still under way. */
TEST(A8_connect_deadline_on_a_fake_clock) {
  world_t world;
  client_t *client = &world.client;

  world_open(&world, &silent, NULL);
  tnk__context_fake_clock(&world.context.loop, 1000);
  world_connect(&world, client, "localhost");
  tnk__context_advance(&world.context.loop, 4999);
  CHECK_INT(client->n_end, 0);
  tnk__context_advance(&world.context.loop, 1);
  CHECK_INT(client->n_end, 1);
  CHECK_INT(client->code, TNK_ETIMEDOUT);
  CHECK(strstr(client->text, "looking up localhost") != NULL);
  world_finish(&world);
}

TEST(tcp_refuses_a_write_before_it_is_open) {
  world_t world;
  client_t *client = &world.client;

  world_open(&world, &silent, NULL);
  world_connect(&world, client, "127.0.0.1");
  CHECK_INT(client_write(client, "x", 1, NULL, 0), TNK_ECONN);
  client_finish(client, &world.context.uv);
  CHECK_INT(client->n_end + client->n_open, 0);
  world_close(&world);
}

/* Much more than the sockets hold, so that libuv keeps the rest. */
enum { LARGE = 16 * 1024 * 1024 };

TEST(a_large_write_waits_for_the_reader) {
  world_t world;
  client_t *client = &world.client;
  char *body = calloc(1, LARGE);
  uint64_t n_sent;

  world_meet(&world, &silent);
  test_conn_pause(world.server.conns, 1);
  CHECK_INT(client_write(client, "head", 4, body, LARGE), TNK_OK);
  CHECK_INT(client_write(client, "more", 4, NULL, 0), TNK_ECONN);
  n_sent = tnk__stream_n_sent(client->stream);
  CHECK(n_sent > 0 && n_sent < LARGE);
  context_turn(&world.context);
  CHECK_INT(client->n_written, 0);
  test_conn_pause(world.server.conns, 0);
  TEST_RUN_UNTIL(&world.context.uv, client->n_written > 0);
  CHECK_INT(tnk__stream_n_sent(client->stream), LARGE + 4);
  TEST_RUN_UNTIL(&world.context.uv, world.server.n_received == LARGE + 4);
  client_finish(client, &world.context.uv);
  free(body);
  world_close(&world);
}

TEST(closing_gives_the_bytes_of_a_write_back) {
  world_t world;
  client_t *client = &world.client;
  char *body = calloc(1, LARGE);

  world_meet(&world, &silent);
  test_conn_pause(world.server.conns, 1);
  CHECK_INT(client_write(client, body, LARGE, NULL, 0), TNK_OK);
  client_close(client);
  free(body); /* a use after this is seen by the address sanitizer */
  client_finish(client, &world.context.uv);
  CHECK_INT(client->n_written, 0);
  world_close(&world);
}

/* What a keep-alive connection meets when the server had closed it. */
TEST(a_write_to_a_reset_connection_sends_nothing) {
  world_t world;
  client_t *client = &world.client;

  world_meet(&world, &silent);
  tnk__stream_pause(client->stream, 1);
  test_conn_reset(world.server.conns);
  TEST_RUN_UNTIL(&world.context.uv, world.server.n_open == 0);
  CHECK_INT(client_write(client, "request", 7, NULL, 0), TNK_OK);
  TEST_RUN_UNTIL(&world.context.uv, client->n_written > 0);
  CHECK(client->write_cause < 0);
  CHECK_INT(tnk__stream_n_sent(client->stream), 0);
  CHECK_INT(client_write(client, "again", 5, NULL, 0), TNK_ECONN);
  tnk__stream_pause(client->stream, 0);
  TEST_RUN_UNTIL(&world.context.uv, client->n_end > 0);
  world_finish(&world);
}

TEST(a_paused_stream_reads_nothing) {
  world_t world;
  client_t *client = &world.client;
  int i;

  world_open(&world, &silent, NULL);
  world_connect(&world, client, "127.0.0.1");
  tnk__stream_pause(client->stream, 1);
  TEST_RUN_UNTIL(&world.context.uv, client->n_open && world.server.n_open);
  test_conn_write(world.server.conns, "data", 4);
  for (i = 0; i < 10; i++)
    context_turn(&world.context);
  CHECK_INT(client->n_read, 0);
  tnk__stream_pause(client->stream, 0);
  tnk__stream_pause(client->stream, 0);
  TEST_RUN_UNTIL(&world.context.uv, client->n_read > 0);
  CHECK_MEM(client->got.data, client->got.len, "data", 4);
  world_finish(&world);
}

TEST(an_unused_stream_does_not_hold_the_loop) {
  world_t world;
  client_t *client = &world.client;

  world_meet(&world, &silent);
  uv_unref((uv_handle_t *)&world.server.listener);
  uv_unref((uv_handle_t *)&world.server.conns->tcp);
  CHECK(uv_loop_alive(&world.context.uv));
  tnk__stream_hold_loop(client->stream, 0);
  CHECK(!uv_loop_alive(&world.context.uv));
  tnk__stream_hold_loop(client->stream, 1);
  CHECK(uv_loop_alive(&world.context.uv));
  world_finish(&world);
}

static void say_much(client_t *client) {
  static const char body[LARGE];

  CHECK_INT(client_write(client, body, LARGE, NULL, 0), TNK_OK);
  CHECK_INT(client->n_at_once, 0);
}

static const char close_points[] = {'o', 'r', 'w', 'e'};

TEST(closing_is_legal_in_every_event) {
  size_t i;

  for (i = 0; i < sizeof(close_points); i++) {
    world_t world;
    client_t *client = &world.client;
    world_open(&world, &echoing, NULL);
    client->close_at = close_points[i];
    client->on_open = close_points[i] == 'w' ? say_much : client_say_hello;
    world_connect(&world, client, "127.0.0.1");
    if (close_points[i] == 'e') {
      TEST_RUN_UNTIL(&world.context.uv, client->n_read > 0);
      test_conn_end(world.server.conns);
    }
    TEST_RUN_UNTIL(&world.context.uv, client->n_closed > 0);
    world_finish(&world);
  }
}

/* After each number of turns until the stream has ended by itself. */
TEST(closing_is_legal_at_every_moment) {
  int n;

  for (n = 0; n < 12; n++) {
    world_t world;
    int i;
    world_open(&world, &echoing, NULL);
    world.client.on_open = client_say_hello;
    world_connect(&world, &world.client, "localhost");
    for (i = 0; i < n; i++)
      context_turn(&world.context);
    world_finish(&world);
  }
}

TEST(the_context_waits_for_a_stream_that_closes) {
  world_t world;

  world_open(&world, &silent, NULL);
  world_connect(&world, &world.client, "127.0.0.1");
  TEST_RUN_UNTIL(&world.context.uv, world.client.n_open > 0);
  client_close(&world.client);
  world_close(&world);
  CHECK_INT(world.client.n_closed, 1);
  tnk__buf_deinit(&world.client.got);
}

/* Two addresses that do not answer before one that does. */
static void fake_addresses(tnk__net_t *net, const char *const *list, size_t n) {
  tnk__address_t addresses[TNK__DNS_MAX_ADDRESSES];
  size_t i;

  for (i = 0; i < n; i++)
    CHECK(tnk__address_parse(&addresses[i], list[i]));
  CHECK_INT(tnk__dns_learn(&net->dns, "several.test", addresses, n), TNK_OK);
}

TEST(an_address_that_refuses_gives_way_to_the_next) {
  static const char *const list[] = {"127.0.0.2", "127.0.0.3", "127.0.0.1"};
  world_t world;
  client_t *client = &world.client;
  client_t again = {0};

  world_open(&world, &echoing, NULL);
  fake_addresses(world.net, list, 3);
  client->on_open = client_say_hello;
  world_connect(&world, client, "several.test");
  TEST_RUN_UNTIL(&world.context.uv, client->got.len == 11);
  CHECK_INT(world.server.n_accepted, 1);
  client_finish(client, &world.context.uv);
  /* The one that answered is asked first the next time. */
  test_server_close(&world.server);
  context_turn(&world.context);
  test_server_open(&world.server, &world.context.uv, &echoing);
  world_connect(&world, &again, "several.test");
  TEST_RUN_UNTIL(&world.context.uv, again.n_open > 0);
  client_finish(&again, &world.context.uv);
  CHECK_INT(world.net->dns.n_lookups, 0);
  world_close(&world);
}

TEST(all_addresses_refused_is_one_failure) {
  static const char *const list[] = {"127.0.0.2", "127.0.0.3"};
  world_t world;
  client_t *client = &world.client;

  world_open(&world, &silent, NULL);
  fake_addresses(world.net, list, 2);
  world_connect(&world, client, "several.test");
  TEST_RUN_UNTIL(&world.context.uv, client->n_end > 0);
  CHECK_INT(client->code, TNK_ECONN);
  CHECK_INT(client->cause, UV_ECONNREFUSED);
  world_finish(&world);
}

/* A listener whose queue is full drops what comes: as good as a host that does
 * not answer. */
enum { N_FILLERS = 3 };

typedef struct {
  int fds[1 + N_FILLERS];
  int port;
} tarpit_t;

static void tarpit_open(tarpit_t *pit, const char *host, int port) {
  struct sockaddr_in address;
  socklen_t len = sizeof(address);
  int i;

  CHECK_INT(uv_ip4_addr(host, port, &address), 0);
  pit->fds[0] = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_INT(bind(pit->fds[0], (struct sockaddr *)&address, len), 0);
  CHECK_INT(listen(pit->fds[0], 0), 0);
  CHECK_INT(getsockname(pit->fds[0], (struct sockaddr *)&address, &len), 0);
  pit->port = ntohs(address.sin_port);
  for (i = 1; i <= N_FILLERS; i++) {
    pit->fds[i] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(fcntl(pit->fds[i], F_SETFL, O_NONBLOCK), 0);
    (void)!connect(pit->fds[i], (struct sockaddr *)&address, len);
  }
}

static void tarpit_close(tarpit_t *pit) {
  int i;

  for (i = 0; i <= N_FILLERS; i++)
    close(pit->fds[i]);
}

TEST(A8_a_connection_that_hangs_meets_its_deadline) {
  world_t world;
  client_t *client = &world.client;
  tarpit_t pit;
  int i;

  world_open(&world, &silent, NULL);
  tarpit_open(&pit, "127.0.0.1", 0);
  tnk__context_fake_clock(&world.context.loop, 1000);
  CHECK_INT(client_open(client, world.net, "127.0.0.1", pit.port, 0), TNK_OK);
  for (i = 0; i < 5; i++)
    context_turn(&world.context);
  tnk__context_advance(&world.context.loop, 4999);
  CHECK_INT(client->n_end, 0);
  tnk__context_advance(&world.context.loop, 1);
  CHECK_INT(client->n_end, 1);
  CHECK_INT(client->code, TNK_ETIMEDOUT);
  CHECK(strstr(client->text, "connecting to 127.0.0.1") != NULL);
  client_finish(client, &world.context.uv);
  tarpit_close(&pit);
  world_close(&world);
}

TEST(an_address_that_hangs_gets_company_after_250_ms) {
  static const char *const list[] = {"127.0.0.2", "127.0.0.1"};
  world_t world;
  client_t *client = &world.client;
  tarpit_t pit;
  int i;

  world_open(&world, &echoing, NULL);
  tarpit_open(&pit, "127.0.0.2", world.server.port);
  tnk__context_fake_clock(&world.context.loop, 1000);
  fake_addresses(world.net, list, 2);
  client->on_open = client_say_hello;
  world_connect(&world, client, "several.test");
  for (i = 0; i < 5; i++)
    context_turn(&world.context);
  tnk__context_advance(&world.context.loop, 249);
  for (i = 0; i < 5; i++)
    context_turn(&world.context);
  CHECK_INT(world.server.n_accepted, 0);
  tnk__context_advance(&world.context.loop, 1);
  TEST_RUN_UNTIL(&world.context.uv, client->got.len == 11);
  CHECK_INT(client->n_open, 1);
  client_finish(client, &world.context.uv);
  tarpit_close(&pit);
  world_close(&world);
}

/* Every allocation of a connection in turn. */
static void converse(world_t *world, int is_tls) {
  client_t *client = &world->client;
  int err;

  memset(client, 0, sizeof(*client));
  client->on_open = client_say_hello;
  err =
      client_open(client, world->net, "localhost", world->server.port, is_tls);
  if (err != TNK_OK) {
    CHECK_INT(err, TNK_ENOMEM);
    CHECK(client->stream == NULL);
    return;
  }
  TEST_RUN_UNTIL(&world->context.uv, client->n_end > 0 || client->got.len > 0);
  if (client->n_end > 0)
    CHECK_INT(client->code, TNK_ENOMEM);
  client_finish(client, &world->context.uv);
}

TEST(out_of_memory_is_reported_and_leaves_nothing) {
  long n;

  if (!test_has_localhost())
    test_skip("localhost has no address here");
  for (n = 0; n < 100; n++) {
    world_t world;
    int failed;
    tnk__net_t *net;
    memset(&world, 0, sizeof(world));
    context_open(&world.context);
    test_server_open(&world.server, &world.context.uv, &echoing);
    test_alloc_fail_at(n);
    if (tnk__net_new(&net, &world.context.loop, "/dev/null") == TNK_OK) {
      world.net = net;
      converse(&world, 0);
    } else {
      CHECK(net == NULL);
    }
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    world_close(&world);
    if (!failed)
      break;
  }
  CHECK(n >= 5 && n < 100);
}

/* ---- What tells of dead connections, and of how far a request is ---- */

#ifdef TCP_USER_TIMEOUT
/* The socket of a client: the latest one, as it is tuned. */
static int option_of(const client_t *client, int option) {
  const int fd = *(const int *)client->user;
  socklen_t len = sizeof(int);
  int value = -1;

  CHECK_INT(getsockopt(fd, IPPROTO_TCP, option, &value, &len), 0);
  return value;
}

TEST(a_dead_connection_is_noticed_in_15_s_and_one_that_does_not_read_in_30) {
  static const size_t large = (size_t)16 << 20;
  char *data = calloc(1, large);
  world_t world;
  client_t *client = &world.client;
  int fd;

  CHECK(data != NULL);
  world_open(&world, &silent, NULL);
  fd = dup(0); /* the number that the next socket gets */
  close(fd);
  client->user = &fd;
  world_connect(&world, client, "127.0.0.1");
  TEST_RUN_UNTIL(&world.context.uv, client->n_open && world.server.n_open);
  CHECK_INT(option_of(client, TCP_USER_TIMEOUT), 15000);
  CHECK_INT(option_of(client, TCP_KEEPIDLE), 10);
  CHECK_INT(option_of(client, TCP_NOTSENT_LOWAT), 128 * 1024);
  test_conn_pause(world.server.conns, 1);
  CHECK_INT(client_write(client, data, large, NULL, 0), TNK_OK);
  CHECK_INT(client->n_written, 0);
  CHECK_INT(option_of(client, TCP_USER_TIMEOUT), 30000);
  /* What the system has taken of it is little more than what it has sent. */
  CHECK(tnk__stream_n_sent(client->stream) < large / 2);
  test_conn_pause(world.server.conns, 0);
  TEST_RUN_UNTIL(&world.context.uv, client->n_written == 1);
  CHECK_INT(client_write(client, "x", 1, NULL, 0), TNK_OK);
  CHECK_INT(option_of(client, TCP_USER_TIMEOUT), 15000);
  world_finish(&world);
  free(data);
}
#endif

/* ---- libuv's table of descriptors ---- */

static long max_table; /* libuv gets no more memory in one piece */

static void *limited_realloc(void *p, size_t n) {
  return n > (size_t)max_table ? NULL : realloc(p, n);
}

/* libuv ends the process when it cannot make room for a descriptor. */
TEST(no_memory_for_libuvs_table_of_descriptors_is_an_error) {
  world_t world;
  client_t *client = &world.client;
  int fds[512];
  int n = 0;

  max_table = 1 << 30;
  CHECK_INT(uv_replace_allocator(malloc, limited_realloc, calloc, free), 0);
  world_open(&world, &silent, NULL);
  do {
    fds[n] = dup(0);
    CHECK(fds[n] >= 0);
  } while ((unsigned)fds[n++] < world.context.uv.nwatchers && n < 512);
  max_table = (long)(world.context.uv.nwatchers * sizeof(void *));
  world_connect(&world, client, "127.0.0.1");
  /* The socket, and then what the table would take. */
  test_alloc_fail_at(1);
  TEST_RUN_UNTIL(&world.context.uv, client->n_end > 0);
  CHECK(test_alloc_did_fail());
  CHECK_INT(client->code, TNK_ENOMEM);
  max_table = 1 << 30;
  while (n > 0)
    close(fds[--n]);
  world_finish(&world);
}
