#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../local/e2e.h"
#include "base/alloc.h"
#include "gateway/state.h"

/* The gateway, the library and the local server on one loop, in real time. */

enum { LONG_MS = 3600000, NEVER = 1 /* no weights are used */ };

typedef struct {
  e2e_t e2e;
  tnk_gateway_t *gateway;
  int n_closed;
} rig_t;

/* A client: sends one request, and keeps what comes. */
typedef struct {
  uv_tcp_t tcp;
  uv_connect_t connect;
  uv_write_t write;
  char request[2048];
  char scratch[4096];
  char got[65536];
  size_t n_got;
  int is_closed; /* by either side */
} peer_t;

static void on_peer_closed(uv_handle_t *handle) {
  ((peer_t *)handle->data)->is_closed = 1;
}

static void peer_close(peer_t *peer) {
  if (!uv_is_closing((uv_handle_t *)&peer->tcp))
    uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
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
    return;
  }
  CHECK(peer->n_got + (size_t)n < sizeof(peer->got));
  memcpy(peer->got + peer->n_got, buf->base, (size_t)n);
  peer->n_got += (size_t)n;
  peer->got[peer->n_got] = '\0';
}

static void on_sent(uv_write_t *write, int status) {
  (void)write;
  (void)status;
}

static void on_connect(uv_connect_t *connect, int status) {
  peer_t *peer = connect->data;
  uv_buf_t buf = uv_buf_init(peer->request, (unsigned)strlen(peer->request));

  CHECK_INT(status, 0);
  CHECK_INT(uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read), 0);
  CHECK_INT(uv_write(&peer->write, (uv_stream_t *)&peer->tcp, &buf, 1, on_sent),
            0);
}

static peer_t *ask_by(rig_t *rig, const char *method, const char *path,
                      const char *body) {
  peer_t *peer = calloc(1, sizeof(*peer));
  const char *colon = strrchr(tnk_gateway_address(rig->gateway), ':');
  struct sockaddr_in to;

  CHECK(peer != NULL);
  snprintf(peer->request, sizeof(peer->request),
           "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
           "Content-Length: %zu\r\n\r\n%s",
           method, path, strlen(body), body);
  CHECK_INT(uv_tcp_init(&rig->e2e.uv, &peer->tcp), 0);
  peer->tcp.data = peer->connect.data = peer;
  uv_ip4_addr("127.0.0.1", (int)strtol(colon + 1, NULL, 10), &to);
  CHECK_INT(uv_tcp_connect(&peer->connect, &peer->tcp, (struct sockaddr *)&to,
                           on_connect),
            0);
  return peer;
}

static peer_t *ask(rig_t *rig, const char *path, const char *body) {
  return ask_by(rig, "POST", path, body);
}

static peer_t *chat(rig_t *rig) {
  return ask(rig, "/s/me/v1/chat/completions",
             "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\",\"content\":"
             "\"hi\"}]}");
}

/* One of each API that streams. */
static const struct {
  const char *path;
  const char *body;
  const char *alive;
  const char *end;
  const char *error;
} streams[] = {
    {"/v1/chat/completions",
     "{\"stream\":true,\"max_tokens\":3,\"messages\":[{\"role\":\"user\","
     "\"content\":\"hi\"}]}",
     ": keep-alive\n\n", "data: [DONE]\n\n", "data: {\"error\":{\"message\":"},
    {"/v1/completions", "{\"stream\":true,\"max_tokens\":3,\"prompt\":\"hi\"}",
     ": keep-alive\n\n", "data: [DONE]\n\n", "data: {\"error\":{\"message\":"},
    {"/v1/responses",
     "{\"stream\":true,\"max_output_tokens\":3,\"input\":\"hi\"}",
     ": keep-alive\n\n", "event: response.",
     "event: error\ndata: {\"type\":\"error\",\"code\":"},
    {"/v1/messages",
     "{\"stream\":true,\"max_tokens\":3,\"messages\":[{\"role\":\"user\","
     "\"content\":\"hi\"}]}",
     "event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: message_stop\n",
     "event: error\ndata: {\"type\":\"error\",\"error\":{"}};

enum { N_STREAMS = sizeof(streams) / sizeof(*streams) };

/* Until it has come so often. */
static void until_got(rig_t *rig, const peer_t *peer, const char *text, int n) {
  const char *at;
  int found = 0;

  while (found < n) {
    CHECK(!peer->is_closed);
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
    for (found = 0, at = peer->got; (at = strstr(at, text)) != NULL; found++)
      at++;
  }
}

static void until_closed(rig_t *rig, const peer_t *peer) {
  while (!peer->is_closed)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
}

/* Until the connection has ended; the status of the answer, 0 without one. */
static int peer_end(rig_t *rig, peer_t *peer) {
  int status = 0;

  until_closed(rig, peer);
  if (strncmp(peer->got, "HTTP/1.1 ", 9) == 0)
    status = (int)strtol(peer->got + 9, NULL, 10);
  free(peer);
  return status;
}

/* ---- Life ---- */

static uint32_t keep_alive_ms; /* of the gateways that are opened next */

static void use(rig_t *rig) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  options.base_model = "tnk/byte-lm";
  e2e_done(tnk_gateway_use(rig->gateway, &options));
}

/* `record` may be NULL, and `max_memory` 0. */
static void rig_open_with(rig_t *rig, uint64_t latency_ms, const char *record,
                          uint64_t max_memory) {
  static const local_options_t defaults = LOCAL_OPTIONS_INIT;
  local_options_t local = defaults;
  const tnk_gateway_options_t options = {
      .size = sizeof(options),
      .tokenizer = {tnk_chat_bytes_plugin(), NULL},
      .record = record,
      .max_memory = max_memory,
      .keep_alive_ms = keep_alive_ms,
      .allocator = test_allocator()};
  char why[256];

  memset(rig, 0, sizeof(*rig));
  local.latency_ms = (uint32_t)latency_ms;
  e2e_open(&rig->e2e, local);
  if (tnk_gateway_open(&rig->gateway, &rig->e2e.uv, rig->e2e.service, &options,
                       why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
  if (latency_ms != NEVER)
    use(rig);
}

static void rig_open(rig_t *rig, uint64_t latency_ms) {
  rig_open_with(rig, latency_ms, NULL, 0);
}

static void on_closed(void *user) {
  ((rig_t *)user)->n_closed++;
}

static void rig_close(rig_t *rig) {
  tnk_gateway_close(rig->gateway, on_closed, rig);
  while (rig->n_closed == 0)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  CHECK_INT(rig->n_closed, 1);
  e2e_close(&rig->e2e);
}

static int n_calls(const rig_t *rig, const char *call) {
  int n = 0;

  for (size_t i = 0; i < rig->e2e.n_seen; i++)
    n += strcmp(rig->e2e.seen[i].call, call) == 0;
  return n;
}

static void until_sampled(rig_t *rig, int n) {
  while (n_calls(rig, "asample") < n)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
}

TEST_LIMIT(a_request_is_answered, 20) {
  rig_t rig;

  rig_open(&rig, 0);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  CHECK_INT(rig.gateway->n_jobs, 0);
  rig_close(&rig);
}

TEST_LIMIT(without_weights_it_is_not_ready, 20) {
  rig_t rig;

  rig_open(&rig, NEVER);
  CHECK_INT(peer_end(&rig, chat(&rig)), 503);
  rig_close(&rig);
}

/* The sample would take an hour. */
TEST_LIMIT(a_client_that_hangs_up_cancels_its_sample, 20) {
  rig_t rig;
  peer_t *peer;

  rig_open(&rig, LONG_MS);
  peer = chat(&rig);
  until_sampled(&rig, 1);
  CHECK_INT(rig.gateway->n_jobs, 1);
  peer_close(peer);
  while (rig.gateway->n_jobs > 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 0);
  CHECK(tnk__gw_record_session(rig.gateway->record, "me") == NULL);
  rig_close(&rig);
}

TEST_LIMIT(closing_ends_what_is_under_way, 20) {
  peer_t *peers[5];
  rig_t rig;

  rig_open(&rig, LONG_MS);
  for (int i = 0; i < 5; i++)
    peers[i] = chat(&rig);
  until_sampled(&rig, 5);
  rig_close(&rig);
  for (int i = 0; i < 5; i++)
    free(peers[i]);
}

/* What began with the old weights ends with them. */
TEST_LIMIT(weights_are_replaced_between_turns, 20) {
  const tnk__gw_session_t *session;
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, 300);
  peer = chat(&rig);
  until_sampled(&rig, 1);
  use(&rig);
  CHECK_INT(peer_end(&rig, peer), 200);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  session = tnk__gw_record_session(rig.gateway->record, "me");
  CHECK_INT(session->n_turns, 2);
  CHECK_INT(
      tnk__container_of(session->turns.next, tnk__gw_turn_t, link)->version, 1);
  CHECK_INT(
      tnk__container_of(session->turns.prev, tnk__gw_turn_t, link)->version, 2);
  /* The old ones are closed. */
  CHECK(rig.gateway->samplers.next == rig.gateway->samplers.prev);
  rig_close(&rig);
}

static tnk__gw_turn_t *latest(const rig_t *rig, const char *session) {
  const tnk__gw_session_t *found =
      tnk__gw_record_session(rig->gateway->record, session);

  CHECK(found != NULL && !tnk__list_empty(&found->turns));
  return tnk__container_of(found->turns.prev, tnk__gw_turn_t, link);
}

static json_t *line_of(const rig_t *rig, const tnk__gw_turn_t *turn) {
  json_t *line;

  CHECK_INT(tnk__gw_record_line(rig->gateway->record, turn, &line), TNK_OK);
  return line;
}

/* A request that goes on from the latest turn. */
static peer_t *chat_on(rig_t *rig) {
  json_t *line = line_of(rig, latest(rig, "me"));
  json_t *messages = json_object_get(line, "messages");
  json_t *body;
  peer_t *peer;
  char *text;

  json_array_append_new(messages,
                        json_pack("{s:s,s:s}", "role", "user", "content", "?"));
  body = json_pack("{s:i,s:O}", "max_tokens", 3, "messages", messages);
  text = json_dumps(body, JSON_COMPACT);
  CHECK(text != NULL);
  peer = ask(rig, "/s/me/v1/chat/completions", text);
  free(text);
  json_decref(body);
  json_decref(line);
  return peer;
}

/* More than there is room for, of another session. */
static void add_much(const rig_t *rig) {
  static const int32_t ids[4096];
  const tnk__gw_turn_new_t turn = {.session = "other",
                                   .request = 1,
                                   .api = "chat",
                                   .prompt = ids,
                                   .n_prompt = 4096,
                                   .end = "stop"};
  tnk__gw_turn_t *made;

  CHECK_INT(tnk__gw_record_add(rig->gateway->record, &turn, &made), TNK_OK);
}

/* What it went on from is forgotten meanwhile: it is recorded as a whole. */
TEST_LIMIT(a_turn_may_outlive_the_one_before, 20) {
  tnk__gw_turn_t *turn;
  json_t *line;
  peer_t *peer;
  rig_t rig;

  rig_open_with(&rig, 100, NULL, 8192);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  peer = chat_on(&rig);
  until_sampled(&rig, 2);
  add_much(&rig);
  CHECK(tnk__gw_record_session(rig.gateway->record, "me") == NULL);
  CHECK_INT(peer_end(&rig, peer), 200);
  turn = latest(&rig, "me");
  CHECK(turn->parent == NULL);
  line = line_of(&rig, turn);
  CHECK_INT(json_array_size(json_object_get(line, "messages")), 4);
  json_decref(line);
  rig_close(&rig);
}

/* Each request is answered with something, or its connection ends. */
TEST_LIMIT(each_allocation_fails_in_turn, 60) {
  int n_refused = 0;
  int did_fail = 1;
  rig_t rig;

  rig_open(&rig, 0);
  for (long n = 0; did_fail; n++) {
    peer_t *peer = chat(&rig);
    int status;

    test_alloc_fail_at(n);
    status = peer_end(&rig, peer);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    if (!did_fail)
      CHECK_INT(status, 200);
    n_refused += status != 200;
    CHECK_INT(rig.gateway->n_jobs, 0);
  }
  CHECK(n_refused > 0);
  rig_close(&rig);
}

/* ---- Streams that wait ---- */

/* The timers of the server that holds the sample back and of the gateway run in
 * their order on one loop, so that this does not depend on time. */
TEST_LIMIT(a_stream_that_waits_is_kept_alive, 60) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  peer_t *peer;
  rig_t rig;

  keep_alive_ms = 1;
  for (int i = 0; i < N_STREAMS; i++) {
    rig_open(&rig, 100);
    peer = ask(&rig, streams[i].path, streams[i].body);
    until_got(&rig, peer, streams[i].alive, 2);
    CHECK(strstr(peer->got, "HTTP/1.1 200 OK\r\n") == peer->got);
    CHECK(strstr(peer->got, "Transfer-Encoding: chunked\r\n") != NULL);
    CHECK(strstr(peer->got, "Content-Type: text/event-stream") != NULL);
    CHECK(strstr(peer->got, streams[i].end) == NULL);
    until_closed(&rig, peer);
    CHECK(strstr(peer->got, streams[i].end) != NULL);
    CHECK(strcmp(peer->got + peer->n_got - 7, "\r\n0\r\n\r\n") == 0);
    CHECK_INT(peer_end(&rig, peer), 200);
    CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
    CHECK_INT(stats.n_answered, 1);
    rig_close(&rig);
  }
  keep_alive_ms = 0;
}

TEST_LIMIT(a_stream_that_does_not_wait_has_a_length, 60) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, 0);
  peer = ask(&rig, streams[0].path, streams[0].body);
  until_closed(&rig, peer);
  CHECK(strstr(peer->got, "Content-Length: ") != NULL);
  CHECK(strstr(peer->got, "keep-alive\n") == NULL);
  CHECK(strstr(peer->got, streams[0].end) != NULL);
  CHECK_INT(peer_end(&rig, peer), 200);
  rig_close(&rig);
}

TEST_LIMIT(who_leaves_a_stream_cancels_its_sample, 60) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  peer_t *peer;
  rig_t rig;

  keep_alive_ms = 1;
  rig_open(&rig, LONG_MS);
  peer = ask(&rig, streams[0].path, streams[0].body);
  until_got(&rig, peer, streams[0].alive, 1);
  peer_close(peer);
  CHECK_INT(peer_end(&rig, peer), 200);
  while (rig.gateway->n_jobs > 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
  CHECK_INT(stats.n_gone, 1);
  CHECK_INT(stats.n_answered, 0);
  rig_close(&rig);
  keep_alive_ms = 0;
}

TEST_LIMIT(closing_ends_streams_that_wait, 60) {
  peer_t *peer;
  rig_t rig;

  keep_alive_ms = 1;
  rig_open(&rig, LONG_MS);
  peer = ask(&rig, streams[0].path, streams[0].body);
  until_got(&rig, peer, streams[0].alive, 1);
  tnk_gateway_close(rig.gateway, on_closed, &rig);
  while (rig.n_closed == 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 200);
  e2e_close(&rig.e2e);
  keep_alive_ms = 0;
}

/* The disk is full when the sample has come. */
TEST_LIMIT(a_stream_that_has_begun_tells_its_failure, 60) {
  struct rlimit limit;
  struct rlimit small;
  peer_t *peer;
  rig_t rig;

  keep_alive_ms = 1;
  CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int i = 0; i < N_STREAMS; i++) {
    char path[] = "/tmp/tnk-gateway-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    rig_open_with(&rig, 100, path, 0);
    peer = ask(&rig, streams[i].path, streams[i].body);
    until_got(&rig, peer, streams[i].alive, 1);
    small = limit;
    small.rlim_cur = 16;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    until_closed(&rig, peer);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK(strstr(peer->got, streams[i].error) != NULL);
    CHECK(strstr(peer->got, streams[i].end) == NULL);
    CHECK_INT(peer_end(&rig, peer), 200);
    rig_close(&rig);
    unlink(path);
  }
  keep_alive_ms = 0;
}

/* ---- Exports ---- */

enum { N_BRANCHES = 40 };

/* One with so many branches, of which a turn of the loop writes one. */
static void rig_open_long(rig_t *rig) {
  rig_open(rig, 0);
  for (int i = 0; i < N_BRANCHES; i++)
    CHECK_INT(peer_end(rig, chat(rig)), 200);
  rig->gateway->export_bytes = 1;
}

static peer_t *export(rig_t *rig) {
  peer_t *peer = ask_by(rig, "GET", "/tnk/datums", "");

  while (tnk__list_empty(&rig->gateway->exports))
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  return peer;
}

TEST_LIMIT(requests_are_served_while_examples_are_written, 60) {
  peer_t *peer;
  int n = 0;
  rig_t rig;

  rig_open_long(&rig);
  peer = export(&rig);
  CHECK_INT(peer_end(&rig, ask(&rig, "/s/me/tnk/reward", "{\"reward\":1}")),
            200);
  CHECK(!peer->is_closed && !tnk__list_empty(&rig.gateway->exports));
  until_closed(&rig, peer);
  for (const char *at = peer->got; (at = strchr(at, '\n')) != NULL; at++)
    n += at[-1] == '}';
  CHECK_INT(n, N_BRANCHES);
  CHECK_INT(peer_end(&rig, peer), 200);
  rig_close(&rig);
}

TEST_LIMIT(who_leaves_an_export_ends_it, 60) {
  peer_t *peer;
  rig_t rig;

  rig_open_long(&rig);
  peer = export(&rig);
  peer_close(peer);
  while (!tnk__list_empty(&rig.gateway->exports))
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 0);
  peer = export(&rig);
  tnk_gateway_close(rig.gateway, on_closed, &rig);
  while (rig.n_closed == 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 0);
  e2e_close(&rig.e2e);
}

/* ---- The disk ---- */

/* The disk is full: the first request hears of it, the others are not sampled.
 */
TEST_LIMIT(what_cannot_be_recorded_is_not_sampled, 20) {
  char path[] = "/tmp/tnk-gateway-XXXXXX";
  struct rlimit limit;
  struct rlimit small;
  rig_t rig;
  int fd = mkstemp(path);

  CHECK(fd >= 0);
  close(fd);
  rig_open_with(&rig, 0, path, 0);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = limit;
  small.rlim_cur = 16;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  CHECK_INT(peer_end(&rig, chat(&rig)), 500);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK_INT(n_calls(&rig, "asample"), 2);
  CHECK_INT(peer_end(&rig, chat(&rig)), 500);
  CHECK_INT(n_calls(&rig, "asample"), 2);
  rig_close(&rig);
  unlink(path);
}

static int count_line(void *user, const char *line, size_t n) {
  CHECK(n > 0 && line[n - 1] == '\n');
  ++*(int *)user;
  return TNK_OK;
}

static int end_it(void *user, const char *line, size_t n) {
  (void)user;
  (void)line;
  (void)n;
  return TNK_ECANCELED;
}

/* What a trainer in the same process needs of it. */
TEST_LIMIT(a_process_rewards_and_exports_by_calls, 20) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  int n_lines = 0;
  rig_t rig;

  rig_open(&rig, 0);
  CHECK_INT(tnk_gateway_reward(rig.gateway, "me", NULL, 0, 1), TNK_ENOTFOUND);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  CHECK_INT(tnk_gateway_reward(rig.gateway, "me", NULL, 0, NAN), TNK_EINVAL);
  CHECK_INT(tnk_gateway_reward(rig.gateway, NULL, NULL, 0, 1), TNK_ENOTFOUND);
  CHECK_INT(tnk_gateway_reward(rig.gateway, NULL, "chatcmpl-1", 0, 1),
            TNK_ENOTFOUND);
  CHECK_INT(tnk_gateway_reward(rig.gateway, "me", NULL, 0, 0.5), TNK_OK);
  CHECK_INT(tnk_gateway_datums(rig.gateway, NULL, 0, count_line, &n_lines),
            TNK_OK);
  CHECK_INT(n_lines, 2);
  CHECK_INT(tnk_gateway_datums(rig.gateway, "me", 1, count_line, &n_lines),
            TNK_OK);
  CHECK_INT(n_lines, 3);
  CHECK_INT(tnk_gateway_datums(rig.gateway, "you", 0, count_line, NULL),
            TNK_ENOTFOUND);
  CHECK_INT(tnk_gateway_datums(rig.gateway, NULL, 0, end_it, NULL),
            TNK_ECANCELED);
  CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
  CHECK_INT(stats.n_requests, 2);
  CHECK_INT(stats.n_answered, 2);
  CHECK_INT(stats.n_failed, 0);
  CHECK_INT(stats.n_tokens, 6);
  CHECK_INT(stats.n_under_way, 0);
  CHECK_INT(stats.version, 1);
  CHECK_INT(stats.n_old_samplers, 0);
  rig_close(&rig);
}

TEST(calls_without_a_gateway_do_nothing) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;

  CHECK(tnk_gateway_address(NULL) == NULL);
  CHECK(tnk_gateway_use(NULL, NULL) == NULL);
  CHECK_INT(tnk_gateway_reward(NULL, NULL, NULL, 0, 1), TNK_EINVAL);
  CHECK_INT(tnk_gateway_datums(NULL, NULL, 0, count_line, NULL), TNK_EINVAL);
  CHECK_INT(tnk_gateway_stats(&stats, NULL), TNK_OK);
  CHECK_INT(stats.n_requests, 0);
  CHECK_INT(tnk_gateway_stats(NULL, NULL), TNK_EINVAL);
  CHECK_INT(tnk_gateway_open(NULL, NULL, NULL, NULL, NULL, 0), TNK_EINVAL);
  tnk_gateway_close(NULL, NULL, NULL);
}

TEST(options_out_of_range_are_refused) {
  static const tnk_pair_t variable = {"thinks", "tru"};
  static const struct {
    tnk_gateway_options_t options;
    const char *why;
  } wrong[] = {
      {{.host = "0.0.0.0"}, "an address other than a loopback one needs a key"},
      {{.host = "0.0.0.0", .key = ""},
       "an address other than a loopback one needs a key"},
      {{.port = 70000}, "the port is out of range"},
      {{.max_tokens = -1}, "max_tokens is below 0"},
      {{.tls_cert = "x"}, "a certificate and its key go together"},
      {{.variables = &variable, .n_variables = 1},
       "the variable thinks is not JSON, or its name is not UTF-8"},
  };
  tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
  tnk_gateway_t *gateway;
  uv_loop_t loop;
  /* It is not looked at before all options are. */
  tnk_service_t *service = (tnk_service_t *)(void *)&loop;
  char why[256];

  CHECK_INT(uv_loop_init(&loop), 0);
  CHECK_INT(tnk_gateway_open(&gateway, &loop, NULL, &options, why, sizeof(why)),
            TNK_EINVAL);
  CHECK_STR(why, "loop or service is NULL");
  CHECK_INT(
      tnk_gateway_open(&gateway, &loop, service, &options, why, sizeof(why)),
      TNK_EINVAL);
  CHECK_STR(why, "a tokenizer is needed that can encode and decode");
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
    options = wrong[i].options;
    options.size = sizeof(options);
    options.tokenizer.plugin = tnk_chat_bytes_plugin();
    CHECK_INT(
        tnk_gateway_open(&gateway, &loop, service, &options, why, sizeof(why)),
        TNK_EINVAL);
    CHECK_STR(why, wrong[i].why);
    CHECK(gateway == NULL);
  }
  CHECK_INT(uv_loop_close(&loop), 0);
}
