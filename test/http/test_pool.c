/* SPDX-License-Identifier: MIT */
/* Lanes and connections: who waits for whom, what is used again. */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"
#include "lib/base/alloc.h"
#include "lib/base/text.h"

TEST(one_connection_is_used_again) {
  fixture_t f;

  fixture_open(&f);
  for (int i = 0; i < 10; i++)
    call_get(&f, "/ok");
  CHECK_INT(mock_n_connections(f.mock), 1);
  CHECK_INT(f.http.max_connections, 1);
  fixture_close(&f);
}

/* A server that looks for requests in every turn of the loop, right behind the
 * client's own turn: as fast as one can be. */
typedef struct {
  tnk__deferred_t turn;
  tnk__context_t *context;
  int listener;
  int fd;
  int n_accepted;
  int n_answered;
} quick_server_t;

static void quick_turn(tnk__deferred_t *turn) {
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  quick_server_t *server = tnk__container_of(turn, quick_server_t, turn);
  char request[4096];
  int fd = accept(server->listener, NULL, NULL);

  if (fd >= 0) {
    close(server->fd);
    server->fd = fd;
    server->n_accepted++;
  }
  if (recv(server->fd, request, sizeof(request), MSG_DONTWAIT) > 0) {
    CHECK_INT(send(server->fd, answer, sizeof(answer) - 1, 0),
              sizeof(answer) - 1);
    server->n_answered++;
  }
  tnk__defer(server->context, turn);
}

static uint16_t quick_open(quick_server_t *server, tnk__context_t *context) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t len = sizeof(address);

  memset(server, 0, sizeof(*server));
  server->context = context;
  server->fd = -1;
  server->listener = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK_INT(bind(server->listener, (struct sockaddr *)&address, len), 0);
  CHECK_INT(listen(server->listener, 1), 0);
  CHECK_INT(fcntl(server->listener, F_SETFL, O_NONBLOCK), 0);
  CHECK_INT(getsockname(server->listener, (struct sockaddr *)&address, &len),
            0);
  tnk__deferred_init(&server->turn, quick_turn);
  return ntohs(address.sin_port);
}

/* The request is with the system when the answer is read, whether or not
 * anybody was told. */
TEST(an_answer_may_be_as_quick_as_it_likes) {
  quick_server_t server;
  fixture_t f;
  uint16_t port;

  mock_only_http1("the server of this case speaks no other");
  fixture_open(&f);
  port = quick_open(&server, &f.c.loop);
  for (int i = 0; i < 5; i++) {
    tnk__http_request_t request =
        request_to(f.mock, TNK__LANE_CONTROL, "GET", "/");
    call_t call;
    request.origin.port = port;
    call_send(&f, &call, &request);
    tnk__defer(&f.c.loop, &server.turn);
    call_wait(&f, &call);
    tnk__defer_cancel(&server.turn);
    CHECK_INT(call.status, 200);
  }
  CHECK_INT(server.n_answered, 5);
  CHECK_INT(server.n_accepted, 1);
  close(server.fd);
  close(server.listener);
  fixture_close(&f);
}

TEST(the_connection_used_last_is_used_next) {
  fixture_t f;
  call_t calls[3];
  size_t last;

  mock_only_http1("over HTTP/2 there is one");
  fixture_open(&f);
  for (int i = 0; i < 3; i++)
    call_start(&f, &calls[i], TNK__LANE_POLL, "GET", "/hold");
  mock_wait(f.mock, 3);
  for (size_t i = 0; i < 3; i++) {
    mock_reply_json(mock_request(f.mock, i), 200, "{}");
    mock_turns(f.mock, 3);
  }
  last = mock_request(f.mock, 2)->connection;
  for (size_t i = 3; i < 6; i++) {
    call_get(&f, "/ok");
    CHECK_INT(mock_request(f.mock, i)->connection, last);
  }
  CHECK_INT(mock_n_connections(f.mock), 3);
  fixture_close(&f);
}

static void answer_and_close(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, "Connection: close\r\n", "x", 1);
}

TEST(a_server_that_closes_is_obeyed) {
  fixture_t f;

  fixture_open(&f);
  mock_on(f.mock, NULL, "/close", answer_and_close, NULL);
  call_get(&f, "/close");
  CHECK_INT(f.http.n_connections, 0);
  call_get(&f, "/close");
  CHECK_INT(mock_n_connections(f.mock), 2);
  fixture_close(&f);
}

TEST(unused_connections_close_after_a_minute) {
  fixture_t f;

  fixture_open(&f);
  call_get(&f, "/ok");
  tnk__context_advance(&f.c.loop, 59999);
  CHECK_INT(f.http.n_connections, 1);
  call_get(&f, "/ok");
  tnk__context_advance(&f.c.loop, 59999);
  CHECK_INT(f.http.n_connections, 1);
  tnk__context_advance(&f.c.loop, 1);
  CHECK_INT(f.http.n_connections, 0);
  CHECK(tnk__list_empty(&f.http.pools));
  mock_wait_open(f.mock, 0);
  CHECK_INT(mock_n_connections(f.mock), 1);
  fixture_close(&f);
}

TEST(SX_2_unused_connections_keep_nothing_alive) {
  fixture_t f;

  fixture_open(&f);
  call_get(&f, "/ok");
  CHECK_INT(f.http.n_connections, 1);
  CHECK_INT(uv_run(&f.c.uv, UV_RUN_DEFAULT), 0);
  CHECK_INT(f.http.n_connections, 1);
  fixture_close(&f);
}

TEST(SX_2_background_exchanges_keep_nothing_alive) {
  tnk__http_request_t request;
  fixture_t f;
  call_t call;

  fixture_open(&f);
  request = request_to(f.mock, TNK__LANE_CONTROL, "POST", "/hold");
  request.background = 1;
  request.timeout_ms = 10000;
  for (int round = 0; round < 2; round++) {
    call_send(&f, &call, &request);
    mock_wait(f.mock, (size_t)round + 1);
    CHECK_INT(uv_run(&f.c.uv, UV_RUN_DEFAULT), 0);
    CHECK_INT(call.n_done, 0);
    /* It works on while something else runs the loop. */
    mock_release(f.mock, 200, "{}");
    call_wait(&f, &call);
    CHECK_INT(call.err, TNK_OK);
  }
  fixture_close(&f);
}

/* A listener that has no room for a connection, so that connecting goes on for
 * as long as it may. */
typedef struct {
  int listener;
  int filler[2];
  uint16_t port;
} full_server_t;

static void full_open(full_server_t *server) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t len = sizeof(address);

  server->listener = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK_INT(bind(server->listener, (struct sockaddr *)&address, len), 0);
  CHECK_INT(listen(server->listener, 0), 0);
  CHECK_INT(getsockname(server->listener, (struct sockaddr *)&address, &len),
            0);
  server->port = ntohs(address.sin_port);
  for (int i = 0; i < 2; i++) {
    server->filler[i] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(fcntl(server->filler[i], F_SETFL, O_NONBLOCK), 0);
    (void)connect(server->filler[i], (struct sockaddr *)&address, len);
  }
}

static void full_close(full_server_t *server) {
  close(server->filler[0]);
  close(server->filler[1]);
  close(server->listener);
}

/* What is given up while its connection is being made takes that with it, as
 * soon as nobody else may want it. */
TEST(SX_2_a_connection_that_nobody_waits_for_keeps_nothing_alive) {
  /* Of HTTP/2 one connection would be enough. */
  const tnk__http_options_t options = {.version = TNK__HTTP_1_1};

  for (int is_tls = 0; is_tls < 2; is_tls++) {
    tnk__http_request_t request;
    full_server_t server;
    fixture_t f;
    call_t calls[3];
    fixture_open_with(&f, &options);
    full_open(&server);
    request = request_to(f.mock, TNK__LANE_CONTROL, "GET", "/ok");
    request.origin.port = server.port;
    request.origin.is_tls = is_tls;
    for (int i = 0; i < 3; i++) {
      request.background = i == 2;
      request.timeout_ms = i == 1 ? 1000 : 0;
      call_send(&f, &calls[i], &request);
    }
    mock_turns(f.mock, 20);
    CHECK_INT(f.http.n_connections, 3);
    tnk__exchange_cancel(&calls[0].ex);
    CHECK_INT(f.http.n_connections, 3);
    tnk__context_advance(&f.c.loop, 1000);
    CHECK_INT(f.http.n_connections, 1);
    call_wait(&f, &calls[1]);
    CHECK_INT(calls[1].err, TNK_ETIMEDOUT);
    tnk__exchange_cancel(&calls[2].ex);
    CHECK_INT(f.http.n_connections, 0);
    CHECK_INT(uv_run(&f.c.uv, UV_RUN_DEFAULT), 0);
    full_close(&server);
    fixture_close(&f);
  }
}

TEST(S1_6_origins_are_apart) {
  tnk__http_request_t request;
  mock_server_t *other;
  fixture_t f;
  call_t call;

  fixture_open(&f);
  other = mock_open(&f.c.uv);
  mock_json(other, NULL, "/ok", 201, "{}");
  for (int i = 0; i < 2; i++) {
    call_get(&f, "/ok");
    call_init(&f, &call);
    request = request_to(other, TNK__LANE_TRAIN, "GET", "/ok");
    CHECK_INT(tnk__exchange_start(&f.http, &call.ex, &request), TNK_OK);
    call_wait(&f, &call);
    CHECK_INT(call.status, 201);
  }
  CHECK_INT(mock_n_connections(f.mock), 1);
  CHECK_INT(mock_n_connections(other), 1);
  CHECK_INT(mock_n_requests(other), 2);
  mock_close(other);
  fixture_close(&f);
}

enum { N_POLLS = 2000 };

/* B9, the issue: polling can never starve submissions or heartbeats. What
 * exceeds the allowance waits in order. */
TEST_LIMIT(B9_polls_never_starve_submissions, 30) {
  const tnk__http_options_t options = {.max_in_flight = {1, 1, 1, 50}};
  call_t *polls = calloc(N_POLLS, sizeof(*polls));
  call_t others[3];
  fixture_t f;
  size_t n;

  CHECK(polls != NULL);
  fixture_open_with(&f, &options);
  for (int i = 0; i < N_POLLS; i++)
    call_start(&f, &polls[i], TNK__LANE_POLL, "POST", "/hold");
  mock_wait(f.mock, 50);
  mock_turns(f.mock, 50);
  CHECK_INT(mock_n_requests(f.mock), 50);
  CHECK_INT(tnk__http_n_polls(&f.http), 50);
  CHECK(f.http.n_connections == (mock_over_http2() ? 1 : 50));
  /* All polls are held, and yet each other kind gets through. */
  for (int lane = 0; lane < 3; lane++)
    call_start(&f, &others[lane], (tnk__lane_t)lane, "POST", "/ok");
  for (int lane = 0; lane < 3; lane++) {
    call_wait(&f, &others[lane]);
    CHECK_INT(others[lane].err, TNK_OK);
  }
  CHECK_INT(mock_n_held(f.mock), 50);
  n = mock_n_requests(f.mock);
  while (polls[N_POLLS - 1].n_done == 0) {
    CHECK(mock_n_held(f.mock) <= 50);
    mock_release(f.mock, 200, "{}");
    mock_turns(f.mock, 2);
  }
  for (int i = 0; i < N_POLLS; i++) {
    if (polls[i].n_done == 0)
      call_wait(&f, &polls[i]);
    CHECK_INT(polls[i].err, TNK_OK);
  }
  /* In order: none of a later batch of 50 is answered before the first of an
   * earlier one. */
  for (int i = 100; i < N_POLLS; i++)
    CHECK(polls[i].order > polls[i - 100].order);
  CHECK_INT(mock_n_requests(f.mock), n + N_POLLS - 50);
  CHECK(f.http.max_connections <= 53);
  fixture_close(&f);
  free(polls);
}

TEST(what_exceeds_a_lane_waits_in_order) {
  const tnk__http_options_t options = {.max_in_flight = {1, 1, 1, 1, 1}};
  call_t calls[5];
  char target[] = "/hold?0";
  fixture_t f;

  fixture_open_with(&f, &options);
  for (int i = 0; i < 5; i++) {
    target[6] = (char)('0' + i);
    call_start(&f, &calls[i], TNK__LANE_POLL, "GET", target);
  }
  for (size_t i = 0; i < 5; i++) {
    mock_wait(f.mock, i + 1);
    mock_turns(f.mock, 5);
    CHECK_INT(mock_n_requests(f.mock), i + 1);
    CHECK_INT(mock_request(f.mock, i)->target[6], '0' + (int)i);
    CHECK_INT(mock_request(f.mock, i)->connection, 0);
    mock_release(f.mock, 200, "{}");
    call_wait(&f, &calls[i]);
  }
  fixture_close(&f);
}

TEST_LIMIT(two_thousand_polls_at_once, 60) {
  const tnk__http_options_t options = {.ca_file = NULL};
  struct rlimit limit;
  call_t *polls;
  call_t heartbeat;
  fixture_t f;

  /* Both ends of each connection are in this process. */
  CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 6000)
    test_skip("needs 6,000 descriptors");
  limit.rlim_cur = 6000;
  CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  polls = calloc(N_POLLS, sizeof(*polls));
  CHECK(polls != NULL);
  fixture_open_with(&f, &options);
  CHECK_INT(f.c.n_warnings, 0);
  for (int i = 0; i < N_POLLS; i++)
    call_start(&f, &polls[i], TNK__LANE_POLL, "POST", "/hold");
  mock_wait(f.mock, N_POLLS);
  CHECK(f.http.n_connections == N_POLLS || mock_over_http2());
  call_run(&f, &heartbeat, TNK__LANE_CONTROL, "POST", "/ok");
  CHECK_INT(heartbeat.err, TNK_OK);
  mock_release(f.mock, 200, "{}");
  for (int i = 0; i < N_POLLS; i++) {
    call_wait(&f, &polls[i]);
    CHECK_INT(polls[i].err, TNK_OK);
  }
  fixture_close(&f);
  free(polls);
}

static void set_limit(rlim_t n) {
  struct rlimit limit;

  CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = n;
  CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Over HTTP/2 they share connections. */
TEST(polls_are_bound_by_the_descriptors) {
  const tnk__http_options_t few = {.max_in_flight = {0, 0, 0, 10, 10}};
  const tnk__http_options_t many = {.max_in_flight = {0, 0, 0, 500}};
  const int is_shared = mock_over_http2();
  fixture_t f;

  set_limit(256);
  fixture_open_with(&f, &few);
  CHECK_INT(f.http.lanes[TNK__LANE_POLL].max, 10);
  call_get(&f, "/ok");
  CHECK_INT(f.c.n_warnings, 0);
  fixture_close(&f);
  fixture_open_with(&f, &many);
  CHECK_INT(f.http.lanes[TNK__LANE_POLL].max,
            is_shared ? 500 : (256 - 64 - (4 + 16 + 64)) - 14);
  CHECK_INT(f.http.lanes[TNK__LANE_TRAIN_POLL].max, is_shared ? 256 : 14);
  call_get(&f, "/ok");
  CHECK_INT(f.c.n_warnings, !is_shared);
  call_get(&f, "/ok");
  CHECK_INT(f.c.n_warnings, !is_shared);
  fixture_close(&f);
  /* However low it is, one poll is allowed. */
  set_limit(100);
  fixture_open_with(&f, &many);
  CHECK_INT(f.http.lanes[TNK__LANE_POLL].max, is_shared ? 500 : 1);
  CHECK_INT(f.http.lanes[TNK__LANE_TRAIN_POLL].max, is_shared ? 256 : 1);
  fixture_close(&f);
}

/* No descriptor can be opened any more. */
static void exhaust_descriptors(void) {
  int fd = dup(0);

  CHECK(fd >= 0);
  close(fd);
  set_limit((rlim_t)fd);
}

TEST(out_of_descriptors_waits_for_what_is_under_way) {
  for (int close_first = 0; close_first < 2; close_first++) {
    fixture_t f;
    call_t first;
    call_t others[3];
    int n_before;
    fixture_open(&f);
    call_start(&f, &first, TNK__LANE_POLL, "GET", "/hold");
    mock_wait(f.mock, 1);
    n_before = f.c.n_warnings; /* of polls, perhaps */
    exhaust_descriptors();
    for (int i = 0; i < 3; i++)
      call_start(&f, &others[i], TNK__LANE_TRAIN, "GET", "/ok");
    mock_turns(f.mock, 20);
    CHECK_INT(mock_n_requests(f.mock), 1);
    CHECK_INT(others[0].n_done, 0);
    CHECK_INT(f.c.n_warnings, n_before + 1);
    /* Nobody tells us that there are descriptors again; the next end of an
     * exchange makes us look. */
    if (close_first) {
      set_limit(256);
      mock_reply(mock_request(f.mock, 0), 200, "Connection: close\r\n", "", 0);
    } else {
      mock_release(f.mock, 200, "{}");
    }
    for (int i = 0; i < 3; i++) {
      call_wait(&f, &others[i]);
      CHECK_INT(others[i].err, TNK_OK);
    }
    CHECK_INT(first.err, TNK_OK);
    if (!mock_over_http2())
      CHECK_INT(mock_n_connections(f.mock), close_first ? 4 : 1);
    CHECK_INT(f.c.n_warnings, n_before + 1);
    set_limit(256);
    fixture_close(&f);
  }
}

/* Nothing under way could make room, so waiting would be in vain. */
TEST(out_of_descriptors_at_once) {
  fixture_t f;
  call_t call;

  fixture_open(&f);
  exhaust_descriptors();
  call_run(&f, &call, TNK__LANE_TRAIN, "GET", "/ok");
  CHECK_INT(call.err, TNK_ECONN);
  CHECK_INT(call.cause, UV_EMFILE);
  CHECK_INT(call.sent, 0);
  set_limit(256);
  fixture_close(&f);
}

TEST(unused_connections_make_room_for_others) {
  const tnk__http_options_t options = {.max_in_flight = {1, 1, 1, 1, 1}};
  mock_server_t *servers[6];
  tnk__http_request_t request;
  fixture_t f;
  call_t call;

  fixture_open_with(&f, &options);
  for (size_t i = 0; i < 6; i++) {
    servers[i] = mock_open(&f.c.uv);
    mock_json(servers[i], NULL, "/ok", 200, "{}");
    request = request_to(servers[i], TNK__LANE_TRAIN, "GET", "/ok");
    call_send(&f, &call, &request);
    call_wait(&f, &call);
    tnk__context_advance(&f.c.loop, 10);
  }
  /* Five slots, so five connections are enough; the oldest had to go. */
  CHECK_INT(f.http.n_connections, 5);
  mock_turns(f.mock, 3);
  CHECK_INT(mock_n_open(servers[0]), 0);
  for (size_t i = 0; i < 6; i++) {
    CHECK_INT(mock_n_open(servers[i]), i > 0);
    mock_close(servers[i]);
  }
  fixture_close(&f);
}

/* Connections are refused while one works: the others wait for that one. */
TEST(refused_connections_wait_for_those_that_work) {
  tnk__text_t out;
  char text[200];
  call_t first;
  call_t others[3];
  fixture_t f;

  mock_only_http1("over HTTP/2 they share the connection that works");
  fixture_open(&f);
  call_start(&f, &first, TNK__LANE_TRAIN, "GET", "/hold");
  mock_wait(f.mock, 1);
  mock_stop_listening(f.mock);
  for (int i = 0; i < 3; i++)
    call_start(&f, &others[i], TNK__LANE_TRAIN, "GET", "/ok");
  mock_turns(f.mock, 50);
  /* Tried again, and again in vain. */
  tnk__context_advance(&f.c.loop, 5000);
  mock_turns(f.mock, 50);
  CHECK_INT(others[0].n_done, 0);
  CHECK_INT(f.c.n_warnings, 1);
  tnk__text_init(&out, text, sizeof(text));
  tnk__exchange_describe(&others[0].ex, &out);
  CHECK(strncmp(text, "waits for one of the 1 connections", 34) == 0);
  mock_release(f.mock, 200, "{}");
  for (int i = 0; i < 3; i++) {
    call_wait(&f, &others[i]);
    CHECK_INT(others[i].err, TNK_OK);
  }
  CHECK_INT(mock_n_connections(f.mock), 1);
  fixture_close(&f);
}

/* When the one that works is gone, there is nothing to wait for. */
TEST(refused_connections_fail_where_none_works) {
  call_t first;
  call_t others[3];
  fixture_t f;

  mock_only_http1("over HTTP/2 they share the connection that works");
  fixture_open(&f);
  call_start(&f, &first, TNK__LANE_TRAIN, "GET", "/hold");
  mock_wait(f.mock, 1);
  mock_stop_listening(f.mock);
  for (int i = 0; i < 3; i++)
    call_start(&f, &others[i], TNK__LANE_TRAIN, "GET", "/ok");
  mock_turns(f.mock, 50);
  mock_reset(mock_request(f.mock, 0), NULL);
  for (int i = 0; i < 3; i++) {
    call_wait(&f, &others[i]);
    CHECK_INT(others[i].err, TNK_ECONN);
    CHECK_INT(others[i].sent, 0);
  }
  fixture_close(&f);
}

/* Over HTTP/2 submissions of training have connections of their own; those of
 * the others show that it is for their number that they are refused. */
TEST(refused_connections_wait_for_those_of_other_lanes) {
  tnk__http_request_t request;
  call_t poll;
  call_t step;
  fixture_t f;

  if (tnk__http2_library() == NULL)
    test_skip("built without nghttp2");
  CHECK_INT(setenv("TNK_TEST_HTTP", "2", 1), 0);
  fixture_open(&f);
  call_start(&f, &poll, TNK__LANE_POLL, "GET", "/hold");
  mock_wait(f.mock, 1);
  mock_stop_listening(f.mock);
  request = request_to(f.mock, TNK__LANE_TRAIN, "GET", "/ok");
  call_send(&f, &step, &request);
  for (int i = 0; i < 10; i++) {
    mock_turns(f.mock, 50);
    tnk__context_advance(&f.c.loop, 1000);
  }
  CHECK_INT(step.n_done, 0);
  CHECK_INT(f.c.n_warnings, 1);
  tnk__exchange_cancel(&poll.ex);
  tnk__exchange_cancel(&step.ex);
  fixture_close(&f);
}
