/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h2_client.h"
#include "server/http.h"
#include "support/test.h"

/* HTTP/2 on the port of HTTP/1.1: what it serves, and what a peer may not make
 * the server hold. */

static int none_connected(const local_counts_t *counts) {
  return counts->n_connections == 0;
}

static int none_waiting(const local_counts_t *counts) {
  return counts->n_waiting == 0;
}

static void until_waiting(rig_t *rig, size_t n) {
  while (local_server_counts(rig->server).n_waiting < n)
    uv_run(&rig->loop, UV_RUN_ONCE);
}

/* A poll for a step that waits for the number before it. */
static void a_poll_that_is_held(rig_t *rig, char model[96], char body[160]) {
  char session[96];
  char step[96];

  rig_session(rig, session);
  rig_model(rig, session, model);
  rig_id(rig_step(rig, model, 2, 0.1), step);
  snprintf(body, 160, "{\"request_id\":\"%s\"}", step);
}

TEST(both_versions_on_one_port) {
  h2_client_t *client;
  h2_stream_t *stream;
  rig_t rig;

  rig_open(&rig, NULL);
  client = h2_open(&rig);
  stream = h2_get(client, "/api/v1/healthz");
  CHECK_INT(h2_status(stream), 200);
  CHECK_STR(stream->body, "{\"status\":\"ok\"}");
  CHECK_STR(stream->head, ":status: 200\ncontent-type: application/json\n"
                          "content-length: 15\n");
  CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  CHECK_INT(h2_status(h2_post(client, "telemetry", "{}")), 200);
  CHECK_INT(h2_status(h2_get(client, "/nowhere")), 404);
  CHECK_INT(h2_status(h2_get(client, "/%zz")), 400);
  CHECK_INT(h2_status(h2_get(client, "/api/v1/sessions?limit=1")), 200);
  CHECK_INT(local_server_counts(rig.server).n_connections, 1);
  h2_close(client);
  rig_close(&rig);
}

/* The preface comes in pieces, and what only begins like it is HTTP/1.1. */
TEST(the_first_bytes_decide) {
  static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  static const char settings[] = "\0\0\0\4\0\0\0\0\0";
  static const char patch[] = "P\0PATCH / HTTP/1.1\r\nHost: x\r\n\r\n";
  exchange_t *x;
  rig_t rig;

  rig_open(&rig, NULL);
  x = rig_raw(&rig, "P", 1);
  x->is_raw = 1;
  for (size_t i = 1; i < sizeof(preface) - 1; i++) {
    uv_run(&rig.loop, UV_RUN_NOWAIT);
    rig_more(x, preface + i, 1);
  }
  rig_more(x, settings, 9);
  while (x->n_raw < 9)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK_INT(x->raw[3], NGHTTP2_SETTINGS);
  rig_free(x);
  x = rig_raw(&rig, patch, 1);
  for (int i = 0; i < 5; i++)
    uv_run(&rig.loop, UV_RUN_NOWAIT);
  rig_more(x, patch + 3, sizeof(patch) - 4);
  rig_wait(x, 1);
  CHECK_INT(x->status, 404);
  rig_free(x);
  x = rig_raw(&rig, "PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n", 24);
  CHECK_INT(rig_status(x), 400);
  rig_close(&rig);
}

/* Requests of one connection are served side by side, and one that is broken
 * off leaves the others alone. */
TEST(a_held_poll_holds_up_nobody) {
  char model[96];
  char body[160];
  h2_client_t *client;
  h2_stream_t *polls[20];
  rig_t rig;

  rig_open(&rig, NULL);
  a_poll_that_is_held(&rig, model, body);
  client = h2_open(&rig);
  for (int i = 0; i < 20; i++)
    polls[i] = h2_post(client, "retrieve_future", body);
  until_waiting(&rig, 20);
  CHECK_INT(h2_status(h2_get(client, "/api/v1/healthz")), 200);
  h2_reset(polls[7], NGHTTP2_CANCEL);
  while (local_server_counts(rig.server).n_waiting == 20)
    uv_run(&rig.loop, UV_RUN_ONCE);
  rig_free(rig_done(&rig, rig_step(&rig, model, 1, 0.1)));
  for (int i = 0; i < 20; i++)
    CHECK_INT(h2_status(polls[i]), i == 7 ? 0 : 200);
  CHECK_INT(local_server_counts(rig.server).n_connections, 1);
  h2_close(client);
  rig_close(&rig);
}

TEST(a_lost_connection_takes_its_polls_along) {
  char model[96];
  char body[160];
  h2_client_t *client;
  rig_t rig;

  rig_open(&rig, NULL);
  a_poll_that_is_held(&rig, model, body);
  client = h2_open(&rig);
  for (int i = 0; i < 20; i++)
    h2_post(client, "retrieve_future", body);
  until_waiting(&rig, 20);
  h2_close(client);
  rig_until(&rig, none_waiting);
  /* Closing finds some as well. */
  client = h2_open(&rig);
  for (int i = 0; i < 20; i++)
    h2_post(client, "retrieve_future", body);
  until_waiting(&rig, 20);
  local_server_close(rig.server, NULL, NULL);
  uv_run(&rig.loop, UV_RUN_DEFAULT);
  CHECK(client->x->closed);
  h2_close(client);
  CHECK_INT(uv_loop_close(&rig.loop), 0);
}

TEST(a_large_body) {
  enum { N = 3 << 20 };
  char *big = malloc(N + 3);
  h2_client_t *client;
  rig_t rig;

  CHECK(big != NULL);
  memset(big, ' ', N);
  memcpy(big + N, "{}", 3);
  rig_open(&rig, NULL);
  client = h2_open(&rig);
  CHECK_INT(h2_status(h2_post(client, "telemetry", big)), 200);
  h2_close(client);
  rig_close(&rig);
  free(big);
}

TEST(head_is_answered_without_a_body) {
  h2_client_t *client;
  h2_stream_t *stream;
  rig_t rig;

  rig_open(&rig, NULL);
  client = h2_open(&rig);
  stream = h2_send(client, "HEAD", "/api/v1/healthz", NULL, NULL, 0);
  CHECK_INT(h2_status(stream), 200);
  CHECK_INT(stream->n_body, 0);
  CHECK(strstr(stream->head, "content-length: 15\n") != NULL);
  h2_close(client);
  rig_close(&rig);
}

TEST(leave_to_send_the_body) {
  static const char *const headers[] = {"expect", "100-continue", NULL};
  h2_client_t *client;
  h2_stream_t *stream;
  rig_t rig;

  rig_open(&rig, NULL);
  client = h2_open(&rig);
  stream = h2_send(client, "POST", "/api/v1/telemetry", headers, "{}", 2);
  CHECK_INT(h2_status(stream), 200);
  CHECK_INT(stream->n_continue, 1);
  h2_close(client);
  rig_close(&rig);
}

/* ---- Bounds ---- */

TEST(the_peer_is_told_how_many_streams_there_may_be) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  h2_client_t *client;
  rig_t rig;

  for (uint32_t n = 0; n < 4; n += 3) {
    options.max_streams = n;
    rig_open(&rig, &options);
    client = h2_open(&rig);
    CHECK_INT(h2_status(h2_get(client, "/api/v1/healthz")), 200);
    CHECK_INT(nghttp2_session_get_remote_settings(
                  client->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
              n > 0 ? n : TNK__SRV_STREAMS);
    h2_close(client);
    rig_close(&rig);
  }
}

TEST(heads_that_are_too_large) {
  static char big[60000];
  static char names[200][8];
  const char *many[402] = {NULL};
  const char *large[] = {"a", big, "b", big, NULL};
  h2_client_t *client;
  rig_t rig;

  memset(big, 'a', sizeof(big) - 1);
  for (size_t i = 0; i < 200; i++) {
    snprintf(names[i], sizeof(names[i]), "a%zu", i);
    many[2 * i] = names[i];
    many[2 * i + 1] = "b";
  }
  rig_open(&rig, NULL);
  client = h2_open(&rig);
  CHECK_INT(h2_status(h2_send(client, "GET", "/", large + 2, NULL, 0)), 404);
  CHECK_INT(h2_status(h2_send(client, "GET", "/", many, NULL, 0)), 431);
  big[0] = '/';
  big[20000] = '\0';
  CHECK_INT(h2_status(h2_get(client, big)), 414);
  CHECK_INT(
      h2_status(h2_send(client, "GETGETGETGETGETGET", "/", NULL, NULL, 0)),
      400);
  CHECK_INT(h2_status(h2_get(client, "/api/v1/healthz")), 200);
  h2_close(client);
  rig_close(&rig);
}

/* Refused before they have come, and the connection serves on. */
TEST(bodies_that_are_too_large) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  static char big[70000];
  h2_client_t *client;
  h2_stream_t *stream;
  rig_t rig;

  options.max_body = 1000;
  rig_open(&rig, &options);
  client = h2_open(&rig);
  stream = h2_begin(client, "/api/v1/telemetry", "1001", NULL, 0);
  CHECK_INT(h2_status(stream), 413);
  CHECK_INT(stream->code, NGHTTP2_NO_ERROR);
  stream = h2_begin(client, "/api/v1/telemetry", NULL, big, sizeof(big));
  CHECK_INT(h2_status(stream), 413);
  CHECK_INT(h2_status(h2_get(client, "/api/v1/healthz")), 200);
  h2_close(client);
  rig_close(&rig);
}

/* Requests that are broken off cost a peer next to nothing. */
TEST(rapid_resets_end_the_connection) {
  h2_client_t *client;
  rig_t rig;
  int n = 0;

  rig_open(&rig, NULL);
  client = h2_open(&rig);
  while (!client->x->closed && n < 2000) {
    h2_stream_t *stream = h2_begin(client, "/api/v1/telemetry", NULL, NULL, 0);

    h2_reset(stream, NGHTTP2_CANCEL);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
    n++;
  }
  h2_wait_closed(client);
  CHECK(n >= 900);
  CHECK_INT(client->n_goaway, 1);
  CHECK_INT(client->code, NGHTTP2_ENHANCE_YOUR_CALM);
  h2_close(client);
  CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  rig_close(&rig);
}

/* Each wants an answer, and the peer reads none. */
static void flood(const char *frame, size_t n) {
  enum { TIMES = 1000 };
  char *all = malloc(n * TIMES);
  h2_client_t *client;
  rig_t rig;

  CHECK(all != NULL);
  for (size_t i = 0; i < TIMES; i++)
    memcpy(all + i * n, frame, n);
  rig_open(&rig, NULL);
  client = h2_open(&rig);
  CHECK_INT(h2_status(h2_get(client, "/api/v1/healthz")), 200);
  uv_read_stop((uv_stream_t *)&client->x->tcp);
  while (local_server_counts(rig.server).n_connections > 0) {
    rig_more(client->x, all, n * TIMES);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
  }
  h2_close(client);
  CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  rig_close(&rig);
  free(all);
}

TEST_LIMIT(a_flood_of_pings, 30) {
  flood("\0\0\10\6\0\0\0\0\0abcdefgh", 17);
}

TEST_LIMIT(a_flood_of_settings, 30) {
  flood("\0\0\0\4\0\0\0\0\0", 9);
}

/* Without an end, so that all of them would have to be kept. */
TEST(a_flood_of_continuations) {
  static const char head[] = "\0\0\1\1\1\0\0\0\1\x82";
  static const char more[] = "\0\0\1\x09\0\0\0\0\1\x82";
  h2_client_t *client;
  rig_t rig;

  rig_open(&rig, NULL);
  client = h2_open(&rig);
  CHECK_INT(client->n_settings, 0);
  rig_more(client->x, head, sizeof(head) - 1);
  while (!client->x->closed) {
    rig_more(client->x, more, sizeof(more) - 1);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
  }
  h2_close(client);
  rig_close(&rig);
}

/* An answer waits for the peer's window, and for nothing else. */
TEST(a_window_that_opens_late) {
  const nghttp2_settings_entry closed = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                         0};
  h2_client_t *client;
  h2_stream_t *stream;
  rig_t rig;

  rig_open(&rig, NULL);
  client = h2_open(&rig);
  CHECK_INT(nghttp2_submit_settings(client->session, 0, &closed, 1), 0);
  stream = h2_get(client, "/api/v1/healthz");
  while (stream->status == 0)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  CHECK_INT(stream->n_body, 0);
  CHECK_INT(nghttp2_submit_window_update(client->session, 0, stream->id, 5), 0);
  h2_flush(client);
  while (stream->n_body < 5)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK(!stream->is_done);
  CHECK_INT(nghttp2_submit_window_update(client->session, 0, stream->id, 100),
            0);
  h2_flush(client);
  h2_wait(stream);
  CHECK_STR(stream->body, "{\"status\":\"ok\"}");
  h2_close(client);
  rig_close(&rig);
}

/* One that asks for nothing, and one that does not end its request; but not one
 * whose poll is held. */
TEST(silent_connections_are_closed) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char model[96];
  char body[160];
  h2_client_t *clients[3];
  rig_t rig;

  options.idle_ms = 50;
  rig_open(&rig, &options);
  a_poll_that_is_held(&rig, model, body);
  for (int i = 0; i < 3; i++)
    clients[i] = h2_open(&rig);
  h2_get(clients[0], "/api/v1/healthz");
  h2_begin(clients[1], "/api/v1/telemetry", "5", "abc", 3);
  h2_post(clients[2], "retrieve_future", body);
  h2_wait_closed(clients[0]);
  h2_wait_closed(clients[1]);
  CHECK(!clients[2]->x->closed);
  for (int i = 0; i < 3; i++)
    h2_close(clients[i]);
  rig_until(&rig, none_connected);
  rig_close(&rig);
}

/* ---- Connections that are too many ---- */

TEST(a_connection_too_many_takes_the_place_of_an_idle_one) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  h2_client_t *clients[3];
  rig_t rig;

  options.max_connections = 2;
  rig_open(&rig, &options);
  for (int i = 0; i < 3; i++) {
    clients[i] = h2_open(&rig);
    CHECK_INT(h2_status(h2_get(clients[i], "/api/v1/healthz")), 200);
  }
  CHECK(clients[0]->x->closed && !clients[2]->x->closed);
  for (int i = 0; i < 3; i++)
    h2_close(clients[i]);
  rig_close(&rig);
}

/* Its polls end one after the other, and it takes no further ones. */
TEST(a_connection_too_many_takes_the_place_of_one_full_of_polls) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char model[96];
  char body[160];
  h2_client_t *client;
  h2_stream_t *polls[3];
  rig_t rig;

  options.max_connections = 1;
  rig_open(&rig, &options);
  a_poll_that_is_held(&rig, model, body);
  client = h2_open(&rig);
  for (int i = 0; i < 3; i++)
    polls[i] = h2_post(client, "retrieve_future", body);
  until_waiting(&rig, 3);
  CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(h2_status(polls[i]), 200);
    CHECK(strstr(polls[i]->body, "try_again") != NULL);
  }
  CHECK_INT(client->n_goaway, 1);
  CHECK_INT(client->code, NGHTTP2_NO_ERROR);
  CHECK_INT(client->last_id, polls[2]->id);
  h2_close(client);
  rig_close(&rig);
}

/* What an edge of a network does with them. */
TEST(connections_beyond_the_most_are_refused) {
  static const char get[] = "GET /api/v1/healthz HTTP/1.1\r\n\r\n";
  local_options_t options = LOCAL_OPTIONS_INIT;
  exchange_t *first;
  exchange_t *x;
  rig_t rig;

  options.max_connections = 1;
  for (int full = TNK__SRV_FULL_CLOSE; full <= TNK__SRV_FULL_503; full++) {
    options.full = (tnk__srv_full_t)full;
    rig_open(&rig, &options);
    first = rig_get(&rig, "healthz");
    CHECK_INT(first->status, 200);
    for (int i = 0; i < 3; i++) {
      x = rig_raw(&rig, get, sizeof(get) - 1);
      x->is_raw = full == TNK__SRV_FULL_RESET;
      while (!x->closed)
        uv_run(&rig.loop, UV_RUN_ONCE);
      CHECK_INT(x->status, full == TNK__SRV_FULL_503 ? 503 : 0);
      CHECK(full != TNK__SRV_FULL_RESET || x->reset);
      CHECK(x->status == 0 || strncmp(x->body, "<html>", 6) == 0);
      rig_free(x);
    }
    rig_free(first);
    rig_until(&rig, none_connected);
    CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
    rig_close(&rig);
  }
}

TEST(a_refused_connection_of_http2_is_told_so) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  h2_client_t *first;
  h2_client_t *second;
  rig_t rig;

  options.max_connections = 1;
  options.full = TNK__SRV_FULL_503;
  rig_open(&rig, &options);
  first = h2_open(&rig);
  CHECK_INT(h2_status(h2_get(first, "/api/v1/healthz")), 200);
  second = h2_open(&rig);
  CHECK_INT(h2_status(h2_get(second, "/api/v1/healthz")), 503);
  h2_wait_closed(second);
  CHECK_INT(second->n_goaway, 1);
  CHECK_INT(h2_status(h2_get(first, "/api/v1/healthz")), 200);
  h2_close(second);
  h2_close(first);
  rig_close(&rig);
}

/* ---- Without memory ---- */

TEST_LIMIT(requests_without_memory, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  int hit = 1;
  rig_t rig;

  options.alloc = test_allocator();
  rig_open(&rig, &options);
  for (long n = 0; hit; n++) {
    h2_client_t *client = h2_open(&rig);
    h2_stream_t *streams[2];

    test_alloc_fail_at(n);
    streams[0] = h2_get(client, "/api/v1/healthz");
    streams[1] = h2_post(client, "create_session", "{\"sdk_version\":\"1\"}");
    h2_wait(streams[0]);
    h2_wait(streams[1]);
    hit = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    h2_close(client);
    CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  }
  rig_close(&rig);
  CHECK_INT(test_alloc_live(), 0);
}
