/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "h2_client.h"
#include "support/test.h"
#include "tnk/error.h"
#include "tools/local/fault/fault.h"

/* Each fault as a peer sees it that speaks HTTP/2. */

typedef struct {
  rig_t rig;
  local_faults_t *faults;
  h2_client_t *client;
  h2_stream_t *poll; /* held, on the same connection */
} faulty_t;

/* A poll for a step that waits for the number before it is the neighbor. */
static void hold_poll(faulty_t *f) {
  char session[96];
  char model[96];
  char step[96];
  char body[160];

  rig_session(&f->rig, session);
  rig_model(&f->rig, session, model);
  rig_id(rig_step(&f->rig, model, 2, 0.1), step);
  snprintf(body, sizeof(body), "{\"request_id\":\"%s\"}", step);
  f->poll = h2_post(f->client, "retrieve_future", body);
  while (local_server_counts(f->rig.server).n_waiting < 1)
    uv_run(&f->rig.loop, UV_RUN_ONCE);
}

static void open_faulty(faulty_t *f, const char *text) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char why[512] = "";

  f->faults = local_faults_new(test_allocator());
  CHECK(f->faults != NULL);
  options.faults = f->faults;
  rig_open(&f->rig, &options);
  f->client = h2_open(&f->rig);
  hold_poll(f);
  if (local_faults_set(f->faults, text, why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s: %s", text, why);
}

static void close_faulty(faulty_t *f) {
  h2_close(f->client);
  rig_close(&f->rig);
  local_faults_free(f->faults);
}

/* The request suffers, the poll beside it does not. */
static h2_stream_t *suffer(faulty_t *f, const char *text) {
  h2_stream_t *stream;

  CHECK_INT(local_faults_set(f->faults, text, NULL, 0), TNK_OK);
  stream = h2_post(f->client, "telemetry", "{\"seq_id\":5}");
  h2_wait(stream);
  CHECK(!f->client->x->closed && !f->poll->is_closed);
  return stream;
}

TEST(resets_of_a_stream) {
  static const struct {
    const char *text;
    uint32_t code;
  } rows[] = {{"reset", NGHTTP2_INTERNAL_ERROR},
              {"reset:refused", NGHTTP2_REFUSED_STREAM},
              {"reset:calm", NGHTTP2_ENHANCE_YOUR_CALM},
              {"reset:cancel", NGHTTP2_CANCEL},
              {"reset:protocol", NGHTTP2_PROTOCOL_ERROR},
              {"reset:http_1_1", NGHTTP2_HTTP_1_1_REQUIRED},
              {"drop_after_commit", NGHTTP2_INTERNAL_ERROR}};
  faulty_t f;

  open_faulty(&f, "");
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    const h2_stream_t *stream = suffer(&f, rows[i].text);

    CHECK_INT(stream->status, 0);
    CHECK_INT(stream->code, rows[i].code);
  }
  CHECK_INT(local_faults_count(f.faults, NULL), sizeof(rows) / sizeof(*rows));
  close_faulty(&f);
}

/* Before the body: the server does not wait for it. */
TEST(reset_before_the_body_is_read) {
  h2_stream_t *stream;
  faulty_t f;

  open_faulty(&f, "reset/telemetry");
  stream = h2_begin(f.client, "/api/v1/telemetry", "1000000", "{", 1);
  h2_wait(stream);
  CHECK_INT(stream->code, NGHTTP2_INTERNAL_ERROR);
  close_faulty(&f);
}

/* The neighbors go along. */
TEST(resets_of_the_connection) {
  static const char *const texts[] = {"reset:connection",
                                      "drop_after_commit:connection"};

  for (int i = 0; i < 2; i++) {
    faulty_t f;

    open_faulty(&f, texts[i]);
    h2_post(f.client, "create_session", "{\"sdk_version\":\"0.38.0\"}");
    h2_wait_closed(f.client);
    CHECK_INT(f.client->x->reset, i == 0);
    CHECK(!f.poll->is_done);
    /* The second was served before; hold_poll() has one as well. */
    CHECK_INT(local_server_counts(f.rig.server).n_sessions, 1 + i);
    CHECK_INT(local_server_counts(f.rig.server).n_waiting, 0);
    close_faulty(&f);
  }
}

/* What was there before ends well, the request was not served, and nor is what
 * the peer sends behind it. */
TEST(goaway_before_a_request) {
  h2_stream_t *behind;
  faulty_t f;

  open_faulty(&f, "goaway/create_session@1");
  behind = h2_post(f.client, "create_session", "{\"sdk_version\":\"0.38.0\"}");
  h2_post(f.client, "create_session", "{\"sdk_version\":\"0.38.0\"}");
  while (f.client->n_goaway == 0)
    uv_run(&f.rig.loop, UV_RUN_ONCE);
  CHECK_INT(f.client->last_id, f.poll->id);
  CHECK_INT(f.client->code, NGHTTP2_NO_ERROR);
  CHECK(behind->is_closed);
  CHECK_INT(behind->code, NGHTTP2_REFUSED_STREAM);
  CHECK_INT(local_server_counts(f.rig.server).n_sessions, 1);
  CHECK(!f.poll->is_closed && !f.client->x->closed);
  h2_reset(f.poll, NGHTTP2_CANCEL);
  h2_wait_closed(f.client);
  close_faulty(&f);
}

TEST(goaway_behind_an_answer) {
  h2_stream_t *stream;
  faulty_t f;

  open_faulty(&f, "goaway/create_session@1:after");
  stream = h2_post(f.client, "create_session", "{\"sdk_version\":\"0.38.0\"}");
  CHECK_INT(h2_status(stream), 200);
  CHECK_INT(f.client->n_goaway, 1);
  CHECK_INT(f.client->last_id, stream->id);
  CHECK(!f.poll->is_closed);
  h2_reset(f.poll, NGHTTP2_CANCEL);
  h2_wait_closed(f.client);
  CHECK(!f.client->x->reset);
  close_faulty(&f);
}

TEST(goaway_over_http_1_1) {
  exchange_t *x;
  faulty_t f;

  open_faulty(&f, "goaway/create_session@1,goaway/create_session@2:after");
  x = rig_post(&f.rig, "create_session", "{\"sdk_version\":\"0.38.0\"}");
  CHECK(x->closed && x->n_done == 0 && !x->reset);
  CHECK_INT(local_server_counts(f.rig.server).n_sessions, 1);
  rig_free(x);
  x = rig_post(&f.rig, "create_session", "{\"sdk_version\":\"0.38.0\"}");
  CHECK_INT(x->status, 200);
  while (!x->closed)
    uv_run(&f.rig.loop, UV_RUN_ONCE);
  rig_free(x);
  close_faulty(&f);
}

TEST(cut_bodies) {
  static const size_t sent[] = {0, 5, 20};
  char text[32];
  faulty_t f;

  open_faulty(&f, "");
  for (size_t i = 0; i < 3; i++) {
    const h2_stream_t *stream;

    snprintf(text, sizeof(text), "cut_body:%d", (int)(i == 2 ? 999 : i * 5));
    stream = suffer(&f, text);
    CHECK_INT(stream->status, 200);
    CHECK(strstr(stream->head, "content-length: 21\n") != NULL);
    CHECK_INT(stream->n_body, sent[i]);
    CHECK(!stream->is_done);
    CHECK_INT(stream->code, NGHTTP2_INTERNAL_ERROR);
  }
  close_faulty(&f);
}

TEST(slow_bodies) {
  h2_stream_t *slow;
  h2_stream_t *quick;
  faulty_t f;

  open_faulty(&f, "slow_body/telemetry:200");
  slow = h2_post(f.client, "telemetry", "{}");
  while (slow->n_body == 0)
    uv_run(&f.rig.loop, UV_RUN_ONCE);
  CHECK(slow->n_body < 21);
  quick = h2_get(f.client, "/api/v1/healthz");
  CHECK_INT(h2_status(quick), 200);
  h2_wait(slow);
  CHECK_STR(slow->body, "{\"status\":\"accepted\"}");
  CHECK(quick->order < slow->order);
  /* The peer leaves in the middle of one, by a reset and for good. */
  slow = h2_post(f.client, "telemetry", "{}");
  while (slow->n_body == 0)
    uv_run(&f.rig.loop, UV_RUN_ONCE);
  h2_reset(slow, NGHTTP2_CANCEL);
  slow = h2_post(f.client, "telemetry", "{}");
  while (slow->n_body == 0)
    uv_run(&f.rig.loop, UV_RUN_ONCE);
  close_faulty(&f);
}

/* What the answer looks like. */
TEST(answers) {
  static const struct {
    const char *text;
    const char *words[3];
  } rows[] = {
      {"402", {":status: 402\n", "application/json"}},
      {"429:ms=5", {":status: 429\n", "\nretry-after-ms: 5\n"}},
      {"503:html:after", {":status: 503\n", "text/html"}},
      {"504:empty", {":status: 504\n", "content-length: 0\n"}},
      {"bad_json", {":status: 200\n", "json"}},
      {"wrong_type", {":status: 200\n", "text/html"}},
      {"duplicate_header",
       {"content-type: application/json\n", "content-type: text/plain\n"}},
      {"duplicate_header:retry-after", {"retry-after: 1\nretry-after: 2\n"}},
      {"extra_answer", {":status: 200\n"}},
      {"oversized:5000000000", {"content-length: 5000000000\n"}},
  };
  faulty_t f;

  open_faulty(&f, "");
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    const h2_stream_t *stream = suffer(&f, rows[i].text);

    for (int k = 0; k < 3 && rows[i].words[k] != NULL; k++)
      if (strstr(stream->head, rows[i].words[k]) == NULL)
        test_fail(__FILE__, __LINE__, "%s: %s", rows[i].text, stream->head);
  }
  CHECK_INT(local_faults_count(f.faults, NULL), sizeof(rows) / sizeof(*rows));
  close_faulty(&f);
}

/* Twice, the peer itself has to refuse it. */
TEST(a_length_that_is_told_twice) {
  faulty_t f;

  open_faulty(&f, "");
  CHECK_INT(suffer(&f, "duplicate_header:content-length")->n_body, 0);
  close_faulty(&f);
}

TEST(an_answer_larger_than_a_window) {
  faulty_t f;

  open_faulty(&f, "");
  /* 64 KiB of it are sent, a byte more than a window has at first. */
  CHECK_INT(suffer(&f, "oversized:5000000000")->n_body, 65536);
  close_faulty(&f);
}
