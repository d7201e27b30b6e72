/* SPDX-License-Identifier: MIT */
/* HTTP/2: many exchanges on few connections. */
#include <stdio.h>
#include <stdlib.h>

#include "http/fixture.h"
#include "lib/io/http/conn.h"
#include "lib/io/http/h2.h"
#include "support/mock_http2.h"

enum { MANY = 250 };

static void start_many(fixture_t *f, call_t *calls, int n, tnk__lane_t lane,
                       const char *target) {
  for (int i = 0; i < n; i++)
    call_start(f, &calls[i], lane, "POST", target);
}

static void wait_many(fixture_t *f, call_t *calls, int n, int err) {
  for (int i = 0; i < n; i++) {
    call_wait(f, &calls[i]);
    CHECK_INT(calls[i].err, err);
  }
}

static void open_limited(fixture_t *f, uint32_t max_streams) {
  fixture_open_http2(f);
  mock_setting(f->mock, MOCK_MAX_STREAMS, max_streams);
}

TEST(polls_share_connections) {
  static call_t polls[MANY];
  fixture_t f;

  fixture_open_http2(&f);
  start_many(&f, polls, MANY, TNK__LANE_POLL, "/hold");
  mock_wait(f.mock, MANY);
  CHECK(mock_n_connections(f.mock) <= 4);
  CHECK_INT(mock_n_sessions(f.mock), mock_n_connections(f.mock));
  CHECK(mock_most_streams(f.mock) <= 100);
  CHECK_INT(mock_release(f.mock, 200, "{}"), MANY);
  wait_many(&f, polls, MANY, TNK_OK);
  CHECK_INT(mock_n_streams(f.mock), 0);
  CHECK_INT(mock_n_resets(f.mock), 0);
  fixture_close(&f);
}

TEST(what_the_client_asks_of_a_server) {
  fixture_t f;

  fixture_open_http2(&f);
  call_get(&f, "/ok");
  CHECK_INT(mock_client_setting(f.mock, 0, MOCK_PUSH), 0);
  CHECK_INT(mock_client_setting(f.mock, 0, MOCK_WINDOW), 1024 * 1024);
  CHECK_INT(mock_client_setting(f.mock, 0, MOCK_MAX_HEAD), 64 * 1024);
  fixture_close(&f);
}

/* The limit is not known before the server's settings. */
TEST(nothing_fans_out_before_the_settings) {
  static call_t calls[30];
  fixture_t f;

  open_limited(&f, 5);
  mock_set_silent(f.mock, 1);
  start_many(&f, calls, 30, TNK__LANE_POLL, "/ok");
  mock_turns(f.mock, 100);
  CHECK(mock_most_streams(f.mock) <= 1);
  CHECK(mock_n_connections(f.mock) <= 2);
  mock_set_silent(f.mock, 0);
  wait_many(&f, calls, 30, TNK_OK);
  CHECK(mock_most_streams(f.mock) <= 5);
  CHECK_INT(mock_n_refused(f.mock), 0);
  CHECK_INT(mock_n_requests(f.mock), 30);
  fixture_close(&f);
}

TEST(the_limit_of_streams_is_kept) {
  static call_t calls[60];
  fixture_t f;

  open_limited(&f, 10);
  start_many(&f, calls, 60, TNK__LANE_POLL, "/hold");
  for (int n = 0; n < 60;) {
    mock_turns(f.mock, 20);
    CHECK(mock_most_streams(f.mock) <= 10);
    n += (int)mock_release(f.mock, 200, "{}");
  }
  wait_many(&f, calls, 60, TNK_OK);
  CHECK_INT(mock_n_refused(f.mock), 0);
  CHECK_INT(mock_n_requests(f.mock), 60);
  fixture_close(&f);
}

/* Those under way finish; what comes later keeps to the new limit. */
TEST(a_limit_that_is_lowered_to_one_and_to_none) {
  for (uint32_t limit = 0; limit < 2; limit++) {
    static call_t calls[20];
    static call_t later[10];
    fixture_t f;
    size_t n;
    open_limited(&f, 50);
    start_many(&f, calls, 20, TNK__LANE_POLL, "/hold");
    mock_wait(f.mock, 20);
    mock_setting(f.mock, MOCK_MAX_STREAMS, limit);
    mock_turns(f.mock, 20);
    start_many(&f, later, 10, TNK__LANE_POLL, "/hold");
    mock_turns(f.mock, 50);
    n = mock_n_requests(f.mock);
    CHECK(n <= 30);
    CHECK_INT(mock_n_refused(f.mock), 0);
    mock_release(f.mock, 200, "{}");
    wait_many(&f, calls, 20, TNK_OK);
    mock_setting(f.mock, MOCK_MAX_STREAMS, 50);
    while (later[9].n_done == 0) {
      mock_turns(f.mock, 10);
      tnk__context_advance(&f.c.loop, 100);
      mock_release(f.mock, 200, "{}");
    }
    wait_many(&f, later, 10, TNK_OK);
    CHECK_INT(mock_n_requests(f.mock), 30);
    CHECK_INT(mock_n_refused(f.mock), 0);
    fixture_close(&f);
  }
}

/* It takes nothing, and goes away: those that wait go elsewhere. */
TEST(a_server_that_takes_nothing_and_closes) {
  fixture_t f;
  call_t call;

  open_limited(&f, 0);
  call_start(&f, &call, TNK__LANE_POLL, "POST", "/ok");
  mock_wait_open(f.mock, 1);
  mock_turns(f.mock, 20);
  CHECK_INT(mock_n_requests(f.mock), 0);
  mock_set_silent(f.mock, 1);
  mock_setting(f.mock, MOCK_MAX_STREAMS, 5);
  mock_close_connection(f.mock, 0, 0);
  mock_set_silent(f.mock, 0);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(mock_n_connections(f.mock), 2);
  fixture_close(&f);
}

/* A thousand held polls leave room for everything else. */
TEST_LIMIT(B9_nothing_waits_behind_held_polls, 20) {
  enum { N = 1000 };
  call_t *polls = calloc(N, sizeof(*polls));
  fixture_t f;

  CHECK(polls != NULL);
  open_limited(&f, 100);
  start_many(&f, polls, N, TNK__LANE_POLL, "/hold");
  mock_wait(f.mock, N);
  for (int lane = 0; lane < TNK__LANE_POLL; lane++) {
    call_t call;
    call_run(&f, &call, (tnk__lane_t)lane, "POST", "/ok");
    CHECK_INT(call.err, TNK_OK);
    CHECK_INT(call.status, 200);
  }
  CHECK_INT(mock_n_held(f.mock), N);
  CHECK(mock_n_connections(f.mock) <= 20);
  mock_release(f.mock, 200, "{}");
  wait_many(&f, polls, N, TNK_OK);
  fixture_close(&f);
  free(polls);
}

/* What comes with the first fill of a connection is no exception. */
TEST(B9_the_first_polls_leave_places_as_well) {
  static call_t polls[60];
  call_t training;
  fixture_t f;

  open_limited(&f, 32);
  start_many(&f, polls, 60, TNK__LANE_POLL, "/hold");
  mock_wait(f.mock, 60);
  CHECK(mock_most_streams(f.mock) <= 28);
  call_start(&f, &training, TNK__LANE_TRAIN_POLL, "POST", "/ok");
  call_wait(&f, &training);
  CHECK_INT(training.err, TNK_OK);
  CHECK_INT(mock_n_held(f.mock), 60);
  mock_release(f.mock, 200, "{}");
  wait_many(&f, polls, 60, TNK_OK);
  fixture_close(&f);
}

static void echo(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, NULL, request->body, request->body_len);
}

/* Bodies of many kinds on one connection do not get mixed up. */
TEST_LIMIT(bodies_side_by_side, 20) {
  enum { N = 40, SIZE = 300000 };
  static call_t calls[N];
  static char bodies[N][SIZE];
  fixture_t f;

  fixture_open_http2(&f);
  mock_on(f.mock, "POST", "/echo", echo, NULL);
  for (int i = 0; i < N; i++) {
    tnk__http_request_t request =
        request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/echo");
    memset(bodies[i], 'A' + i, SIZE);
    request.body = bodies[i];
    request.body_len = (size_t)(SIZE - i * 1000);
    call_send(&f, &calls[i], &request);
  }
  for (int i = 0; i < N; i++) {
    call_wait(&f, &calls[i]);
    CHECK_INT(calls[i].err, TNK_OK);
    CHECK_INT(calls[i].body_len, SIZE - i * 1000);
    CHECK_INT(calls[i].body[0], 'A' + i);
    CHECK_INT(calls[i].body[198], 'A' + i);
  }
  CHECK(mock_n_connections(f.mock) <= 2);
  fixture_close(&f);
}

TEST(tiny_windows_only_slow_down) {
  static char body[2000];
  tnk__http_request_t request;
  fixture_t f;
  call_t call;

  fixture_open_http2(&f);
  mock_on(f.mock, "POST", "/echo", echo, NULL);
  mock_setting(f.mock, MOCK_WINDOW, 7);
  memset(body, 'w', sizeof(body));
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/echo");
  request.body = body;
  request.body_len = sizeof(body);
  call_send(&f, &call, &request);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.body_len, sizeof(body));
  fixture_close(&f);
}

TEST(unused_connections_close_after_a_minute) {
  static call_t calls[MANY];
  fixture_t f;

  fixture_open_http2(&f);
  start_many(&f, calls, MANY, TNK__LANE_POLL, "/ok");
  wait_many(&f, calls, MANY, TNK_OK);
  CHECK(f.http.n_connections >= 1);
  tnk__context_advance(&f.c.loop, 61000);
  mock_wait_open(f.mock, 0);
  CHECK_INT(f.http.n_connections, 0);
  CHECK(tnk__list_empty(&f.http.pools));
  fixture_close(&f);
}

TEST(SX_2_an_unused_connection_keeps_nothing_alive) {
  fixture_t f;

  fixture_open_http2(&f);
  call_get(&f, "/ok");
  CHECK_INT(f.http.n_connections, 1);
  CHECK_INT(uv_run(&f.c.uv, UV_RUN_DEFAULT), 0);
  CHECK_INT(f.http.n_connections, 1);
  fixture_close(&f);
}

TEST(an_unused_connection_is_not_pinged) {
  fixture_t f;

  fixture_open_http2(&f);
  call_get(&f, "/ok");
  tnk__context_advance(&f.c.loop, 50000);
  mock_turns(f.mock, 10);
  CHECK_INT(mock_n_pings(f.mock), 0);
  fixture_close(&f);
}

/* The mock reads until the client has sent so much more. */
static void read_more(fixture_t *f, call_t *call, uint64_t n) {
  const uint64_t at = tnk__conn_n_sent(&call->ex);

  mock_set_reading(f->mock, 1);
  while (tnk__conn_n_sent(&call->ex) < at + n)
    mock_turns(f->mock, 1);
}

/* On a slow way a PING waits behind the upload, and the windows may be so wide
 * that the server has nothing to say. */
TEST_LIMIT(an_upload_that_moves_is_a_sign_of_life, 30) {
  enum { SIZE = 128 * 1024 * 1024 };
  tnk__http_request_t request;
  char *body = calloc(1, SIZE);
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  fixture_open_http2(&f);
  call_get(&f, "/ok");
  mock_setting(f.mock, MOCK_WINDOW, INT32_MAX);
  mock_set_connection_window(f.mock, INT32_MAX);
  mock_set_windows(f.mock, 0);
  mock_set_pongs(f.mock, 0);
  mock_turns(f.mock, 20);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/ok");
  request.body = body;
  request.body_len = SIZE;
  call_send(&f, &call, &request);
  for (int i = 0; i < 6; i++) {
    mock_set_reading(f.mock, 0);
    while (call.ex.conn == NULL || !call.ex.conn->h2->is_writing)
      mock_turns(f.mock, 1); /* what the system takes at once is no sign */
    for (int s = 0; s < 9; s++) {
      tnk__context_advance(&f.c.loop, 1000);
      mock_turns(f.mock, 3);
    }
    CHECK_INT(call.n_done, 0);
    read_more(&f, &call, 1024 * 1024);
  }
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(mock_n_connections(f.mock), 1);
  free(body);
  fixture_close(&f);
}

TEST(informs_and_trailers_are_no_answers) {
  mock_request_t *request;
  fixture_t f;
  call_t call;

  fixture_open_http2(&f);
  call_start(&f, &call, TNK__LANE_POLL, "GET", "/hold");
  mock_wait(f.mock, 1);
  request = mock_request(f.mock, 0);
  for (int i = 0; i < 3; i++)
    mock_inform(request, 100 + (i > 0) * 3, "Link: </a>\r\n");
  mock_turns(f.mock, 20);
  CHECK_INT(call.n_done, 0);
  mock_begin(request, 200, "X-Header: head\r\n");
  mock_piece(request, "body", 4);
  mock_end_with(request, "X-Header: late\r\nServer-Timing: x\r\n");
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.status, 200);
  CHECK_STR(call.body, "body");
  CHECK_STR(call.header, "head");
  fixture_close(&f);
}

/* ---- Cancels ---- */

/* Within the budget the server is told, and its stream is free at once. */
TEST(a_canceled_stream_leaves_its_neighbors_alone) {
  call_t calls[10];
  fixture_t f;

  fixture_open_http2(&f);
  start_many(&f, calls, 10, TNK__LANE_POLL, "/hold");
  mock_wait(f.mock, 10);
  CHECK_INT(mock_n_connections(f.mock), 1);
  for (int i = 0; i < 10; i += 2)
    tnk__exchange_cancel(&calls[i].ex);
  mock_turns(f.mock, 20);
  CHECK_INT(mock_n_resets(f.mock), 5);
  CHECK(mock_request(f.mock, 0)->is_gone);
  CHECK_INT(mock_n_streams(f.mock), 5);
  mock_release(f.mock, 200, "{}");
  for (int i = 1; i < 10; i += 2)
    wait_many(&f, &calls[i], 1, TNK_OK);
  CHECK_INT(mock_n_connections(f.mock), 1);
  fixture_close(&f);
}

/* Beyond it streams are left to end by themselves: no guard is tripped, the
 * limit of streams is kept, and nobody else waits. */
TEST_LIMIT(cancels_keep_to_a_budget_of_resets, 30) {
  enum { ROUNDS = 50, N = 20 };
  static call_t calls[N];
  fixture_t f;

  fixture_open_http2(&f);
  mock_set_reset_guard(f.mock, 200, 30000);
  for (int i = 0; i < ROUNDS; i++) {
    const size_t n = mock_n_requests(f.mock);
    start_many(&f, calls, N, TNK__LANE_POLL, "/hold");
    mock_wait(f.mock, n + N);
    for (int k = 0; k < N; k++)
      tnk__exchange_cancel(&calls[k].ex);
    tnk__context_advance(&f.c.loop, 20);
    call_get(&f, "/ok");
    if (i % 5 == 4) {
      mock_release(f.mock, 408, "{}");
      mock_turns(f.mock, 20);
    }
  }
  printf("# %zu resets, at most %zu in 30 s, %zu connections\n",
         mock_n_resets(f.mock), mock_most_resets(f.mock),
         mock_n_connections(f.mock));
  CHECK_INT(mock_n_calmed(f.mock), 0);
  CHECK(mock_most_resets(f.mock) <= 200);
  CHECK(mock_most_streams(f.mock) <= 100);
  CHECK(mock_n_connections(f.mock) <= 5);
  for (int k = 0; k < N; k++)
    CHECK_INT(calls[k].n_done, 0);
  fixture_close(&f);
}

/* What is another value in each request must not push the rest, the credential
 * above all, out of HPACK's table. */
TEST(a_credential_is_sent_as_a_whole_once) {
  enum { N = 200, EACH = 120 };
  static char credential[1500];
  char key[64];
  char trip[32];
  const tnk_pair_t always[] = {{"X-API-Key", credential}};
  const tnk_pair_t fleeting[] = {
      {"X-Idempotency-Key", key},
      {"X-Tinker-Create-Promise-Roundtrip-Time", trip}};
  tnk__http_request_t request;
  uint64_t before;
  call_t call;
  fixture_t f;

  memset(credential, 'k', sizeof(credential) - 1);
  fixture_open_http2(&f);
  call_get(&f, "/ok");
  request = request_to(f.mock, TNK__LANE_CONTROL, "GET", "/ok");
  request.headers = always;
  request.n_headers = 1;
  request.more_headers = fleeting;
  request.n_more_headers = 2;
  before = f.c.loop.counters.n_bytes_sent;
  for (int i = 0; i < N; i++) {
    snprintf(key, sizeof(key), "tnk-063f462a-1d29-4875-acf3-%012d", i);
    snprintf(trip, sizeof(trip), "0.%03d", i);
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_OK);
  }
  CHECK(f.c.loop.counters.n_bytes_sent - before <
        sizeof(credential) + N * EACH);
  fixture_close(&f);
}
