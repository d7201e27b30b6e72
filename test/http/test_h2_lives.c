/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2: what a pool holds of a server after accidents: connections that end
 * before SETTINGS, frozen servers, dead connections, refused streams, lowered
 * limits, and the budget of resets.
 */
#include <stdio.h>
#include <stdlib.h>

#include "http/fixture.h"
#include "lib/io/http/conn.h"
#include "lib/io/http/h2.h"
#include "support/mock_http2.h"

enum { TIMEOUT_MS = 30000, STEP_MS = 250, SIZE = 32 << 20 };

static void pass(fixture_t *f, uint64_t ms) {
  for (; ms > 0; ms -= STEP_MS) {
    tnk__context_advance(&f->c.loop, STEP_MS);
    mock_turns(f->mock, 4);
  }
}

static void start(fixture_t *f, call_t *call, tnk__lane_t lane,
                  const char *target) {
  tnk__http_request_t request = request_to(f->mock, lane, "POST", target);

  request.timeout_ms = TIMEOUT_MS;
  call_send(f, call, &request);
}

static void start_many(fixture_t *f, call_t *calls, int n) {
  for (int i = 0; i < n; i++)
    start(f, &calls[i], TNK__LANE_POLL, "/hold");
}

static void all_ok(fixture_t *f, call_t *calls, int n) {
  for (int i = 0; i < n; i++) {
    call_wait(f, &calls[i]);
    CHECK_INT(calls[i].err, TNK_OK);
  }
}

/* One connection for all. */
static void open_single(fixture_t *f) {
  static const tnk__http_options_t options = {
      .version = TNK__HTTP_2_PRIOR_KNOWLEDGE, .max_http2_connections = 1};

  CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
  fixture_open_with(f, &options);
}

/* ---- Connections that end before SETTINGS ---- */

static void end_new_connection(fixture_t *f, call_t *call, int reset) {
  const size_t n = mock_n_connections(f->mock);

  mock_set_silent(f->mock, 1);
  start(f, call, TNK__LANE_SAMPLE, "/ok");
  while (mock_n_connections(f->mock) == n)
    mock_turns(f->mock, 1);
  mock_turns(f->mock, 20);
  mock_close_connection(f->mock, (int)n, reset);
  mock_turns(f->mock, 5);
  mock_set_silent(f->mock, 0);
}

static void check_http2(fixture_t *f) {
  call_t call;

  start(f, &call, TNK__LANE_SAMPLE, "/ok");
  call_wait(f, &call);
  if (call.err != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", call.detail);
  CHECK(mock_request(f->mock, mock_n_requests(f->mock) - 1)->stream_id > 0);
}

/* n_good requests, and then so many connections that end at once, in order or
 * by a reset. To a server of HTTP/2 alone, HTTP/1.1 is nothing. */
static void check_ends(int n_good, int n_ends, int reset, int is_alone) {
  fixture_t f;

  printf("# %d good, %d ends, reset %d, HTTP/2 alone %d\n", n_good, n_ends,
         reset, is_alone);
  fflush(stdout);
  fixture_open_http2(&f);
  mock_set_http1(f.mock, !is_alone);
  for (int i = 0; i < n_good; i++)
    check_http2(&f);
  for (int i = 0; i < n_ends; i++) {
    call_t call;
    mock_close_idle(f.mock, reset);
    mock_wait_open(f.mock, 0);
    mock_turns(f.mock, 5);
    end_new_connection(&f, &call, reset);
    /* It fails unsent, or goes over to the next connection. */
    call_wait(&f, &call);
    CHECK(call.err == TNK_OK || (call.err == TNK_ECONN && call.sent == 0));
  }
  for (int i = 0; i < 3; i++)
    check_http2(&f);
  CHECK_INT(mock_request(f.mock, 0)->stream_id > 0, 1);
  fixture_close(&f);
}

TEST_LIMIT(a_server_of_http2_alone_survives_ends_before_its_settings, 30) {
  for (int n_good = 0; n_good < 2; n_good++)
    for (int n_ends = 1; n_ends < 6; n_ends++)
      for (int reset = 0; reset < 2; reset++)
        check_ends(n_good, n_ends, reset, 1);
}

/* Where HTTP/2 has worked it goes on, also with a server of both. */
TEST_LIMIT(a_server_that_has_spoken_http2_keeps_it, 30) {
  for (int n_ends = 1; n_ends < 6; n_ends++)
    for (int reset = 0; reset < 2; reset++)
      check_ends(1, n_ends, reset, 0);
}

static int has_http2(const fixture_t *f) {
  return mock_request(f->mock, mock_n_requests(f->mock) - 1)->stream_id > 0;
}

static void one(fixture_t *f) {
  call_t call;

  start(f, &call, TNK__LANE_SAMPLE, "/ok");
  call_wait(f, &call);
  CHECK_INT(call.err, TNK_OK);
}

static void end_new_connections(fixture_t *f, int n, int reset) {
  for (int i = 0; i < n; i++) {
    call_t call;

    end_new_connection(f, &call, reset);
    call_wait(f, &call);
  }
}

/* A server of both that ends its first connections gets HTTP/1.1 for a while.
 * `is_busy`: the connections of HTTP/1.1 are open all the time. Then a new one
 * speaks HTTP/2 beside them. `n_more`: it ends one so often again meanwhile,
 * which is no news. */
static void check_again(int reset, int is_busy, int n_more) {
  call_t held;
  fixture_t f;
  int n_warnings;

  printf("# reset %d, busy %d, ends again %d\n", reset, is_busy, n_more);
  fflush(stdout);
  fixture_open_http2(&f);
  mock_set_http1(f.mock, 1);
  end_new_connections(&f, 2, reset);
  one(&f);
  CHECK(!has_http2(&f));
  n_warnings = f.c.n_warnings;
  for (int i = 0; i < n_more; i++) {
    pass(&f, 310000);
    end_new_connections(&f, 1, reset);
    one(&f);
    CHECK(!has_http2(&f));
  }
  for (int i = 0; i < (is_busy ? 31 : 1); i++) {
    pass(&f, is_busy ? 10000 : 310000);
    if (is_busy)
      one(&f);
  }
  if (is_busy) {
    CHECK(!has_http2(&f));
    start(&f, &held, TNK__LANE_SAMPLE, "/hold");
    mock_turns(f.mock, 5);
  }
  one(&f);
  CHECK(has_http2(&f));
  if (is_busy) {
    mock_release(f.mock, 200, "{}");
    all_ok(&f, &held, 1);
  }
  one(&f);
  CHECK_INT(f.c.n_warnings, n_warnings);
  fixture_close(&f);
}

TEST_LIMIT(http2_is_tried_again_where_connections_have_ended, 60) {
  for (int reset = 0; reset < 2; reset++)
    for (int is_busy = 0; is_busy < 2; is_busy++)
      for (int n_more = 0; n_more < 3; n_more++)
        check_again(reset, is_busy, n_more);
}

/* Such an end while others work says that no more are granted. */
TEST(an_end_before_settings_while_others_work_is_a_refusal) {
  enum { N = 4 };
  call_t calls[N], late;
  fixture_t f;

  fixture_open_http2(&f);
  mock_setting(f.mock, MOCK_MAX_STREAMS, N);
  start_many(&f, calls, N);
  mock_wait(f.mock, N);
  end_new_connection(&f, &late, 1);
  CHECK_INT(late.n_done, 0);
  CHECK_INT(f.c.n_warnings, 1);
  mock_release(f.mock, 200, "{}");
  all_ok(&f, calls, N);
  all_ok(&f, &late, 1);
  check_http2(&f);
  fixture_close(&f);
}

/* A server that has said GOAWAY may break off in any way. */
TEST(what_comes_after_a_goaway_does_not_turn_http2_off) {
  call_t call;
  fixture_t f;

  fixture_open_http2(&f);
  start(&f, &call, TNK__LANE_SAMPLE, "/hold");
  mock_wait(f.mock, 1);
  mock_goaway(f.mock, 0, MOCK_LAST, MOCK_NO_ERROR);
  mock_turns(f.mock, 5);
  mock_frame(f.mock, 0, MOCK_DATA, 0, 99, "x", 1);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ECONN);
  for (int i = 0; i < 3; i++)
    check_http2(&f);
  CHECK_INT(f.c.n_warnings, 0);
  fixture_close(&f);
}

/* ---- Servers that stop ---- */

static void freeze(fixture_t *f) {
  mock_set_silent(f->mock, 1);
  mock_set_pongs(f->mock, 0);
}

/* A dead connection costs 16 s at most, whenever it was last heard of. */
TEST(a_dead_connection_costs_sixteen_seconds_at_most) {
  for (uint64_t used_ms = 0; used_ms <= 40000; used_ms += 2500) {
    uint64_t ms = 0;
    call_t call;
    fixture_t f;
    fixture_open_http2(&f);
    start(&f, &call, TNK__LANE_POLL, "/hold");
    mock_wait(f.mock, 1);
    call.ex.timeout_ms = 10 * TIMEOUT_MS;
    pass(&f, used_ms);
    CHECK_INT(call.n_done, 0);
    freeze(&f);
    for (; call.n_done == 0; ms += STEP_MS)
      pass(&f, STEP_MS);
    CHECK_INT(call.err, TNK_ECONN);
    CHECK(ms <= 16000);
    fixture_close(&f);
  }
}

/* An unused connection of the same server is no sign that it works. */
TEST(a_frozen_server_is_not_taken_for_one_that_grants_no_more) {
  call_t poll, call;
  fixture_t f;

  fixture_open_http2(&f);
  start(&f, &call, TNK__LANE_TRAIN, "/ok");
  all_ok(&f, &call, 1);
  start(&f, &poll, TNK__LANE_POLL, "/hold");
  mock_wait(f.mock, 2);
  CHECK_INT(mock_n_connections(f.mock), 2);
  freeze(&f);
  pass(&f, 16000);
  CHECK_INT(poll.err, TNK_ECONN);
  start(&f, &call, TNK__LANE_SAMPLE, "/ok");
  mock_turns(f.mock, 5);
  pass(&f, 6000);
  CHECK_INT(call.n_done, 1);
  CHECK_INT(call.err, TNK_ETIMEDOUT);
  CHECK_INT(call.sent, 0);
  CHECK_INT(f.c.n_warnings, 0);
  fixture_close(&f);
}

/* ---- Limits of streams ---- */

static void refuse_one(mock_request_t *request, void *user) {
  int *n = user;

  if ((*n)++ == 0)
    mock_rst(request, MOCK_REFUSED_STREAM);
  else
    mock_reply_json(request, 200, "{}");
}

/* What one refusal has taken from a connection, answers give back. */
TEST(a_limit_that_one_refusal_has_lowered_rises_again) {
  enum { N = 12 };
  call_t held[3], calls[N], call;
  fixture_t f;
  int n = 0;

  open_single(&f);
  start_many(&f, held, 3);
  mock_wait(f.mock, 3);
  mock_on(f.mock, NULL, "/x", refuse_one, &n);
  start(&f, &call, TNK__LANE_SAMPLE, "/x");
  mock_wait(f.mock, 4);
  mock_turns(f.mock, 10);
  mock_release(f.mock, 200, "{}");
  all_ok(&f, held, 3);
  all_ok(&f, &call, 1);
  for (int i = 0; i < N; i++) {
    start(&f, &call, TNK__LANE_SAMPLE, "/ok");
    all_ok(&f, &call, 1);
  }
  start_many(&f, calls, N);
  mock_turns(f.mock, 50);
  CHECK_INT(mock_n_held(f.mock), N);
  CHECK_INT(mock_n_connections(f.mock), 1);
  mock_release(f.mock, 200, "{}");
  all_ok(&f, calls, N);
  fixture_close(&f);
}

/* Requests that were given to a connection, and not written yet, when the
 * server lowers its limit: they wait, and the connection goes on. */
TEST_LIMIT(requests_above_a_lowered_limit_are_not_begun, 20) {
  enum { N = 10, LIMIT = 3 };
  tnk__http_request_t request;
  char *body = calloc(1, SIZE);
  call_t upload, calls[N];
  fixture_t f;
  int n = 0;

  CHECK(body != NULL);
  open_single(&f);
  call_get(&f, "/ok");
  mock_setting(f.mock, MOCK_WINDOW, INT32_MAX);
  mock_set_connection_window(f.mock, INT32_MAX);
  mock_turns(f.mock, 20);
  mock_set_reading(f.mock, 0);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/ok");
  request.body = body;
  request.body_len = SIZE;
  call_send(&f, &upload, &request);
  while (upload.ex.conn == NULL || !upload.ex.conn->h2->is_writing)
    mock_turns(f.mock, 1);
  start_many(&f, calls, N);
  mock_turns(f.mock, 10);
  mock_setting(f.mock, MOCK_MAX_STREAMS, LIMIT);
  while (upload.ex.conn->h2->peer_max != LIMIT)
    mock_turns(f.mock, 1);
  mock_set_reading(f.mock, 1);
  call_wait(&f, &upload);
  CHECK_INT(upload.err, TNK_OK);
  while (n < N) {
    mock_turns(f.mock, 10);
    CHECK(mock_n_held(f.mock) <= LIMIT);
    n += (int)mock_release(f.mock, 200, "{}");
  }
  all_ok(&f, calls, N);
  CHECK_INT(mock_n_refused(f.mock), 0);
  CHECK_INT(mock_n_connections(f.mock), 1);
  free(body);
  fixture_close(&f);
}

/* ---- Resets ---- */

/* Time without a cancel saves no more resets than the budget has. */
TEST(the_budget_of_resets_does_not_grow_while_idle) {
  enum { N = 80, BUDGET = 50 };
  static call_t calls[N];
  call_t held;
  fixture_t f;

  fixture_open_http2(&f);
  start(&f, &held, TNK__LANE_POLL, "/hold");
  held.ex.timeout_ms = 100 * TIMEOUT_MS;
  mock_wait(f.mock, 1);
  pass(&f, 300000);
  start_many(&f, calls, N);
  mock_wait(f.mock, N + 1);
  for (int i = 0; i < N; i++)
    tnk__exchange_cancel(&calls[i].ex);
  mock_turns(f.mock, 30);
  CHECK_INT(mock_n_resets(f.mock), BUDGET);
  pass(&f, 30000);
  CHECK_INT(mock_n_resets(f.mock), N);
  fixture_close(&f);
}
