/* SPDX-License-Identifier: MIT */
/*
 * Answers whose body is taken out while it comes.
 */
#include "http/fixture.h"

#include "lib/base/limits.h"

/* A call that takes what there is, or lets it lie. */
typedef struct {
  call_t call; /* first: the callbacks cast it back */
  int n_bodies;
  int is_lazy;
  int cancel_in_body;
  size_t n_taken;
  uint64_t sum; /* of the bytes, each times its place */
} taker_t;

static void add(taker_t *taker, const tnk__buf_t *body) {
  for (size_t i = 0; i < body->len; i++)
    taker->sum += (taker->n_taken + i + 1) * body->data[i];
  taker->n_taken += body->len;
}

static void take(taker_t *taker) {
  tnk__buf_t body;

  tnk__buf_init(&body, test_allocator(), 0);
  tnk__exchange_take_body(&taker->call.ex, &body);
  add(taker, &body);
  tnk__buf_deinit(&body);
}

static void on_body(tnk__exchange_t *ex) {
  taker_t *taker = (taker_t *)(void *)ex;

  CHECK(tnk__exchange_is_active(ex));
  CHECK_INT(tnk__exchange_status(ex), 200);
  taker->n_bodies++;
  if (taker->cancel_in_body)
    tnk__exchange_cancel(ex);
  else if (!taker->is_lazy)
    take(taker);
}

static void on_done(tnk__exchange_t *ex, const tnk__http_result_t *result) {
  add((taker_t *)(void *)ex, result->body);
  call_done(ex, result);
}

static void start_streamed(fixture_t *f, taker_t *taker, const char *target) {
  tnk__http_request_t request =
      request_to(f->mock, TNK__LANE_CONTROL, "GET", target);

  memset(taker, 0, sizeof(*taker));
  call_init(f, &taker->call);
  taker->call.ex.on_body = on_body;
  taker->call.ex.on_done = on_done;
  request.is_streamed = 1;
  request.timeout_ms = 1000;
  CHECK_INT(tnk__exchange_start(&f->http, &taker->call.ex, &request), TNK_OK);
}

static uint64_t sum_of(const uint8_t *data, size_t n) {
  uint64_t sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (i + 1) * data[i];
  return sum;
}

enum { BIG = 6 * 1024 * 1024 };
static uint8_t big[BIG];

static void answer_big(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, "X-Header: a\r\n", big, sizeof(big));
}

/* An answer of BIG bytes is on its way. */
static void open_big(fixture_t *f, taker_t *taker) {
  uint64_t state = 1;

  for (size_t i = 0; i < sizeof(big); i++)
    big[i] = (uint8_t)test_random(&state);
  fixture_open(f);
  mock_on(f->mock, "GET", "/big", answer_big, NULL);
  start_streamed(f, taker, "/big");
}

/* Nobody takes it, until the connection stops reading. */
static void let_it_lie(fixture_t *f, taker_t *taker) {
  taker->is_lazy = 1;
  while (!taker->call.ex.is_paused)
    uv_run(&f->c.uv, UV_RUN_ONCE);
}

TEST(O1_a_long_body_comes_in_pieces_and_whole) {
  fixture_t f;
  taker_t taker;

  open_big(&f, &taker);
  call_wait(&f, &taker.call);
  CHECK_INT(taker.call.err, TNK_OK);
  CHECK(taker.n_bodies > 1);
  CHECK_INT(taker.n_taken, BIG);
  CHECK(taker.sum == sum_of(big, BIG));
  CHECK_STR(mock_header(mock_request(f.mock, 0), "accept-encoding"),
            "identity");
  /* The connection is as good as new. */
  call_get(&f, "/ok");
  CHECK_INT(mock_n_connections(f.mock), 1);
  fixture_close(&f);
}

TEST(O1_what_is_not_taken_makes_the_server_wait) {
  fixture_t f;
  taker_t taker;
  int n;

  open_big(&f, &taker);
  let_it_lie(&f, &taker);
  mock_turns(f.mock, 5);
  n = taker.n_bodies;
  mock_turns(f.mock, 50);
  CHECK_INT(taker.call.n_done, 0);
  CHECK_INT(taker.n_bodies, n);
  /* Waiting for the owner is no silence of the server's. */
  tnk__context_advance(&f.c.loop, 5000);
  mock_turns(f.mock, 5);
  CHECK_INT(taker.call.n_done, 0);
  take(&taker);
  CHECK(taker.n_taken < TNK__MAX_UNREAD_BODY);
  taker.is_lazy = 0;
  call_wait(&f, &taker.call);
  CHECK_INT(taker.n_taken, BIG);
  CHECK(taker.sum == sum_of(big, BIG));
  fixture_close(&f);
}

TEST(O1_silence_ends_a_streamed_answer_and_bytes_do_not) {
  fixture_t f;
  taker_t taker;
  mock_request_t *request;

  fixture_open(&f);
  start_streamed(&f, &taker, "/hold");
  mock_wait(f.mock, 1);
  request = mock_request(f.mock, 0);
  mock_begin(request, 200, "Content-Length: 9\r\n");
  for (size_t i = 0; i < 4; i++) {
    mock_piece(request, "ab", 2);
    while (taker.n_taken < 2 * (i + 1))
      uv_run(&f.c.uv, UV_RUN_ONCE);
    tnk__context_advance(&f.c.loop, 900);
    CHECK_INT(taker.call.n_done, 0);
  }
  tnk__context_advance(&f.c.loop, 100);
  call_wait(&f, &taker.call);
  CHECK_INT(taker.call.err, TNK_ETIMEDOUT);
  CHECK_INT(taker.call.status, 200);
  fixture_close(&f);
}

TEST(O1_a_streamed_answer_is_canceled_from_its_callback) {
  fixture_t f;
  taker_t taker;

  open_big(&f, &taker);
  taker.cancel_in_body = 1;
  while (taker.n_bodies == 0)
    uv_run(&f.c.uv, UV_RUN_ONCE);
  mock_turns(f.mock, 5);
  CHECK_INT(taker.n_bodies, 1);
  CHECK_INT(taker.call.n_done, 0);
  call_get(&f, "/ok");
  fixture_close(&f);
}

static void answer_zstd(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, "Content-Encoding: zstd\r\n", "abc", 3);
}

TEST(O1_compression_that_was_not_asked_for_is_refused) {
  fixture_t f;
  taker_t taker;

  fixture_open(&f);
  mock_on(f.mock, "GET", "/z", answer_zstd, NULL);
  start_streamed(&f, &taker, "/z");
  call_wait(&f, &taker.call);
  CHECK_INT(taker.call.err, TNK_EPROTO);
  fixture_close(&f);
}

TEST(O1_a_client_closes_while_an_answer_waits_to_be_taken) {
  fixture_t f;
  taker_t taker;

  open_big(&f, &taker);
  let_it_lie(&f, &taker);
  tnk__http_close(&f.http);
  call_wait(&f, &taker.call);
  CHECK_INT(taker.call.err, TNK_ECLOSED);
  fixture_close(&f);
}
