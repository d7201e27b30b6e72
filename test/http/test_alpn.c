/* SPDX-License-Identifier: MIT */
/* Which version is spoken, and on which connections. */
#include <mbedtls/ssl.h>
#include <sys/resource.h>

#include "http/fixture.h"
#include "http/h2_server.h"
#include "http/peer.h"
#include "support/mock_http2.h"

static const char *const both[] = {"h2", "http/1.1", NULL};
static const char *const only_h2[] = {"h2", NULL};
static const char *const only_http1[] = {"http/1.1", NULL};

typedef struct {
  fixture_t f;
  peer_t peer;
  h2_server_t server;
} secure_t;

static void secure_open(secure_t *s, const char *const *alpn,
                        tnk__http_version_t version) {
  tnk__http_options_t options = {.version = version};

  peer_init(&s->peer, (test_cert_t){.address = "127.0.0.1"});
  options.ca_file = s->peer.ca_path;
  fixture_open_with(&s->f, &options);
  h2_server_open(&s->server, &s->f.c.uv, &s->peer.leaf, alpn);
}

static void secure_close(secure_t *s) {
  tnk__http_close(&s->f.http);
  mock_turns(s->f.mock, 10);
  test_server_close(&s->server.tls);
  fixture_close(&s->f);
  peer_free(&s->peer);
}

static void start(secure_t *s, call_t *call, tnk__lane_t lane) {
  tnk__http_request_t request = request_to(s->f.mock, lane, "POST", "/x");

  request.origin.port = (uint16_t)s->server.tls.port;
  request.origin.is_tls = 1;
  request.body = "body";
  request.body_len = 4;
  call_send(&s->f, call, &request);
}

static void run(secure_t *s, call_t *call, tnk__lane_t lane) {
  start(s, call, lane);
  call_wait(&s->f, call);
}

static void check_ok(const call_t *call) {
  CHECK_STR(call->detail, "");
  CHECK_INT(call->err, TNK_OK);
  CHECK_INT(call->status, 200);
  CHECK_STR(call->body, "ok");
}

/* How many polls may be held is known when it is known what is spoken. */
TEST(descriptors_bound_polls_that_have_connections_of_their_own) {
  const struct rlimit low = {256, 256};

  CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int is_shared = 0; is_shared < 2; is_shared++) {
    secure_t s;
    call_t call;
    size_t before;

    secure_open(&s, is_shared ? only_h2 : only_http1, TNK__HTTP_AUTO);
    before = s.f.http.lanes[TNK__LANE_POLL].max;
    CHECK(before < 256 && s.f.c.n_warnings == 0);
    run(&s, &call, TNK__LANE_TRAIN); /* is apart, and says nothing of polls */
    CHECK_INT(s.f.http.lanes[TNK__LANE_POLL].max, before);
    run(&s, &call, TNK__LANE_POLL);
    check_ok(&call);
    CHECK_INT(s.f.http.lanes[TNK__LANE_POLL].max, is_shared ? 2048 : before);
    CHECK_INT(s.f.http.lanes[TNK__LANE_TRAIN_POLL].allowed > 14, is_shared);
    CHECK_INT(s.f.c.n_warnings, !is_shared);
    secure_close(&s);
  }
}

/* Submissions of training keep out of the others' way. */
TEST(many_exchanges_share_a_connection_but_those_of_training) {
  enum { N = 40 };
  call_t calls[N];
  call_t train;
  secure_t s;

  secure_open(&s, both, TNK__HTTP_AUTO);
  for (int i = 0; i < N; i++)
    start(&s, &calls[i], i % 2 == 0 ? TNK__LANE_POLL : TNK__LANE_SAMPLE);
  run(&s, &train, TNK__LANE_TRAIN);
  check_ok(&train);
  for (int i = 0; i < N; i++) {
    call_wait(&s.f, &calls[i]);
    check_ok(&calls[i]);
  }
  CHECK_INT(s.server.n_http2, N);
  CHECK_INT(s.server.n_http1, 1);
  CHECK_INT(s.server.tls.n_accepted, 2);
  CHECK_INT(s.f.c.n_warnings, 0);
  secure_close(&s);
}

/* It has no choice in what it is sent. */
TEST(a_server_of_http2_alone_gets_training_over_it_too) {
  call_t call;
  secure_t s;

  secure_open(&s, only_h2, TNK__HTTP_AUTO);
  run(&s, &call, TNK__LANE_CONTROL);
  check_ok(&call);
  run(&s, &call, TNK__LANE_TRAIN);
  check_ok(&call);
  run(&s, &call, TNK__LANE_TRAIN);
  check_ok(&call);
  CHECK_INT(s.server.n_http2, 3);
  CHECK_INT(s.server.n_http1, 0);
  secure_close(&s);
}

/* The first connection shows that each exchange needs one of its own. */
TEST(a_server_of_http1_gets_as_many_connections_as_exchanges) {
  enum { N = 5 };
  const char *const *const offers[] = {only_http1, NULL};

  for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++) {
    call_t calls[N];
    secure_t s;
    secure_open(&s, offers[i], TNK__HTTP_AUTO);
    s.server.holds = 1;
    for (int k = 0; k < N; k++)
      start(&s, &calls[k], TNK__LANE_POLL);
    TEST_RUN_UNTIL(&s.f.c.uv, s.server.n_http1 == N);
    CHECK_INT(s.server.n_http2, 0);
    CHECK_INT(s.server.tls.n_accepted, N);
    for (int k = 0; k < N; k++)
      tnk__exchange_cancel(&calls[k].ex);
    secure_close(&s);
  }
}

TEST(http1_is_spoken_alone_where_that_is_wanted) {
  call_t call;
  secure_t s;

  secure_open(&s, both, TNK__HTTP_1_1);
  run(&s, &call, TNK__LANE_CONTROL);
  check_ok(&call);
  CHECK_INT(s.server.n_http1, 1);
  CHECK_INT(s.server.n_http2, 0);
  secure_close(&s);
}

/* Nothing that it could misunderstand is sent to a server of HTTP/1.1. */
TEST(http2_is_spoken_alone_where_that_is_wanted) {
  const tnk__http_version_t versions[] = {TNK__HTTP_2,
                                          TNK__HTTP_2_PRIOR_KNOWLEDGE};

  for (size_t i = 0; i < 2; i++) {
    call_t call;
    secure_t s;
    secure_open(&s, both, versions[i]);
    run(&s, &call, TNK__LANE_TRAIN);
    check_ok(&call);
    CHECK_INT(s.server.n_http2, 1);
    secure_close(&s);
    secure_open(&s, NULL, versions[i]);
    run(&s, &call, TNK__LANE_CONTROL);
    CHECK_INT(call.err, TNK_EPROTO);
    CHECK_INT(call.sent, 0);
    CHECK(strstr(call.detail, "does not support HTTP/2") != NULL);
    CHECK_INT(s.server.n_http1 + s.server.n_http2, 0);
    secure_close(&s);
  }
}

/* What an origin speaks is remembered while nothing is connected to it. */
TEST(a_known_server_of_http1_gets_all_its_connections_at_once) {
  enum { N = 3 };
  call_t calls[N];
  secure_t s;

  secure_open(&s, only_http1, TNK__HTTP_AUTO);
  run(&s, &calls[0], TNK__LANE_CONTROL);
  tnk__context_advance(&s.f.c.loop, 60000);
  CHECK(tnk__list_empty(&s.f.http.pools));
  for (int i = 0; i < N; i++)
    start(&s, &calls[i], TNK__LANE_POLL);
  mock_turns(s.f.mock, 1);
  CHECK_INT(s.f.http.n_connections, N);
  for (int i = 0; i < N; i++)
    call_wait(&s.f, &calls[i]);
  secure_close(&s);
}

/* ---- Without TLS ---- */

static void open_prior(fixture_t *f) {
  const tnk__http_options_t options = {.version = TNK__HTTP_2_PRIOR_KNOWLEDGE};

  fixture_open_with(f, &options);
}

/* It did not act on them, and would get them again too soon. */
TEST(who_wants_less_is_not_asked_again_at_once) {
  call_t calls[3];
  fixture_t f;

  open_prior(&f);
  for (int i = 0; i < 3; i++)
    call_start(&f, &calls[i], TNK__LANE_POLL, "GET", "/hold");
  mock_wait(f.mock, 3);
  mock_goaway(f.mock, 0, 0, MOCK_ENHANCE_YOUR_CALM);
  for (int i = 0; i < 3; i++) {
    call_wait(&f, &calls[i]);
    CHECK_INT(calls[i].err, TNK_ECONN);
    CHECK_INT(calls[i].sent, 0);
  }
  CHECK_INT(mock_n_requests(f.mock), 3);
  fixture_close(&f);
}

/* A server that knows nothing of the preface. */
static void answer_http1(test_conn_t *conn, const unsigned char *data,
                         size_t n) {
  static const char refusal[] = "HTTP/1.1 400 Bad Request\r\n"
                                "Content-Length: 0\r\n\r\n";
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

  if (n >= 3 && memcmp(data, "PRI", 3) == 0)
    test_conn_write(conn, refusal, sizeof(refusal) - 1);
  else
    test_conn_write(conn, answer, sizeof(answer) - 1);
}

/* What one kind of exchanges has learned is known to all, and said once. */
TEST(a_fall_back_is_said_once_and_for_all_lanes) {
  const test_server_options_t options = {.on_read = answer_http1};
  test_server_t server;
  fixture_t f;

  open_prior(&f);
  test_server_open(&server, &f.c.uv, &options);
  for (int i = 0; i < 4; i++) {
    const tnk__lane_t lane = i % 2 == 0 ? TNK__LANE_TRAIN : TNK__LANE_CONTROL;
    tnk__http_request_t request = request_to(f.mock, lane, "GET", "/x");
    call_t call;
    request.origin.port = (uint16_t)server.port;
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_OK);
    CHECK_INT(call.status, 200);
  }
  CHECK_INT(f.c.n_warnings, 1);
  CHECK_INT(server.n_accepted, 3);
  tnk__http_close(&f.http);
  mock_turns(f.mock, 5);
  test_server_close(&server);
  fixture_close(&f);
}

/* An accident is forgotten when HTTP/2 works. */
TEST(one_connection_that_ends_before_its_settings_is_no_refusal) {
  fixture_t f;

  open_prior(&f);
  for (int i = 0; i < 3; i++) {
    call_t call;
    mock_set_silent(f.mock, 1);
    call_start(&f, &call, TNK__LANE_SAMPLE, "POST", "/ok");
    mock_wait_open(f.mock, 1);
    mock_turns(f.mock, 10);
    mock_close_connection(f.mock, MOCK_ALL, 0);
    mock_set_silent(f.mock, 0);
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_ECONN);
    CHECK_INT(call.sent, 0);
    call_get(&f, "/ok");
    mock_close_connection(f.mock, MOCK_ALL, 0);
    mock_wait_open(f.mock, 0);
  }
  CHECK_INT(f.c.n_warnings, 0);
  CHECK_INT(mock_n_sessions(f.mock), 6);
  fixture_close(&f);
}
