/* SPDX-License-Identifier: MIT */
/* What goes wrong, and what is known about the request then. */
#include <stdlib.h>

#include "fixture.h"

static void start_replayable(fixture_t *f, call_t *call, const char *target,
                             int replayable) {
  tnk__http_request_t request =
      request_to(f->mock, TNK__LANE_SAMPLE, "POST", target);

  request.replayable = replayable;
  request.body = "body";
  request.body_len = 4;
  call_send(f, call, &request);
}

static void start_with_timeout(fixture_t *f, call_t *call, const char *target,
                               uint64_t timeout_ms) {
  tnk__http_request_t request =
      request_to(f->mock, TNK__LANE_SAMPLE, "POST", target);

  request.timeout_ms = timeout_ms;
  call_send(f, call, &request);
}

TEST(refused_is_unsent) {
  fixture_t f;
  call_t calls[3];

  fixture_open(&f);
  mock_stop_listening(f.mock);
  mock_turns(f.mock, 2);
  for (int i = 0; i < 3; i++)
    start_replayable(&f, &calls[i], "/ok", 1);
  for (int i = 0; i < 3; i++) {
    while (calls[i].n_done == 0)
      mock_turns(f.mock, 1);
    CHECK_INT(calls[i].err, TNK_ECONN);
    CHECK_INT(calls[i].cause, UV_ECONNREFUSED);
    CHECK_INT(calls[i].sent, 0);
    CHECK_INT(calls[i].n_sent, 0);
  }
  CHECK(tnk__list_empty(&f.http.pools));
  fixture_close(&f);
}

/* B15, transport.md 2.3: the outcome of what was sent is unknown. */
TEST(closed_before_the_answer_is_lost) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, NULL, "/cut", mock_cut, NULL);
  mock_on(f.mock, NULL, "/reset", mock_reset, NULL);
  for (int i = 0; i < 4; i++) {
    start_replayable(&f, &call, i < 2 ? "/cut" : "/reset", i % 2);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_ECONN);
    CHECK_INT(call.sent, 1);
    CHECK_INT(call.n_sent, 1);
    CHECK_INT(call.status, 0);
    /* On a new connection that is not a sign of its age. */
    CHECK_INT(mock_n_requests(f.mock), i + 1);
  }
  fixture_close(&f);
}

typedef struct {
  size_t n;
  const char *headers;
} cut_t;

static void reply_cut(mock_request_t *request, void *user) {
  const cut_t *cut = user;

  mock_reply_cut(request, 200, cut->headers, "0123456789", 10, cut->n);
}

/* S3.20: a connection that dies in the middle of an answer. */
TEST_LIMIT(S3_20_cut_off_at_every_byte, 20) {
  cut_t cut = {0, "X-Header: h\r\n"};
  const size_t whole = strlen("HTTP/1.1 200 Status\r\nX-Header: h\r\n"
                              "Content-Length: 10\r\n\r\n0123456789");
  const size_t head = whole - 10;
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, NULL, "/cut", reply_cut, &cut);
  for (cut.n = 0; cut.n <= whole; cut.n++) {
    start_replayable(&f, &call, "/cut", 1);
    call_wait(&f, &call);
    CHECK_INT(call.err, cut.n < whole ? TNK_ECONN : TNK_OK);
    CHECK_INT(call.sent, 1);
    CHECK_INT(call.status, cut.n < head ? 0 : 200);
    CHECK_STR(call.header, cut.n < head ? "" : "h");
    CHECK_INT(call.body_len, cut.n < head ? 0 : cut.n - head);
    CHECK_INT(mock_n_requests(f.mock), cut.n + 1);
  }
  fixture_close(&f);
}

/* B15: the server closed a kept connection, and we did not know yet. */
TEST(B15_stale_connection_sends_again_once) {
  fixture_t f;
  call_t call;

  for (int reset = 0; reset < 2; reset++) {
    fixture_open(&f);
    call_get(&f, "/ok");
    start_replayable(&f, &call, "/ok", 1);
    mock_close_idle(f.mock, reset);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_OK);
    CHECK_INT(call.sent, 1);
    CHECK_INT(call.n_sent, 1);
    CHECK_INT(mock_n_requests(f.mock), 2);
    CHECK_INT(mock_n_connections(f.mock), 2);
    CHECK_MEM(mock_request(f.mock, 1)->body, mock_request(f.mock, 1)->body_len,
              "body", 4);
    fixture_close(&f);
  }
}

TEST(B15_stale_connection_without_leave_to_repeat) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  call_get(&f, "/ok");
  mock_set_reading(f.mock, 0);
  start_replayable(&f, &call, "/ok", 0);
  mock_wait_flag(f.mock, &call.n_sent, 1);
  mock_close_idle(f.mock, 0);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ECONN);
  CHECK_INT(call.sent, 1);
  CHECK_INT(mock_n_requests(f.mock), 1);
  fixture_close(&f);
}

/* When one kept connection is dead the others are likely to be, too. */
TEST(B15_the_second_time_goes_over_a_new_connection) {
  fixture_t f;
  call_t calls[3];

  mock_only_http1("only HTTP/1.1 has several connections for three polls");
  fixture_open(&f);
  for (int i = 0; i < 3; i++)
    call_start(&f, &calls[i], TNK__LANE_POLL, "GET", "/hold");
  mock_wait(f.mock, 3);
  mock_release(f.mock, 200, "{}");
  for (int i = 0; i < 3; i++)
    call_wait(&f, &calls[i]);
  CHECK_INT(f.http.n_connections, 3);
  start_replayable(&f, &calls[0], "/ok", 1);
  mock_close_idle(f.mock, 0);
  call_wait(&f, &calls[0]);
  CHECK_INT(calls[0].err, TNK_OK);
  CHECK_INT(mock_n_connections(f.mock), 4);
  fixture_close(&f);
}

/* A reset is noticed before a byte is out: nobody has seen the request. */
TEST(B15_unsent_needs_no_leave_to_repeat) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  call_get(&f, "/ok");
  start_replayable(&f, &call, "/ok", 0);
  mock_close_idle(f.mock, 1);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(mock_n_requests(f.mock), 2);
  fixture_close(&f);
}

/* The server saw it, both times, and hung up: that is no stale connection the
 * second time. */
TEST(B15_never_sent_a_third_time) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, NULL, "/reset", mock_reset, NULL);
  call_get(&f, "/ok");
  start_replayable(&f, &call, "/reset", 1);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ECONN);
  CHECK_INT(mock_count(f.mock, "POST", "/reset"), 2);
  fixture_close(&f);
}

/* With the first byte of an answer the server has begun to act. */
TEST(B15_no_repeat_after_a_byte_of_an_answer) {
  cut_t cut = {1, NULL};
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, NULL, "/cut", reply_cut, &cut);
  call_get(&f, "/ok");
  start_replayable(&f, &call, "/cut", 1);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ECONN);
  CHECK_INT(call.sent, 1);
  CHECK_INT(mock_count(f.mock, "POST", "/cut"), 1);
  fixture_close(&f);
}

TEST(a_closed_unused_connection_is_forgotten) {
  fixture_t f;

  fixture_open(&f);
  call_get(&f, "/ok");
  mock_close_idle(f.mock, 0);
  mock_turns(f.mock, 5);
  CHECK_INT(f.http.n_connections, 0);
  call_get(&f, "/ok");
  CHECK_INT(mock_n_connections(f.mock), 2);
  fixture_close(&f);
}

TEST(timeout_of_the_answer) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  start_with_timeout(&f, &call, "/hold", 45000);
  mock_wait(f.mock, 1);
  tnk__context_advance(&f.c.loop, 44999);
  mock_turns(f.mock, 3);
  CHECK_INT(call.n_done, 0);
  tnk__context_advance(&f.c.loop, 1);
  CHECK_INT(call.n_done, 0);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ETIMEDOUT);
  CHECK_INT(call.sent, 1);
  CHECK_INT(call.status, 0);
  mock_wait_open(f.mock, (size_t)mock_over_http2());
  mock_turns(f.mock, 5);
  CHECK(mock_request(f.mock, 0)->is_gone);
  fixture_close(&f);
}

/* Total: bytes that drip in do not put it off. */
TEST(timeout_in_the_middle_of_an_answer) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  start_with_timeout(&f, &call, "/hold", 10000);
  mock_wait(f.mock, 1);
  mock_begin(mock_request(f.mock, 0), 200, "Content-Length: 100\r\n");
  mock_piece(mock_request(f.mock, 0), "abc", 3);
  for (int i = 0; i < 9; i++) {
    mock_turns(f.mock, 3);
    tnk__context_advance(&f.c.loop, 1000);
    mock_piece(mock_request(f.mock, 0), "d", 1);
  }
  mock_turns(f.mock, 3);
  tnk__context_advance(&f.c.loop, 9999);
  mock_turns(f.mock, 3);
  CHECK_INT(call.n_done, 0);
  tnk__context_advance(&f.c.loop, 1);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ETIMEDOUT);
  CHECK_INT(call.status, 200);
  CHECK_STR(call.body, "abcddddddddd");
  fixture_close(&f);
}

TEST(the_queue_is_not_timed) {
  const tnk__http_options_t options = {.max_in_flight = {1, 1, 1, 1, 1}};
  fixture_t f;
  call_t calls[2];

  fixture_open_with(&f, &options);
  start_with_timeout(&f, &calls[0], "/hold", 1000);
  start_with_timeout(&f, &calls[1], "/hold", 1000);
  mock_wait(f.mock, 1);
  tnk__context_advance(&f.c.loop, 999);
  mock_turns(f.mock, 3);
  CHECK_INT(calls[0].n_done + calls[1].n_done, 0);
  tnk__context_advance(&f.c.loop, 1);
  mock_wait(f.mock, 2);
  CHECK_INT(calls[0].err, TNK_ETIMEDOUT);
  tnk__context_advance(&f.c.loop, 999);
  mock_turns(f.mock, 3);
  CHECK_INT(calls[1].n_done, 0);
  mock_release(f.mock, 200, "{}");
  call_wait(&f, &calls[1]);
  CHECK_INT(calls[1].err, TNK_OK);
  fixture_close(&f);
}

/* A TLS handshake that the other side never answers stands for every way of
 * not getting connected. */
TEST(timeout_of_connecting) {
  const tnk__http_options_t options = {.connect_timeout_ms = 3000};
  tnk__http_request_t request;
  mock_server_t *mute;
  fixture_t f;
  call_t call;

  fixture_open_with(&f, &options);
  mute = mock_open(&f.c.uv);
  mock_set_reading(mute, 0);
  request = request_to(mute, TNK__LANE_SAMPLE, "GET", "/ok");
  request.origin.is_tls = 1;
  call_send(&f, &call, &request);
  mock_wait_open(mute, 1);
  tnk__context_advance(&f.c.loop, 2999);
  mock_turns(f.mock, 3);
  CHECK_INT(call.n_done, 0);
  tnk__context_advance(&f.c.loop, 1);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ETIMEDOUT);
  CHECK_INT(call.sent, 0);
  CHECK_INT(call.n_sent, 0);
  mock_close(mute);
  fixture_close(&f);
}

/* A connection on its way for an exchange that is gone takes no other one with
 * it when it fails. */
TEST(timeout_of_a_connection_too_many) {
  const tnk__http_options_t options = {.connect_timeout_ms = 3000};
  tnk__http_request_t request;
  mock_server_t *mute;
  fixture_t f;
  call_t calls[2];

  mock_only_http1("only HTTP/1.1 opens a connection for each");
  fixture_open_with(&f, &options);
  mute = mock_open(&f.c.uv);
  mock_set_reading(mute, 0);
  request = request_to(mute, TNK__LANE_TRAIN, "GET", "/ok");
  request.origin.is_tls = 1;
  for (size_t i = 0; i < 2; i++) {
    call_send(&f, &calls[i], &request);
    mock_wait_open(mute, i + 1);
    tnk__context_advance(&f.c.loop, 1000);
  }
  tnk__exchange_cancel(&calls[0].ex);
  tnk__context_advance(&f.c.loop, 1000);
  mock_turns(f.mock, 3);
  CHECK_INT(f.http.n_connections, 1);
  CHECK_INT(calls[1].n_done, 0);
  tnk__context_advance(&f.c.loop, 1000);
  call_wait(&f, &calls[1]);
  CHECK_INT(calls[1].err, TNK_ETIMEDOUT);
  mock_close(mute);
  fixture_close(&f);
}

/* The exchange's own timeout covers connecting too. */
TEST(timeout_while_waiting_for_a_connection) {
  tnk__http_request_t request;
  mock_server_t *mute;
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mute = mock_open(&f.c.uv);
  mock_set_reading(mute, 0);
  request = request_to(mute, TNK__LANE_SAMPLE, "GET", "/ok");
  request.origin.is_tls = 1;
  request.timeout_ms = 2000;
  call_send(&f, &call, &request);
  mock_wait_open(mute, 1);
  tnk__context_advance(&f.c.loop, 2000);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_ETIMEDOUT);
  CHECK_INT(call.sent, 0);
  mock_close(mute);
  fixture_close(&f);
}

TEST_LIMIT(timeout_while_writing, 20) {
  enum { SIZE = 16 * 1024 * 1024 };
  tnk__http_request_t request;
  char *body = calloc(1, SIZE);
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  fixture_open(&f);
  call_get(&f, "/ok");
  mock_set_reading(f.mock, 0);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/ok");
  request.body = body;
  request.body_len = SIZE;
  request.timeout_ms = 5000;
  call_send(&f, &call, &request);
  mock_wait_flag(f.mock, &call.n_sent, 1);
  mock_turns(f.mock, 5);
  /* That it still moved is found out at a quarter of the time. */
  tnk__context_advance(&f.c.loop, 6251);
  call_wait(&f, &call);
  /* The body is ours again. */
  free(body);
  CHECK_INT(call.err, TNK_ETIMEDOUT);
  CHECK_INT(call.sent, 1);
  mock_turns(f.mock, 3);
  fixture_close(&f);
}

TEST(bytes_that_nobody_asked_for_end_a_connection) {
  fixture_t f;

  fixture_open(&f);
  call_get(&f, "/ok");
  mock_write_idle(f.mock, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  mock_wait_open(f.mock, 0);
  CHECK_INT(f.http.n_connections, 0);
  call_get(&f, "/ok");
  CHECK_INT(mock_n_connections(f.mock), 2);
  fixture_close(&f);
}

static void poll_held(fixture_t *f, call_t *call, size_t i) {
  tnk__http_request_t request =
      request_to(f->mock, TNK__LANE_POLL, "GET", "/hold");

  request.replayable = 1;
  call_send(f, call, &request);
  mock_wait(f->mock, i + 1);
}

/* A new connection that is ended at once, while others work, was refused: the
 * exchange waits for those. One that is ended later was not, and its owner
 * hears of it instead of waiting for what has nothing to do with it. */
TEST(B9_a_connection_that_ends_later_was_not_refused) {
  call_t first;
  call_t late;
  call_t refused;
  fixture_t f;

  mock_only_http1("over HTTP/2 they share a connection");
  fixture_open(&f);
  poll_held(&f, &first, 0);
  poll_held(&f, &late, 1);
  tnk__context_advance(&f.c.loop, 100);
  mock_cut(mock_request(f.mock, 1), NULL);
  call_wait(&f, &late);
  CHECK_INT(late.err, TNK_ECONN);
  CHECK_INT(f.c.n_warnings, 0);
  poll_held(&f, &refused, 2);
  mock_cut(mock_request(f.mock, 2), NULL);
  mock_turns(f.mock, 20);
  CHECK_INT(refused.n_done, 0);
  CHECK_INT(f.c.n_warnings, 1);
  tnk__exchange_cancel(&first.ex);
  tnk__exchange_cancel(&refused.ex);
  fixture_close(&f);
}
