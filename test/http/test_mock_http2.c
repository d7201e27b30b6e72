/* SPDX-License-Identifier: MIT */
/* The mock server on HTTP/2, against nghttp2's own client. */
#include "http/h2_peer.h"
#include "loop/fixture.h"

typedef struct {
  context_t c;
  mock_server_t *mock;
  h2_peer_t peer;
} bench_t;

static void bench_open(bench_t *b) {
  context_open(&b->c);
  tnk__context_fake_clock(&b->c.loop, 1000000);
  b->mock = mock_open(&b->c.uv);
  mock_set_clock(b->mock, &b->c.loop);
  mock_on(b->mock, NULL, "/hold", mock_hold, NULL);
  mock_json(b->mock, NULL, "/ok", 200, "{}");
}

static void bench_close(bench_t *b) {
  h2_close(&b->peer);
  mock_close(b->mock);
  context_close(&b->c);
}

static h2_stream_t *get(bench_t *b, const char *target) {
  return h2_send(&b->peer, "GET", target, NULL, 0);
}

TEST(rules_and_records) {
  const mock_request_t *request;
  h2_stream_t *streams[3];
  bench_t b;

  bench_open(&b);
  mock_json(b.mock, "POST", "/a", 200, "{\"n\":1}");
  mock_json_once(b.mock, NULL, "/a", 429, "{}");
  h2_open(&b.peer, &b.c.uv, b.mock);
  streams[0] = h2_send(&b.peer, "POST", "/a?q=1", "body", 4);
  streams[1] = h2_send(&b.peer, "POST", "/a", NULL, 0);
  streams[2] = get(&b, "/none");
  for (int i = 0; i < 3; i++)
    h2_wait(&b.peer, &streams[i]->is_closed, 1);
  CHECK_INT(streams[0]->status, 429);
  CHECK_STR(streams[0]->body, "{}");
  CHECK_STR(streams[1]->body, "{\"n\":1}");
  CHECK_INT(streams[2]->status, 404);
  CHECK_INT(mock_n_requests(b.mock), 3);
  CHECK_INT(mock_n_connections(b.mock), 1);
  CHECK_INT(mock_n_sessions(b.mock), 1);
  request = mock_find(b.mock, "POST", "/a", 0);
  CHECK_STR(request->method, "POST");
  CHECK_STR(request->target, "/a?q=1");
  CHECK_STR(request->path, "/a");
  CHECK_STR(mock_header(request, "X-One"), "1");
  CHECK_STR(mock_header(request, "Host"), "mock");
  CHECK(mock_header(request, "x-two") == NULL);
  CHECK_MEM(request->body, request->body_len, "body", 4);
  CHECK(!request->is_gone);
  bench_close(&b);
}

TEST(many_held_dripped_and_delayed) {
  h2_stream_t *streams[10];
  bench_t b;

  bench_open(&b);
  mock_set_drip(b.mock, 1);
  h2_open(&b.peer, &b.c.uv, b.mock);
  for (int i = 0; i < 10; i++)
    streams[i] = get(&b, "/hold");
  mock_wait(b.mock, 10);
  CHECK_INT(mock_n_held(b.mock), 10);
  CHECK_INT(mock_n_streams(b.mock), 10);
  mock_reply_json_after(mock_request(b.mock, 9), 500, 200, "[9]");
  CHECK_INT(mock_request(b.mock, 9)->stream_id, 19);
  tnk__context_advance(&b.c.loop, 500);
  h2_wait(&b.peer, &streams[9]->is_closed, 1);
  CHECK_STR(streams[9]->body, "[9]");
  CHECK_INT(mock_release(b.mock, 200, "[1]"), 9);
  for (int i = 0; i < 9; i++) {
    h2_wait(&b.peer, &streams[i]->is_closed, 1);
    CHECK_STR(streams[i]->body, "[1]");
    CHECK_INT(streams[i]->code, MOCK_NO_ERROR);
  }
  CHECK_INT(mock_n_streams(b.mock), 0);
  CHECK_INT(mock_most_streams(b.mock), 10);
  bench_close(&b);
}

static void cut_in_the_body(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_cut(request, 200, "X-Header: y\r\n", "0123456789", 10, 60);
}

TEST(a_cut_ends_one_stream_and_a_reset_all) {
  h2_stream_t *held;
  h2_stream_t *cut;
  bench_t b;

  bench_open(&b);
  mock_on(b.mock, NULL, "/in", cut_in_the_body, NULL);
  mock_on(b.mock, NULL, "/cut", mock_cut, NULL);
  mock_on(b.mock, NULL, "/reset", mock_reset, NULL);
  h2_open(&b.peer, &b.c.uv, b.mock);
  held = get(&b, "/hold");
  cut = get(&b, "/in");
  h2_wait(&b.peer, &cut->is_closed, 1);
  CHECK_INT(cut->code, MOCK_INTERNAL_ERROR);
  CHECK_INT(cut->status, 200);
  CHECK_STR(cut->header, "y");
  /* The head would have been 56 bytes. */
  CHECK_STR(cut->body, "0123");
  CHECK(mock_request(b.mock, 1)->is_gone);
  cut = get(&b, "/cut");
  h2_wait(&b.peer, &cut->is_closed, 1);
  CHECK_INT(cut->code, MOCK_INTERNAL_ERROR);
  CHECK_INT(cut->status, 0);
  CHECK(!held->is_closed);
  get(&b, "/reset");
  h2_wait(&b.peer, &b.peer.is_ended, 1);
  CHECK_INT(b.peer.is_ended, 2);
  CHECK(mock_request(b.mock, 0)->is_gone);
  CHECK_INT(mock_n_streams(b.mock), 0);
  CHECK_INT(mock_n_open(b.mock), 0);
  bench_close(&b);
}

static void refuse_early(mock_request_t *request, void *user) {
  (void)user;
  CHECK(!request->is_complete);
  mock_reply(request, 413, "Connection: close\r\n", "no", 2);
}

TEST(an_answer_before_the_body_stops_it) {
  static char body[1024 * 1024];
  h2_stream_t *stream;
  bench_t b;

  bench_open(&b);
  mock_on_head(b.mock, refuse_early, NULL);
  mock_set_windows(b.mock, 0);
  h2_open(&b.peer, &b.c.uv, b.mock);
  stream = h2_send(&b.peer, "POST", "/x", body, sizeof(body));
  h2_wait(&b.peer, &stream->is_closed, 1);
  CHECK_INT(stream->status, 413);
  CHECK_STR(stream->body, "no");
  CHECK(stream->is_ended);
  CHECK_INT(stream->code, MOCK_NO_ERROR);
  h2_wait(&b.peer, &b.peer.is_ended, 1);
  CHECK_INT(b.peer.is_ended, 1);
  CHECK_INT(b.peer.n_goaways, 1);
  CHECK_INT(b.peer.code, MOCK_NO_ERROR);
  CHECK(!mock_request(b.mock, 0)->is_complete);
  bench_close(&b);
}

TEST(windows_that_stay_shut_and_open_again) {
  static char body[1024 * 1024];
  h2_stream_t *stream;
  bench_t b;

  bench_open(&b);
  mock_set_windows(b.mock, 0);
  h2_open(&b.peer, &b.c.uv, b.mock);
  stream = h2_send(&b.peer, "POST", "/ok", body, sizeof(body));
  mock_wait(b.mock, 1);
  mock_turns(b.mock, 50);
  CHECK_INT(mock_request(b.mock, 0)->body_len, 65535);
  CHECK(!mock_request(b.mock, 0)->is_complete);
  mock_set_windows(b.mock, 1);
  h2_wait(&b.peer, &stream->is_closed, 1);
  CHECK_INT(mock_request(b.mock, 0)->body_len, sizeof(body));
  CHECK_INT(stream->status, 200);
  bench_close(&b);
}

TEST(informs_pieces_and_trailers) {
  h2_stream_t *stream;
  mock_request_t *request;
  bench_t b;

  bench_open(&b);
  h2_open(&b.peer, &b.c.uv, b.mock);
  stream = get(&b, "/hold");
  mock_wait(b.mock, 1);
  request = mock_request(b.mock, 0);
  mock_inform(request, 103, "Link: </a>\r\n");
  h2_wait(&b.peer, &stream->n_informs, 1);
  mock_begin(request, 200, NULL);
  mock_piece(request, "ab", 2);
  while (stream->n_body < 2)
    mock_turns(b.mock, 1);
  mock_piece(request, "cd", 2);
  CHECK(!stream->is_ended);
  mock_end_with(request, "X-Header: late\r\n");
  h2_wait(&b.peer, &stream->is_closed, 1);
  CHECK_INT(stream->status, 200);
  CHECK_STR(stream->body, "abcd");
  CHECK_STR(stream->header, "late");
  CHECK_INT(stream->code, MOCK_NO_ERROR);
  bench_close(&b);
}

TEST(settings_are_told_and_changed) {
  h2_stream_t *streams[3];
  bench_t b;

  bench_open(&b);
  mock_setting(b.mock, MOCK_MAX_STREAMS, 2);
  mock_set_silent(b.mock, 1);
  h2_open(&b.peer, &b.c.uv, b.mock);
  streams[0] = get(&b, "/ok");
  mock_wait(b.mock, 1);
  mock_turns(b.mock, 20);
  CHECK_INT(b.peer.n_settings, 0);
  CHECK_INT(streams[0]->status, 0);
  mock_set_silent(b.mock, 0);
  h2_wait(&b.peer, &streams[0]->is_closed, 1);
  CHECK_INT(b.peer.n_settings, 1);
  CHECK_INT(b.peer.n_acks, 1);
  for (int i = 0; i < 3; i++)
    streams[i] = get(&b, "/hold");
  mock_wait(b.mock, 3);
  mock_turns(b.mock, 20);
  CHECK_INT(mock_n_requests(b.mock), 3);
  mock_setting(b.mock, MOCK_MAX_STREAMS, 3);
  mock_setting(b.mock, MOCK_WINDOW, 5);
  mock_wait(b.mock, 4);
  CHECK_INT(b.peer.n_settings, 3);
  CHECK_INT(mock_n_refused(b.mock), 0);
  CHECK_INT(mock_client_setting(b.mock, 0, MOCK_PUSH), 1);
  CHECK_INT(mock_client_setting(b.mock, 0, MOCK_WINDOW), 65535);
  bench_close(&b);
}

TEST(refused_reset_and_gone_away) {
  const uint32_t refused = MOCK_REFUSED_STREAM;
  h2_stream_t *streams[4];
  bench_t b;

  bench_open(&b);
  mock_on(b.mock, NULL, "/no", mock_rst_with, (void *)(uintptr_t)&refused);
  h2_open(&b.peer, &b.c.uv, b.mock);
  streams[0] = get(&b, "/no");
  h2_wait(&b.peer, &streams[0]->is_closed, 1);
  CHECK_INT(streams[0]->code, MOCK_REFUSED_STREAM);
  for (int i = 0; i < 3; i++)
    streams[i] = get(&b, "/hold");
  mock_wait(b.mock, 4);
  mock_goaway(b.mock, 0, INT32_MAX, MOCK_NO_ERROR);
  h2_wait(&b.peer, &b.peer.n_goaways, 1);
  CHECK_INT(b.peer.last, INT32_MAX);
  /* The last one is not among those that will be answered. */
  mock_goaway(b.mock, MOCK_ALL, mock_request(b.mock, 2)->stream_id,
              MOCK_NO_ERROR);
  h2_wait(&b.peer, &streams[2]->is_closed, 1);
  CHECK_INT(streams[2]->code, MOCK_REFUSED_STREAM);
  CHECK(mock_request(b.mock, 3)->is_gone);
  mock_release(b.mock, 200, "{}");
  h2_wait(&b.peer, &streams[0]->is_closed, 1);
  h2_wait(&b.peer, &streams[1]->is_closed, 1);
  CHECK_INT(streams[1]->status, 200);
  h2_wait(&b.peer, &b.peer.is_ended, 1);
  CHECK_INT(b.peer.is_ended, 1);
  bench_close(&b);
}

TEST(pings_with_and_without_an_answer) {
  bench_t b;

  bench_open(&b);
  h2_open(&b.peer, &b.c.uv, b.mock);
  CHECK_INT(nghttp2_submit_ping(b.peer.nghttp2, NGHTTP2_FLAG_NONE, NULL), 0);
  h2_wait(&b.peer, &b.peer.n_pongs, 1);
  mock_set_pongs(b.mock, 0);
  CHECK_INT(nghttp2_submit_ping(b.peer.nghttp2, NGHTTP2_FLAG_NONE, NULL), 0);
  h2_flush(&b.peer);
  while (mock_n_pings(b.mock) < 2)
    mock_turns(b.mock, 1);
  mock_turns(b.mock, 20);
  CHECK_INT(b.peer.n_pongs, 1);
  bench_close(&b);
}

static void reset_one(bench_t *b, size_t i) {
  h2_stream_t *stream = get(b, "/hold");
  const int32_t id = (int32_t)(2 * (stream - b->peer.streams) + 1);

  mock_wait(b->mock, i + 1);
  CHECK_INT(nghttp2_submit_rst_stream(b->peer.nghttp2, NGHTTP2_FLAG_NONE, id,
                                      NGHTTP2_CANCEL),
            0);
  h2_flush(&b->peer);
  while (mock_n_resets(b->mock) < i + 1)
    mock_turns(b->mock, 1);
}

TEST(resets_are_counted_and_guarded_against) {
  bench_t b;

  bench_open(&b);
  mock_set_reset_guard(b.mock, 3, 1000);
  h2_open(&b.peer, &b.c.uv, b.mock);
  for (size_t i = 0; i < 5; i++) {
    tnk__context_advance(&b.c.loop, 400);
    reset_one(&b, i);
    CHECK(mock_request(b.mock, i)->is_gone);
  }
  CHECK_INT(mock_most_resets(b.mock), 3);
  CHECK_INT(mock_n_calmed(b.mock), 0);
  reset_one(&b, 5);
  CHECK_INT(mock_n_calmed(b.mock), 1);
  h2_wait(&b.peer, &b.peer.is_ended, 1);
  CHECK_INT(b.peer.code, MOCK_ENHANCE_YOUR_CALM);
  bench_close(&b);
}

/* A test may say anything, at the right place between the session's frames. */
TEST(frames_of_the_tests_own) {
  static const uint8_t opaque[8] = {0};
  h2_stream_t *stream;
  bench_t b;

  bench_open(&b);
  h2_open(&b.peer, &b.c.uv, b.mock);
  stream = get(&b, "/hold");
  mock_wait(b.mock, 1);
  for (int i = 0; i < 10; i++)
    mock_frame(b.mock, MOCK_ALL, MOCK_PING, NGHTTP2_FLAG_ACK, 0, opaque, 8);
  h2_wait(&b.peer, &b.peer.n_pongs, 10);
  /* :status: 200, from the static table */
  mock_frame(b.mock, 0, MOCK_HEADERS, NGHTTP2_FLAG_END_HEADERS,
             mock_request(b.mock, 0)->stream_id, "\x88", 1);
  for (int i = 0; i < 3; i++)
    mock_frame(b.mock, 0, MOCK_DATA, 0, 1, NULL, 0);
  mock_frame(b.mock, 0, MOCK_DATA, NGHTTP2_FLAG_END_STREAM, 1, "yes", 3);
  h2_wait(&b.peer, &stream->is_ended, 1);
  CHECK_INT(stream->status, 200);
  CHECK_STR(stream->body, "yes");
  bench_close(&b);
}

TEST(connections_have_numbers) {
  bench_t b;

  bench_open(&b);
  for (int i = 0; i < 2; i++) {
    h2_stream_t *stream;
    if (i > 0)
      h2_close(&b.peer);
    h2_open(&b.peer, &b.c.uv, b.mock);
    stream = get(&b, "/ok");
    h2_wait(&b.peer, &stream->is_closed, 1);
    CHECK_INT(mock_request(b.mock, (size_t)i)->connection, i);
  }
  mock_close_connection(b.mock, 1, 1);
  h2_wait(&b.peer, &b.peer.is_ended, 1);
  CHECK_INT(b.peer.is_ended, 2);
  bench_close(&b);
}
