/* SPDX-License-Identifier: MIT */
/* The mock server itself, against a bare socket. */
#include <string.h>
#include <uv.h>

#include "loop/fixture.h"
#include "support/mock_server.h"
#include "support/test.h"

typedef struct {
  uv_tcp_t tcp;
  uv_connect_t connect;
  uv_write_t write;
  char in[4096];
  size_t n_in;
  int ended; /* 1: the stream ended, 2: by a reset */
  const char *out;
} peer_t;

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
  peer_t *peer = handle->data;

  (void)size;
  *buf = uv_buf_init(peer->in + peer->n_in,
                     (unsigned)(sizeof(peer->in) - 1 - peer->n_in));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  peer_t *peer = stream->data;

  (void)buf;
  if (n > 0)
    peer->n_in += (size_t)n;
  if (n < 0)
    peer->ended = n == UV_EOF ? 1 : 2;
  peer->in[peer->n_in] = '\0';
}

static void send_text(peer_t *peer, const char *text) {
  uv_buf_t buf = uv_buf_init((char *)(uintptr_t)text, (unsigned)strlen(text));

  peer->n_in = 0;
  CHECK_INT(uv_write(&peer->write, (uv_stream_t *)&peer->tcp, &buf, 1, NULL),
            0);
}

static void on_connect(uv_connect_t *connect, int status) {
  peer_t *peer = connect->handle->data;

  CHECK_INT(status, 0);
  CHECK_INT(uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read), 0);
  send_text(peer, peer->out);
}

static void peer_open(peer_t *peer, uv_loop_t *uv, mock_server_t *mock,
                      const char *text) {
  struct sockaddr_in address;

  memset(peer, 0, sizeof(*peer));
  peer->out = text;
  CHECK_INT(uv_tcp_init(uv, &peer->tcp), 0);
  peer->tcp.data = peer;
  CHECK_INT(uv_ip4_addr("127.0.0.1", mock_port(mock), &address), 0);
  CHECK_INT(uv_tcp_connect(&peer->connect, &peer->tcp,
                           (const struct sockaddr *)&address, on_connect),
            0);
}

static void wait_text(peer_t *peer, uv_loop_t *uv, const char *text) {
  while (strstr(peer->in, text) == NULL)
    uv_run(uv, UV_RUN_ONCE);
}

static void wait_end(peer_t *peer, uv_loop_t *uv) {
  while (!peer->ended)
    uv_run(uv, UV_RUN_ONCE);
}

static void finish(context_t *c, peer_t *peer, mock_server_t *mock) {
  uv_close((uv_handle_t *)&peer->tcp, NULL);
  mock_close(mock);
  context_close(c);
}

TEST(rules_and_records) {
  context_t c;
  peer_t peer;
  mock_server_t *mock;
  const mock_request_t *request;

  context_open(&c);
  mock = mock_open(&c.uv);
  mock_json(mock, "POST", "/a", 200, "{\"n\":1}");
  mock_json_once(mock, NULL, "/a", 429, "{}");
  peer_open(&peer, &c.uv, mock,
            "POST /a?q=1 HTTP/1.1\r\nX-One: 1\r\nContent-Length: 4\r\n\r\n"
            "body");
  wait_text(&peer, &c.uv, "\r\n\r\n{}");
  CHECK(strstr(peer.in, "HTTP/1.1 429 ") == peer.in);
  send_text(&peer, "POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  wait_text(&peer, &c.uv, "{\"n\":1}");
  send_text(&peer, "GET /none HTTP/1.1\r\n\r\n");
  wait_text(&peer, &c.uv, "HTTP/1.1 404 ");
  CHECK_INT(mock_n_requests(mock), 3);
  CHECK_INT(mock_n_connections(mock), 1);
  CHECK_INT(mock_count(mock, "POST", "/a"), 2);
  request = mock_find(mock, "POST", "/a", 0);
  CHECK_STR(request->target, "/a?q=1");
  CHECK_STR(request->path, "/a");
  CHECK_STR(mock_header(request, "x-one"), "1");
  CHECK(mock_header(request, "x-two") == NULL);
  CHECK_MEM(request->body, request->body_len, "body", 4);
  CHECK_INT(mock_request(mock, 2)->body_len, 0);
  CHECK(mock_find(mock, "POST", "/a", 2) == NULL);
  finish(&c, &peer, mock);
}

TEST(held_delayed_and_dripped) {
  context_t c;
  peer_t peer;
  mock_server_t *mock;

  context_open(&c);
  tnk__context_fake_clock(&c.loop, 1000);
  mock = mock_open(&c.uv);
  mock_set_clock(mock, &c.loop);
  mock_set_drip(mock, 1);
  mock_on(mock, NULL, "/h", mock_hold, NULL);
  peer_open(&peer, &c.uv, mock, "GET /h HTTP/1.1\r\n\r\n");
  mock_wait(mock, 1);
  CHECK_INT(mock_n_held(mock), 1);
  CHECK_INT(mock_release(mock, 200, "[1]"), 1);
  CHECK_INT(mock_n_held(mock), 0);
  wait_text(&peer, &c.uv, "[1]");
  send_text(&peer, "GET /h HTTP/1.1\r\n\r\n");
  mock_wait(mock, 2);
  mock_reply_json_after(mock_request(mock, 1), 500, 200, "[2]");
  tnk__context_advance(&c.loop, 499);
  CHECK(!mock_request(mock, 1)->is_answered);
  tnk__context_advance(&c.loop, 1);
  CHECK(mock_request(mock, 1)->is_answered);
  wait_text(&peer, &c.uv, "[2]");
  finish(&c, &peer, mock);
}

static void cut_in_the_body(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_cut(request, 200, "X: y\r\n", "0123456789", 10, 50);
}

TEST(cut_and_reset) {
  context_t c;
  peer_t peer;
  mock_server_t *mock;

  context_open(&c);
  mock = mock_open(&c.uv);
  mock_on(mock, NULL, "/cut", cut_in_the_body, NULL);
  mock_on(mock, NULL, "/reset", mock_reset, NULL);
  peer_open(&peer, &c.uv, mock, "GET /cut HTTP/1.1\r\n\r\n");
  wait_end(&peer, &c.uv);
  CHECK_INT(peer.ended, 1);
  CHECK_INT(peer.n_in, 50);
  uv_close((uv_handle_t *)&peer.tcp, NULL);
  uv_run(&c.uv, UV_RUN_NOWAIT);
  peer_open(&peer, &c.uv, mock, "GET /reset HTTP/1.1\r\n\r\n");
  wait_end(&peer, &c.uv);
  CHECK_INT(peer.ended, 2);
  CHECK_INT(mock_n_connections(mock), 2);
  CHECK_INT(mock_n_open(mock), 0);
  CHECK(mock_request(mock, 1)->is_gone);
  finish(&c, &peer, mock);
}

static void answer_early(mock_request_t *request, void *user) {
  int *n = user;

  CHECK(!request->is_complete);
  (*n)++;
  mock_reply(request, 413, "Connection: close\r\n", "no", 2);
}

TEST(answer_before_the_body) {
  context_t c;
  peer_t peer;
  mock_server_t *mock;
  int n = 0;

  context_open(&c);
  mock = mock_open(&c.uv);
  mock_on_head(mock, answer_early, &n);
  peer_open(&peer, &c.uv, mock,
            "POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
  wait_end(&peer, &c.uv);
  CHECK_INT(n, 1);
  CHECK(strstr(peer.in, "HTTP/1.1 413 ") == peer.in);
  CHECK(!mock_request(mock, 0)->is_complete);
  CHECK_MEM(mock_request(mock, 0)->body, mock_request(mock, 0)->body_len, "abc",
            3);
  finish(&c, &peer, mock);
}
