/* SPDX-License-Identifier: MIT */
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "server/http.h"
#include "support/test.h"

/* Answers in pieces, as the server of HTTP gives them to any handler, over both
 * versions. */

enum { MAX_GOT = 4 << 20, LARGE = 1 << 20 };

typedef struct {
  uv_loop_t loop;
  tnk__srv_t http;
  tnk__srv_req_t *req; /* in hand */
  int n_gone;
  int is_closed;
} rig_t;

/* A peer; over HTTP/2 `got` is the body of its one stream. */
typedef struct {
  rig_t *rig;
  uv_tcp_t tcp;
  uv_connect_t connect;
  nghttp2_session *session; /* NULL: HTTP/1.1 */
  char scratch[65536];
  char *got;
  size_t n_got;
  int is_connected;
  int is_whole; /* the answer is one piece */
  int is_ended; /* the stream */
  int is_closed;
} peer_t;

/* ---- The server ---- */

static void on_gone(tnk__srv_req_t *req, void *user) {
  rig_t *rig = user;

  CHECK(rig->req == req);
  rig->req = NULL;
  rig->n_gone++;
}

static void handle(tnk__srv_req_t *req, void *user) {
  ((rig_t *)user)->req = req;
  tnk__srv_req_park(req, on_gone, user);
}

static void rig_open(rig_t *rig) {
  const tnk__srv_config_t config = {.host = "127.0.0.1",
                                    .max_body = 1024,
                                    .max_conns = 8,
                                    .alloc = test_allocator(),
                                    .handle = handle,
                                    .user = rig};

  memset(rig, 0, sizeof(*rig));
  CHECK_INT(uv_loop_init(&rig->loop), 0);
  CHECK_INT(tnk__srv_open(&rig->http, &rig->loop, &config), 0);
}

static void on_http_closed(void *user) {
  ((rig_t *)user)->is_closed = 1;
}

static void rig_close(rig_t *rig) {
  tnk__srv_close(&rig->http, on_http_closed, rig);
  CHECK_INT(uv_run(&rig->loop, UV_RUN_DEFAULT), 0);
  CHECK(rig->is_closed);
  CHECK_INT(uv_loop_close(&rig->loop), 0);
}

static tnk__srv_req_t *until_asked(rig_t *rig) {
  while (rig->req == NULL)
    uv_run(&rig->loop, UV_RUN_ONCE);
  return rig->req;
}

static void open_events(rig_t *rig) {
  tnk__srv_req_open(until_asked(rig), 200, "text/event-stream", "X-A: b\r\n");
}

static void finish(rig_t *rig, size_t n) {
  tnk__srv_req_t *req = rig->req;
  uint8_t *body = n > 0 ? tnk__malloc(test_allocator(), n) : NULL;

  if (n > 0)
    memset(body, 'z', n);
  rig->req = NULL;
  tnk__srv_req_finish(req, body, n);
}

/* ---- The peer ---- */

static void on_peer_closed(uv_handle_t *handle) {
  ((peer_t *)handle->data)->is_closed = 1;
}

static void peer_close(peer_t *peer) {
  if (!uv_is_closing((uv_handle_t *)&peer->tcp))
    uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}

static void take(peer_t *peer, const void *data, size_t n) {
  CHECK(peer->n_got + n < MAX_GOT);
  memcpy(peer->got + peer->n_got, data, n);
  peer->n_got += n;
  peer->got[peer->n_got] = '\0';
}

static void send_bytes(peer_t *peer, const void *data, size_t n) {
  uv_buf_t buf = uv_buf_init((char *)(uintptr_t)data, (unsigned)n);

  CHECK_INT(uv_try_write((uv_stream_t *)&peer->tcp, &buf, 1), (int)n);
}

static void send_frames(peer_t *peer) {
  const uint8_t *data;
  ssize_t n;

  while ((n = nghttp2_session_mem_send(peer->session, &data)) > 0)
    send_bytes(peer, data, (size_t)n);
  CHECK_INT(n, 0);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  peer_t *peer = handle->data;

  (void)hint;
  *buf = uv_buf_init(peer->scratch, sizeof(peer->scratch));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  peer_t *peer = stream->data;

  if (n < 0) {
    peer_close(peer);
  } else if (peer->session == NULL) {
    take(peer, buf->base, (size_t)n);
  } else {
    CHECK_INT(nghttp2_session_mem_recv(peer->session, (uint8_t *)buf->base,
                                       (size_t)n),
              n);
    send_frames(peer);
  }
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t n, void *user) {
  (void)session;
  (void)flags;
  (void)id;
  take(user, data, n);
  return 0;
}

static int on_end(nghttp2_session *session, int32_t id, uint32_t code,
                  void *user) {
  (void)session;
  (void)id;
  ((peer_t *)user)->is_ended = code == NGHTTP2_NO_ERROR ? 1 : -1;
  return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t n_name, const uint8_t *value,
                     size_t n_value, uint8_t flags, void *user) {
  (void)session;
  (void)frame;
  (void)flags;
  (void)value;
  (void)n_value;
  CHECK(((peer_t *)user)->is_whole || n_name != 14 ||
        memcmp(name, "content-length", 14) != 0);
  return 0;
}

static void on_connect(uv_connect_t *connect, int status) {
  peer_t *peer = connect->data;

  CHECK_INT(status, 0);
  peer->is_connected = 1;
  CHECK_INT(uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read), 0);
  if (peer->session != NULL)
    send_frames(peer);
}

/* The window is the largest body that the peer takes at first. */
static void speak_h2(peer_t *peer, uint32_t window) {
  const nghttp2_settings_entry settings = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                           window};
#define NV(name, value)                                                        \
  {                                                                            \
    (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value),               \
        sizeof(name) - 1, sizeof(value) - 1, NGHTTP2_NV_FLAG_NONE              \
  }
  const nghttp2_nv head[] = {NV(":method", "GET"), NV(":scheme", "http"),
                             NV(":path", "/"), NV(":authority", "a")};
#undef NV
  nghttp2_session_callbacks *callbacks;

  CHECK_INT(nghttp2_session_callbacks_new(&callbacks), 0);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_end);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
  CHECK_INT(nghttp2_session_client_new(&peer->session, callbacks, peer), 0);
  nghttp2_session_callbacks_del(callbacks);
  CHECK_INT(nghttp2_submit_settings(peer->session, 0, &settings, 1), 0);
  CHECK_INT(nghttp2_submit_request(peer->session, NULL, head, 4, NULL, NULL),
            1);
}

/* `window` 0: HTTP/1.1. */
static peer_t *peer_open(rig_t *rig, uint32_t window) {
  peer_t *peer = calloc(1, sizeof(*peer));
  struct sockaddr_in to;

  CHECK(peer != NULL);
  peer->rig = rig;
  peer->got = calloc(1, MAX_GOT);
  CHECK(peer->got != NULL);
  CHECK_INT(uv_tcp_init(&rig->loop, &peer->tcp), 0);
  peer->tcp.data = peer->connect.data = peer;
  if (window > 0)
    speak_h2(peer, window);
  uv_ip4_addr("127.0.0.1", rig->http.port, &to);
  CHECK_INT(uv_tcp_connect(&peer->connect, &peer->tcp, (struct sockaddr *)&to,
                           on_connect),
            0);
  return peer;
}

static void peer_free(peer_t *peer) {
  peer_close(peer);
  while (!peer->is_closed)
    uv_run(&peer->rig->loop, UV_RUN_ONCE);
  nghttp2_session_del(peer->session);
  free(peer->got);
  free(peer);
}

static void until_got(peer_t *peer, const char *text) {
  while (strstr(peer->got, text) == NULL) {
    CHECK(!peer->is_closed);
    uv_run(&peer->rig->loop, UV_RUN_ONCE);
  }
}

static void connected(peer_t *peer) {
  while (!peer->is_connected)
    uv_run(&peer->rig->loop, UV_RUN_ONCE);
}

static void ask_h1(peer_t *peer, const char *version, const char *more) {
  char text[256];
  int n = snprintf(text, sizeof(text), "GET / HTTP/%s\r\nHost: a\r\n%s\r\n",
                   version, more);

  connected(peer);
  send_bytes(peer, text, (size_t)n);
}

/* ---- HTTP/1.1 ---- */

/* How much the chunks behind the head hold; -1: they do not end. */
static long n_chunked(const peer_t *peer) {
  const char *at = strstr(peer->got, "\r\n\r\n");
  long sum = 0;

  for (at += 4;;) {
    char *end;
    long n = strtol(at, &end, 16);

    if (end == at || memcmp(end, "\r\n", 2) != 0)
      return -1;
    at = end + 2 + n;
    if (at + 2 > peer->got + peer->n_got || memcmp(at, "\r\n", 2) != 0)
      return -1;
    at += 2;
    sum += n;
    if (n == 0)
      return at == peer->got + peer->n_got ? sum : -1;
  }
}

TEST(pieces_are_chunks_and_the_connection_goes_on) {
  static const size_t sizes[] = {0, 5, LARGE};
  peer_t *peer;
  rig_t rig;

  rig_open(&rig);
  peer = peer_open(&rig, 0);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
    peer->n_got = 0;
    peer->got[0] = 0;
    ask_h1(peer, "1.1", "");
    open_events(&rig);
    until_got(peer, "\r\n\r\n");
    CHECK(strstr(peer->got, "X-A: b\r\n") != NULL);
    CHECK(strstr(peer->got, "Content-Length") == NULL);
    tnk__srv_req_keep(rig.req, ": 1\n\n");
    until_got(peer, ": 1\n\n\r\n");
    finish(&rig, sizes[i]);
    until_got(peer, "\r\n0\r\n\r\n");
    CHECK_INT(n_chunked(peer), (long)sizes[i] + 5);
  }
  CHECK_INT(rig.http.n_accepted, 1);
  peer_free(peer);
  rig_close(&rig);
}

TEST(who_speaks_http_1_0_gets_no_chunks) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig);
  peer = peer_open(&rig, 0);
  ask_h1(peer, "1.0", "Connection: keep-alive\r\n");
  open_events(&rig);
  tnk__srv_req_keep(rig.req, ": 1\n\n"); /* left out: the head is on its way */
  finish(&rig, 3);
  while (!peer->is_closed)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK(strstr(peer->got, "Transfer-Encoding") == NULL);
  CHECK(strstr(peer->got, "Connection: close\r\n") != NULL);
  CHECK_STR(strstr(peer->got, "\r\n\r\n"), "\r\n\r\nzzz");
  peer_free(peer);
  rig_close(&rig);
}

TEST(who_leaves_between_pieces_is_told_of) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig);
  for (uint32_t window = 0; window <= 1000; window += 1000) {
    peer = peer_open(&rig, window);
    if (window == 0)
      ask_h1(peer, "1.1", "");
    rig.n_gone = 0;
    open_events(&rig);
    tnk__srv_req_keep(rig.req, ": 1\n\n");
    peer_free(peer);
    while (rig.n_gone == 0)
      uv_run(&rig.loop, UV_RUN_ONCE);
  }
  rig_close(&rig);
}

TEST(closing_drops_what_has_begun) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig);
  for (uint32_t window = 0; window <= 1000; window += 1000) {
    peer = peer_open(&rig, window);
    if (window == 0)
      ask_h1(peer, "1.1", "");
    open_events(&rig);
    tnk__srv_req_drop(rig.req);
    rig.req = NULL;
    while (!peer->is_closed && peer->is_ended == 0)
      uv_run(&rig.loop, UV_RUN_ONCE);
    CHECK(peer->is_ended != 1);
    peer_free(peer);
  }
  rig_close(&rig);
}

/* ---- HTTP/2 ---- */

TEST(pieces_are_frames) {
  static const size_t sizes[] = {0, 5, LARGE};
  peer_t *peer;
  rig_t rig;

  rig_open(&rig);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
    peer = peer_open(&rig, 65535);
    open_events(&rig);
    tnk__srv_req_keep(rig.req, ": 1\n\n");
    until_got(peer, ": 1\n\n");
    tnk__srv_req_keep(rig.req, ": 2\n\n");
    until_got(peer, ": 2\n\n");
    finish(&rig, sizes[i]);
    while (peer->is_ended == 0)
      uv_run(&rig.loop, UV_RUN_ONCE);
    CHECK_INT(peer->is_ended, 1);
    CHECK_INT(peer->n_got, 10 + sizes[i]);
    peer_free(peer);
  }
  rig_close(&rig);
}

/* What the peer has no room for is not piled up: the second piece is left out,
 * the rest of the first one is not. */
TEST(who_reads_slowly_costs_no_memory) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig);
  peer = peer_open(&rig, 4);
  open_events(&rig);
  tnk__srv_req_keep(rig.req, "abcdef");
  until_got(peer, "abcd");
  tnk__srv_req_keep(rig.req, "ghijkl");
  finish(&rig, 3);
  for (int i = 0; i < 10; i++)
    uv_run(&rig.loop, UV_RUN_NOWAIT);
  CHECK_STR(peer->got, "abcd");
  CHECK_INT(nghttp2_session_set_local_window_size(peer->session, 0, 1, 1000),
            0);
  send_frames(peer);
  while (peer->is_ended == 0)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK_STR(peer->got, "abcdefzzz");
  peer_free(peer);
  rig_close(&rig);
}

/* ---- Draining ---- */

static int is_refused(const rig_t *rig) {
  struct sockaddr_in to;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  int result;

  CHECK(fd >= 0);
  uv_ip4_addr("127.0.0.1", rig->http.port, &to);
  result = connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0;
  close(fd);
  return result;
}

/* Requests at hand are answered whole, in one piece or several, and then their
 * connections close. Idle connections close at once, others are refused. */
TEST(draining_answers_what_is_at_hand) {
  enum { WHOLE, BEGUN_BEFORE, BEGUN_BEHIND, N_WAYS };
  peer_t *idle;
  peer_t *peer;
  rig_t rig;

  for (int i = 0; i < 2 * N_WAYS; i++) {
    const int way = i % N_WAYS;
    const uint32_t window = i < N_WAYS ? 0 : 1000;

    rig_open(&rig);
    idle = peer_open(&rig, 0);
    connected(idle);
    peer = peer_open(&rig, window);
    peer->is_whole = way == WHOLE;
    if (window == 0)
      ask_h1(peer, "1.1", "");
    if (way == BEGUN_BEFORE) {
      open_events(&rig);
      tnk__srv_req_keep(rig.req, ": 1\n\n");
      until_got(peer, window == 0 ? "\r\n\r\n" : ": 1\n\n");
    }
    (void)until_asked(&rig);
    tnk__srv_drain(&rig.http);
    tnk__srv_drain(&rig.http);
    while (!idle->is_closed)
      uv_run(&rig.loop, UV_RUN_ONCE);
    CHECK(!peer->is_closed);
    CHECK_INT(rig.n_gone, 0);
    CHECK(is_refused(&rig));
    if (window > 0)
      while (nghttp2_session_check_request_allowed(peer->session))
        uv_run(&rig.loop, UV_RUN_ONCE);
    if (way == BEGUN_BEHIND)
      open_events(&rig);
    if (way == WHOLE)
      tnk__srv_req_reply_text(rig.req, 200, "text/plain", "zzz");
    else
      finish(&rig, 3);
    while (!peer->is_closed)
      uv_run(&rig.loop, UV_RUN_ONCE);
    CHECK(strstr(peer->got, "zzz") != NULL);
    CHECK_INT(peer->is_ended, window > 0);
    CHECK(window > 0 || way == BEGUN_BEFORE ||
          strstr(peer->got, "Connection: close\r\n") != NULL);
    CHECK(window > 0 || way == WHOLE || n_chunked(peer) >= 3);
    while (rig.http.n_conns > 0)
      uv_run(&rig.loop, UV_RUN_ONCE);
    peer_free(idle);
    peer_free(peer);
    rig_close(&rig);
  }
}
