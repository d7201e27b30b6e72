/* SPDX-License-Identifier: MIT */
/* HTTP/2: what becomes of an exchange when its stream or its connection does
 * not end as it should, and what is known about the request then. */
#include <stdio.h>
#include <stdlib.h>

#include "http/fixture.h"
#include "support/mock_http2.h"

static void start_one(fixture_t *f, call_t *call, const char *target,
                      int replayable) {
  tnk__http_request_t request =
      request_to(f->mock, TNK__LANE_SAMPLE, "POST", target);

  request.replayable = replayable;
  request.body = "body";
  request.body_len = 4;
  call_send(f, call, &request);
}

static void start_polls(fixture_t *f, call_t *calls, int n) {
  for (int i = 0; i < n; i++)
    call_start(f, &calls[i], TNK__LANE_POLL, "POST", "/hold");
}

/* Polls on one connection, all with the server. */
static void open_polls(fixture_t *f, call_t *calls, int n) {
  fixture_open_http2(f);
  start_polls(f, calls, n);
  mock_wait(f->mock, (size_t)n);
  mock_turns(f->mock, 10);
  CHECK_INT(mock_n_connections(f->mock), 1);
}

static void check_ok(fixture_t *f, call_t *calls, int n) {
  for (int i = 0; i < n; i++) {
    call_wait(f, &calls[i]);
    CHECK_INT(calls[i].n_done, 1);
    CHECK_INT(calls[i].err, TNK_OK);
    CHECK_INT(calls[i].status, 200);
  }
}

/* ---- GOAWAY ---- */

/* Those above its last stream were not looked at: they are sent again, also
 * without leave to repeat. Those below finish where they are. */
TEST(goaway_parts_the_streams_at_its_last) {
  call_t calls[5];
  fixture_t f;

  open_polls(&f, calls, 5);
  mock_goaway(f.mock, 0, mock_request(f.mock, 1)->stream_id, MOCK_NO_ERROR);
  mock_wait(f.mock, 8);
  mock_turns(f.mock, 20);
  CHECK_INT(mock_n_requests(f.mock), 8);
  for (size_t i = 5; i < 8; i++)
    CHECK_INT(mock_request(f.mock, i)->connection, 1);
  CHECK_INT(mock_release(f.mock, 200, "{}"), 5);
  check_ok(&f, calls, 5);
  for (int i = 0; i < 5; i++)
    CHECK_INT(calls[i].n_sent, 1);
  CHECK_INT(mock_n_requests(f.mock), 8);
  fixture_close(&f);
}

/* 2^31-1 first: new ones go elsewhere, and nothing is lost or repeated. */
TEST(a_graceful_goaway_costs_nothing) {
  call_t calls[5];
  call_t later[3];
  fixture_t f;

  open_polls(&f, calls, 5);
  mock_goaway(f.mock, 0, INT32_MAX, MOCK_NO_ERROR);
  mock_turns(f.mock, 10);
  start_polls(&f, later, 3);
  mock_wait(f.mock, 8);
  for (size_t i = 5; i < 8; i++)
    CHECK_INT(mock_request(f.mock, i)->connection, 1);
  mock_goaway(f.mock, 0, MOCK_LAST, MOCK_NO_ERROR);
  mock_turns(f.mock, 20);
  CHECK_INT(mock_n_held(f.mock), 8);
  mock_release(f.mock, 200, "{}");
  check_ok(&f, calls, 5);
  check_ok(&f, later, 3);
  CHECK_INT(mock_n_requests(f.mock), 8);
  mock_wait_open(f.mock, 1);
  fixture_close(&f);
}

/* Where no other is granted, waiting ends with the one that drains. */
TEST(what_waits_behind_a_goaway_ends_with_it) {
  call_t calls[2];
  call_t later;
  fixture_t f;

  open_polls(&f, calls, 2);
  mock_goaway(f.mock, 0, INT32_MAX, MOCK_NO_ERROR);
  mock_turns(f.mock, 10);
  mock_stop_listening(f.mock);
  mock_turns(f.mock, 3);
  start_polls(&f, &later, 1);
  mock_turns(f.mock, 50);
  mock_release(f.mock, 200, "{}");
  check_ok(&f, calls, 2);
  for (int i = 0; i < 100 && later.n_done == 0; i++) {
    mock_turns(f.mock, 5);
    tnk__context_advance(&f.c.loop, 100);
  }
  CHECK_INT(later.n_done, 1);
  CHECK_INT(later.err, TNK_ECONN);
  CHECK_INT(later.sent, 0);
  fixture_close(&f);
}

/* Without a stream of ours among those that it will answer. */
TEST(goaway_before_the_first_stream_repeats_all) {
  call_t calls[3];
  fixture_t f;

  open_polls(&f, calls, 3);
  mock_goaway(f.mock, 0, 0, MOCK_NO_ERROR);
  mock_wait(f.mock, 6);
  mock_release(f.mock, 200, "{}");
  check_ok(&f, calls, 3);
  CHECK_INT(mock_n_requests(f.mock), 6);
  fixture_close(&f);
}

/* With a code, and then the end: what it may have looked at is lost. */
TEST(goaway_with_an_error_loses_what_it_names) {
  for (uint32_t code = MOCK_PROTOCOL_ERROR; code <= MOCK_ENHANCE_YOUR_CALM;
       code++) {
    call_t calls[3];
    fixture_t f;
    open_polls(&f, calls, 3);
    mock_goaway(f.mock, 0, mock_request(f.mock, 0)->stream_id, code);
    mock_turns(f.mock, 3);
    mock_close_connection(f.mock, 0, 0);
    call_wait(&f, &calls[0]);
    CHECK_INT(calls[0].err, TNK_ECONN);
    CHECK_INT(calls[0].sent, 1);
    /* Who asks for calm is not asked again at once: the owner pauses. */
    for (int i = 1; i < 3 && code == MOCK_ENHANCE_YOUR_CALM; i++) {
      call_wait(&f, &calls[i]);
      CHECK_INT(calls[i].err, TNK_ECONN);
      CHECK_INT(calls[i].sent, 0);
    }
    if (code != MOCK_ENHANCE_YOUR_CALM) {
      mock_wait(f.mock, 5);
      mock_release(f.mock, 200, "{}");
      check_ok(&f, &calls[1], 2);
      CHECK_INT(mock_n_requests(f.mock), 5);
    }
    fixture_close(&f);
  }
}

/* ---- RST_STREAM ---- */

static void refuse_twice(mock_request_t *request, void *user) {
  int *n = user;

  if ((*n)++ < 2)
    mock_rst(request, MOCK_REFUSED_STREAM);
  else
    mock_reply_json(request, 200, "{}");
}

TEST(a_refused_stream_is_sent_again) {
  fixture_t f;
  call_t call;
  int n = 1;

  fixture_open_http2(&f);
  mock_on(f.mock, NULL, "/x", refuse_twice, &n);
  start_one(&f, &call, "/x", 0);
  call_wait(&f, &call);
  check_ok(&f, &call, 1);
  CHECK_INT(mock_n_requests(f.mock), 2);
  CHECK_MEM(mock_request(f.mock, 1)->body, mock_request(f.mock, 1)->body_len,
            "body", 4);
  fixture_close(&f);
}

/* Not for ever, and what is said then is that it was not run. */
TEST(refusals_come_to_an_end) {
  const uint32_t code = MOCK_REFUSED_STREAM;
  fixture_t f;
  call_t call;

  fixture_open_http2(&f);
  mock_on(f.mock, NULL, "/x", mock_rst_with, (void *)(uintptr_t)&code);
  start_one(&f, &call, "/x", 1);
  for (int i = 0; i < 1000 && call.n_done == 0; i++) {
    mock_turns(f.mock, 5);
    tnk__context_advance(&f.c.loop, 100);
  }
  CHECK_INT(call.n_done, 1);
  CHECK_INT(call.err, TNK_ECONN);
  CHECK_INT(call.sent, 0);
  CHECK(mock_n_requests(f.mock) <= 10);
  call_get(&f, "/ok");
  fixture_close(&f);
}

/* The others say nothing about what was done. Neighbors notice nothing. */
TEST(resets_by_code) {
  for (uint32_t code = 0; code < MOCK_N_CODES + 1; code++) {
    call_t neighbor;
    fixture_t f;
    call_t call;
    if (code == MOCK_REFUSED_STREAM || code == MOCK_HTTP_1_1_REQUIRED)
      continue;
    fixture_open_http2(&f);
    start_polls(&f, &neighbor, 1);
    mock_wait(f.mock, 1);
    mock_on(f.mock, NULL, "/x", mock_rst_with, &code);
    start_one(&f, &call, "/x", 1);
    call_wait(&f, &call);
    if (call.err != TNK_ECONN || call.sent != 1 || call.status != 0)
      test_fail(__FILE__, __LINE__, "code %u: %s, sent %d: %s", (unsigned)code,
                tnk_err_name(call.err), call.sent, call.detail);
    if (mock_n_requests(f.mock) != 2)
      test_fail(__FILE__, __LINE__, "code %u: %zu requests", (unsigned)code,
                mock_n_requests(f.mock));
    CHECK_INT(neighbor.n_done, 0);
    mock_release(f.mock, 200, "{}");
    check_ok(&f, &neighbor, 1);
    call_get(&f, "/ok");
    CHECK_INT(mock_n_connections(f.mock), 1);
    fixture_close(&f);
  }
}

TEST(a_reset_in_the_middle_of_an_answer) {
  fixture_t f;
  call_t call;

  fixture_open_http2(&f);
  start_one(&f, &call, "/hold", 1);
  mock_wait(f.mock, 1);
  mock_begin(mock_request(f.mock, 0), 200, "X-Header: h\r\n");
  mock_piece(mock_request(f.mock, 0), "abc", 3);
  mock_turns(f.mock, 10);
  mock_rst(mock_request(f.mock, 0), MOCK_CANCEL);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ECONN);
  CHECK_INT(call.sent, 1);
  CHECK_INT(call.status, 200);
  CHECK_STR(call.header, "h");
  CHECK_STR(call.body, "abc");
  CHECK_INT(mock_n_requests(f.mock), 1);
  fixture_close(&f);
}

/* ---- Another version ---- */

static void want_http1(mock_request_t *request, void *user) {
  (void)user;
  if (request->stream_id > 0)
    mock_rst(request, MOCK_HTTP_1_1_REQUIRED);
  else
    mock_reply_json(request, 200, "{}");
}

TEST(http_1_1_required_is_obeyed_and_remembered) {
  fixture_t f;
  call_t call;

  fixture_open_http2(&f);
  mock_on(f.mock, NULL, "/x", want_http1, NULL);
  for (int i = 0; i < 3; i++) {
    start_one(&f, &call, "/x", 0);
    call_wait(&f, &call);
    check_ok(&f, &call, 1);
  }
  CHECK_INT(mock_n_requests(f.mock), 4);
  CHECK_INT(mock_n_sessions(f.mock), 1);
  fixture_close(&f);
}

/* A server of HTTP/1.1 answers the preface as what it is: no request. */
TEST(a_refused_preface_falls_back) {
  fixture_t f;
  call_t call;

  fixture_open_http2(&f);
  mock_set_http2(f.mock, 0);
  for (int i = 0; i < 3; i++) {
    start_one(&f, &call, "/ok", 0);
    call_wait(&f, &call);
    check_ok(&f, &call, 1);
  }
  CHECK_INT(mock_n_requests(f.mock), 3);
  CHECK_INT(mock_n_connections(f.mock), 2);
  CHECK_INT(mock_n_sessions(f.mock), 0);
  fixture_close(&f);
}

/* What is no HTTP/2 ends the connection, and after that there is none. */
TEST(a_server_that_breaks_http2_is_spoken_to_by_http1) {
  fixture_t f;
  call_t call;

  fixture_open_http2(&f);
  start_one(&f, &call, "/hold", 0);
  mock_wait(f.mock, 1);
  CHECK_INT(f.c.n_warnings, 0);
  mock_frame(f.mock, 0, MOCK_DATA, 0, 99, "x", 1);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_EPROTO);
  CHECK_INT(call.sent, 1);
  for (size_t i = 1; i <= 3; i++) {
    start_one(&f, &call, "/ok", 0);
    call_wait(&f, &call);
    check_ok(&f, &call, 1);
    CHECK_INT(mock_request(f.mock, i)->stream_id, 0);
  }
  CHECK_INT(f.c.n_warnings, 1);
  CHECK_INT(mock_n_sessions(f.mock), 1);
  fixture_close(&f);
}

/* ---- 421, early answers ---- */

static void misdirect_once(mock_request_t *request, void *user) {
  int *n = user;

  mock_reply_json(request, (*n)++ == 0 ? 421 : 200, "{}");
}

TEST(a_misdirected_request_goes_to_another_connection) {
  fixture_t f;
  call_t call;
  int n = 0;

  fixture_open_http2(&f);
  mock_on(f.mock, NULL, "/x", misdirect_once, &n);
  start_one(&f, &call, "/x", 0);
  call_wait(&f, &call);
  check_ok(&f, &call, 1);
  CHECK_INT(mock_n_requests(f.mock), 2);
  CHECK(mock_request(f.mock, 0)->connection !=
        mock_request(f.mock, 1)->connection);
  fixture_close(&f);
}

static void refuse_early(mock_request_t *request, void *user) {
  const uint32_t *code = user;

  mock_reply(request, 413, NULL, "too much", 8);
  if (*code != MOCK_N_CODES)
    mock_rst(request, *code);
}

/* The whole answer counts, whether or not the server then wants the rest. */
TEST_LIMIT(an_answer_before_the_body_is_out, 20) {
  enum { SIZE = 4 * 1024 * 1024 };
  const uint32_t codes[] = {MOCK_NO_ERROR, MOCK_N_CODES};
  char *body = calloc(1, SIZE);

  CHECK(body != NULL);
  for (size_t i = 0; i < 2; i++) {
    tnk__http_request_t request;
    fixture_t f;
    call_t call;
    fixture_open_http2(&f);
    mock_on_head(f.mock, refuse_early, (void *)(uintptr_t)&codes[i]);
    mock_set_windows(f.mock, 0);
    request = request_to(f.mock, TNK__LANE_TRAIN, "POST", "/x");
    request.body = body;
    request.body_len = SIZE;
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_OK);
    CHECK_INT(call.status, 413);
    CHECK_STR(call.body, "too much");
    mock_on_head(f.mock, NULL, NULL);
    mock_set_windows(f.mock, 1);
    call_get(&f, "/ok");
    fixture_close(&f);
  }
  free(body);
}

/* ---- Lost connections ---- */

TEST(a_connection_lost_with_many_streams) {
  enum { N = 80 };
  for (int reset = 0; reset < 2; reset++) {
    static call_t calls[N];
    fixture_t f;
    open_polls(&f, calls, N);
    mock_close_connection(f.mock, 0, reset);
    for (int i = 0; i < N; i++) {
      call_wait(&f, &calls[i]);
      CHECK_INT(calls[i].err, TNK_ECONN);
      CHECK_INT(calls[i].sent, 1);
    }
    mock_turns(f.mock, 10);
    for (int i = 0; i < N; i++)
      CHECK_INT(calls[i].n_done, 1);
    CHECK_INT(mock_n_requests(f.mock), N);
    call_get(&f, "/ok");
    CHECK_INT(mock_n_connections(f.mock), 2);
    fixture_close(&f);
  }
}

/* B15: the server closed a kept connection, and we did not know yet. */
TEST(B15_a_stale_connection_sends_again_once) {
  for (int replayable = 0; replayable < 2; replayable++) {
    fixture_t f;
    call_t call;
    fixture_open_http2(&f);
    call_get(&f, "/ok");
    mock_set_reading(f.mock, 0);
    start_one(&f, &call, "/ok", replayable);
    mock_wait_flag(f.mock, &call.n_sent, 1);
    mock_turns(f.mock, 3);
    mock_close_idle(f.mock, 0);
    mock_set_reading(f.mock, 1);
    call_wait(&f, &call);
    CHECK_INT(call.err, replayable ? TNK_OK : TNK_ECONN);
    CHECK_INT(call.sent, 1);
    CHECK_INT(mock_n_requests(f.mock), 1 + replayable);
    fixture_close(&f);
  }
}

/* ---- Silence ---- */

TEST(a_server_that_stops_reading_is_given_up) {
  enum { SIZE = 16 * 1024 * 1024 };
  tnk__http_request_t request;
  char *body = calloc(1, SIZE);
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  fixture_open_http2(&f);
  call_get(&f, "/ok");
  mock_set_reading(f.mock, 0);
  request = request_to(f.mock, TNK__LANE_TRAIN, "POST", "/ok");
  request.body = body;
  request.body_len = SIZE;
  request.timeout_ms = 60000;
  call_send(&f, &call, &request);
  mock_turns(f.mock, 20);
  for (int i = 0; i < 130 && call.n_done == 0; i++) {
    tnk__context_advance(&f.c.loop, 1000);
    mock_turns(f.mock, 3);
  }
  CHECK_INT(call.n_done, 1);
  CHECK(call.err == TNK_ETIMEDOUT || call.err == TNK_ECONN);
  free(body);
  mock_set_reading(f.mock, 1);
  call_get(&f, "/ok");
  fixture_close(&f);
}

/* Its own upload waits; nobody else does. */
TEST(windows_that_are_never_opened_stop_one_upload) {
  enum { SIZE = 1024 * 1024 };
  tnk__http_request_t request;
  char *body = calloc(1, SIZE);
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  fixture_open_http2(&f);
  mock_setting(f.mock, MOCK_WINDOW, 1000);
  mock_set_windows(f.mock, 0);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/ok");
  request.body = body;
  request.body_len = SIZE;
  request.timeout_ms = 60000;
  call_send(&f, &call, &request);
  mock_wait(f.mock, 1);
  mock_turns(f.mock, 20);
  CHECK_INT(mock_request(f.mock, 0)->body_len, 1000);
  call_get(&f, "/ok");
  CHECK_INT(call.n_done, 0);
  for (int i = 0; i < 61 && call.n_done == 0; i++) {
    tnk__context_advance(&f.c.loop, 1000);
    mock_turns(f.mock, 3);
  }
  CHECK_INT(call.err, TNK_ETIMEDOUT);
  CHECK_INT(call.sent, 1);
  CHECK(strstr(call.detail, "no answer") == NULL);
  CHECK(strstr(call.detail, "; 0% of 1.0 MB were sent") != NULL);
  free(body);
  call_get(&f, "/ok");
  fixture_close(&f);
}

/* A connection on which a PING meets silence is dead for all that are on it. */
TEST(a_ping_without_an_answer_ends_a_connection) {
  enum { N = 5 };
  call_t calls[N];
  fixture_t f;

  open_polls(&f, calls, N);
  for (int i = 0; i < 60; i++) {
    tnk__context_advance(&f.c.loop, 1000);
    mock_turns(f.mock, 3);
  }
  CHECK(mock_n_pings(f.mock) >= 2);
  CHECK_INT(calls[0].n_done, 0);
  mock_set_pongs(f.mock, 0);
  for (int i = 0; i < 30; i++) {
    tnk__context_advance(&f.c.loop, 1000);
    mock_turns(f.mock, 3);
  }
  for (int i = 0; i < N; i++) {
    CHECK_INT(calls[i].n_done, 1);
    CHECK(calls[i].err == TNK_ECONN || calls[i].err == TNK_ETIMEDOUT);
    CHECK_INT(calls[i].sent, 1);
  }
  mock_wait_open(f.mock, 0);
  fixture_close(&f);
}

/* ---- Lack of memory ---- */

static void go_away_once(mock_request_t *request, void *user) {
  int *n = user;

  mock_inform(request, 103, "Link: </a>\r\n");
  if ((*n)++ == 0)
    mock_goaway(request->server, (int)request->connection, 0, MOCK_NO_ERROR);
  else
    mock_reply(request, 200, "X-Header: h\r\n", "{}", 2);
}

static int ended_well(const call_t *call) {
  return call->n_done == 0 || call->err == TNK_OK || call->err == TNK_ENOMEM ||
         call->err == TNK_ECONN;
}

/* A refusal, a GOAWAY, an upload in pieces, a cancel, answers; the n-th
 * allocation of all that fails. */
static void live_hard(fixture_t *f, long n) {
  static const char *const targets[] = {"/refused", "/away", "/hold", "/ok"};
  static const char body[] = "0123456789";
  int n_refused = 1, n_away = 0, n_started = 0;
  feeder_t feeder;
  call_t calls[4];

  mock_on(f->mock, NULL, "/refused", refuse_twice, &n_refused);
  mock_on(f->mock, NULL, "/away", go_away_once, &n_away);
  feeder_init(&feeder, body, 10, 3);
  test_alloc_fail_at(n);
  for (int i = 0; i < 4; i++) {
    tnk__http_request_t request =
        request_to(f->mock, TNK__LANE_SAMPLE, "POST", targets[i]);
    request.feed = i == 1 ? &feeder.feed : NULL;
    request.timeout_ms = 60000;
    call_init(f, &calls[i]);
    if (tnk__exchange_start(&f->http, &calls[i].ex, &request) == TNK_OK)
      n_started++;
    else
      calls[i].n_done = 1;
  }
  mock_turns(f->mock, 100);
  tnk__exchange_cancel(&calls[2].ex);
  for (int i = 0; i < 70; i++) {
    tnk__context_advance(&f->c.loop, 1000);
    mock_turns(f->mock, 10);
  }
  for (int i = 0; i < 4; i++) {
    CHECK(calls[i].n_done == 1 || i == 2);
    if (!ended_well(&calls[i]))
      test_fail(__FILE__, __LINE__, "allocation %ld, %s: %s", n, targets[i],
                tnk_err_name(calls[i].err));
  }
  CHECK(n_started >= 3);
  free(feeder.piece);
}

TEST_LIMIT(S3_26a_each_allocation_of_a_hard_life_fails_once, 60) {
  int did_fail = 1;
  long n = 0;

  for (; did_fail; n++) {
    fixture_t f;
    fixture_open_http2(&f);
    live_hard(&f, n);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    call_get(&f, "/ok");
    fixture_close(&f);
    CHECK_INT(test_alloc_live(), 0);
    CHECK(n < 2000);
  }
  CHECK(n > 40);
  printf("# %ld allocations\n", n - 1);
}
