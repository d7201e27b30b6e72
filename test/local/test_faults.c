/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "support/test.h"
#include "tnk/error.h"
#include "tools/local/fault/fault.h"

/* Each fault as a peer sees it, and the log of them. */

typedef struct {
  rig_t rig;
  local_faults_t *faults;
} faulty_t;

static void open_with(faulty_t *f, const char *text, local_options_t options) {
  char why[512] = "";

  f->faults = local_faults_new(test_allocator());
  CHECK(f->faults != NULL);
  if (local_faults_set(f->faults, text, why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s: %s", text, why);
  options.faults = f->faults;
  rig_open(&f->rig, &options);
}

static void open_faulty(faulty_t *f, const char *text) {
  open_with(f, text, (local_options_t)LOCAL_OPTIONS_INIT);
}

static void close_faulty(faulty_t *f) {
  rig_close(&f->rig);
  local_faults_free(f->faults);
}

/* One request; everything that comes until the server is silent. */
static exchange_t *ask(faulty_t *f, const char *path, int seq) {
  char out[512];
  char body[64];
  int n_body = snprintf(body, sizeof(body), "{\"seq_id\":%d}", seq);
  int n = snprintf(out, sizeof(out),
                   "POST /api/v1/%s HTTP/1.1\r\nHost: x\r\n"
                   "Content-Type: application/json\r\nConnection: close\r\n"
                   "Content-Length: %d\r\n\r\n%s",
                   path, n_body, body);
  exchange_t *x = rig_raw(&f->rig, out, (size_t)n);

  x->is_raw = 1;
  while (!x->closed)
    uv_run(&f->rig.loop, UV_RUN_ONCE);
  return x;
}

static const char *body_of(const exchange_t *x) {
  const char *at = x->raw != NULL ? strstr(x->raw, "\r\n\r\n") : NULL;

  return at != NULL ? at + 4 : "";
}

TEST(refused_and_reset) {
  faulty_t f;
  exchange_t *x;

  open_faulty(&f, "refuse@1,reset/telemetry@1");
  x = ask(&f, "telemetry", 1);
  CHECK(x->reset && x->n_raw == 0);
  rig_free(x);
  x = ask(&f, "telemetry", 1);
  CHECK(x->reset && x->n_raw == 0);
  rig_free(x);
  x = ask(&f, "telemetry", 1);
  CHECK(strncmp(x->raw, "HTTP/1.1 200 ", 13) == 0);
  rig_free(x);
  CHECK_INT(local_server_counts(f.rig.server).n_requests, 1);
  CHECK_INT(local_faults_count(f.faults, NULL), 2);
  close_faulty(&f);
}

/* A reset comes before the body: the server does not wait for it. */
TEST(reset_before_the_body_is_read) {
  static const char head[] = "POST /api/v1/asample HTTP/1.1\r\nHost: x\r\n"
                             "Content-Length: 1000000\r\n\r\n{";
  faulty_t f;
  exchange_t *x;

  open_faulty(&f, "reset");
  x = rig_raw(&f.rig, head, sizeof(head) - 1);
  while (!x->closed)
    uv_run(&f.rig.loop, UV_RUN_ONCE);
  CHECK(x->reset);
  rig_free(x);
  close_faulty(&f);
}

TEST(dropped_after_it_was_done) {
  faulty_t f;
  exchange_t *x;

  open_faulty(&f, "drop_after_commit/create_session@1");
  x = rig_post(&f.rig, "create_session", "{\"sdk_version\":\"0.38.0\"}");
  CHECK(x->closed && x->n_done == 0);
  rig_free(x);
  CHECK_INT(local_server_counts(f.rig.server).n_sessions, 1);
  close_faulty(&f);
}

TEST(a_status_before_is_not_done_and_after_is) {
  faulty_t f;

  open_faulty(&f, "503/create_session@1,503/create_session@2:after");
  for (size_t i = 0; i < 2; i++) {
    CHECK_INT(rig_status(rig_post(&f.rig, "create_session",
                                  "{\"sdk_version\":\"0.38.0\"}")),
              503);
    CHECK_INT(local_server_counts(f.rig.server).n_sessions, i);
  }
  close_faulty(&f);
}

TEST(cut_bodies) {
  static const size_t sent[] = {0, 5, 20};
  char text[32];
  faulty_t f;
  exchange_t *x;

  open_faulty(&f, "");
  for (size_t i = 0; i < 3; i++) {
    snprintf(text, sizeof(text), "cut_body:%d", (int)(i == 2 ? 999 : i * 5));
    CHECK_INT(local_faults_set(f.faults, text, NULL, 0), TNK_OK);
    x = ask(&f, "telemetry", 1);
    /* The whole length is announced: {"status":"accepted"} */
    CHECK(strstr(x->raw, "Content-Length: 21\r\n"));
    CHECK_INT(strlen(body_of(x)), sent[i]);
    CHECK(!x->reset);
    rig_free(x);
  }
  close_faulty(&f);
}

/* Slow, on a connection that stays open: nothing is lost or overtakes. */
TEST(slow_bodies) {
  static const char both[] = "GET /api/v1/healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                             "GET /api/v1/healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  faulty_t f;
  exchange_t *x;
  uint64_t began;

  open_faulty(&f, "slow_body@1:200");
  x = rig_raw(&f.rig, both, sizeof(both) - 1);
  uv_update_time(&f.rig.loop);
  began = uv_now(&f.rig.loop);
  rig_wait(x, 2);
  /* {"status":"ok"}: the first byte is at once, then 14 at 5 ms each. */
  CHECK(uv_now(&f.rig.loop) - began >= 65);
  CHECK_STR(rig_text(x, "status"), "ok");
  CHECK(!x->closed);
  rig_free(x);
  close_faulty(&f);
}

/* The peer goes away, or the server closes, in the middle of a slow body. */
TEST(slow_bodies_that_end_early) {
  static const char get[] = "GET /api/v1/healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  faulty_t f;
  exchange_t *x[2];

  open_faulty(&f, "slow_body:10");
  for (int i = 0; i < 2; i++) {
    x[i] = rig_raw(&f.rig, get, sizeof(get) - 1);
    x[i]->is_raw = 1;
    while (strlen(body_of(x[i])) == 0)
      uv_run(&f.rig.loop, UV_RUN_ONCE);
  }
  rig_free(x[0]);
  CHECK_INT(local_faults_set(f.faults, "", NULL, 0), TNK_OK);
  rig_free(rig_get(&f.rig, "healthz"));
  local_server_close(f.rig.server, NULL, NULL);
  uv_run(&f.rig.loop, UV_RUN_DEFAULT);
  CHECK(x[1]->closed);
  rig_free(x[1]);
  CHECK_INT(uv_loop_close(&f.rig.loop), 0);
  local_faults_free(f.faults);
}

/* What the answer looks like. */
TEST(answers) {
  static const struct {
    const char *text;
    const char *call;
    const char *words[3];
  } rows[] = {
      {"400", "telemetry", {"HTTP/1.1 400 ", "Content-Length: 0\r\n"}},
      {"402", "telemetry", {"HTTP/1.1 402 ", "{\"detail\":"}},
      {"404", "retrieve_future", {"HTTP/1.1 404 ", "{\"detail\":"}},
      {"408:html", "telemetry", {"HTTP/1.1 408 ", "text/html", "<html>"}},
      {"409", "optim_step", {"HTTP/1.1 409 ", "\"Conflict, "}},
      {"409:expected=3", "optim_step", {" 409 ", "expected 3, got 5\"}"}},
      {"409:expected=+0", "optim_step", {" 409 ", "expected 5, got 5\"}"}},
      {"409:expected=-2", "optim_step", {" 409 ", "expected 3, got 5\"}"}},
      {"429", "telemetry", {"HTTP/1.1 429 ", "\"An injected fault: 429\""}},
      {"429:ms=5", "telemetry", {" 429 ", "\r\nretry-after-ms: 5\r\n"}},
      {"429:s=2", "telemetry", {" 429 ", "\r\nRetry-After: 2\r\n"}},
      {"503:html:after", "telemetry", {" 503 ", "<h1>503</h1>"}},
      {"504:empty", "telemetry", {" 504 Gateway Timeout", "Length: 0\r\n"}},
      {"try_again:paused_rate_limit",
       "retrieve_future",
       {" 200 ", "{\"type\":\"try_again\",",
        "\"queue_state\":\"paused_rate_limit\""}},
      {"bad_json", "telemetry", {" 200 ", "json", "{\"request_id\":\"x\","}},
      {"bad_proto", "retrieve_future", {" 200 ", "application/x-protobuf\r\n"}},
      {"wrong_type", "telemetry", {" 200 ", "text/html", "{\"status\":"}},
      {"duplicate_header",
       "telemetry",
       {"Content-Type: application/json\r\n", "Content-Type: text/plain\r\n"}},
      {"duplicate_header:content-length",
       "telemetry",
       {"Content-Length: 21\r\n", "Content-Length: 21\r\nConnection"}},
      {"duplicate_header:retry-after",
       "telemetry",
       {"Retry-After: 1\r\nRetry-After: 2\r\n"}},
      {"oversized:5000000000", "telemetry", {"Content-Length: 5000000000\r\n"}},
  };
  faulty_t f;

  open_faulty(&f, "");
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    exchange_t *x;

    CHECK_INT(local_faults_set(f.faults, rows[i].text, NULL, 0), TNK_OK);
    x = ask(&f, rows[i].call, 5);
    for (int k = 0; k < 3 && rows[i].words[k] != NULL; k++)
      if (strstr(x->raw, rows[i].words[k]) == NULL)
        test_fail(__FILE__, __LINE__, "%s: %s", rows[i].text, x->raw);
    rig_free(x);
  }
  CHECK_INT(local_faults_count(f.faults, NULL), sizeof(rows) / sizeof(*rows));
  close_faulty(&f);
}

TEST(the_three_forms_of_a_date) {
  static const char *const forms[] = {"date", "rfc850", "asctime"};
  static const char *const patterns[] = {
      "\r\nRetry-After: %3[A-Z a-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GM%c",
      "\r\nRetry-After: %9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GM%c",
      "\r\nRetry-After: %3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%c"};
  char text[32];
  faulty_t f;

  open_faulty(&f, "");
  for (int i = 0; i < 3; i++) {
    char day[10] = "";
    char month[4] = "";
    char end = 0;
    int n[5];
    int got;
    exchange_t *x;
    const char *at;

    snprintf(text, sizeof(text), "429:%s=1", forms[i]);
    CHECK_INT(local_faults_set(f.faults, text, NULL, 0), TNK_OK);
    x = ask(&f, "telemetry", 1);
    at = strstr(x->raw, "\r\nRetry-After");
    CHECK(at != NULL);
    if (i < 2)
      got = sscanf(at, patterns[i], day, &n[0], month, &n[1], &n[2], &n[3],
                   &n[4], &end);
    else
      got = sscanf(at, patterns[i], day, month, &n[0], &n[1], &n[2], &n[3],
                   &n[4], &end);
    if (got != 8 || end != (i < 2 ? 'T' : '\r'))
      test_fail(__FILE__, __LINE__, "%s: %s", text, at);
    rig_free(x);
  }
  close_faulty(&f);
}

TEST(an_answer_that_was_meant_for_another) {
  faulty_t f;
  exchange_t *x;

  open_faulty(&f, "other_answer/telemetry,extra_answer/session_heartbeat");
  rig_free(rig_get(&f.rig, "healthz"));
  x = ask(&f, "telemetry", 1);
  CHECK_STR(body_of(x), "{\"status\":\"ok\"}");
  rig_free(x);
  x = ask(&f, "session_heartbeat", 1);
  CHECK(strstr(body_of(x), "HTTP/1.1 ") != NULL);
  rig_free(x);
  close_faulty(&f);
}

/* ---- The log ---- */

TEST(the_log_in_memory_and_in_a_file) {
  char path[] = "/tmp/tnk-test-XXXXXX";
  char line[256];
  const local_fault_entry_t *entry;
  faulty_t f;
  FILE *file;
  int fd = mkstemp(path);

  CHECK(fd >= 0);
  close(fd);
  open_faulty(&f, "refuse@1,503/optim_step@2");
  CHECK_INT(local_faults_log_to(f.faults, "/nowhere/at/all"), UV_ENOENT);
  CHECK_INT(local_faults_log_to(f.faults, path), TNK_OK);
  for (int i = 0; i < 3; i++)
    rig_free(ask(&f, "optim_step", 7 + i));
  CHECK_INT(local_faults_count(f.faults, "503"), 1);
  CHECK_INT(local_faults_count(f.faults, "504"), 0);
  CHECK_STR(local_faults_entry(f.faults, 0)->name, "refuse");
  entry = local_faults_entry(f.faults, 1);
  CHECK_STR(entry->name, "503");
  CHECK_STR(entry->call, "optim_step");
  CHECK_INT(entry->n, 2);
  CHECK_INT(entry->seq_id, 9);
  CHECK(local_faults_entry(f.faults, 2) == NULL);
  file = fopen(path, "r");
  CHECK(file != NULL);
  CHECK(fgets(line, sizeof(line), file) != NULL);
  CHECK_STR(line, "{\"fault\":\"refuse\",\"connection\":1}\n");
  CHECK(fgets(line, sizeof(line), file) != NULL);
  CHECK_STR(line, "{\"fault\":\"503\",\"request\":2,\"call\":\"optim_step\","
                  "\"seq_id\":9}\n");
  CHECK(fgets(line, sizeof(line), file) == NULL);
  fclose(file);
  remove(path);
  close_faulty(&f);
}

/* More than are remembered: the last ones are. */
TEST(the_log_is_bounded) {
  local_faults_t *faults = local_faults_new(test_allocator());
  const local_fault_t fault = {.kind = LOCAL_FAULT_DROP};
  size_t n = 0;

  for (uint64_t i = 1; i <= LOCAL_FAULT_LOG_SIZE + 10; i++)
    local_faults_note(faults, &fault, i, "/api/v1/asample", -1);
  CHECK_INT(local_faults_entry(faults, 0)->n, 11);
  while (local_faults_entry(faults, n) != NULL)
    n++;
  CHECK_INT(n, LOCAL_FAULT_LOG_SIZE);
  CHECK_INT(local_faults_entry(faults, n - 1)->n, LOCAL_FAULT_LOG_SIZE + 10);
  CHECK_INT(local_faults_count(faults, "drop_after_commit"),
            LOCAL_FAULT_LOG_SIZE + 10);
  local_faults_free(faults);
}

/* A peer's bytes are in the list, which is JSON. */
TEST(calls_that_are_not_utf8) {
  faulty_t f;
  exchange_t *x;

  open_faulty(&f, "503");
  local_faults_open_control(f.faults);
  rig_free(ask(&f, "%ff", 1));
  rig_free(ask(&f, "telemetry", 1));
  x = rig_send(&f.rig, "GET", LOCAL_FAULTS_PATH, NULL, NULL, 0);
  rig_wait(x, 1);
  CHECK_INT(x->status, 200);
  CHECK_INT(json_integer_value(json_object_get(x->json, "n")), 2);
  rig_free(x);
  x = rig_send(&f.rig, "PUT", LOCAL_FAULTS_PATH, NULL, "503/\xff", 5);
  rig_wait(x, 1);
  CHECK_INT(x->status, 400);
  rig_free(x);
  close_faulty(&f);
}

/* The sum of two numbers that a peer and a text choose. */
TEST(an_expected_number_that_does_not_exist) {
  static const char body[] = "{\"seq_id\":9223372036854775807}";
  faulty_t f;
  exchange_t *x;

  open_faulty(&f, "409/telemetry:expected=+5");
  x = rig_send(&f.rig, "POST", "/api/v1/telemetry", NULL, body,
               sizeof(body) - 1);
  rig_wait(x, 1);
  CHECK_INT(x->status, 409);
  CHECK(strstr(x->body, "expected -") == NULL);
  rig_free(x);
  close_faulty(&f);
}

/* ---- The endpoint ---- */

static exchange_t *control(faulty_t *f, const char *method, const char *headers,
                           const char *body) {
  exchange_t *x =
      rig_send(&f->rig, method, LOCAL_FAULTS_PATH, headers, body, strlen(body));

  rig_wait(x, 1);
  return x;
}

TEST(the_endpoint_is_closed_by_default) {
  faulty_t f;

  open_faulty(&f, "");
  CHECK_INT(rig_status(control(&f, "PUT", NULL, "503")), 404);
  rig_free(rig_get(&f.rig, "healthz"));
  CHECK_INT(local_faults_count(f.faults, NULL), 0);
  close_faulty(&f);
}

TEST(the_endpoint_sets_and_lists) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  static const char key[] = "X-API-Key: tml-1\r\n";
  faulty_t f;
  exchange_t *x;

  options.api_key = "tml-1";
  open_with(&f, "", options);
  local_faults_open_control(f.faults);
  CHECK_INT(rig_status(control(&f, "PUT", NULL, "503/healthz@2")), 401);
  x = control(&f, "PUT", key, "503/healthz@2x");
  CHECK_INT(x->status, 400);
  CHECK(strstr(rig_text(x, "detail"), "in the fault \"503/healthz@2x\""));
  rig_free(x);
  x = control(&f, "PUT", key, "503/healthz@2");
  CHECK_INT(x->status, 200);
  CHECK_STR(rig_text(x, "faults"), "503/healthz@2");
  rig_free(x);
  for (int i = 0; i < 3; i++)
    rig_free(rig_get(&f.rig, "healthz"));
  x = control(&f, "GET", key, "");
  CHECK_INT(json_integer_value(json_object_get(x->json, "n")), 1);
  CHECK_INT(json_integer_value(
                json_object_get(json_object_get(x->json, "counts"), "503")),
            1);
  CHECK_STR(json_string_value(json_object_get(
                json_array_get(json_object_get(x->json, "last"), 0), "call")),
            "healthz");
  rig_free(x);
  CHECK_INT(rig_status(control(&f, "DELETE", key, "")), 405);
  close_faulty(&f);
}
