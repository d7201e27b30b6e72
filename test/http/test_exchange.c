/* SPDX-License-Identifier: MIT */
/* One exchange at a time: what goes out, what comes in. */
#include <stdlib.h>

#include "fixture.h"
#include "lib/base/alloc.h"
#include "lib/base/limits.h"

static void answer_with_headers(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 418, "X-Header: one\r\nx-header: two\r\n", "short", 5);
}

TEST(request_and_answer) {
  const tnk_pair_t first[] = {{"Accept", "application/json"}};
  const tnk_pair_t second[] = {{"X-API-Key", "tml-key"}, {"X-B", "b"}};
  tnk__http_request_t request;
  const mock_request_t *seen;
  feeder_t feeder;
  fixture_t f;
  call_t call;
  char host[32];

  fixture_open(&f);
  mock_on(f.mock, "POST", "/api/v1/x", answer_with_headers, NULL);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/api/v1/x?a=b");
  request.headers = first;
  request.n_headers = 1;
  request.more_headers = second;
  request.n_more_headers = 2;
  request.body = "{\"a\":";
  request.body_len = 5;
  feeder_init(&feeder, "1}", 2, 1);
  request.feed = &feeder.feed;
  call_send(&f, &call, &request);
  CHECK(tnk__exchange_is_active(&call.ex));
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.status, 418);
  CHECK_INT(call.sent, 1);
  CHECK_INT(call.n_sent, 1);
  CHECK_STR(call.body, "short");
  CHECK_STR(call.header, "one, two");
  seen = mock_request(f.mock, 0);
  CHECK_STR(seen->method, "POST");
  CHECK_STR(seen->target, "/api/v1/x?a=b");
  CHECK_MEM(seen->body, seen->body_len, "{\"a\":1}", 7);
  CHECK_STR(mock_header(seen, "Accept"), "application/json");
  CHECK_STR(mock_header(seen, "X-API-Key"), "tml-key");
  CHECK_STR(mock_header(seen, "X-B"), "b");
  CHECK_STR(mock_header(seen, "Content-Length"), "7");
  snprintf(host, sizeof(host), "127.0.0.1:%u", (unsigned)mock_port(f.mock));
  CHECK_STR(mock_header(seen, "Host"), host);
  CHECK_INT(f.c.loop.counters.n_requests, 1);
  CHECK_INT(feeder.n_pieces, 2);
  fixture_close(&f);
  free(feeder.piece);
}

TEST(callbacks_are_never_synchronous) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  call_get(&f, "/ok");
  /* With a connection at hand the request could go out at once. */
  call_start(&f, &call, TNK__LANE_CONTROL, "GET", "/ok");
  CHECK_INT(call.n_sent, 0);
  call_wait(&f, &call);
  CHECK_INT(call.n_sent, 1);
  CHECK_INT(call.n_done, 1);
  fixture_close(&f);
}

static uint8_t *taken;
static size_t taken_len;

static void take_body(tnk__exchange_t *ex, const tnk__http_result_t *result) {
  (void)ex;
  taken = tnk__buf_take(result->body, &taken_len);
}

TEST(the_body_can_be_taken) {
  tnk__http_request_t request;
  tnk__exchange_t ex;
  fixture_t f;

  fixture_open(&f);
  tnk__exchange_init(&ex);
  ex.on_done = take_body;
  request = request_to(f.mock, TNK__LANE_CONTROL, "GET", "/ok");
  CHECK_INT(tnk__exchange_start(&f.http, &ex, &request), TNK_OK);
  while (taken == NULL)
    mock_turns(f.mock, 1);
  CHECK_MEM(taken, taken_len, "{\"ok\":true}", 11);
  fixture_close(&f);
  tnk__free(test_allocator(), taken);
}

static void start_again(call_t *call) {
  const tnk__http_request_t request =
      request_to(call->f->mock, TNK__LANE_SAMPLE, "GET", "/ok");

  call->n_sent = 0;
  if (call->n_done < 3)
    CHECK_INT(tnk__exchange_start(&call->f->http, &call->ex, &request), TNK_OK);
}

TEST(started_again_from_its_own_end) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  call_start(&f, &call, TNK__LANE_SAMPLE, "GET", "/ok");
  call.on_done = start_again;
  mock_wait_flag(f.mock, &call.n_done, 3);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(mock_n_requests(f.mock), 3);
  CHECK_INT(mock_n_connections(f.mock), 1);
  fixture_close(&f);
}

static int n_freed;

static void free_call(call_t *call) {
  n_freed++;
  free(call);
}

TEST(freed_in_its_own_end) {
  fixture_t f;
  call_t *call = malloc(sizeof(*call));

  CHECK(call != NULL);
  fixture_open(&f);
  call_start(&f, call, TNK__LANE_SAMPLE, "GET", "/ok");
  call->on_done = free_call;
  mock_wait_flag(f.mock, &n_freed, 1);
  fixture_close(&f);
}

static void redirect(mock_request_t *request, void *user) {
  mock_server_t *other = user;
  char headers[80];

  snprintf(headers, sizeof(headers), "Location: %s/steal\r\n", mock_url(other));
  mock_reply(request, 307, headers, "", 0);
}

/* B8, transport.md 2.4: the key must not follow a redirect anywhere. */
TEST(B8_redirects_send_nothing_anywhere) {
  const tnk_pair_t key = {"X-API-Key", "tml-secret"};
  tnk__http_request_t request;
  mock_server_t *other;
  fixture_t f;
  call_t call;

  fixture_open(&f);
  other = mock_open(&f.c.uv);
  mock_on(f.mock, NULL, "/away", redirect, other);
  mock_on(f.mock, NULL, "/home", redirect, f.mock);
  for (int i = 0; i < 2; i++) {
    request = request_to(f.mock, TNK__LANE_SAMPLE, "POST",
                         i == 0 ? "/away" : "/home");
    request.headers = &key;
    request.n_headers = 1;
    request.replayable = 1;
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_OK);
    CHECK_INT(call.status, 307);
  }
  mock_turns(f.mock, 20);
  CHECK_INT(mock_n_requests(f.mock), 2);
  CHECK_INT(mock_n_connections(other), 0);
  mock_close(other);
  fixture_close(&f);
}

TEST(what_cannot_be_sent_is_refused) {
  static char long_value[TNK__MAX_REQUEST_HEAD];
  tnk_pair_t pair = {"X", "a\r\nX-Evil: 1"};
  tnk__http_request_t request;
  feeder_t feeder;
  fixture_t f;
  call_t call;

  fixture_open(&f);
  call_init(&f, &call);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/ok");
  request.headers = &pair;
  request.n_headers = 1;
  CHECK_INT(tnk__exchange_start(&f.http, &call.ex, &request), TNK_EINVAL);
  memset(long_value, 'v', sizeof(long_value) - 1);
  pair.value = long_value;
  CHECK_INT(tnk__exchange_start(&f.http, &call.ex, &request), TNK_ETOOBIG);
  request.n_headers = 0;
  request.target = "/a b";
  CHECK_INT(tnk__exchange_start(&f.http, &call.ex, &request), TNK_EINVAL);
  request.target = "/ok";
  request.body_len = TNK__MAX_REQUEST_BODY;
  feeder_init(&feeder, "1", 1, 1);
  request.feed = &feeder.feed;
  CHECK_INT(tnk__exchange_start(&f.http, &call.ex, &request), TNK_ETOOBIG);
  CHECK(!tnk__exchange_is_active(&call.ex));
  request.body_len = 0;
  request.feed = NULL;
  CHECK_INT(tnk__exchange_start(&f.http, &call.ex, &request), TNK_OK);
  CHECK_INT(tnk__exchange_start(&f.http, &call.ex, &request), TNK_EINVAL);
  call_wait(&f, &call);
  CHECK_INT(call.n_done, 1);
  CHECK_INT(mock_n_requests(f.mock), 1);
  fixture_close(&f);
}

/* Of no length that is told before. HTTP/2 has no chunks. */
static void answer_chunked(mock_request_t *request, void *user) {
  const int is_stream = request->stream_id > 0;
  const char *body = is_stream ? "abcde" : "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

  (void)user;
  mock_begin(request, 200, "Transfer-Encoding: chunked\r\n");
  mock_piece(request, body, strlen(body));
  mock_end(request, 0);
}

static void answer_to_the_end(mock_request_t *request, void *user) {
  (void)user;
  mock_begin(request, 200, NULL);
  mock_piece(request, "to the end", 10);
  mock_end(request, 1);
}

static void answer_nothing(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 204, NULL, "", 0);
}

TEST(framings_whole_and_byte_by_byte) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, NULL, "/chunked", answer_chunked, NULL);
  mock_on(f.mock, NULL, "/end", answer_to_the_end, NULL);
  mock_on(f.mock, NULL, "/none", answer_nothing, NULL);
  for (int drip = 0; drip < 2; drip++) {
    mock_set_drip(f.mock, drip);
    call_run(&f, &call, TNK__LANE_SAMPLE, "GET", "/chunked");
    CHECK_INT(call.err, TNK_OK);
    CHECK_STR(call.body, "abcde");
    call_run(&f, &call, TNK__LANE_SAMPLE, "POST", "/none");
    CHECK_INT(call.err, TNK_OK);
    CHECK_INT(call.status, 204);
    call_run(&f, &call, TNK__LANE_SAMPLE, "GET", "/end");
    CHECK_INT(call.err, TNK_OK);
    CHECK_STR(call.body, "to the end");
    /* One connection until it was closed by the server. */
    CHECK_INT(mock_n_connections(f.mock), drip + 1);
  }
  fixture_close(&f);
}

static void answer_head(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, "Content-Length: 1000\r\n", "", 0);
}

TEST(head_request) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, "HEAD", "/x", answer_head, NULL);
  call_run(&f, &call, TNK__LANE_SAMPLE, "HEAD", "/x");
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.body_len, 0);
  call_get(&f, "/ok");
  CHECK_INT(mock_n_connections(f.mock), 1);
  fixture_close(&f);
}

enum { LARGE = 4 * 1024 * 1024 };

static void echo(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, NULL, request->body, request->body_len);
}

TEST_LIMIT(large_bodies_both_ways, 20) {
  tnk__http_request_t request;
  feeder_t feeder;
  char *body = malloc(LARGE);
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  memset(body, 'x', LARGE);
  fixture_open(&f);
  mock_on(f.mock, "POST", "/echo", echo, NULL);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/echo");
  request.body = body;
  request.body_len = LARGE / 2;
  feeder_init(&feeder, body + LARGE / 2, LARGE / 2, 100000);
  request.feed = &feeder.feed;
  call_send(&f, &call, &request);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.body_len, LARGE);
  CHECK_INT(mock_request(f.mock, 0)->body_len, LARGE);
  CHECK(f.c.loop.counters.n_bytes_received > LARGE);
  CHECK(f.c.loop.counters.n_bytes_sent > LARGE);
  fixture_close(&f);
  free(feeder.piece);
  free(body);
}

enum { LATE_TURNS = 10, LATE_PIECE = 300000 };

/* A feed that has the next bytes some turns of the loop after it was asked. */
typedef struct {
  tnk__feed_t feed;
  tnk__deferred_t next;
  tnk__exchange_t *ex;
  const char *data;
  size_t n_here;
  int n_turns; /* until the next ones are here */
  int n_waits;
} late_t;

static const uint8_t *late_piece(tnk__feed_t *feed, size_t at, size_t *n) {
  late_t *late = (late_t *)(void *)feed;

  *n = late->n_here > at ? late->n_here - at : 0;
  if (*n == 0) {
    late->n_waits++;
    if (late->n_turns == 0)
      late->n_turns = LATE_TURNS;
    tnk__defer(late->ex->http->context, &late->next);
  }
  return (const uint8_t *)late->data + at;
}

static void late_next(tnk__deferred_t *call) {
  late_t *late = tnk__container_of(call, late_t, next);

  if (--late->n_turns > 0) {
    tnk__defer(late->ex->http->context, call);
    return;
  }
  late->n_here += LATE_PIECE;
  if (late->n_here > late->feed.len)
    late->n_here = late->feed.len;
  tnk__exchange_go_on(late->ex);
  tnk__exchange_go_on(late->ex);
}

TEST_LIMIT(a_feed_that_has_nothing_yet_is_waited_for, 20) {
  late_t late = {.feed = {.len = LARGE / 2, .piece = late_piece}};
  tnk__http_request_t request;
  char *body = malloc(LARGE);
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  for (size_t i = 0; i < LARGE; i++)
    body[i] = (char)('a' + i % 23);
  late.data = body + LARGE / 2;
  tnk__deferred_init(&late.next, late_next);
  fixture_open(&f);
  mock_on(f.mock, "POST", "/echo", echo, NULL);
  for (int i = 0; i < 2; i++) {
    late.n_here = 0;
    late.ex = &call.ex;
    request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/echo");
    request.body = body;
    request.body_len = i == 0 ? LARGE / 2 : 0;
    request.feed = &late.feed;
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_OK);
    CHECK_MEM(mock_request(f.mock, (size_t)i)->body,
              mock_request(f.mock, (size_t)i)->body_len,
              body + (i == 0 ? 0 : LARGE / 2), LARGE - (size_t)i * LARGE / 2);
  }
  /* It is not asked again and again meanwhile. */
  CHECK(late.n_waits >= 2 * (LARGE / 2 / LATE_PIECE));
  CHECK(late.n_waits <= 4 * (LARGE / 2 / LATE_PIECE + 1));
  tnk__exchange_go_on(&call.ex); /* it is over */
  fixture_close(&f);
  free(body);
}

/* What waits for its feed can be taken back. */
TEST(a_feed_that_has_nothing_yet_is_canceled) {
  late_t late = {.feed = {.len = 100, .piece = late_piece}};
  tnk__http_request_t request;
  fixture_t f;
  call_t call;

  tnk__deferred_init(&late.next, late_next);
  fixture_open(&f);
  mock_on(f.mock, "POST", "/echo", echo, NULL);
  late.ex = &call.ex;
  late.data = "x";
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/echo");
  request.feed = &late.feed;
  call_send(&f, &call, &request);
  while (late.n_waits == 0)
    uv_run(&f.c.uv, UV_RUN_ONCE);
  tnk__defer_cancel(&late.next);
  tnk__exchange_cancel(&call.ex);
  CHECK(!tnk__exchange_is_active(&call.ex));
  fixture_close(&f);
}

static void reset_once(mock_request_t *request, void *user) {
  (void)user;
  mock_on_head(request->server, NULL, NULL);
  mock_reset(request, NULL);
}

/* A request that is sent once more begins from the start of its feed. */
TEST_LIMIT(a_feed_is_repeated_on_a_fresh_connection, 20) {
  tnk__http_request_t request;
  const mock_request_t *seen;
  char *body = malloc(LARGE);
  feeder_t feeder;
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  for (size_t i = 0; i < LARGE; i++)
    body[i] = (char)(i * 31 >> 3);
  fixture_open(&f);
  mock_on(f.mock, "POST", "/echo", echo, NULL);
  call_get(&f, "/ok");
  mock_on_head(f.mock, reset_once, NULL);
  feeder_init(&feeder, body, LARGE, 100000);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/echo");
  request.feed = &feeder.feed;
  request.replayable = 1;
  call_send(&f, &call, &request);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(mock_n_connections(f.mock), 2);
  CHECK(feeder.n_pieces > (LARGE + 99999) / 100000);
  seen = mock_find(f.mock, "POST", "/echo", 1);
  CHECK(seen != NULL);
  CHECK_MEM(seen->body, seen->body_len, body, LARGE);
  fixture_close(&f);
  free(feeder.piece);
  free(body);
}

TEST_LIMIT(a_feed_without_memory_ends_its_exchange, 20) {
  tnk__http_request_t request;
  char *body = calloc(1, LARGE);
  feeder_t feeder;
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  fixture_open(&f);
  mock_on(f.mock, "POST", "/echo", echo, NULL);
  for (size_t i = 1; i <= 3; i++) {
    feeder_init(&feeder, body, LARGE, 100000);
    feeder.fail_at = i;
    request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/echo");
    request.feed = &feeder.feed;
    request.replayable = 1;
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_ENOMEM);
    /* On HTTP/2 the head goes out before a piece is asked for, and the
     * connection stays. */
    CHECK_INT(call.sent, i > 1 || mock_over_http2());
    CHECK_INT(feeder.n_pieces, i);
    CHECK_INT(f.http.n_connections, mock_over_http2());
    free(feeder.piece);
  }
  fixture_close(&f);
  free(body);
}

TEST(answers_over_their_limit) {
  tnk__http_request_t request;
  fixture_t f;
  call_t call;

  fixture_open(&f);
  mock_on(f.mock, NULL, "/chunked", answer_chunked, NULL);
  for (size_t max = 4; max <= 5; max++) {
    request = request_to(f.mock, TNK__LANE_SAMPLE, "GET", "/chunked");
    request.max_body = max;
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    CHECK_INT(call.err, max == 4 ? TNK_ETOOBIG : TNK_OK);
    CHECK_INT(call.sent, 1);
    CHECK_INT(call.status, 200);
  }
  CHECK_INT(mock_n_connections(f.mock), mock_over_http2() ? 1 : 2);
  fixture_close(&f);
}

static void answer_raw(mock_request_t *request, void *user) {
  const char *text = user;

  mock_raw(request, text, strlen(text));
  mock_end(request, 0);
}

TEST(answers_that_are_none) {
  static char garbage[] = "garbage\r\n\r\n";
  static char two_lengths[] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
                              "Content-Length: 2\r\n\r\nxx";
  static char gzip[] = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
                       "Content-Length: 1\r\n\r\nx";
  char *const rows[] = {garbage, two_lengths, gzip};
  fixture_t f;
  call_t call;

  mock_only_http1("its bytes are; test_h2_bounds.c has those of HTTP/2");
  fixture_open(&f);
  for (size_t i = 0; i < 3; i++) {
    mock_once(f.mock, NULL, "/x", answer_raw, rows[i]);
    call_run(&f, &call, TNK__LANE_SAMPLE, "GET", "/x");
    CHECK_INT(call.err, TNK_EPROTO);
    CHECK_INT(call.sent, 1);
    CHECK_INT(mock_n_connections(f.mock), i + 1);
  }
  fixture_close(&f);
}

static void refuse_early(mock_request_t *request, void *user) {
  (void)user;
  mock_set_reading(request->server, 0);
  mock_reply(request, 413, NULL, "too much", 8);
}

static void is_being_sent(call_t *call) {
  char text[200];
  tnk__text_t out;

  tnk__text_init(&out, text, sizeof(text));
  tnk__exchange_describe(&call->ex, &out);
  CHECK(strncmp(text, "is being sent, ", 15) == 0);
}

TEST_LIMIT(answer_before_the_body_is_out, 20) {
  tnk__http_request_t request;
  char *body = calloc(1, 2 * LARGE);
  fixture_t f;
  call_t call;

  CHECK(body != NULL);
  fixture_open(&f);
  mock_on_head(f.mock, refuse_early, NULL);
  request = request_to(f.mock, TNK__LANE_SAMPLE, "POST", "/x");
  request.body = body;
  request.body_len = 2 * LARGE;
  call_init(&f, &call);
  call.on_sent = is_being_sent;
  CHECK_INT(tnk__exchange_start(&f.http, &call.ex, &request), TNK_OK);
  call_wait(&f, &call);
  free(body);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.status, 413);
  CHECK_STR(call.body, "too much");
  CHECK_INT(f.http.n_connections, mock_over_http2());
  /* Half a request was left behind: on HTTP/1.1 nothing may follow it there. */
  mock_set_reading(f.mock, 1);
  mock_on_head(f.mock, NULL, NULL);
  call_get(&f, "/ok");
  CHECK_INT(mock_n_connections(f.mock), mock_over_http2() ? 1 : 2);
  fixture_close(&f);
}
