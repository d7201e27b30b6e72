/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rig.h"

/* Streams, exports, and what a process asks by calls. */

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

/* ---- Streams that wait ---- */

/* The timers of the server that holds the sample back and of the gateway run in
 * their order on one loop, so that this does not depend on time. */
TEST_LIMIT(a_stream_that_waits_is_kept_alive, 60) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  peer_t *peer;
  rig_t rig;

  for (int i = 0; i < N_STREAMS; i++) {
    rig_open_with(&rig, 100, NULL, 0, 1);
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

  rig_open_with(&rig, LONG_MS, NULL, 0, 1);
  peer = ask(&rig, streams[0].path, streams[0].body);
  until_got(&rig, peer, streams[0].alive, 1);
  peer_close(peer);
  CHECK_INT(peer_end(&rig, peer), 200);
  while (rig.gateway->stats.n_gone == 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + LONG_MS);
  while (rig.gateway->n_jobs > 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
  CHECK_INT(stats.n_gone, 1);
  CHECK_INT(stats.n_answered, 0);
  rig_close(&rig);
}

TEST_LIMIT(closing_ends_streams_that_wait, 60) {
  peer_t *peer;
  rig_t rig;

  rig_open_with(&rig, LONG_MS, NULL, 0, 1);
  peer = ask(&rig, streams[0].path, streams[0].body);
  until_got(&rig, peer, streams[0].alive, 1);
  tnk_gateway_close(rig.gateway, on_closed, &rig);
  while (rig.n_closed == 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 200);
  e2e_close(&rig.e2e);
}

/* The disk is full when the sample has come. */
TEST_LIMIT(a_stream_that_has_begun_tells_its_failure, 60) {
  struct rlimit limit;
  struct rlimit small;
  peer_t *peer;
  rig_t rig;

  CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int i = 0; i < N_STREAMS; i++) {
    char path[] = "/tmp/tnk-gateway-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    rig_open_with(&rig, 100, path, 0, 1);
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
}

/* ---- Whole responses that wait ---- */

static const struct {
  const char *path;
  const char *body;
} wholes[] = {{"/v1/chat/completions",
               "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\","
               "\"content\":\"hi\"}]}"},
              {"/v1/completions", "{\"max_tokens\":3,\"prompt\":\"hi\"}"},
              {"/v1/responses", "{\"max_output_tokens\":3,\"input\":\"hi\"}"},
              {"/v1/messages",
               "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\","
               "\"content\":\"hi\"}]}"}};

/* A chunk of one line end. */
static const char line_end[] = "1\r\n\n\r\n";

TEST_LIMIT(a_whole_response_that_waits_is_kept_alive, 60) {
  peer_t *peer;
  rig_t rig;

  for (size_t i = 0; i < sizeof(wholes) / sizeof(*wholes); i++) {
    rig_open_with(&rig, 100, NULL, 0, 1);
    peer = ask(&rig, wholes[i].path, wholes[i].body);
    until_got(&rig, peer, line_end, 1);
    CHECK(strstr(peer->got, "HTTP/1.1 200 OK\r\n") == peer->got);
    CHECK(strstr(peer->got, "Transfer-Encoding: chunked\r\n") != NULL);
    CHECK(strstr(peer->got, "Content-Type: application/json") != NULL);
    CHECK(strchr(peer->got, '{') == NULL);
    until_closed(&rig, peer);
    CHECK(strstr(peer->got, "\r\n{\"id\":\"") != NULL);
    CHECK(strcmp(peer->got + peer->n_got - 8, "}\r\n0\r\n\r\n") == 0);
    CHECK_INT(peer_end(&rig, peer), 200);
    rig_close(&rig);
  }
}

/* It could not tell a response that is cut off. */
TEST_LIMIT(a_client_of_http_1_0_waits_for_its_status, 60) {
  peer_t *peer;
  char *version;
  rig_t rig;

  rig_open_with(&rig, 100, NULL, 0, 1);
  peer = ask(&rig, wholes[0].path, wholes[0].body);
  version = strstr(peer->request, "HTTP/1.1");
  CHECK(version != NULL);
  version[7] = '0';
  until_closed(&rig, peer);
  CHECK(strstr(peer->got, "Content-Length: ") != NULL);
  CHECK(strstr(peer->got, "chunked") == NULL);
  CHECK_INT(peer_end(&rig, peer), 200);
  rig_close(&rig);
}

/* The disk is full when the sample has come. */
TEST_LIMIT(a_whole_response_that_has_begun_is_cut_off, 60) {
  char path[] = "/tmp/tnk-gateway-XXXXXX";
  struct rlimit limit;
  struct rlimit small;
  peer_t *peer;
  rig_t rig;
  int fd = mkstemp(path);

  CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK(fd >= 0);
  close(fd);
  rig_open_with(&rig, 100, path, 0, 1);
  peer = ask(&rig, wholes[0].path, wholes[0].body);
  until_got(&rig, peer, line_end, 1);
  small = limit;
  small.rlim_cur = 16;
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
  until_closed(&rig, peer);
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK(strchr(peer->got, '{') == NULL);
  CHECK(strstr(peer->got, "\r\n0\r\n\r\n") == NULL);
  CHECK_INT(peer_end(&rig, peer), 200);
  CHECK_INT(rig.gateway->n_jobs, 0);
  rig_close(&rig);
  unlink(path);
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
/* ---- Calls ---- */

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
