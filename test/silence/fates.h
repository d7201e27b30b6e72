/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SILENCE_FATES_H
#define TNK_TEST_SILENCE_FATES_H

#include "silence/operations.h"

/*
 * What the peer does, and at which point of a connection's life. From its stage
 * on a fate holds for every connection and every request, until the world is
 * healed.
 */

/* What a fate is about; else it is impossible. */
enum {
  OF_TLS = 1,
  OF_TUNNEL = 2, /* a proxy that makes tunnels */
  OF_HTTP1 = 4,
  OF_HTTP2 = 8,
  OF_POLLS = 16, /* operations that poll */
  OF_HTTP2_ALONE = 32
};

/* How an operation may end that was not accepted yet. */
typedef enum { ENDS_ANYHOW = 0, MUST_FAIL, MUST_SUCCEED } verdict_t;

typedef struct fate {
  const char *point;
  const char *behavior;
  int of;
  verdict_t verdict;
  /* Of connections: what is done once, when its turn has come. */
  void (*arm)(world_t *world, const struct fate *fate);
  /* Of requests: in place of the answer; or NULL. */
  void (*act)(world_t *world, mock_request_t *request);
  /* Every so often while it holds; or NULL. */
  void (*tick)(world_t *world);
  uint64_t every_ms;
  int n; /* of its kind: a status, a count of bytes, a setting ... */
  uint32_t value;
  int is_slow; /* something moves, so that only the rate ends it */
} fate_t;

/* ---- Connections ---- */

static void drop_connections(world_t *world, int reset) {
  mock_close_all(world->script.mock, reset);
}

static void arm_refuse(world_t *world, const fate_t *fate) {
  (void)fate;
  test_server_stop_listening(outer_of(world));
  drop_connections(world, 1);
}

static int new_socket(uint16_t port, struct sockaddr_in *address) {
  const int yes = 1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  CHECK(fd >= 0);
  CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
  CHECK_INT(uv_ip4_addr("127.0.0.1", port, address), 0);
  return fd;
}

/* A listener whose queue is full: the system drops the SYN of whoever comes. */
static void arm_drop_syn(world_t *world, const fate_t *fate) {
  test_server_t *server = outer_of(world);
  const size_t n = sizeof(world->blocked) / sizeof(world->blocked[0]);
  struct sockaddr_in address;

  (void)fate;
  test_server_stop_listening(server);
  drop_connections(world, 1);
  world->blocker = new_socket((uint16_t)server->port, &address);
  CHECK_INT(bind(world->blocker, (struct sockaddr *)&address, sizeof(address)),
            0);
  CHECK_INT(listen(world->blocker, 0), 0);
  for (size_t i = 0; i < n; i++) {
    struct sockaddr_in to;
    world->blocked[i] = new_socket((uint16_t)server->port, &to);
    (void)connect(world->blocked[i], (struct sockaddr *)&to, sizeof(to));
  }
}

static const test_end_t ends_of[] = {TEST_IS_SILENT, TEST_ENDS, TEST_RESETS};

/* The outer server's connections end so right after they were accepted. */
static void arm_accepted(world_t *world, const fate_t *fate) {
  outer_of(world)->options.end_after = 0;
  outer_of(world)->options.end = ends_of[fate->n];
  drop_connections(world, 1);
}

/* The same inside of the server's part of the first handshake, which is with
 * the proxy where that has one. */
static void arm_handshake(world_t *world, const fate_t *fate) {
  test_server_t *server =
      world->has_cover ? &world->cover.server : &world->front.server;

  server->options.end_after = fate->value;
  server->options.end = ends_of[fate->n];
  drop_connections(world, 1);
}

/* The proxy's answer to whoever wants a tunnel. */
static void arm_tunnel(world_t *world, const fate_t *fate) {
  static const char *const http[] = {"",
                                     "",
                                     "",
                                     "HTTP/1.1 200",
                                     "HTTP/1.1 403 No\r\n\r\n",
                                     "HTTP/1.1 502 Bad\r\n\r\n",
                                     "HTTP/1.1 407 Who\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\n\r\n",
                                     "HTTP/1.1 100 Go\r\n\r\n"};
  static const int cuts[] = {0, 1, 2, 0, 0, 0, 0, 0, 0};

  world->proxy.answer = http[fate->n];
  world->proxy.cuts = cuts[fate->n];
  drop_connections(world, 1);
}

/* The preface is read and not answered. */
static void arm_mute_http2(world_t *world, const fate_t *fate) {
  (void)fate;
  drop_connections(world, 1);
  mock_set_silent(world->script.mock, 1);
}

static void arm_setting(world_t *world, const fate_t *fate) {
  drop_connections(world, 1);
  mock_setting(world->script.mock, (uint32_t)fate->n, fate->value);
}

/* On the connections that are open. */
static void arm_new_setting(world_t *world, const fate_t *fate) {
  mock_setting(world->script.mock, (uint32_t)fate->n, fate->value);
}

static void arm_no_windows(world_t *world, const fate_t *fate) {
  drop_connections(world, 1);
  mock_setting(world->script.mock, MOCK_WINDOW, fate->value);
  mock_set_windows(world->script.mock, 0);
}

static void arm_goaway(world_t *world, const fate_t *fate) {
  mock_goaway(world->script.mock, MOCK_ALL, fate->n, fate->value);
}

static void arm_deaf(world_t *world, const fate_t *fate) {
  (void)fate;
  drop_connections(world, 1);
  mock_set_reading(world->script.mock, 0);
  mock_set_pongs(world->script.mock, 0);
}

/* It closes what it has no request on. */
static void tick_close_idle(world_t *world) {
  mock_close_idle(world->script.mock, world->fate->n);
}

static void arm_headers(world_t *world, const fate_t *fate) {
  static const char *const lines[] = {
      "Keep-Alive: timeout=0\r\n", "Keep-Alive: timeout=0, max=0\r\n",
      "Keep-Alive: timeout=99999999999999999999\r\n", "Connection: close\r\n",
      "Alt-Svc: h2=\":1\"; ma=4294967295\r\n"};

  mock_set_headers(world->script.mock, lines[fate->n]);
}

/* ---- Requests ---- */

static void act_hold(world_t *world, mock_request_t *request) {
  (void)world;
  (void)request;
}

/* Close the connection, also where it has other streams. */
static void end_conn(world_t *world, mock_request_t *request, int reset) {
  if (request->stream != NULL)
    mock_close_connection(world->script.mock, (int)request->connection, reset);
  else if (reset)
    mock_reset(request, NULL);
  else
    mock_cut(request, NULL);
}

static void act_fin(world_t *world, mock_request_t *request) {
  end_conn(world, request, 0);
}

static void act_rst(world_t *world, mock_request_t *request) {
  end_conn(world, request, 1);
}

static void act_rst_stream(world_t *world, mock_request_t *request) {
  mock_rst(request, (uint32_t)world->fate->n);
}

static void act_goaway(world_t *world, mock_request_t *request) {
  mock_goaway(world->script.mock, (int)request->connection, world->fate->n,
              world->fate->value);
}

#define JSON "Content-Type: application/json\r\n"

static void act_status(world_t *world, mock_request_t *request) {
  mock_reply(request, world->fate->n, JSON, "{}", 2);
}

static void act_redirect(world_t *world, mock_request_t *request) {
  char headers[600];

  snprintf(headers, sizeof(headers), "Location: %s%s\r\n", world->url,
           request->target[0] == '/' ? request->target : "/x");
  mock_reply(request, world->fate->n, headers, NULL, 0);
}

static void act_body(world_t *world, mock_request_t *request) {
  static const char *const bodies[] = {
      "",         "{}",   "[]",  "null", "<html>", "{\"request_id\":7}",
      "\xff\xfe", "[[[[", "{\"", "1e999"};
  const char *body = bodies[world->fate->n];

  mock_reply(request, 200, JSON, body, strlen(body));
}

/* Waits that nobody can want. */
static void act_later(world_t *world, mock_request_t *request) {
  static const char *const headers[] = {
      "Retry-After: 3155760000\r\n",
      "Retry-After: 99999999999999999999999\r\n",
      "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
      "Retry-After-Ms: 3155760000000\r\n",
      "Retry-After: -1\r\n",
      "Retry-After: 0\r\n",
      "Retry-After: 60\r\n"};

  mock_reply(request, world->fate->n, headers[world->fate->value], "{}", 2);
}

/* The head, and perhaps the begin of the body. */
static void begin(mock_request_t *request, size_t n_body) {
  mock_begin(request, 200, JSON "Content-Length: 1000\r\n");
  if (n_body > 0)
    mock_piece(request, "{\"a\":\"................................", n_body);
}

static void act_head(world_t *world, mock_request_t *request) {
  (void)world;
  begin(request, 0);
}

static void act_half(world_t *world, mock_request_t *request) {
  (void)world;
  begin(request, 20);
}

/* The ends come with the next tick, when the bytes are out. */
static void tick_end(world_t *world) {
  mock_close_all(world->script.mock, world->fate->n);
}

static void act_short(world_t *world, mock_request_t *request) {
  (void)world;
  mock_reply_cut(request, 200, JSON "Content-Length: 1000\r\n",
                 "{\"a\":\"................................", 30, 100);
}

static void act_short_end(world_t *world, mock_request_t *request) {
  (void)world;
  begin(request, 20);
  mock_end(request, 1);
}

static void act_huge(world_t *world, mock_request_t *request) {
  (void)world;
  mock_begin(request, 200, JSON "Content-Length: 10000000000\r\n");
}

static void act_nonsense(world_t *world, mock_request_t *request) {
  (void)world;
  mock_nonsense(request);
}

/* Calls `act` for each request that was struck and has no answer yet. */
static void each_held(world_t *world, void (*act)(mock_request_t *request)) {
  mock_server_t *mock = world->script.mock;

  for (size_t i = world->first_struck; i < mock_n_requests(mock); i++) {
    mock_request_t *request = mock_request(mock, i);
    if (!request->is_answered && !request->is_gone && request->is_complete)
      act(request);
  }
}

static void inform(mock_request_t *request) {
  mock_inform(request, 103, "Link: </a>\r\n");
}

static void tick_inform(world_t *world) {
  each_held(world, inform);
}

static void drip(mock_request_t *request) {
  mock_piece(request, "x", 1);
}

static void tick_drip(world_t *world) {
  each_held(world, drip);
}

static void act_begin_drip(world_t *world, mock_request_t *request) {
  (void)world;
  mock_begin(request, 200, JSON "Content-Length: 1000000\r\n");
}

/* A stream of events that never says anything. */
static void act_begin_events(world_t *world, mock_request_t *request) {
  (void)world;
  mock_begin(request, 200, "Content-Type: text/event-stream\r\n");
}

static void comment(mock_request_t *request) {
  mock_piece(request, ": still here\n\n", 14);
}

static void tick_comment(world_t *world) {
  each_held(world, comment);
}

/* The head of HTTP/1.1, a byte at a time. */
static void act_begin_head(world_t *world, mock_request_t *request) {
  (void)world;
  mock_raw(request, "HTTP/1.1 200 OK\r\nX-Long: ", 25);
}

static void drip_head(mock_request_t *request) {
  mock_raw(request, "a", 1);
}

static void tick_head(world_t *world) {
  each_held(world, drip_head);
}

static int is_poll_path(const char *path) {
  return strstr(path, "/retrieve_future") != NULL;
}

/* What was accepted is never ready. */
static void act_pending(world_t *world, mock_request_t *request) {
  static const char *const answers[] = {
      "{\"type\":\"try_again\",\"request_id\":\"r\",\"queue_state\":"
      "\"active\"}",
      "{\"type\":\"try_again\",\"request_id\":\"r\",\"queue_state\":"
      "\"paused_rate_limit\",\"retry_after_ms\":4000000000}"};

  if (!is_poll_path(request->path))
    mock_pass(request);
  else if (strstr(request->path, "/retrieve_futures") != NULL)
    mock_reply_json(request, 200, "{\"completions\":[],\"cursor\":0}");
  else
    mock_reply_json(request, 200, answers[world->fate->n]);
}

#define CONNECTION(point, behavior, of, verdict, arm, n, value)                \
  { point, behavior, of, verdict, arm, NULL, NULL, 0, n, value, 0 }
#define REQUEST(point, behavior, of, verdict, act, n, value)                   \
  { point, behavior, of, verdict, NULL, act, NULL, 0, n, value, 0 }
#define TICKING(point, behavior, of, verdict, act, tick, every, n, slow)       \
  { point, behavior, of, verdict, NULL, act, tick, every, n, 0, slow }
#define SETTING(name, id)                                                      \
  CONNECTION("SETTINGS", name " 0", OF_HTTP2, ENDS_ANYHOW, arm_setting, id,    \
             0),                                                               \
      CONNECTION("SETTINGS", name " 1", OF_HTTP2, ENDS_ANYHOW, arm_setting,    \
                 id, 1),                                                       \
      CONNECTION("SETTINGS", name " 2^31-1", OF_HTTP2, ENDS_ANYHOW,            \
                 arm_setting, id, 0x7fffffff),                                 \
      CONNECTION("new SETTINGS", name " 0", OF_HTTP2, ENDS_ANYHOW,             \
                 arm_new_setting, id, 0),                                      \
      CONNECTION("new SETTINGS", name " 1", OF_HTTP2, ENDS_ANYHOW,             \
                 arm_new_setting, id, 1)
#define HANDSHAKE(bytes)                                                       \
  CONNECTION("handshake", "silence after " #bytes, OF_TLS, MUST_FAIL,          \
             arm_handshake, 0, bytes),                                         \
      CONNECTION("handshake", "FIN after " #bytes, OF_TLS, MUST_FAIL,          \
                 arm_handshake, 1, bytes),                                     \
      CONNECTION("handshake", "RST after " #bytes, OF_TLS, MUST_FAIL,          \
                 arm_handshake, 2, bytes)
#define STATUS(status, verdict)                                                \
  REQUEST("response", #status " forever", 0, verdict, act_status, status, 0)
#define LATER(status, n, name)                                                 \
  REQUEST("response", #status " with " name, 0, ENDS_ANYHOW, act_later,        \
          status, n)
#define BODY(n, name)                                                          \
  REQUEST("response", "body " name, 0, ENDS_ANYHOW, act_body, n, 0)
#define RST_STREAM(code)                                                       \
  REQUEST("before the head", "RST_STREAM " #code, OF_HTTP2, ENDS_ANYHOW,       \
          act_rst_stream, MOCK_##code, 0)

static const fate_t fates[] = {
    CONNECTION("connect", "refused", 0, MUST_FAIL, arm_refuse, 0, 0),
    CONNECTION("connect", "silence", 0, MUST_FAIL, arm_drop_syn, 0, 0),
    CONNECTION("accepted", "silence", 0, MUST_FAIL, arm_accepted, 0, 0),
    CONNECTION("accepted", "FIN", 0, MUST_FAIL, arm_accepted, 1, 0),
    CONNECTION("accepted", "RST", 0, MUST_FAIL, arm_accepted, 2, 0),
    CONNECTION("accepted", "never read", 0, MUST_FAIL, arm_deaf, 0, 0),
    CONNECTION("tunnel", "silence", OF_TUNNEL, MUST_FAIL, arm_tunnel, 0, 0),
    CONNECTION("tunnel", "FIN", OF_TUNNEL, MUST_FAIL, arm_tunnel, 1, 0),
    CONNECTION("tunnel", "RST", OF_TUNNEL, MUST_FAIL, arm_tunnel, 2, 0),
    CONNECTION("tunnel", "half an answer", OF_TUNNEL, MUST_FAIL, arm_tunnel, 3,
               0),
    CONNECTION("tunnel", "403", OF_TUNNEL, MUST_FAIL, arm_tunnel, 4, 0),
    CONNECTION("tunnel", "502", OF_TUNNEL, MUST_FAIL, arm_tunnel, 5, 0),
    CONNECTION("tunnel", "407", OF_TUNNEL, MUST_FAIL, arm_tunnel, 6, 0),
    CONNECTION("tunnel", "made, and silence", OF_TUNNEL, MUST_FAIL, arm_tunnel,
               7, 0),
    CONNECTION("tunnel", "100 and silence", OF_TUNNEL, MUST_FAIL, arm_tunnel, 8,
               0),
    HANDSHAKE(1),
    HANDSHAKE(5),
    HANDSHAKE(100),
    CONNECTION("preface", "silence", OF_HTTP2, ENDS_ANYHOW, arm_mute_http2, 0,
               0),
    SETTING("HEADER_TABLE_SIZE", MOCK_TABLE_SIZE),
    SETTING("MAX_CONCURRENT_STREAMS", MOCK_MAX_STREAMS),
    SETTING("INITIAL_WINDOW_SIZE", MOCK_WINDOW),
    SETTING("MAX_HEADER_LIST_SIZE", MOCK_MAX_HEAD),
    CONNECTION("SETTINGS", "ENABLE_PUSH 0", OF_HTTP2, MUST_SUCCEED, arm_setting,
               MOCK_PUSH, 0),
    CONNECTION("SETTINGS", "MAX_FRAME_SIZE 16384", OF_HTTP2, MUST_SUCCEED,
               arm_setting, MOCK_MAX_FRAME, 16384),
    CONNECTION("SETTINGS", "MAX_FRAME_SIZE 2^24-1", OF_HTTP2, MUST_SUCCEED,
               arm_setting, MOCK_MAX_FRAME, 16777215),
    CONNECTION("SETTINGS", "windows stay shut", OF_HTTP2, ENDS_ANYHOW,
               arm_no_windows, 0, 0),
    CONNECTION("SETTINGS", "windows of 1 stay shut", OF_HTTP2, ENDS_ANYHOW,
               arm_no_windows, 0, 1),
    CONNECTION("after SETTINGS", "GOAWAY 0", OF_HTTP2, ENDS_ANYHOW, arm_goaway,
               0, 0),
    CONNECTION("after SETTINGS", "GOAWAY 2^31-1", OF_HTTP2, ENDS_ANYHOW,
               arm_goaway, 0x7fffffff, 0),
    REQUEST("before the head", "silence", 0, MUST_FAIL, act_hold, 0, 0),
    REQUEST("before the head", "FIN", 0, MUST_FAIL, act_fin, 0, 0),
    REQUEST("before the head", "RST", 0, MUST_FAIL, act_rst, 0, 0),
    REQUEST("before the head", "nonsense", 0, MUST_FAIL, act_nonsense, 0, 0),
    REQUEST("before the head", "GOAWAY 0", OF_HTTP2, ENDS_ANYHOW, act_goaway, 0,
            0),
    REQUEST("before the head", "GOAWAY last, silence", OF_HTTP2, ENDS_ANYHOW,
            act_goaway, MOCK_LAST, 0),
    REQUEST("before the head", "GOAWAY 2^31-1, silence", OF_HTTP2, ENDS_ANYHOW,
            act_goaway, 0x7fffffff, 0),
    REQUEST("before the head", "GOAWAY calm", OF_HTTP2, ENDS_ANYHOW, act_goaway,
            0, MOCK_ENHANCE_YOUR_CALM),
    RST_STREAM(NO_ERROR),
    RST_STREAM(PROTOCOL_ERROR),
    RST_STREAM(INTERNAL_ERROR),
    RST_STREAM(REFUSED_STREAM),
    RST_STREAM(CANCEL),
    RST_STREAM(ENHANCE_YOUR_CALM),
    RST_STREAM(HTTP_1_1_REQUIRED),
    TICKING("before the head", "1xx each second", 0, MUST_FAIL, act_hold,
            tick_inform, 1000, 0, 0),
    TICKING("before the head", "1xx all the time", 0, MUST_FAIL, act_hold,
            tick_inform, 10, 0, 0),
    TICKING("before the head", "dripping head", OF_HTTP1, MUST_FAIL,
            act_begin_head, tick_head, 500, 0, 0),
    REQUEST("after the head", "silence", 0, MUST_FAIL, act_head, 0, 0),
    TICKING("after the head", "FIN", 0, MUST_FAIL, act_head, tick_end, 10, 0,
            0),
    TICKING("after the head", "RST", 0, MUST_FAIL, act_head, tick_end, 10, 1,
            0),
    REQUEST("after the head", "10 GB announced", 0, MUST_FAIL, act_huge, 0, 0),
    REQUEST("inside the body", "silence", 0, MUST_FAIL, act_half, 0, 0),
    TICKING("inside the body", "FIN", 0, MUST_FAIL, act_half, tick_end, 10, 0,
            0),
    TICKING("inside the body", "RST", 0, MUST_FAIL, act_half, tick_end, 10, 1,
            0),
    REQUEST("inside the body", "cut off", 0, MUST_FAIL, act_short, 0, 0),
    REQUEST("inside the body", "ended early", 0, MUST_FAIL, act_short_end, 0,
            0),
    TICKING("inside the body", "dripping", 0, ENDS_ANYHOW, act_begin_drip,
            tick_drip, 1000, 0, 1),
    TICKING("inside the body", "events without an end", OF_HTTP2, ENDS_ANYHOW,
            act_begin_events, tick_comment, 1000, 0, 1),
    STATUS(301, MUST_FAIL),
    STATUS(400, MUST_FAIL),
    STATUS(401, MUST_FAIL),
    STATUS(402, MUST_FAIL),
    STATUS(403, MUST_FAIL),
    STATUS(404, ENDS_ANYHOW),
    STATUS(405, ENDS_ANYHOW),
    STATUS(408, MUST_FAIL),
    STATUS(409, ENDS_ANYHOW),
    STATUS(410, ENDS_ANYHOW),
    STATUS(413, MUST_FAIL),
    STATUS(421, MUST_FAIL),
    STATUS(422, MUST_FAIL),
    STATUS(425, MUST_FAIL),
    STATUS(429, MUST_FAIL),
    STATUS(500, MUST_FAIL),
    STATUS(503, MUST_FAIL),
    STATUS(599, MUST_FAIL),
    STATUS(999, MUST_FAIL),
    REQUEST("response", "302 to itself", 0, MUST_FAIL, act_redirect, 302, 0),
    REQUEST("response", "307 to itself", 0, MUST_FAIL, act_redirect, 307, 0),
    LATER(429, 0, "Retry-After of a century"),
    LATER(429, 1, "Retry-After of 10^23 s"),
    LATER(429, 2, "Retry-After in 9999"),
    LATER(429, 6, "Retry-After of a minute"),
    LATER(503, 3, "Retry-After-Ms of a century"),
    LATER(503, 4, "Retry-After of -1"),
    LATER(503, 5, "Retry-After of 0"),
    LATER(503, 6, "Retry-After of a minute"),
    BODY(0, "empty"),
    BODY(1, "{}"),
    BODY(2, "[]"),
    BODY(3, "null"),
    BODY(4, "a page"),
    BODY(5, "with a wrong type"),
    BODY(6, "not UTF-8"),
    BODY(7, "of brackets"),
    BODY(8, "cut off"),
    BODY(9, "1e999"),
    REQUEST("between polls", "try again", OF_POLLS, ENDS_ANYHOW, act_pending, 0,
            0),
    REQUEST("between polls", "try again in 46 days", OF_POLLS, ENDS_ANYHOW,
            act_pending, 1, 0),
    TICKING("between requests", "FIN", 0, MUST_SUCCEED, NULL, tick_close_idle,
            50, 0, 0),
    TICKING("between requests", "RST", 0, MUST_SUCCEED, NULL, tick_close_idle,
            50, 1, 0),
    CONNECTION("response", "Keep-Alive of 0", OF_HTTP1, MUST_SUCCEED,
               arm_headers, 0, 0),
    CONNECTION("response", "Keep-Alive of 0, max 0", OF_HTTP1, MUST_SUCCEED,
               arm_headers, 1, 0),
    CONNECTION("response", "Keep-Alive of 10^20", OF_HTTP1, MUST_SUCCEED,
               arm_headers, 2, 0),
    CONNECTION("response", "Connection: close", 0, MUST_SUCCEED, arm_headers, 3,
               0),
    CONNECTION("response", "Alt-Svc", 0, MUST_SUCCEED, arm_headers, 4, 0),
};

enum { N_FATES = sizeof(fates) / sizeof(fates[0]) };

/* Whether it is about the connection before any request. Such a fate needs the
 * front, where it is held off until its turn has come. */
static inline int wants_front(const fate_t *fate) {
  return fate->arm == arm_refuse || fate->arm == arm_drop_syn ||
         fate->arm == arm_accepted;
}

/* All is well again, as if another server had taken the place. */
static void heal(world_t *world) {
  mock_server_t *mock = world->script.mock;

  world->fate = NULL;
  world->is_armed = 0;
  if (world->blocker >= 0) {
    for (size_t i = 0; i < sizeof(world->blocked) / sizeof(world->blocked[0]);
         i++)
      close(world->blocked[i]);
    close(world->blocker);
    world->blocker = -1;
  }
  if (world->has_front || world->has_proxy || world->has_cover) {
    test_server_t *server = outer_of(world);
    server->options.end = TEST_LIVES;
    world->front.server.options.end = TEST_LIVES;
    test_server_listen_again(server);
  }
  world->proxy.answer = NULL;
  world->proxy.cuts = 0;
  mock_set_headers(mock, NULL);
  mock_set_silent(mock, 0);
  mock_set_windows(mock, 1);
  mock_set_pongs(mock, 1);
  mock_set_reading(mock, 1);
  mock_setting(mock, MOCK_MAX_STREAMS, 100);
  mock_setting(mock, MOCK_WINDOW, 65535);
  mock_setting(mock, MOCK_MAX_HEAD, 65536);
  mock_setting(mock, MOCK_TABLE_SIZE, 4096);
  mock_close_all(mock, 1);
}

#endif
