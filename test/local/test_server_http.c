/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "support/test.h"
#include "tnk/error.h"

/* The bytes on the wire: what is refused, and that nothing piles up. */

static int raw_status(rig_t *rig, const char *text) {
  exchange_t *x = rig_raw(rig, text, strlen(text));
  int status;

  rig_wait(x, 1);
  status = x->n_done > 0 ? x->status : -1;
  rig_free(x);
  return status;
}

TEST(opens_and_closes) {
  rig_t rig;

  rig_open(&rig, NULL);
  rig_close(&rig);
}

TEST(options_out_of_range_are_refused) {
  static const local_options_t good = LOCAL_OPTIONS_INIT;
  local_options_t options = good;
  local_server_t *server;
  uv_loop_t loop;
  char why[128];

  CHECK_INT(uv_loop_init(&loop), 0);
  options.why = why;
  options.n_why = sizeof(why);
  options.host = "0.0.0.0";
  CHECK(local_server_open(&server, &loop, &options) < 0);
  CHECK_STR(why, "an address other than a loopback one needs an API key");
  options.api_key = "tml-x";
  CHECK_INT(local_server_open(&server, &loop, &options), 0);
  local_server_close(server, NULL, NULL);
  options.host = "no address";
  CHECK(local_server_open(&server, &loop, &options) < 0);
  options.host = NULL;
  options.port = 70000;
  CHECK(local_server_open(&server, &loop, &options) < 0);
  options.port = 0;
  options.max_body = 0;
  CHECK(local_server_open(&server, &loop, &options) < 0);
  uv_run(&loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&loop), 0);
}

TEST(a_port_in_use_is_an_error) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  local_server_t *second;
  rig_t rig;

  rig_open(&rig, NULL);
  options.port = local_server_port(rig.server);
  CHECK_INT(local_server_open(&second, &rig.loop, &options), UV_EADDRINUSE);
  rig_close(&rig);
}

TEST(routes) {
  rig_t rig;
  exchange_t *x;

  rig_open(&rig, NULL);
  x = rig_get(&rig, "healthz");
  CHECK_INT(x->status, 200);
  CHECK_STR(x->body, "{\"status\":\"ok\"}");
  CHECK_STR(x->type, "application/json");
  rig_free(x);
  x = rig_get(&rig, "nowhere");
  CHECK_INT(x->status, 404);
  CHECK_STR(rig_text(x, "detail"), "Not Found");
  rig_free(x);
  CHECK_INT(rig_status(rig_get(&rig, "create_session")), 405);
  x = rig_post(&rig, "create_session", "{\"tags\":[]}");
  CHECK_INT(x->status, 422);
  CHECK_STR(x->body, "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\","
                     "\"sdk_version\"],\"msg\":\"Field required\"}]}");
  rig_free(x);
  CHECK_INT(rig_status(rig_post(&rig, "create_session", "[1]")), 422);
  CHECK_INT(rig_status(rig_post(&rig, "create_session", "{\"a\":")), 422);
  rig_close(&rig);
}

TEST(garbage_is_refused_and_hurts_nobody) {
  static const char *const garbage[] = {
      "\r\n\r\nhello\r\n\r\n",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /a%2 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "GET / HTTP/1.1\r\nA\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  };
  uint64_t state = 1;
  rig_t rig;

  rig_open(&rig, NULL);
  for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
    int status = raw_status(&rig, garbage[i]);

    if (status != 400 && status != 404)
      test_fail(__FILE__, __LINE__, "garbage %zu: %d", i, status);
  }
  for (int i = 0; i < 50; i++) {
    char noise[200];
    exchange_t *x;

    for (size_t k = 0; k < sizeof(noise); k++)
      noise[k] = (char)test_random(&state);
    x = rig_raw(&rig, noise, sizeof(noise));
    rig_wait(x, 1);
    CHECK(x->n_done == 0 || x->status == 400);
    rig_free(x);
  }
  CHECK_INT(raw_status(&rig, "GET /api/v1/healthz HTTP/1.1\r\n\r\n"), 200);
  rig_close(&rig);
}

/* What we take for the end of a body must be what a proxy before us takes. */
TEST(a_body_in_a_coding_that_is_not_understood_is_refused) {
  static const struct {
    const char *text;
    int status;
  } cases[] = {
      {"1.1\r\nTransfer-Encoding: chunked", 200},
      {"1.1\r\nTransfer-Encoding: Chunked", 200},
      {"1.1\r\nTransfer-Encoding: gzip, chunked", 501},
      {"1.1\r\nTransfer-Encoding: identity, chunked", 501},
      {"1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400},
      {"1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked", 501},
      {"1.0\r\nTransfer-Encoding: chunked", 400},
      {"1.0\r\nTransfer-Encoding: gzip, chunked", 400},
  };
  char text[300];
  rig_t rig;

  rig_open(&rig, NULL);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    snprintf(text, sizeof(text),
             "POST /api/v1/telemetry HTTP/%s\r\nHost: x\r\n\r\n"
             "2\r\n{}\r\n0\r\n\r\n",
             cases[i].text);
    CHECK_INT(raw_status(&rig, text), cases[i].status);
  }
  rig_close(&rig);
}

TEST(one_byte_at_a_time) {
  static const char text[] = "POST /api/v1/telemetry HTTP/1.1\r\nHost: x\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n"
                             "2\r\n{}\r\n0\r\n\r\n";
  rig_t rig;
  exchange_t *x;

  rig_open(&rig, NULL);
  x = rig_raw(&rig, text, 1);
  for (size_t i = 0; i < 5; i++)
    uv_run(&rig.loop, UV_RUN_NOWAIT);
  for (size_t i = 1; i < sizeof(text) - 1; i++) {
    CHECK_INT(x->n_done, 0);
    rig_more(x, text + i, 1);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
  }
  rig_wait(x, 1);
  CHECK_INT(x->status, 200);
  CHECK_STR(x->body, "{\"status\":\"accepted\"}");
  rig_free(x);
  rig_close(&rig);
}

/* A stack frame for each would not do. */
TEST_LIMIT(thousands_of_pipelined_requests, 20) {
  static const char one[] = "GET /api/v1/healthz HTTP/1.1\r\n\r\n";
  enum { N = 8000 };
  char *all = malloc(N * sizeof(one));
  size_t n = 0;
  rig_t rig;
  exchange_t *x;

  CHECK(all != NULL);
  for (int i = 0; i < N; i++) {
    memcpy(all + n, one, sizeof(one) - 1);
    n += sizeof(one) - 1;
  }
  rig_open(&rig, NULL);
  x = rig_raw(&rig, all, n);
  rig_wait(x, N);
  CHECK_INT(x->n_done, N);
  CHECK_INT(local_server_counts(rig.server).n_requests, N);
  rig_free(x);
  free(all);
  rig_close(&rig);
}

TEST(ceilings) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  static char big[200000];
  rig_t rig;
  exchange_t *x;
  int n;

  options.max_body = 1000;
  rig_open(&rig, &options);
  memset(big, 'a', sizeof(big));
  x = rig_send(&rig, "POST", "/api/v1/telemetry", NULL, big, 1001);
  rig_wait(x, 1);
  CHECK_INT(x->status, 413);
  CHECK(x->closed || x->n_done == 1);
  rig_free(x);
  /* Chunked, so that it is not announced. */
  n = snprintf(big, sizeof(big),
               "POST /api/v1/telemetry HTTP/1.1\r\n"
               "Transfer-Encoding: chunked\r\n\r\n800\r\n");
  big[n] = 'a';
  CHECK_INT(rig_status(rig_raw(&rig, big, 4000)), 413);
  memset(big, 'a', sizeof(big));
  memcpy(big, "GET /", 5);
  CHECK_INT(rig_status(rig_raw(&rig, big, 20000)), 414);
  n = snprintf(big, sizeof(big), "GET / HTTP/1.1\r\nA: ");
  big[n] = 'a';
  CHECK_INT(rig_status(rig_raw(&rig, big, 150000)), 431);
  n = snprintf(big, sizeof(big), "GET / HTTP/1.1\r\n");
  for (int i = 0; i < 200; i++)
    n += snprintf(big + n, sizeof(big) - (size_t)n, "a%d: b\r\n", i);
  CHECK_INT(rig_status(rig_raw(&rig, big, (size_t)n)), 431);
  rig_close(&rig);
}

TEST(keys_and_pages) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  rig_t rig;

  options.api_key = "tml-right";
  rig_open(&rig, &options);
  CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  CHECK_INT(rig_status(rig_get(&rig, "get_server_capabilities")), 401);
  CHECK_INT(rig_status(rig_send(&rig, "GET", "/api/v1/get_server_capabilities",
                                "X-API-Key: tml-wrong\r\n", NULL, 0)),
            403);
  CHECK_INT(rig_status(rig_send(&rig, "GET", "/api/v1/get_server_capabilities",
                                "X-API-Key: tml-right\r\n", NULL, 0)),
            200);
  rig_close(&rig);
  /* Without a key no web page gets in. */
  rig_open(&rig, NULL);
  CHECK_INT(rig_status(rig_send(&rig, "GET", "/api/v1/get_server_capabilities",
                                "Origin: http://evil.example\r\n", NULL, 0)),
            403);
  rig_close(&rig);
}

TEST(encodings) {
  /* "{}" and a frame that is cut. */
  static const char frame[] = "\x28\xb5\x2f\xfd\x20\x02\x11\x00\x00\x7b\x7d";
  static const struct {
    const char *encoding;
    const char *body;
    size_t n;
    int status;
  } cases[] = {
      {"Content-Encoding: zstd\r\n", frame, sizeof(frame) - 1, 200},
      {"Content-Encoding: zstd\r\n", frame, sizeof(frame) - 2, 422},
      {"Content-Encoding: zstd\r\n", "{}", 2, 422},
      {"Content-Encoding: gzip\r\n", "{}", 2, 422},
  };
  rig_t rig;

  rig_open(&rig, NULL);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
    CHECK_INT(
        rig_status(rig_send(&rig, "POST", "/api/v1/telemetry",
                            cases[i].encoding, cases[i].body, cases[i].n)),
        cases[i].status);
  rig_close(&rig);
}

/* Every request is seen twice: when it comes, and with its status. */
typedef struct {
  char log[2048];
} diary_t;

static void note(void *user, const local_seen_t *seen) {
  diary_t *diary = user;
  size_t n = strlen(diary->log);

  snprintf(diary->log + n, sizeof(diary->log) - n, "%s %s %lld %d;",
           seen->method, strrchr(seen->path, '/'), (long long)seen->seq_id,
           seen->status);
}

TEST(observer_and_faults) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  local_faults_t *faults = local_faults_new(test_allocator());
  static diary_t diary;
  rig_t rig;
  exchange_t *x;

  CHECK_INT(local_faults_set(
                faults, "503/telemetry:s=7,drop_after_commit/session_heartbeat",
                NULL, 0),
            TNK_OK);
  options.on_request = note;
  options.faults = faults;
  options.user = &diary;
  rig_open(&rig, &options);
  rig_free(rig_get(&rig, "healthz"));
  x = rig_post(&rig, "telemetry", "{}");
  CHECK_INT(x->status, 503);
  CHECK_STR(rig_text(x, "detail"), "An injected fault: 503");
  rig_free(x);
  x = rig_post(&rig, "session_heartbeat", "{}");
  CHECK(x->closed && x->n_done == 0);
  rig_free(x);
  rig_free(rig_post(&rig, "optim_step", "{\"seq_id\":5}"));
  CHECK_STR(diary.log, "GET /healthz -1 0;GET /healthz -1 200;"
                       "POST /telemetry -1 0;POST /telemetry -1 503;"
                       "POST /session_heartbeat -1 0;"
                       "POST /session_heartbeat -1 -1;"
                       "POST /optim_step 5 0;POST /optim_step 5 422;");
  rig_close(&rig);
  local_faults_free(faults);
}

/* Closing with a connection in every state. */
TEST(closing_drops_everything) {
  rig_t rig;
  exchange_t *half;
  exchange_t *idle;

  rig_open(&rig, NULL);
  half = rig_raw(&rig, "POST /api/v1/telemetry HTTP/1.1\r\nContent-", 41);
  idle = rig_get(&rig, "healthz");
  local_server_close(rig.server, NULL, NULL);
  uv_run(&rig.loop, UV_RUN_DEFAULT);
  CHECK(half->closed && idle->closed);
  rig_free(half);
  rig_free(idle);
  CHECK_INT(uv_loop_close(&rig.loop), 0);
}

static int none_connected(const local_counts_t *counts) {
  return counts->n_connections == 0;
}

/* One that never ends its request, and one that never starts another. */
TEST(idle_connections_are_closed) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  exchange_t *half;
  exchange_t *idle;
  rig_t rig;

  options.idle_ms = 20;
  rig_open(&rig, &options);
  half = rig_raw(&rig, "POST /api/v1/telemetry HTTP/1.1\r\nContent-", 41);
  idle = rig_get(&rig, "healthz");
  rig_until(&rig, none_connected);
  rig_wait(half, 1);
  rig_wait(idle, 2);
  CHECK(half->closed && half->n_done == 0);
  CHECK(idle->closed && idle->n_done == 1);
  rig_free(half);
  rig_free(idle);
  rig_close(&rig);
}

/* They hang up while thousands of answers are on their way. The runner leaves
 * SIGPIPE as it is at the start of a program. */
TEST(clients_that_hang_up) {
  static const char one[] = "GET /api/v1/healthz HTTP/1.1\r\n\r\n";
  enum { N = 1500 };
  static char all[N * sizeof(one)];
  size_t n = 0;
  rig_t rig;
  exchange_t *x;

  for (int i = 0; i < N; i++) {
    memcpy(all + n, one, sizeof(one) - 1);
    n += sizeof(one) - 1;
  }
  rig_open(&rig, NULL);
  for (int i = 0; i < 20; i++) {
    x = rig_raw(&rig, all, n);
    rig_wait(x, 1);
    rig_free(x);
  }
  CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  rig_until(&rig, none_connected);
  rig_close(&rig);
}

/* A batched poll for a new session's sampler, which is held until the session
 * ends. */
static size_t held_poll(rig_t *rig, char session[96], char out[512]) {
  char sampler[96], body[256];

  rig_session(rig, session);
  rig_sampler(rig, session, sampler);
  snprintf(body, sizeof(body), "{\"target\":{\"sampling_session_id\":\"%s\"}}",
           sampler);
  return (size_t)snprintf(out, 512,
                          "POST /api/v1/retrieve_futures HTTP/1.1\r\n"
                          "Content-Length: %zu\r\n\r\n%s",
                          strlen(body), body);
}

static exchange_t *finish(rig_t *rig, const char *session) {
  char path[160];

  snprintf(path, sizeof(path), "sessions/%s/finish", session);
  return rig_start(rig, path, "{}");
}

/* Answers that were held end all at once, each before another request of the
 * same peer. While those stand in line, more bytes come for them, and the next
 * answer too. Nobody may be forgotten, and the server must not go round in
 * circles. */
TEST(held_answers_before_more_requests) {
  static const char last[] = "GET /api/v1/healthz HTTP/1.1\r\n\r\n";
  enum { N = 16 };
  char session[2][96], polls[1024];
  exchange_t *x[N];
  exchange_t *end[2];
  size_t n;
  rig_t rig;

  rig_open(&rig, NULL);
  n = held_poll(&rig, session[0], polls);
  n += held_poll(&rig, session[1], polls + n);
  for (int i = 0; i < N; i++)
    x[i] = rig_raw(&rig, polls, n);
  while (local_server_counts(rig.server).n_waiting < N)
    uv_run(&rig.loop, UV_RUN_ONCE);
  end[1] = rig_get(&rig, "healthz"); /* so that it is connected already */
  end[0] = finish(&rig, session[0]);
  while (local_server_counts(rig.server).n_waiting == N)
    uv_run(&rig.loop, UV_RUN_ONCE);
  n = (size_t)snprintf(polls, sizeof(polls),
                       "POST /api/v1/sessions/%s/finish HTTP/1.1\r\n"
                       "Content-Length: 2\r\n\r\n{}",
                       session[1]);
  for (int i = 0; i < N; i++)
    rig_more(x[i], last, sizeof(last) - 1);
  rig_more(end[1], polls, n);
  for (int i = 0; i < N; i++) {
    rig_wait(x[i], 3);
    CHECK_INT(x[i]->n_done, 3);
    rig_free(x[i]);
  }
  rig_wait(end[0], 1);
  rig_wait(end[1], 2);
  rig_free(end[0]);
  rig_free(end[1]);
  rig_close(&rig);
}

/* What is refused while it arrives has no path; the one before it on the
 * connection is not its own. */
TEST(a_fault_of_a_request_that_is_refused) {
  static const char good[] = "GET /api/v1/healthz HTTP/1.1\r\n\r\n";
  local_options_t options = LOCAL_OPTIONS_INIT;
  local_faults_t *faults = local_faults_new(test_allocator());
  char bad[900];
  rig_t rig;
  exchange_t *x;
  int n;

  CHECK_INT(local_faults_set(faults, "wrong_type/telemetry", NULL, 0), TNK_OK);
  options.faults = faults;
  rig_open(&rig, &options);
  x = rig_raw(&rig, good, sizeof(good) - 1);
  rig_wait(x, 1);
  n = snprintf(bad, sizeof(bad),
               "POST /api/v1/telemetry?%0600d HTTP/1.1\r\n"
               "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
               0);
  rig_more(x, bad, (size_t)n);
  rig_wait(x, 2);
  CHECK_INT(x->status, 400);
  /* It never came to be: nothing was injected. */
  CHECK_INT(local_faults_count(faults, NULL), 0);
  rig_free(x);
  rig_close(&rig);
  local_faults_free(faults);
}

/* A code of ours is told in our words; libuv has none for it. */
TEST(why_opening_failed) {
  static const tnk_pair_t flag = {"name", "\xff"};
  local_options_t options = LOCAL_OPTIONS_INIT;
  local_server_t *server;
  uv_loop_t loop;
  char why[128] = "";

  CHECK_INT(uv_loop_init(&loop), 0);
  options.why = why;
  options.n_why = sizeof(why);
  options.flags = &flag;
  options.n_flags = 1;
  CHECK_INT(local_server_open(&server, &loop, &options), TNK_EINVAL);
  CHECK_STR(why, tnk_strerror(TNK_EINVAL));
  uv_run(&loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&loop), 0);
}
