/* SPDX-License-Identifier: MIT */
/* Time-outs are of silence: what moves goes on, what does not is told. */
#include "fixture.h"

#include "lib/base/text.h"
#include "lib/io/http/conn.h"
#include "lib/policy/bounds.h"

enum { TIMEOUT_MS = 60000, SIZE = 32 << 20 };

typedef struct {
  fixture_t f;
  call_t call;
  char *body;
} slow_t;

static void slow_open(slow_t *slow) {
  memset(slow, 0, sizeof(*slow));
  slow->body = malloc(SIZE);
  CHECK(slow->body != NULL);
  memset(slow->body, 'x', SIZE);
  fixture_open(&slow->f);
}

static void slow_close(slow_t *slow) {
  fixture_close(&slow->f);
  free(slow->body);
}

static void upload(slow_t *slow, call_t *call) {
  tnk__http_request_t request =
      request_to(slow->f.mock, TNK__LANE_TRAIN, "POST", "/ok");

  request.body = slow->body;
  request.body_len = SIZE;
  request.timeout_ms = TIMEOUT_MS;
  call_send(&slow->f, call, &request);
}

/* Until the system takes no more of it. */
static void get_stuck(slow_t *slow) {
  mock_turns(slow->f.mock, 200);
}

/* The server has read until the system could take some more. */
static void read_some(slow_t *slow) {
  const uint64_t n_sent = tnk__conn_n_sent(&slow->call.ex);

  mock_set_reading(slow->f.mock, 1);
  while (tnk__conn_n_sent(&slow->call.ex) == n_sent)
    mock_turns(slow->f.mock, 1);
  mock_set_reading(slow->f.mock, 0);
  mock_turns(slow->f.mock, 2);
}

/* In steps, so that a PING is answered when it is sent. */
static void pass(slow_t *slow, uint64_t ms) {
  uint64_t step;

  for (; ms > 0; ms -= step) {
    step = mock_over_http2() && ms > 5000 ? 5000 : ms;
    tnk__context_advance(&slow->f.c.loop, step);
    mock_turns(slow->f.mock, 5);
  }
}

TEST(an_upload_that_moves_takes_as_long_as_it_takes) {
  slow_t slow;
  uint64_t took_ms = 0;

  mock_only_http1("who reads nothing answers no PING, and is given up before");
  slow_open(&slow);
  call_get(&slow.f, "/ok");
  mock_set_reading(slow.f.mock, 0);
  upload(&slow, &slow.call);
  get_stuck(&slow);
  for (; took_ms < 4 * TIMEOUT_MS; took_ms += TIMEOUT_MS * 3 / 4) {
    read_some(&slow);
    pass(&slow, TIMEOUT_MS * 3 / 4);
    CHECK_INT(slow.call.n_done, 0);
  }
  mock_set_reading(slow.f.mock, 1);
  call_wait(&slow.f, &slow.call);
  CHECK_INT(slow.call.err, TNK_OK);
  slow_close(&slow);
}

TEST(an_upload_that_stops_says_how_far_it_came) {
  slow_t slow;
  char text[200];
  tnk__text_t out;

  mock_only_http1("who reads nothing answers no PING, and is given up before");
  slow_open(&slow);
  call_get(&slow.f, "/ok");
  mock_set_reading(slow.f.mock, 0);
  upload(&slow, &slow.call);
  get_stuck(&slow);
  pass(&slow, TIMEOUT_MS - 1);
  CHECK_INT(slow.call.n_done, 0);
  tnk__text_init(&out, text, sizeof(text));
  tnk__exchange_describe(&slow.call.ex, &out);
  CHECK(strncmp(text, "is being sent, ", 15) == 0);
  CHECK(strstr(text, "% of 33.5 MB") != NULL);
  pass(&slow, TIMEOUT_MS / 4 + 2);
  CHECK_INT(slow.call.n_done, 1);
  CHECK_INT(slow.call.err, TNK_ETIMEDOUT);
  CHECK_INT(slow.call.sent, 1);
  CHECK(strstr(slow.call.detail, "no byte of the request went out for") !=
        NULL);
  CHECK(strstr(slow.call.detail, "% of 33.5 MB were sent") != NULL);
  slow_close(&slow);
}

/* Its last byte begins the wait for the answer. */
TEST(the_answer_has_its_time_from_the_last_byte_of_the_request_on) {
  tnk__http_request_t request;
  slow_t slow;

  mock_only_http1("who reads nothing answers no PING, and is given up before");
  slow_open(&slow);
  mock_set_reading(slow.f.mock, 0);
  request = request_to(slow.f.mock, TNK__LANE_TRAIN, "POST", "/hold");
  request.body = slow.body;
  request.body_len = SIZE;
  request.timeout_ms = TIMEOUT_MS;
  call_send(&slow.f, &slow.call, &request);
  get_stuck(&slow);
  pass(&slow, TIMEOUT_MS - 1000);
  mock_set_reading(slow.f.mock, 1);
  mock_wait(slow.f.mock, 1);
  while (!mock_request(slow.f.mock, 0)->is_complete)
    mock_turns(slow.f.mock, 20);
  mock_turns(slow.f.mock, 5);
  pass(&slow, TIMEOUT_MS - 1);
  CHECK_INT(slow.call.n_done, 0);
  pass(&slow, 1);
  CHECK_INT(slow.call.err, TNK_ETIMEDOUT);
  CHECK_STR(slow.call.detail,
            "no answer within 60.0 s; 100% of 33.5 MB were sent");
  slow_close(&slow);
}

/* ---- Answers ---- */

/* Wait for an answer. */
static mock_request_t *receive(slow_t *slow) {
  tnk__http_request_t request =
      request_to(slow->f.mock, TNK__LANE_POLL, "GET", "/hold");

  request.timeout_ms = TIMEOUT_MS;
  call_send(&slow->f, &slow->call, &request);
  mock_wait(slow->f.mock, 1);
  mock_turns(slow->f.mock, 5);
  return mock_request(slow->f.mock, 0);
}

static void send_head(slow_t *slow, mock_request_t *held) {
  mock_begin(held, 200, "Content-Length: 1000000\r\n");
  mock_turns(slow->f.mock, 5);
}

static void send_more(slow_t *slow, mock_request_t *held, const char *text) {
  mock_piece(held, text, strlen(text));
  mock_turns(slow->f.mock, 5);
}

TEST(an_answer_that_moves_takes_as_long_as_it_takes) {
  mock_request_t *held;
  slow_t slow;

  slow_open(&slow);
  held = receive(&slow);
  pass(&slow, TIMEOUT_MS - 1000);
  send_head(&slow, held);
  memset(slow.body + 80000, 0, 1);
  for (int i = 0; i < 4; i++) {
    send_more(&slow, held, slow.body);
    pass(&slow, TIMEOUT_MS - 1000);
    CHECK_INT(slow.call.n_done, 0);
  }
  send_more(&slow, held, slow.body);
  pass(&slow, TIMEOUT_MS - 1);
  CHECK_INT(slow.call.n_done, 0);
  pass(&slow, 1);
  CHECK_INT(slow.call.err, TNK_ETIMEDOUT);
  CHECK_INT(slow.call.status, 200);
  CHECK_STR(slow.call.detail,
            "the answer stopped for 60.0 s; 400.0 kB of it had come");
  slow_close(&slow);
}

TEST(the_head_of_an_answer_must_come_in_time_however_it_drips) {
  mock_request_t *held;
  slow_t slow;

  mock_only_http1("its bytes are; a frame comes whole or not at all");
  slow_open(&slow);
  held = receive(&slow);
  mock_raw(held, "H", 1);
  mock_turns(slow.f.mock, 5);
  for (size_t i = 0; i < 3; i++) {
    pass(&slow, TIMEOUT_MS / 4);
    mock_raw(held, &"TTP"[i], 1);
    mock_turns(slow.f.mock, 5);
    CHECK_INT(slow.call.n_done, 0);
  }
  pass(&slow, TIMEOUT_MS / 4);
  CHECK_INT(slow.call.err, TNK_ETIMEDOUT);
  CHECK_INT(slow.call.status, 0);
  slow_close(&slow);
}

/* A byte each twenty seconds is never silent for a minute. */
TEST(an_answer_that_only_drips_ends_after_two_minutes) {
  mock_request_t *held;
  slow_t slow;
  uint64_t ms = 0;

  slow_open(&slow);
  held = receive(&slow);
  send_head(&slow, held);
  while (slow.call.n_done == 0) {
    pass(&slow, TIMEOUT_MS / 3);
    ms += TIMEOUT_MS / 3;
    CHECK(ms <= 2 * TIMEOUT_MS + TIMEOUT_MS / 3);
    if (slow.call.n_done == 0)
      send_more(&slow, held, "x");
  }
  CHECK(ms >= TIMEOUT_MS);
  CHECK_INT(slow.call.err, TNK_ETIMEDOUT);
  CHECK(strncmp(slow.call.detail, "too slow, after ", 16) == 0);
  slow_close(&slow);
}

/* The least rate is an average over a minute. A response that comes a quarter
 * faster goes on, and one that comes a quarter slower ends. */
TEST_LIMIT(a_response_ends_below_the_least_rate_only, 20) {
  enum { EACH_MS = 5000, MINUTES = 4 };

  for (int quarters = 3; quarters <= 5; quarters += 2) {
    const size_t n =
        (size_t)TNK__MIN_BYTES_PER_S * EACH_MS / 1000 * (size_t)quarters / 4;
    mock_request_t *held;
    slow_t slow;

    slow_open(&slow);
    held = receive(&slow);
    send_head(&slow, held);
    for (int i = 0; i < MINUTES * 60000 / EACH_MS && slow.call.n_done == 0;
         i++) {
      mock_piece(held, slow.body, n);
      mock_turns(slow.f.mock, 20);
      pass(&slow, EACH_MS);
    }
    CHECK_INT(slow.call.n_done, quarters < 4);
    if (quarters < 4)
      CHECK(strncmp(slow.call.detail, "too slow, after ", 16) == 0);
    slow_close(&slow);
  }
}

/* ---- Side by side ---- */

TEST(after_a_time_out_uploads_go_one_at_a_time) {
  enum { N = 3 };
  call_t calls[N];
  slow_t slow;

  mock_only_http1("who reads nothing answers no PING, and is given up before");
  slow_open(&slow);
  mock_set_reading(slow.f.mock, 0);
  for (int i = 0; i < N; i++)
    upload(&slow, &calls[i]);
  get_stuck(&slow);
  CHECK_INT(slow.f.http.lanes[TNK__LANE_TRAIN].n_in_flight, N);
  pass(&slow, TIMEOUT_MS * 5 / 4 + 2);
  for (int i = 0; i < N; i++)
    CHECK_INT(calls[i].err, TNK_ETIMEDOUT);
  for (int i = 0; i < N; i++)
    upload(&slow, &calls[i]);
  get_stuck(&slow);
  CHECK_INT(slow.f.http.lanes[TNK__LANE_TRAIN].n_in_flight, 1);
  mock_set_reading(slow.f.mock, 1);
  for (int i = 0; i < N; i++) {
    call_wait(&slow.f, &calls[i]);
    CHECK_INT(calls[i].err, TNK_OK);
  }
  /* Each that comes through lets more go. */
  CHECK_INT(slow.f.http.lanes[TNK__LANE_TRAIN].allowed, 8);
  slow_close(&slow);
}
