/* SPDX-License-Identifier: MIT */
/* Cancel and close in every state; lack of memory everywhere. */
#include "fixture.h"
#include "support/spy.h"

/* How far an exchange is let go before something is done to it. */
typedef enum {
  QUEUED,
  WAITING,
  CONNECTING,
  HELD,
  IN_BODY,
  DUE,
  N_STAGES
} stage_t;

static const tnk__http_options_t one_each = {.max_in_flight = {1, 1, 1, 1, 1}};

static void bring_to(fixture_t *f, call_t *call, stage_t stage) {
  call_start(f, call, TNK__LANE_POLL, "POST", "/hold");
  if (stage == QUEUED)
    return;
  if (stage == WAITING) {
    /* One turn gives the place, and the connection has been begun. */
    uv_run(&f->c.uv, UV_RUN_NOWAIT);
    CHECK_INT(tnk__http_n_polls(&f->http), 1);
    return;
  }
  if (stage == CONNECTING) {
    mock_wait_open(f->mock, 1);
    return;
  }
  mock_wait(f->mock, 1);
  if (stage == IN_BODY) {
    mock_begin(mock_request(f->mock, 0), 200, "Content-Length: 9\r\n");
    mock_piece(mock_request(f->mock, 0), "abc", 3);
    mock_turns(f->mock, 5);
  }
  if (stage == DUE) {
    /* The answer is in, and on_done waits for its turn. */
    mock_release(f->mock, 200, "{}");
    while (tnk__list_empty(&f->http.done))
      uv_run(&f->c.uv, UV_RUN_ONCE);
  }
  CHECK_INT(call->n_done, 0);
}

TEST(cancel_in_every_state) {
  for (int stage = 0; stage < N_STAGES; stage++) {
    fixture_t f;
    call_t call;
    int n_sent;
    fixture_open_with(&f, &one_each);
    bring_to(&f, &call, (stage_t)stage);
    n_sent = call.n_sent;
    tnk__exchange_cancel(&call.ex);
    CHECK(!tnk__exchange_is_active(&call.ex));
    tnk__exchange_cancel(&call.ex);
    CHECK_INT(tnk__http_n_polls(&f.http), 0);
    mock_turns(f.mock, 10);
    CHECK_INT(call.n_done, 0);
    CHECK_INT(call.n_sent, n_sent);
    if (stage == HELD || stage == IN_BODY)
      CHECK(mock_request(f.mock, 0)->is_gone);
    /* Its place is free. */
    call_run(&f, &call, TNK__LANE_POLL, "GET", "/ok");
    CHECK_INT(call.err, TNK_OK);
    fixture_close(&f);
  }
}

TEST(close_in_every_state) {
  for (int stage = 0; stage < N_STAGES; stage++) {
    const tnk__http_request_t none = {.method = "GET", .target = "/"};
    fixture_t f;
    call_t call;
    call_t later;
    fixture_open_with(&f, &one_each);
    bring_to(&f, &call, (stage_t)stage);
    tnk__http_close(&f.http);
    CHECK_INT(call.n_done, 0);
    call_init(&f, &later);
    CHECK_INT(tnk__exchange_start(&f.http, &later.ex, &none), TNK_ECLOSED);
    call_wait(&f, &call);
    CHECK_INT(call.n_done, 1);
    CHECK_INT(call.err, stage == DUE ? TNK_OK : TNK_ECLOSED);
    if (stage != CONNECTING) /* it may just have been written */
      CHECK_INT(call.sent, stage >= HELD);
    fixture_close(&f);
    CHECK_INT(call.n_done, 1);
  }
}

/* All at once: held, queued behind it, on another lane, and unused. */
TEST(S1_7_close_ends_everything_once) {
  fixture_t f;
  call_t calls[6];
  int n = 0;

  fixture_open_with(&f, &one_each);
  call_get(&f, "/ok");
  call_start(&f, &calls[n++], TNK__LANE_POLL, "GET", "/hold");
  mock_wait(f.mock, 2);
  call_start(&f, &calls[n++], TNK__LANE_POLL, "GET", "/hold");
  call_start(&f, &calls[n++], TNK__LANE_POLL, "GET", "/hold");
  call_start(&f, &calls[n++], TNK__LANE_TRAIN, "GET", "/hold");
  mock_turns(f.mock, 1);
  call_start(&f, &calls[n++], TNK__LANE_SAMPLE, "GET", "/hold");
  call_start(&f, &calls[n++], TNK__LANE_CONTROL, "GET", "/hold");
  tnk__http_close(&f.http);
  for (int i = 0; i < n; i++) {
    call_wait(&f, &calls[i]);
    CHECK_INT(calls[i].n_done, 1);
    CHECK_INT(calls[i].err, TNK_ECLOSED);
  }
  CHECK_INT(calls[0].sent, 1);
  CHECK_INT(calls[1].sent, 0);
  fixture_close(&f);
}

static call_t *victim;

static void cancel_self(call_t *call) {
  tnk__exchange_cancel(&call->ex);
}

static void cancel_victim(call_t *call) {
  (void)call;
  tnk__exchange_cancel(&victim->ex);
}

static void close_http(call_t *call) {
  tnk__http_close(&call->f->http);
}

TEST(cancel_from_inside_callbacks) {
  fixture_t f;
  call_t calls[2];

  fixture_open(&f);
  call_start(&f, &calls[0], TNK__LANE_TRAIN, "GET", "/ok");
  calls[0].on_sent = cancel_self;
  mock_wait_flag(f.mock, &calls[0].n_sent, 1);
  mock_turns(f.mock, 10);
  CHECK_INT(calls[0].n_done, 0);
  call_start(&f, &calls[1], TNK__LANE_TRAIN, "GET", "/ok");
  calls[1].on_done = cancel_self;
  call_wait(&f, &calls[1]);
  CHECK_INT(calls[1].err, TNK_OK);
  fixture_close(&f);
}

TEST(a_callback_cancels_what_is_due_next) {
  fixture_t f;
  call_t calls[2];

  fixture_open_with(&f, &one_each);
  call_start(&f, &calls[0], TNK__LANE_POLL, "GET", "/hold");
  call_start(&f, &calls[1], TNK__LANE_POLL, "GET", "/hold");
  calls[0].on_done = calls[1].on_done = cancel_victim;
  /* The close makes both due in one turn; the queued one comes first. */
  mock_wait(f.mock, 1);
  victim = &calls[0];
  tnk__http_close(&f.http);
  mock_turns(f.mock, 5);
  CHECK_INT(calls[1].n_done, 1);
  CHECK_INT(calls[0].n_done, 0);
  fixture_close(&f);
}

TEST(close_from_inside_callbacks) {
  for (int when = 0; when < 2; when++) {
    fixture_t f;
    call_t calls[4];
    fixture_open(&f);
    for (int i = 0; i < 4; i++)
      call_start(&f, &calls[i], TNK__LANE_POLL, "GET", "/ok");
    if (when == 0)
      calls[0].on_sent = close_http;
    else
      calls[0].on_done = close_http;
    for (int i = 0; i < 4; i++) {
      call_wait(&f, &calls[i]);
      CHECK(calls[i].err == TNK_OK || calls[i].err == TNK_ECLOSED);
    }
    mock_turns(f.mock, 3);
    for (int i = 0; i < 4; i++)
      CHECK_INT(calls[i].n_done, 1);
    fixture_close(&f);
  }
}

/* The body is the caller's again the moment cancel returns. */
TEST(cancel_gives_the_body_back) {
  enum { SIZE = 8 * 1024 * 1024 };
  const tnk_allocator_t *alloc = test_allocator();
  tnk__http_request_t request;
  feeder_t feeder;
  void *body = alloc->calloc(1, SIZE, alloc->user);
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  fixture_open(&f);
  call_get(&f, "/ok");
  mock_set_reading(f.mock, 0);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/ok");
  feeder_init(&feeder, body, SIZE, SIZE);
  request.feed = &feeder.feed;
  call_send(&f, &call, &request);
  mock_wait_flag(f.mock, &call.n_sent, 1);
  tnk__exchange_cancel(&call.ex);
  free(feeder.piece);
  alloc->free(body, alloc->user);
  mock_set_reading(f.mock, 1);
  mock_turns(f.mock, 10);
  fixture_close(&f);
}

/* A whole life, the n-th allocation of which fails. */
static void live(fixture_t *f, long n, int *n_failed) {
  const tnk__http_options_t options = {.ca_file = NULL};
  const tnk_pair_t pair = {"X-API-Key", "tml-key"};
  tnk__http_request_t request;
  call_t calls[3];
  int err;

  context_open(&f->c);
  tnk__context_fake_clock(&f->c.loop, 1000000);
  f->mock = mock_open(&f->c.uv);
  mock_json(f->mock, NULL, "/ok", 200, "{\"ok\":true}");
  request = request_to(f->mock, TNK__LANE_TRAIN, "POST", "/ok");
  request.headers = &pair;
  request.n_headers = 1;
  request.replayable = 1;
  test_alloc_fail_at(n);
  err = tnk__http_open(&f->http, &f->c.loop, &options);
  *n_failed += err != TNK_OK;
  for (int i = 0; i < 3 && err == TNK_OK; i++) {
    call_init(f, &calls[i]);
    err = tnk__exchange_start(&f->http, &calls[i].ex, &request);
    if (err == TNK_OK) {
      call_wait(f, &calls[i]);
      err = calls[i].err;
    }
    *n_failed += err != TNK_OK;
    CHECK(err == TNK_OK || err == TNK_ENOMEM);
    /* The next one works as if nothing had been. */
    err = TNK_OK;
  }
}

TEST_LIMIT(every_allocation_fails_once, 60) {
  int did_fail = 1;

  for (long n = 0; did_fail; n++) {
    fixture_t f;
    int n_failed = 0;
    live(&f, n, &n_failed);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(n_failed, did_fail);
    fixture_close(&f);
    if (!did_fail)
      CHECK(n > 8);
  }
}

/* The key does not stay behind in memory that was given back, however the
 * exchange ended. */
TEST(the_credential_is_wiped) {
  for (int stage = 0; stage < N_STAGES; stage++) {
    const tnk_pair_t pair = {"X-API-Key", "tml-very-secret"};
    const tnk_allocator_t spy = spy_on("tml-very-secret");
    tnk__http_request_t request;
    fixture_t f;
    call_t calls[3];
    memset(&f, 0, sizeof(f));
    CHECK_INT(uv_loop_init(&f.c.uv), 0);
    CHECK_INT(tnk__context_open(&f.c.loop, &f.c.uv, &spy, NULL), TNK_OK);
    fixture_begin(&f, &one_each);
    request = request_to(f.mock, TNK__LANE_POLL, "POST", "/hold");
    request.headers = &pair;
    request.n_headers = 1;
    for (int i = 0; i < 3; i++) {
      call_send(&f, &calls[i], &request);
    }
    if (stage >= HELD)
      mock_wait(f.mock, 1);
    if (stage >= IN_BODY)
      mock_release(f.mock, 200, "{}");
    if (stage >= DUE)
      mock_wait(f.mock, 2);
    tnk__exchange_cancel(&calls[1].ex);
    tnk__http_close(&f.http);
    mock_turns(f.mock, 10);
    CHECK_INT(spy_n_leaks, 0);
    CHECK(spy_n_looks > 3);
    fixture_close(&f);
  }
}

static size_t n_allocated;

static void count_allocations(call_t *call) {
  (void)call;
  n_allocated = test_alloc_count();
}

/* Rule 22: a close cannot fail, for it needs no memory. */
TEST(close_and_cancel_allocate_nothing) {
  fixture_t f;
  call_t calls[3];
  size_t before;

  fixture_open_with(&f, &one_each);
  for (int i = 0; i < 3; i++)
    call_start(&f, &calls[i], TNK__LANE_POLL, "GET", "/hold");
  mock_wait(f.mock, 1);
  before = test_alloc_count();
  tnk__exchange_cancel(&calls[1].ex);
  calls[2].on_done = count_allocations;
  tnk__http_close(&f.http);
  call_wait(&f, &calls[2]);
  CHECK_INT(n_allocated, before);
  fixture_close(&f);
}
