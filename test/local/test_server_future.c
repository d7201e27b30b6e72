/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "support/test.h"

/* Polls: held, late, cancelled, batched, and of results that are gone. */

typedef struct {
  rig_t rig;
  char session[96];
  char model[96];
  char sampler[96];
} bench_t;

static void bench_open(bench_t *b, const local_options_t *options) {
  rig_open(&b->rig, options);
  rig_session(&b->rig, b->session);
  rig_sampler(&b->rig, b->session, b->sampler);
}

static exchange_t *start_sample(bench_t *b, long long seq, int max_tokens) {
  return rig_start(&b->rig, "asample",
                   "{\"num_samples\":1,\"prompt\":{\"chunks\":[{\"tokens\":"
                   "[104,105],\"type\":\"encoded_text\"}]},"
                   "\"sampling_params\":{\"max_tokens\":%d,\"stop\":[]},"
                   "\"sampling_session_id\":\"%s\",\"seq_id\":%lld}",
                   max_tokens, b->sampler, seq);
}

static exchange_t *poll_once(bench_t *b, const char *id) {
  return rig_post(&b->rig, "retrieve_future", "{\"request_id\":\"%s\"}", id);
}

static int one_waits(const local_counts_t *counts) {
  return counts->n_waiting == 1;
}

static int none_waits(const local_counts_t *counts) {
  return counts->n_waiting == 0;
}

/* A step that waits for the number before its own. */
static void open_with_gap(bench_t *b, char id[96]) {
  bench_open(b, NULL);
  rig_model(&b->rig, b->session, b->model);
  rig_id(rig_step(&b->rig, b->model, 2, 0.1), id);
}

/* The same with a poll for it, held. */
static exchange_t *open_held(bench_t *b, char id[96]) {
  exchange_t *x;

  open_with_gap(b, id);
  x = rig_start(&b->rig, "retrieve_future", "{\"request_id\":\"%s\"}", id);
  rig_until(&b->rig, one_waits);
  return x;
}

TEST(a_held_poll_is_answered_when_the_result_comes) {
  char id[96];
  bench_t b;
  exchange_t *x;
  exchange_t *second;

  x = open_held(&b, id);
  second = rig_start(&b.rig, "retrieve_future", "{\"request_id\":\"%s\"}", id);
  CHECK_INT(x->n_done, 0);
  rig_free(rig_done(&b.rig, rig_step(&b.rig, b.model, 1, 0.1)));
  /* Each waiter gets it. */
  rig_wait(x, 1);
  rig_wait(second, 1);
  CHECK_INT(x->status, 200);
  CHECK_STR(rig_text(x, "type"), "optim_step");
  CHECK_STR(second->body, x->body);
  rig_free(x);
  rig_free(second);
  CHECK_INT(local_server_counts(b.rig.server).n_waiting, 0);
  rig_close(&b.rig);
}

TEST(a_waiter_that_leaves_is_forgotten) {
  char id[96];
  bench_t b;
  exchange_t *x;

  x = open_held(&b, id);
  rig_free(x);
  rig_until(&b.rig, none_waits);
  rig_free(rig_done(&b.rig, rig_step(&b.rig, b.model, 1, 0.1)));
  CHECK_INT(rig_status(rig_result(&b.rig, id)), 200);
  rig_close(&b.rig);
}

TEST(closing_with_held_polls) {
  char id[96];
  bench_t b;
  exchange_t *x;

  x = open_held(&b, id);
  local_server_close(b.rig.server, NULL, NULL);
  uv_run(&b.rig.loop, UV_RUN_DEFAULT);
  CHECK(x->closed);
  rig_free(x);
  CHECK_INT(uv_loop_close(&b.rig.loop), 0);
}

TEST(unknown_ids) {
  bench_t b;

  bench_open(&b, NULL);
  CHECK_INT(rig_status(poll_once(&b, "nobody")), 404);
  CHECK_INT(rig_status(rig_post(&b.rig, "retrieve_future", "{}")), 422);
  CHECK_INT(rig_status(rig_post(&b.rig, "cancel_future",
                                "{\"request_id\":\"nobody\"}")),
            404);
  rig_close(&b.rig);
}

/* The oldest results give way, and are told from what never was. */
TEST(results_have_a_ceiling) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char ids[6][96];
  bench_t b;

  options.max_results = 3;
  bench_open(&b, &options);
  for (int i = 0; i < 6; i++) {
    rig_id(start_sample(&b, i, 1), ids[i]);
    rig_free(rig_result(&b.rig, ids[i]));
  }
  for (int i = 0; i < 6; i++)
    CHECK_INT(rig_status(poll_once(&b, ids[i])), i < 3 ? 410 : 200);
  CHECK_INT(local_server_counts(b.rig.server).n_futures, 3);
  rig_close(&b.rig);
}

TEST(pending_requests_have_a_ceiling) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  bench_t b;

  options.max_pending = 4;
  bench_open(&b, &options);
  rig_model(&b.rig, b.session, b.model);
  for (int i = 2; i < 6; i++)
    CHECK_INT(rig_status(rig_step(&b.rig, b.model, i, 0.1)), 200);
  CHECK_INT(rig_status(rig_step(&b.rig, b.model, 6, 0.1)), 429);
  rig_close(&b.rig);
}

/* With a latency that does not pass, work is done but nobody sees it. */
TEST(latency_hides_results) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char id[96];
  bench_t b;
  exchange_t *x;

  options.latency_ms = 3600000;
  options.hold_ms = 0;
  bench_open(&b, &options);
  rig_id(start_sample(&b, 0, 1), id);
  for (int i = 0; i < 20; i++) {
    x = poll_once(&b, id);
    CHECK_STR(rig_text(x, "type"), "try_again");
    rig_free(x);
  }
  rig_close(&b.rig);
}

TEST(metadata_first) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char id[96];
  bench_t b;
  exchange_t *x;

  options.metadata_from = 100;
  bench_open(&b, &options);
  rig_id(start_sample(&b, 0, 50), id);
  rig_free(rig_result(&b.rig, id));
  x = rig_post(&b.rig, "retrieve_future",
               "{\"request_id\":\"%s\",\"allow_metadata_only\":true}", id);
  CHECK_STR(rig_text(x, "status"), "complete_metadata");
  CHECK(json_integer_value(json_object_get(x->json, "response_payload_size")) >
        400);
  rig_free(x);
  x = rig_post(&b.rig, "retrieve_future",
               "{\"request_id\":\"%s\",\"allow_metadata_only\":false}", id);
  CHECK(json_object_get(x->json, "sequences") != NULL);
  rig_free(x);
  /* Small results come at once. */
  rig_id(start_sample(&b, 1, 1), id);
  rig_free(rig_result(&b.rig, id));
  x = rig_post(&b.rig, "retrieve_future",
               "{\"request_id\":\"%s\",\"allow_metadata_only\":true}", id);
  CHECK(json_object_get(x->json, "sequences") != NULL);
  rig_free(x);
  rig_close(&b.rig);
}

TEST(cancelling_a_sample) {
  char id[96];
  char step[96];
  bench_t b;

  bench_open(&b, NULL);
  rig_id(start_sample(&b, 0, 4000), id);
  CHECK_INT(rig_status(rig_post(&b.rig, "cancel_future",
                                "{\"request_id\":\"%s\"}", id)),
            200);
  CHECK_INT(rig_status(rig_result(&b.rig, id)), 410);
  /* Twice is harmless, and a training step is not cancelled. */
  rig_free(rig_post(&b.rig, "cancel_future", "{\"request_id\":\"%s\"}", id));
  rig_model(&b.rig, b.session, b.model);
  rig_id(rig_step(&b.rig, b.model, 1, 0.1), step);
  rig_free(rig_post(&b.rig, "cancel_future", "{\"request_id\":\"%s\"}", step));
  CHECK_INT(rig_status(rig_result(&b.rig, step)), 200);
  rig_close(&b.rig);
}

/* ---- Batched polls ---- */

static exchange_t *batch(bench_t *b, long long clone, long long cursor,
                         const char *rest) {
  return rig_start(&b->rig, "retrieve_futures",
                   "{\"target\":{\"type\":\"sampling_session\","
                   "\"sampling_session_id\":\"%s\",\"cloned_sampler_id\":%lld},"
                   "\"prev_cursor\":%lld%s}",
                   b->sampler, clone, cursor, rest);
}

static exchange_t *batch_once(bench_t *b, long long clone, long long cursor,
                              const char *rest) {
  exchange_t *x = batch(b, clone, cursor, rest);

  rig_wait(x, 1);
  return x;
}

static size_t n_completions(const exchange_t *x) {
  return json_array_size(json_object_get(x->json, "completions"));
}

static long long cursor_of(const exchange_t *x) {
  return json_integer_value(json_object_get(x->json, "cursor"));
}

static int is_finished(const exchange_t *x, const char *id) {
  json_t *list = json_object_get(x->json, "completions");
  size_t i;
  json_t *entry;

  json_array_foreach(list, i, entry) {
    if (strcmp(json_string_value(json_object_get(entry, "request_id")), id) ==
        0)
      return strcmp(json_string_value(json_object_get(entry, "state")),
                    "finished") == 0 &&
             json_integer_value(json_object_get(
                 entry, "response_payload_uncompressed_size")) > 0;
  }
  return 0;
}

TEST(batched_polls_tell_what_is_new) {
  char ids[2][96];
  char other[96];
  long long cursor;
  bench_t b;
  exchange_t *x;

  bench_open(&b, NULL);
  x = batch_once(&b, 0, 0, ",\"timeout\":0.0");
  CHECK_INT(n_completions(x), 0);
  CHECK_INT(cursor_of(x), 0);
  rig_free(x);
  /* Held until something finishes. */
  x = batch(&b, 0, 0, "");
  rig_until(&b.rig, one_waits);
  rig_id(start_sample(&b, 0, 1), ids[0]);
  rig_wait(x, 1);
  CHECK_INT(n_completions(x), 1);
  CHECK(is_finished(x, ids[0]));
  cursor = cursor_of(x);
  CHECK(cursor > 0);
  rig_free(x);
  /* Another client of the session has its own. */
  rig_id(start_sample(&b, 3000000000, 1), other);
  rig_free(rig_result(&b.rig, other));
  x = batch_once(&b, 0, cursor, ",\"timeout\":0.0");
  CHECK_INT(n_completions(x), 0);
  CHECK_INT(cursor_of(x), cursor);
  rig_free(x);
  x = batch_once(&b, 3, 0, "");
  CHECK_INT(n_completions(x), 1);
  CHECK(is_finished(x, other));
  rig_free(x);
  /* The same cursor again brings the same again. */
  rig_id(start_sample(&b, 1, 1), ids[1]);
  rig_free(rig_result(&b.rig, ids[1]));
  x = batch_once(&b, 0, 0, "");
  CHECK_INT(n_completions(x), 2);
  rig_free(x);
  x = batch_once(&b, 0, cursor, "");
  CHECK_INT(n_completions(x), 1);
  CHECK(is_finished(x, ids[1]));
  rig_free(x);
  rig_close(&b.rig);
}

TEST(batched_polls_drop_what_was_retrieved) {
  char id[96];
  char rest[200];
  bench_t b;
  exchange_t *x;

  bench_open(&b, NULL);
  rig_id(start_sample(&b, 0, 1), id);
  rig_free(rig_result(&b.rig, id));
  snprintf(rest, sizeof(rest),
           ",\"timeout\":0.0,\"retrieved_request_ids\":[\"%s\",\"x\",7]", id);
  x = batch_once(&b, 0, 0, rest);
  CHECK_INT(x->status, 200);
  CHECK_INT(n_completions(x), 0);
  rig_free(x);
  CHECK_INT(rig_status(poll_once(&b, id)), 410);
  CHECK_INT(local_server_counts(b.rig.server).n_futures, 0);
  rig_close(&b.rig);
}

TEST(batched_polls_end_with_the_session) {
  char path[160];
  bench_t b;
  exchange_t *held;

  bench_open(&b, NULL);
  CHECK_INT(rig_status(rig_post(&b.rig, "retrieve_futures", "{\"target\":{}}")),
            422);
  held = batch(&b, 0, 0, "");
  rig_until(&b.rig, one_waits);
  snprintf(path, sizeof(path), "sessions/%s/finish", b.session);
  rig_free(rig_post(&b.rig, path, "{\"reason\":{\"type\":\"success\"}}"));
  rig_wait(held, 1);
  CHECK_INT(held->status, 404);
  rig_free(held);
  CHECK_INT(rig_status(batch(&b, 0, 0, "")), 404);
  rig_close(&b.rig);
}

/* The next request already waits behind a held poll: it is served after the
 * answer, not from inside it. */
TEST(requests_behind_a_held_poll) {
  char id[96];
  char all[1024];
  bench_t b;
  exchange_t *x;
  int n;

  open_with_gap(&b, id);
  n = snprintf(all, sizeof(all),
               "POST /api/v1/retrieve_future HTTP/1.1\r\nContent-Length: %zu"
               "\r\n\r\n{\"request_id\":\"%s\"}"
               "GET /api/v1/healthz HTTP/1.1\r\n\r\n",
               strlen(id) + 17, id);
  x = rig_raw(&b.rig, all, (size_t)n);
  rig_until(&b.rig, one_waits);
  rig_free(rig_done(&b.rig, rig_step(&b.rig, b.model, 1, 0.1)));
  rig_wait(x, 2);
  CHECK_INT(x->n_done, 2);
  CHECK_STR(rig_text(x, "status"), "ok");
  rig_free(x);
  rig_close(&b.rig);
}
