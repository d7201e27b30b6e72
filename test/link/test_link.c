/* SPDX-License-Identifier: MIT */
/*
 * The link itself, with bytes and no protocol.
 */
#include <string.h>

#include "lib/base/list.h"
#include "lib/io/loop/context.h"
#include "support/link.h"
#include "support/test.h"
#include "support/tls_server.h"

/* A client behind the link. */
typedef struct {
  uv_tcp_t tcp;
  uv_connect_t connect;
  uv_write_t write;
  int connected; /* 1, or a code of libuv */
  int ended;     /* 1, or a code of libuv */
  int is_gone;
  size_t n_read;
  char last[256]; /* the last bytes that came */
} client_t;

typedef struct {
  uv_loop_t uv;
  uv_idle_t spin;
  test_server_t server;
  test_link_t *link;
  tnk__context_t *clock;
} wire_t;

enum { MAX_DATA = 1 << 20 };

static char data[MAX_DATA];

static void on_spin(uv_idle_t *idle) {
  (void)idle;
}

static void turns(wire_t *wire, int n) {
  uv_idle_start(&wire->spin, on_spin);
  while (n-- > 0)
    uv_run(&wire->uv, UV_RUN_NOWAIT);
  uv_idle_stop(&wire->spin);
}

/* A millisecond at a time, so that what one sets off is in time. */
static void pass(wire_t *wire, uint64_t ms) {
  turns(wire, 20);
  for (; ms > 0; ms--) {
    tnk__context_advance(wire->clock, 1);
    turns(wire, 6);
  }
}

static void echo(test_conn_t *conn, const unsigned char *bytes, size_t n) {
  test_conn_write(conn, bytes, n);
}

/* Answers who says little. */
static void echo_one(test_conn_t *conn, const unsigned char *bytes, size_t n) {
  if (n == 1)
    test_conn_write(conn, bytes, n);
}

static void open_wire(wire_t *wire, int echoes) {
  const test_server_options_t options = {.on_read = echoes ? echo : echo_one};

  memset(wire, 0, sizeof(*wire));
  CHECK_INT(uv_loop_init(&wire->uv), 0);
  uv_idle_init(&wire->uv, &wire->spin);
  test_server_open(&wire->server, &wire->uv, &options);
  wire->link = test_link_open(&wire->uv, (uint16_t)wire->server.port);
  wire->clock = test_link_clock(wire->link);
  tnk__context_fake_clock(wire->clock, 5000);
}

static void close_wire(wire_t *wire) {
  test_link_close(wire->link);
  test_server_close(&wire->server);
  uv_close((uv_handle_t *)&wire->spin, NULL);
  uv_run(&wire->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&wire->uv), 0);
}

static void tell(wire_t *wire, const char *words) {
  CHECK_INT(test_link_tell(wire->link, words), 0);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  static char space[65536];

  (void)handle;
  (void)hint;
  *buf = uv_buf_init(space, sizeof(space));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  client_t *client = stream->data;

  if (n < 0) {
    client->ended = n == UV_EOF ? 1 : (int)n;
    uv_read_stop(stream);
    return;
  }
  client->n_read += (size_t)n;
  snprintf(client->last, sizeof(client->last), "%.*s", (int)n, buf->base);
}

static void on_connected(uv_connect_t *connect, int status) {
  client_t *client = connect->data;

  client->connected = status == 0 ? 1 : status;
  if (status == 0)
    CHECK_INT(uv_read_start((uv_stream_t *)&client->tcp, on_alloc, on_read), 0);
}

static void dial(wire_t *wire, client_t *client) {
  struct sockaddr_in address;

  memset(client, 0, sizeof(*client));
  CHECK_INT(uv_tcp_init(&wire->uv, &client->tcp), 0);
  client->tcp.data = client->connect.data = client;
  uv_ip4_addr("127.0.0.1", test_link_port(wire->link), &address);
  CHECK_INT(uv_tcp_connect(&client->connect, &client->tcp,
                           (const struct sockaddr *)&address, on_connected),
            0);
  turns(wire, 20);
}

static void say(client_t *client, size_t n) {
  uv_buf_t buf = uv_buf_init(data, (unsigned)n);

  CHECK(n <= sizeof(data));
  CHECK_INT(
      uv_write(&client->write, (uv_stream_t *)&client->tcp, &buf, 1, NULL), 0);
}

static void on_gone(uv_handle_t *handle) {
  ((client_t *)handle->data)->is_gone = 1;
}

static void hang_up(wire_t *wire, client_t *client) {
  uv_close((uv_handle_t *)&client->tcp, on_gone);
  while (!client->is_gone)
    uv_run(&wire->uv, UV_RUN_NOWAIT);
}

TEST(link_passes_bytes_and_ends_on) {
  wire_t wire;
  client_t client;

  open_wire(&wire, 1);
  dial(&wire, &client);
  CHECK_INT(client.connected, 1);
  say(&client, 300000);
  while (client.n_read < 300000)
    turns(&wire, 1);
  CHECK_INT(test_link_counts(wire.link)->n_bytes[0], 300000);
  CHECK_INT(test_link_counts(wire.link)->n_bytes[1], 300000);
  CHECK_INT(test_link_counts(wire.link)->n_open, 1);
  CHECK_INT(wire.server.n_open, 1);
  hang_up(&wire, &client);
  turns(&wire, 20);
  CHECK_INT(wire.server.n_ended, 1);
  CHECK_INT(wire.server.n_open, 0);
  CHECK_INT(test_link_counts(wire.link)->n_open, 0);
  /* The server's end comes through as well, behind what it said. */
  dial(&wire, &client);
  say(&client, 5);
  turns(&wire, 20);
  test_conn_end(wire.server.conns);
  turns(&wire, 20);
  CHECK_INT(client.n_read, 5);
  CHECK_INT(client.ended, 1);
  hang_up(&wire, &client);
  close_wire(&wire);
}

TEST(link_delays_each_way_and_the_beginning) {
  wire_t wire;
  client_t client;

  open_wire(&wire, 1);
  tell(&wire, "delay 75");
  dial(&wire, &client);
  say(&client, 10);
  /* A round trip to connect, half of one to the server, half of one back. */
  pass(&wire, 224);
  CHECK_INT(wire.server.n_received, 0);
  pass(&wire, 2);
  CHECK_INT(wire.server.n_received, 10);
  pass(&wire, 73);
  CHECK_INT(client.n_read, 0);
  pass(&wire, 2);
  CHECK_INT(client.n_read, 10);
  hang_up(&wire, &client);
  close_wire(&wire);
}

/* What a server said before it ended the connection is on its way still. */
TEST(link_delays_an_end_as_it_does_bytes) {
  wire_t wire;
  client_t client;

  open_wire(&wire, 1);
  tell(&wire, "delay 75");
  dial(&wire, &client);
  say(&client, 10);
  pass(&wire, 226);
  CHECK_INT(wire.server.n_received, 10);
  test_conn_end(wire.server.conns);
  pass(&wire, 70);
  CHECK_INT(client.n_read, 0);
  pass(&wire, 10);
  CHECK_INT(client.n_read, 10);
  CHECK_INT(client.ended, 1);
  hang_up(&wire, &client);
  close_wire(&wire);
}

/* What is on its way then is for nobody. */
TEST(link_forgets_a_connection_that_both_end_at_once) {
  wire_t wire;
  client_t client;

  open_wire(&wire, 1);
  tell(&wire, "delay 75");
  dial(&wire, &client);
  say(&client, 10);
  pass(&wire, 226);
  hang_up(&wire, &client);
  turns(&wire, 20);
  test_conn_end(wire.server.conns);
  turns(&wire, 20);
  CHECK_INT(test_link_counts(wire.link)->n_open, 0);
  CHECK(wire.clock->timers.root == NULL);
  pass(&wire, 100);
  close_wire(&wire);
}

TEST(link_has_a_rate_and_a_queue) {
  wire_t wire;
  client_t client;
  size_t n_before;

  open_wire(&wire, 0);
  tell(&wire, "rate 800"); /* 100 bytes a millisecond */
  tell(&wire, "queue 20000");
  dial(&wire, &client);
  say(&client, MAX_DATA);
  pass(&wire, 1000);
  CHECK(wire.server.n_received > 95000 && wire.server.n_received <= 100000);
  n_before = wire.server.n_received;
  pass(&wire, 1000);
  CHECK(wire.server.n_received - n_before > 95900);
  CHECK(wire.server.n_received - n_before < 104100);
  CHECK(test_link_counts(wire.link)->most_queued[0] <= 20000);
  CHECK(test_link_counts(wire.link)->most_queued[0] > 15000);
  hang_up(&wire, &client);
  close_wire(&wire);
}

/* Who has little to say need not wait until who has much has said it, and who
 * has nothing to say takes no room. */
TEST(link_lets_all_take_turns) {
  enum { N_IDLE = 50 };
  wire_t wire;
  client_t idle[N_IDLE];
  client_t big;
  client_t small;

  open_wire(&wire, 0);
  tell(&wire, "rate 800");
  tell(&wire, "queue 8192");
  for (int i = 0; i < N_IDLE; i++) {
    dial(&wire, &idle[i]);
    say(&idle[i], 1);
  }
  dial(&wire, &big);
  dial(&wire, &small);
  pass(&wire, 10);
  say(&big, MAX_DATA);
  pass(&wire, 500);
  say(&small, 1);
  /* It waits for what is in the queue, and for one piece of the other's. */
  pass(&wire, 130);
  CHECK_INT(small.n_read, 1);
  CHECK(wire.server.n_received < MAX_DATA / 10);
  hang_up(&wire, &big);
  hang_up(&wire, &small);
  for (int i = 0; i < N_IDLE; i++)
    hang_up(&wire, &idle[i]);
  close_wire(&wire);
}

TEST(link_loses_pieces_and_repeats_them_in_order) {
  wire_t wire;
  client_t client;

  open_wire(&wire, 1);
  tell(&wire, "delay 10");
  tell(&wire, "loss 200");
  dial(&wire, &client);
  say(&client, 100000);
  pass(&wire, 300);
  CHECK(client.n_read < 100000);
  pass(&wire, 3000);
  CHECK_INT(client.n_read, 100000);
  CHECK(test_link_counts(wire.link)->n_lost > 2);
  hang_up(&wire, &client);
  close_wire(&wire);
}

TEST(link_pauses_and_goes_on) {
  wire_t wire;
  client_t client;

  open_wire(&wire, 1);
  tell(&wire, "@1000 pause");
  tell(&wire, "@61000 go");
  dial(&wire, &client);
  say(&client, 10);
  pass(&wire, 10);
  CHECK_INT(client.n_read, 10);
  pass(&wire, 1000);
  say(&client, 10);
  pass(&wire, 59000);
  CHECK_INT(wire.server.n_received, 10);
  pass(&wire, 1000);
  CHECK_INT(client.n_read, 20);
  hang_up(&wire, &client);
  close_wire(&wire);
}

TEST(link_ends_connections_by_resets_and_in_order) {
  wire_t wire;
  client_t clients[2];

  open_wire(&wire, 1);
  dial(&wire, &clients[0]);
  tell(&wire, "reset");
  turns(&wire, 20);
  CHECK_INT(clients[0].ended, UV_ECONNRESET);
  CHECK_INT(wire.server.n_open, 0);
  dial(&wire, &clients[1]);
  tell(&wire, "cut");
  turns(&wire, 20);
  CHECK_INT(clients[1].ended, 1);
  CHECK_INT(wire.server.n_open, 0);
  CHECK_INT(test_link_counts(wire.link)->n_open, 0);
  for (int i = 0; i < 2; i++)
    hang_up(&wire, &clients[i]);
  close_wire(&wire);
}

TEST(link_goes_away_and_comes_back) {
  wire_t wire;
  client_t clients[3];

  open_wire(&wire, 1);
  dial(&wire, &clients[0]);
  tell(&wire, "away");
  turns(&wire, 20);
  CHECK_INT(clients[0].ended, UV_ECONNRESET);
  dial(&wire, &clients[1]);
  CHECK_INT(clients[1].connected, UV_ECONNREFUSED);
  tell(&wire, "back");
  dial(&wire, &clients[2]);
  say(&clients[2], 10);
  turns(&wire, 20);
  CHECK_INT(clients[2].n_read, 10);
  for (int i = 0; i < 3; i++)
    hang_up(&wire, &clients[i]);
  close_wire(&wire);
}

TEST(link_lets_connections_die_in_silence) {
  wire_t wire;
  client_t old;
  client_t fresh;

  open_wire(&wire, 1);
  dial(&wire, &old);
  turns(&wire, 20);
  tell(&wire, "silence");
  say(&old, 10);
  pass(&wire, 1000);
  CHECK_INT(old.ended, 0);
  CHECK_INT(old.n_read, 0);
  CHECK_INT(wire.server.n_open, 1);
  dial(&wire, &fresh);
  say(&fresh, 10);
  pass(&wire, 10);
  CHECK_INT(fresh.n_read, 10);
  hang_up(&wire, &old);
  pass(&wire, 10);
  /* The server is not told either. */
  CHECK_INT(wire.server.n_open, 2);
  hang_up(&wire, &fresh);
  close_wire(&wire);
}

/* ---- Limits ---- */

/* `end`: what the connection that is one too many comes to. */
static void check_limit(const char *words, int end) {
  wire_t wire;
  client_t clients[3];

  open_wire(&wire, 1);
  tell(&wire, words);
  for (int i = 0; i < 3; i++) {
    dial(&wire, &clients[i]);
    if (clients[i].connected == 1)
      say(&clients[i], 4);
    turns(&wire, 20);
  }
  CHECK_INT(clients[1].n_read, 4);
  CHECK_INT(clients[2].connected == 1 ? clients[2].ended : clients[2].connected,
            end);
  CHECK_INT(wire.server.n_open, 2);
  CHECK_INT(test_link_counts(wire.link)->n_open, 2);
  /* One that ends makes room. */
  hang_up(&wire, &clients[2]);
  hang_up(&wire, &clients[0]);
  turns(&wire, 20);
  dial(&wire, &clients[0]);
  CHECK_INT(clients[0].connected, 1);
  say(&clients[0], 4);
  turns(&wire, 20);
  CHECK_INT(clients[0].n_read, 4);
  hang_up(&wire, &clients[0]);
  hang_up(&wire, &clients[1]);
  close_wire(&wire);
}

TEST(link_refuses_connections_beyond_its_limit) {
  check_limit("limit 2 refuse", UV_ECONNREFUSED);
}

TEST(link_closes_connections_beyond_its_limit) {
  check_limit("limit 2 close", 1);
}

TEST(link_resets_connections_beyond_its_limit) {
  check_limit("limit 2 reset", UV_ECONNRESET);
}

TEST(link_answers_503_beyond_its_limit) {
  check_limit("limit 2 503", 1);
}

TEST(link_lets_connections_wait_beyond_its_limit) {
  wire_t wire;
  client_t clients[4];

  open_wire(&wire, 1);
  tell(&wire, "limit 1 wait");
  for (int i = 0; i < 4; i++) {
    dial(&wire, &clients[i]);
    say(&clients[i], 4);
  }
  for (int i = 0; i < 4; i++) {
    turns(&wire, 20);
    CHECK_INT(test_link_counts(wire.link)->n_connections, i + 1);
    CHECK_INT(clients[i].n_read, 4);
    hang_up(&wire, &clients[i]);
  }
  close_wire(&wire);
}

TEST(link_knows_its_words) {
  static const char *const wrong[] = {
      "",        "halt",      "delay", "limit 5", "limit 5 politely",
      "queue 0", "loss 1000", "@5",    "@x pause"};
  wire_t wire;

  open_wire(&wire, 1);
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
    CHECK_INT(test_link_tell(wire.link, wrong[i]), -1);
  /* What is left to do when it closes is not done. */
  tell(&wire, "@1000 pause");
  close_wire(&wire);
}
