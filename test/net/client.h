/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_NET_CLIENT_H
#define TNK_TEST_NET_CLIENT_H

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/io/net/net.h"
#include "lib/io/net/stream.h"
#include "loop/fixture.h"
#include "support/tls_server.h"

/* The owner of one stream. It writes down what it is told, and does what a
 * case wants in the hooks. */
typedef struct client {
  tnk__stream_t *stream; /* NULL once closed */
  tnk__buf_t got;        /* not of the allocator whose failures are tested */
  int n_open;
  int n_read;
  int n_written;
  int n_at_once; /* of them, without an event */
  int n_end;
  int n_closed;
  int write_cause;
  int code;
  int cause;
  int is_final;
  char text[320];
  int is_calling; /* inside a call of ours: no event may come */
  int close_at;   /* close inside that event: 'o', 'r', 'w' or 'e' */
  void (*on_open)(struct client *client);
  void (*on_read)(struct client *client);
  const tnk__via_t *via;
  void *user;
} client_t;

static inline void client_close(client_t *client) {
  tnk__stream_t *stream = client->stream;

  client->stream = NULL;
  client->is_calling++;
  tnk__stream_close(stream);
  client->is_calling--;
}

static inline client_t *client_enter(tnk__stream_t *stream) {
  client_t *client = stream->user;

  CHECK_INT(client->is_calling, 0);
  CHECK(client->stream == stream);
  CHECK_INT(client->n_end, 0);
  return client;
}

static inline void client_on_open(tnk__stream_t *stream) {
  client_t *client = client_enter(stream);

  client->n_open++;
  if (client->on_open != NULL)
    client->on_open(client);
  if (client->close_at == 'o')
    client_close(client);
}

static inline void client_on_read(tnk__stream_t *stream, const uint8_t *data,
                                  size_t n) {
  client_t *client = client_enter(stream);

  CHECK_INT(client->n_open, 1);
  CHECK(n > 0);
  client->n_read++;
  tnk__buf_append(&client->got, data, n);
  if (client->on_read != NULL)
    client->on_read(client);
  if (client->close_at == 'r')
    client_close(client);
}

static inline void client_on_written(tnk__stream_t *stream, int cause) {
  client_t *client = client_enter(stream);

  client->n_written++;
  client->write_cause = cause;
  if (client->close_at == 'w')
    client_close(client);
}

static inline void client_on_end(tnk__stream_t *stream,
                                 const tnk__net_error_t *error) {
  client_t *client = client_enter(stream);

  client->n_end++;
  client->code = error->code;
  client->cause = error->cause;
  client->is_final = error->is_final;
  CHECK(error->text != NULL);
  snprintf(client->text, sizeof(client->text), "%s", error->text);
  if (client->close_at == 'e')
    client_close(client);
}

static inline void client_on_closed(void *user) {
  client_t *client = user;

  CHECK_INT(client->is_calling, 0);
  CHECK(client->stream == NULL);
  client->n_closed++;
}

static inline int client_open(client_t *client, tnk__net_t *net,
                              const char *host, int port, int is_tls) {
  static const tnk__stream_events_t events = {client_on_open, client_on_read,
                                              client_on_written, client_on_end,
                                              client_on_closed};
  const tnk__origin_t origin = {host, (uint16_t)port, is_tls};
  int err;

  tnk__buf_init(&client->got, tnk__allocator_default(), SIZE_MAX / 2);
  client->is_calling++;
  err = tnk__stream_open(&client->stream, net, &origin, client->via, 5000,
                         &events, client);
  client->is_calling--;
  return err;
}

/* A write that is over at once is noted like one that is reported. */
static inline int client_write(client_t *client, const void *head, size_t n,
                               const void *body, size_t n_body) {
  uv_buf_t bufs[2];
  int err;

  bufs[0] = uv_buf_init((char *)(uintptr_t)head, (unsigned)n);
  bufs[1] = uv_buf_init((char *)(uintptr_t)body, (unsigned)n_body);
  client->is_calling++;
  err = tnk__stream_write(client->stream, bufs, n_body > 0 ? 2 : 1);
  client->is_calling--;
  if (err == TNK__STREAM_WRITTEN) {
    client->n_written++;
    client->n_at_once++;
  }
  return err < 0 ? err : TNK_OK;
}

/* Close if that was not done, and let the loop run until the stream is gone. */
static inline void client_finish(client_t *client, uv_loop_t *loop) {
  if (client->stream != NULL)
    client_close(client);
  TEST_RUN_UNTIL(loop, client->n_closed > 0);
  CHECK_INT(client->n_closed, 1);
  tnk__buf_deinit(&client->got);
}

static inline void client_say_hello(client_t *client) {
  CHECK_INT(client_write(client, "hello ", 6, "world", 5), TNK_OK);
}

/* ---- Servers ---- */

static inline void echo(test_conn_t *conn, const unsigned char *data,
                        size_t n) {
  test_conn_write(conn, data, n);
}

static const test_server_options_t silent = {0};
static const test_server_options_t echoing = {.on_read = echo};

/* A context, a net on it, a server and one client. */
typedef struct {
  context_t context;
  tnk__net_t *net;
  test_server_t server;
  client_t client;
} world_t;

static inline void world_open(world_t *world,
                              const test_server_options_t *options,
                              const char *ca_file) {
  memset(world, 0, sizeof(*world));
  context_open(&world->context);
  CHECK_INT(tnk__net_new(&world->net, &world->context.loop, ca_file), TNK_OK);
  test_server_open(&world->server, &world->context.uv, options);
}

static inline void world_close(world_t *world) {
  tnk__net_unref(world->net);
  test_server_close(&world->server);
  context_close(&world->context);
}

/* Its client ends as well. */
static inline void world_finish(world_t *world) {
  client_finish(&world->client, &world->context.uv);
  world_close(world);
}

/* To the server, without TLS. */
static inline void world_connect(world_t *world, client_t *client,
                                 const char *host) {
  CHECK_INT(client_open(client, world->net, host, world->server.port, 0),
            TNK_OK);
}

/* A world whose client and server have met. */
static inline void world_meet(world_t *world,
                              const test_server_options_t *options) {
  world_open(world, options, NULL);
  world_connect(world, &world->client, "127.0.0.1");
  TEST_RUN_UNTIL(&world->context.uv,
                 world->client.n_open && world->server.n_open);
}

#endif
