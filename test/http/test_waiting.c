/* SPDX-License-Identifier: MIT */
/*
 * Exchanges that wait for a connection or a stream, and a server that gives
 * none. Each has an end of its own, whatever the server does: it waits as long
 * as others move, and for its timeout after that.
 */
#include <stdio.h>

#include "http/fixture.h"
#include "lib/policy/bounds.h"
#include "support/link.h"
#include "support/mock_http2.h"

enum { TIMEOUT_MS = 30000, N = 12, STEP_MS = 500 };

/* ---- Servers that allow no streams ---- */

typedef struct {
  const char *name;
  /* The limit of the first SETTINGS, of the second ones if there are any, and
   * the exchanges that are under way then. */
  uint32_t first;
  int second;
  int n_held;
  int answers_pings;
  int answers_held; /* once SETTINGS have changed */
} limits_t;

static void start(fixture_t *f, call_t *call, tnk__lane_t lane) {
  tnk__http_request_t request = request_to(f->mock, lane, "POST", "/hold");

  request.timeout_ms = TIMEOUT_MS;
  call_send(f, call, &request);
}

static void pass(fixture_t *f, uint64_t ms) {
  for (; ms > 0; ms -= STEP_MS) {
    tnk__context_advance(&f->c.loop, STEP_MS);
    mock_turns(f->mock, 4);
  }
}

static void check_no_streams(const limits_t *limits, tnk__lane_t lane) {
  call_t held[N], calls[N];
  fixture_t f;

  printf("# %s, lane %d\n", limits->name, (int)lane);
  fflush(stdout);
  fixture_open_http2(&f);
  mock_setting(f.mock, MOCK_MAX_STREAMS, limits->first);
  for (int i = 0; i < limits->n_held; i++)
    start(&f, &held[i], TNK__LANE_POLL);
  mock_wait(f.mock, (size_t)limits->n_held);
  if (limits->second >= 0)
    mock_setting(f.mock, MOCK_MAX_STREAMS, (uint32_t)limits->second);
  mock_set_pongs(f.mock, limits->answers_pings);
  mock_turns(f.mock, 20);
  if (limits->answers_held)
    mock_release(f.mock, 200, "{}");
  mock_turns(f.mock, 20);
  for (int i = 0; i < N; i++)
    start(&f, &calls[i], lane);
  mock_turns(f.mock, 20);
  /* A step for the looks, and one because the connection comes first. */
  pass(&f, TIMEOUT_MS + 2 * STEP_MS);
  for (int i = 0; i < N; i++) {
    CHECK_INT(calls[i].n_done, 1);
    CHECK_INT(calls[i].err, TNK_ETIMEDOUT);
    CHECK_INT(calls[i].sent, 0);
    CHECK(strstr(calls[i].detail, "the server allows no streams") != NULL);
  }
  for (int i = 0; i < limits->n_held; i++)
    CHECK_INT(held[i].n_done, 1);
  CHECK_INT(mock_n_requests(f.mock), limits->n_held);
  fixture_close(&f);
}

TEST_LIMIT(a_server_without_streams_lets_nobody_wait_for_ever, 60) {
  static const limits_t all[] = {
      {"none from the start", 0, -1, 0, 1, 0},
      {"none from the start, and no PONG", 0, -1, 0, 0, 0},
      {"none from the second SETTINGS on", 20, 0, 0, 1, 0},
      {"none, while others are under way", 20, 0, 5, 1, 0},
      {"none, when others have ended", 20, 0, 5, 1, 1},
  };

  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    for (int lane = 0; lane < TNK__N_LANES; lane++)
      /* A lane with fewer slots has a queue in front of the connection. */
      if (lane != TNK__LANE_CONTROL)
        check_no_streams(&all[i], (tnk__lane_t)lane);
}

/* Those without a slot have their turn when those with one have ended. */
TEST(a_queue_behind_slots_ends_as_well) {
  call_t calls[N];
  fixture_t f;

  fixture_open_http2(&f);
  mock_setting(f.mock, MOCK_MAX_STREAMS, 0);
  for (int i = 0; i < N; i++)
    start(&f, &calls[i], TNK__LANE_CONTROL);
  mock_turns(f.mock, 20);
  pass(&f, 3 * (TIMEOUT_MS + STEP_MS));
  for (int i = 0; i < N; i++)
    CHECK_INT(calls[i].err, TNK_ETIMEDOUT);
  fixture_close(&f);
}

TEST(what_waits_for_a_stream_says_so) {
  char text[300];
  tnk__text_t out;
  fixture_t f;
  call_t call;

  fixture_open_http2(&f);
  mock_setting(f.mock, MOCK_MAX_STREAMS, 0);
  start(&f, &call, TNK__LANE_SAMPLE);
  mock_turns(f.mock, 20);
  tnk__text_init(&out, text, sizeof(text));
  tnk__exchange_describe(&call.ex, &out);
  CHECK(strstr(text, "waits for a stream to 127.0.0.1") != NULL);
  CHECK(strstr(text, "the server allows no streams") != NULL);
  fixture_close(&f);
}

/* The server may allow streams later, and then nothing has been lost. */
TEST(a_server_that_allows_streams_in_time_gets_the_requests) {
  call_t calls[N];
  fixture_t f;

  fixture_open_http2(&f);
  mock_setting(f.mock, MOCK_MAX_STREAMS, 0);
  for (int i = 0; i < N; i++)
    start(&f, &calls[i], TNK__LANE_SAMPLE);
  mock_turns(f.mock, 20);
  pass(&f, TIMEOUT_MS - 2 * STEP_MS);
  mock_setting(f.mock, MOCK_MAX_STREAMS, 50);
  mock_wait(f.mock, N);
  mock_release(f.mock, 200, "{}");
  for (int i = 0; i < N; i++) {
    call_wait(&f, &calls[i]);
    CHECK_INT(calls[i].err, TNK_OK);
  }
  fixture_close(&f);
}

/* ---- Few places, and others that move or do not ---- */

/* One connection with one stream. */
static void open_narrow(fixture_t *f) {
  static const tnk__http_options_t options = {
      .version = TNK__HTTP_2_PRIOR_KNOWLEDGE, .max_http2_connections = 1};

  CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
  fixture_open_with(f, &options);
  mock_set_clock(f->mock, &f->c.loop);
  mock_setting(f->mock, MOCK_MAX_STREAMS, 1);
}

TEST_LIMIT(who_waits_for_others_waits_as_long_as_they_move, 20) {
  call_t calls[N];
  fixture_t f;

  open_narrow(&f);
  for (int i = 0; i < N; i++)
    start(&f, &calls[i], TNK__LANE_SAMPLE);
  for (int i = 0; i < N; i++) {
    mock_wait(f.mock, (size_t)i + 1);
    pass(&f, TIMEOUT_MS - 2 * STEP_MS);
    for (int k = i; k < N; k++)
      CHECK_INT(calls[k].n_done, 0);
    CHECK_INT(mock_release(f.mock, 200, "{}"), 1);
    call_wait(&f, &calls[i]);
    CHECK_INT(calls[i].err, TNK_OK);
  }
  fixture_close(&f);
}

/* A body that comes in pieces is progress too. */
TEST_LIMIT(a_response_that_moves_is_progress_for_others, 20) {
  call_t calls[2];
  fixture_t f;

  open_narrow(&f);
  for (int i = 0; i < 2; i++)
    start(&f, &calls[i], TNK__LANE_SAMPLE);
  mock_wait(f.mock, 1);
  mock_begin(mock_request(f.mock, 0), 200, NULL);
  for (int i = 0; i < 4; i++) {
    static char piece[40000];
    mock_piece(mock_request(f.mock, 0), piece, sizeof(piece));
    mock_turns(f.mock, 10);
    pass(&f, TIMEOUT_MS - 2 * STEP_MS);
    CHECK_INT(calls[0].n_done + calls[1].n_done, 0);
  }
  mock_end(mock_request(f.mock, 0), 0);
  mock_wait(f.mock, 2);
  mock_release(f.mock, 200, "{}");
  call_wait(&f, &calls[1]);
  CHECK_INT(calls[1].err, TNK_OK);
  fixture_close(&f);
}

/* Neither the one that has the stream nor a PONG is progress. */
TEST_LIMIT(who_waits_for_others_that_do_not_move_ends_with_them, 20) {
  call_t calls[N];
  fixture_t f;

  open_narrow(&f);
  for (int i = 0; i < N; i++)
    start(&f, &calls[i], TNK__LANE_SAMPLE);
  mock_wait(f.mock, 1);
  pass(&f, TIMEOUT_MS + 2 * STEP_MS);
  CHECK(mock_n_pings(f.mock) > 0);
  for (int i = 0; i < N; i++) {
    CHECK_INT(calls[i].err, TNK_ETIMEDOUT);
    CHECK_INT(calls[i].sent, i == 0);
  }
  CHECK_INT(mock_n_requests(f.mock), 1);
  fixture_close(&f);
}

/* ---- Turns ---- */

/* Polls take turns on the few connections that are granted. A turn begins the
 * time of a poll anew, so that without progress turns would go on for ever. */
TEST_LIMIT(polls_that_take_turns_without_an_answer_end, 20) {
  tnk__http_request_t request;
  test_link_t *link;
  call_t calls[N];
  fixture_t f;

  CHECK_INT(setenv("TNK_TEST_HTTP", "1", 1), 0);
  fixture_open(&f);
  link = test_link_open(&f.c.uv, mock_port(f.mock));
  tnk__context_fake_clock(test_link_clock(link), 1000000);
  CHECK_INT(test_link_tell(link, "limit 3 close"), 0);
  request = request_to(f.mock, TNK__LANE_POLL, "POST", "/hold");
  request.origin.port = test_link_port(link);
  request.replayable = 1;
  request.timeout_ms = TIMEOUT_MS;
  for (int i = 0; i < N; i++)
    call_send(&f, &calls[i], &request);
  mock_turns(f.mock, 50);
  /* The last one has its turn when the time of the others is over. */
  for (uint64_t ms = 0; ms < 2 * TIMEOUT_MS; ms += STEP_MS) {
    tnk__context_advance(test_link_clock(link), STEP_MS);
    pass(&f, STEP_MS);
    mock_turns(f.mock, 20);
  }
  /* There were turns: more polls were sent than connections are granted. */
  CHECK(mock_n_requests(f.mock) > 3);
  for (int i = 0; i < N; i++) {
    if (calls[i].n_done != 1)
      test_fail(__FILE__, __LINE__, "poll %d has no end", i);
    CHECK_INT(calls[i].err, TNK_ETIMEDOUT);
  }
  test_link_close(link);
  fixture_close(&f);
}

/* ---- Connections that are not served ---- */

/* A sample on a new connection is not taken back while nothing else is served:
 * the one connection that was, has closed. */
TEST(nothing_is_taken_back_where_nothing_serves) {
  call_t first, silent, later;
  fixture_t f;

  CHECK_INT(setenv("TNK_TEST_HTTP", "1", 1), 0);
  fixture_open(&f);
  start(&f, &first, TNK__LANE_SAMPLE);
  mock_wait(f.mock, 1);
  start(&f, &silent, TNK__LANE_SAMPLE);
  mock_wait(f.mock, 2);
  mock_turns(f.mock, 10);
  tnk__context_advance(&f.c.loop, 10);
  mock_reply_json(mock_request(f.mock, 0), 200, "{}");
  call_wait(&f, &first);
  /* What is written later is answered, on the first connection. */
  call_start(&f, &later, TNK__LANE_SAMPLE, "GET", "/ok");
  call_wait(&f, &later);
  CHECK_INT(mock_request(f.mock, 2)->connection, 0);
  mock_close_idle(f.mock, 0);
  mock_wait_open(f.mock, 1);
  mock_turns(f.mock, 10);
  pass(&f, TIMEOUT_MS / 2);
  CHECK_INT(mock_n_requests(f.mock), 3);
  CHECK_INT(silent.n_done, 0);
  CHECK_INT(mock_release(f.mock, 200, "{}"), 1);
  call_wait(&f, &silent);
  CHECK_INT(silent.err, TNK_OK);
  fixture_close(&f);
}
