/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "support/test.h"
#include "tnk/error.h"

/* What a sequence number means to each of the three servers, row by row of the
 * table of known servers. */

typedef struct {
  rig_t rig;
  char session[96];
  char model[96];
} bench_t;

static void bench_open(bench_t *b, local_sequence_t sequence) {
  local_options_t options = LOCAL_OPTIONS_INIT;

  options.sequence = sequence;
  options.hold_ms = 50;
  rig_open(&b->rig, &options);
  rig_session(&b->rig, b->session);
  rig_model(&b->rig, b->session, b->model);
}

/* A strict server takes protobuf passes only, so steps stand for all. */
static void step_id(bench_t *b, int seq, double rate, char id[96]) {
  rig_id(rig_step(&b->rig, b->model, seq, rate), id);
}

static int step_status(bench_t *b, int seq, double rate) {
  return rig_status(rig_step(&b->rig, b->model, seq, rate));
}

/* Number of the step that a finished request was; -1 when it failed. */
static int step_number(bench_t *b, const char *id) {
  exchange_t *x = rig_result(&b->rig, id);
  json_t *step = json_object_get(json_object_get(x->json, "metrics"), "step");
  int n = x->status == 200 && step != NULL ? (int)json_number_value(step) : -1;

  rig_free(x);
  return n;
}

TEST(buffered_runs_in_order_of_the_numbers) {
  char ids[5][96];
  bench_t b;

  bench_open(&b, LOCAL_BUFFERED);
  step_id(&b, 5, 0.1, ids[4]);
  step_id(&b, 4, 0.1, ids[3]);
  step_id(&b, 2, 0.1, ids[1]);
  step_id(&b, 3, 0.1, ids[2]);
  step_id(&b, 1, 0.1, ids[0]);
  for (int i = 4; i >= 0; i--)
    CHECK_INT(step_number(&b, ids[i]), i + 1);
  rig_close(&b.rig);
}

TEST(buffered_holds_until_the_gap_closes) {
  char late[96];
  char first[96];
  bench_t b;
  exchange_t *x;

  bench_open(&b, LOCAL_BUFFERED);
  step_id(&b, 2, 0.1, late);
  x = rig_post(&b.rig, "retrieve_future", "{\"request_id\":\"%s\"}", late);
  CHECK_STR(rig_text(x, "type"), "try_again");
  CHECK_STR(rig_text(x, "queue_state"), "active");
  CHECK_STR(rig_text(x, "request_id"), late);
  rig_free(x);
  step_id(&b, 1, 0.1, first);
  CHECK_INT(step_number(&b, late), 2);
  CHECK_INT(step_number(&b, first), 1);
  rig_close(&b.rig);
}

TEST(buffered_repeats) {
  char first[96];
  char again[96];
  bench_t b;

  bench_open(&b, LOCAL_BUFFERED);
  step_id(&b, 1, 0.1, first);
  step_id(&b, 1, 0.1, again);
  CHECK_STR(again, first);
  CHECK_INT(step_status(&b, 1, 0.2), 422);
  CHECK_INT(step_number(&b, first), 1);
  step_id(&b, 1, 0.1, again);
  CHECK_STR(again, first);
  step_id(&b, 2, 0.1, again);
  CHECK_INT(step_number(&b, again), 2);
  /* A number is needed. */
  CHECK_INT(
      rig_status(rig_post(&b.rig, "optim_step",
                          "{\"model_id\":\"%s\",\"adam_params\":{}}", b.model)),
      422);
  rig_close(&b.rig);
}

TEST(buffered_failures_use_their_number_up) {
  char id[96];
  bench_t b;
  exchange_t *x;

  bench_open(&b, LOCAL_BUFFERED);
  rig_id(rig_start(&b.rig, "load_weights",
                   "{\"model_id\":\"%s\",\"seq_id\":1,"
                   "\"path\":\"tinker://no/weights/x\",\"optimizer\":false}",
                   b.model),
         id);
  x = rig_result(&b.rig, id);
  CHECK_STR(rig_text(x, "category"), "user");
  rig_free(x);
  step_id(&b, 2, 0.1, id);
  CHECK_INT(step_number(&b, id), 1);
  rig_close(&b.rig);
}

TEST(lenient_takes_what_comes) {
  char ids[4][96];
  char again[96];
  bench_t b;
  exchange_t *x;

  bench_open(&b, LOCAL_LENIENT);
  step_id(&b, 5, 0.1, ids[0]);
  step_id(&b, 4, 0.1, ids[1]);
  step_id(&b, 9, 0.1, ids[2]);
  for (int i = 0; i < 3; i++)
    CHECK_INT(step_number(&b, ids[i]), i + 1);
  step_id(&b, 4, 0.1, again);
  CHECK_STR(again, ids[1]);
  x = rig_step(&b.rig, b.model, 4, 0.2);
  rig_wait(x, 1);
  CHECK_INT(x->status, 409);
  CHECK(strstr(rig_text(x, "detail"),
               "Training request sequence number was reused"));
  rig_free(x);
  /* The number is the model's, whatever the kind of request. */
  CHECK_INT(rig_status(rig_pass(&b.rig, b.model, 5, "ab")), 409);
  /* Without numbers they stay distinct. */
  rig_id(rig_start(&b.rig, "optim_step",
                   "{\"model_id\":\"%s\",\"adam_params\":{}}", b.model),
         ids[3]);
  rig_id(rig_start(&b.rig, "optim_step",
                   "{\"model_id\":\"%s\",\"adam_params\":{}}", b.model),
         again);
  CHECK(strcmp(again, ids[3]) != 0);
  CHECK_INT(step_number(&b, again), 5);
  rig_close(&b.rig);
}

TEST(lenient_failures_and_polls) {
  char id[96];
  bench_t b;
  exchange_t *x;

  bench_open(&b, LOCAL_LENIENT);
  CHECK_INT(rig_status(rig_post(
                &b.rig, "load_weights",
                "{\"model_id\":\"%s\",\"seq_id\":1,"
                "\"path\":\"tinker://no/weights/x\",\"optimizer\":false}",
                b.model)),
            404);
  rig_id(rig_start(&b.rig, "optim_step",
                   "{\"model_id\":\"%s\",\"seq_id\":1,\"optimizer_params\":{"
                   "\"type\":\"dimuon\",\"learning_rate\":1}}",
                   b.model),
         id);
  x = rig_result(&b.rig, id);
  CHECK_INT(x->status, 400);
  CHECK(rig_text(x, "detail")[0] != '\0');
  rig_free(x);
  /* Loading is for models that have not worked yet. */
  x = rig_post(&b.rig, "load_weights",
               "{\"model_id\":\"%s\",\"seq_id\":2,"
               "\"path\":\"tinker://no/weights/x\",\"optimizer\":false}",
               b.model);
  CHECK_INT(x->status, 400);
  CHECK_STR(rig_text(x, "detail"),
            "LoadWeights is not permitted with seq_id 2");
  rig_free(x);
  CHECK_INT(rig_status(rig_post(
                &b.rig, "load_weights",
                "{\"session_id\":\"%s\",\"path\":\"tinker://no/weights/x\"}",
                b.session)),
            422);
  CHECK_INT(rig_status(rig_post(&b.rig, "client/dynamic_config",
                                "{\"sdk_version\":\"0\"}")),
            404);
  rig_close(&b.rig);
}

static void conflict(bench_t *b, const char *id, const char *text) {
  exchange_t *x = rig_result(&b->rig, id);

  CHECK_INT(x->status, 409);
  CHECK_STR(rig_text(x, "detail"), text);
  rig_free(x);
}

TEST(strict_runs_the_very_next_number) {
  char ids[5][96];
  bench_t b;

  bench_open(&b, LOCAL_STRICT);
  /* All at once, as clients do: only number 1 succeeds. */
  step_id(&b, 3, 0.1, ids[0]);
  step_id(&b, 2, 0.1, ids[1]);
  step_id(&b, 4, 0.1, ids[2]);
  step_id(&b, 1, 0.1, ids[3]);
  conflict(&b, ids[0], "Sequence conflict: expected 1, got 3");
  conflict(&b, ids[1], "Sequence conflict: expected 1, got 2");
  conflict(&b, ids[2], "Sequence conflict: expected 1, got 4");
  CHECK_INT(step_number(&b, ids[3]), 1);
  /* A repeat is late. */
  step_id(&b, 1, 0.1, ids[4]);
  conflict(&b, ids[4], "Sequence conflict: expected 2, got 1");
  step_id(&b, 2, 0.1, ids[0]);
  CHECK_INT(step_number(&b, ids[0]), 2);
  rig_close(&b.rig);
}

TEST(strict_failures_give_their_number_back) {
  char id[96];
  bench_t b;

  bench_open(&b, LOCAL_STRICT);
  step_id(&b, 1, 0.1, id);
  CHECK_INT(step_number(&b, id), 1);
  rig_id(rig_start(&b.rig, "load_weights",
                   "{\"model_id\":\"%s\",\"seq_id\":2,"
                   "\"path\":\"tinker://no/weights/x\",\"optimizer\":false}",
                   b.model),
         id);
  CHECK_INT(rig_status(rig_result(&b.rig, id)), 404);
  step_id(&b, 3, 0.1, id);
  conflict(&b, id, "Sequence conflict: expected 2, got 3");
  step_id(&b, 2, 0.1, id);
  CHECK_INT(step_number(&b, id), 2);
  rig_close(&b.rig);
}

TEST(strict_answers_with_its_own_statuses) {
  bench_t b;
  exchange_t *x;

  bench_open(&b, LOCAL_STRICT);
  CHECK_INT(step_status(&b, 1, 0.1), 202);
  CHECK_INT(
      rig_status(rig_post(
          &b.rig, "create_sampling_session",
          "{\"session_id\":\"%s\",\"base_model\":\"tnk/byte-lm\"}", b.session)),
      201);
  CHECK_INT(rig_status(rig_pass(&b.rig, b.model, 2, "ab")), 415);
  CHECK_INT(rig_status(rig_post(&b.rig, "client/config", "{}")), 422);
  x = rig_post(&b.rig, "client/config", "{\"sdk_version\":\"0.38.0\"}");
  CHECK(json_is_false(json_object_get(x->json, "parallel_fwdbwd_chunks")));
  rig_free(x);
  rig_close(&b.rig);
}

/* ---- Keys ---- */

static exchange_t *with_key(rig_t *rig, const char *path, const char *key,
                            const char *body) {
  char headers[128];
  exchange_t *x;

  snprintf(headers, sizeof(headers), "X-Idempotency-Key: %s\r\n", key);
  x = rig_send(rig, "POST", path, headers, body, strlen(body));
  rig_wait(x, 1);
  return x;
}

/* The answer was lost on its way: the repeat gets the same session. */
TEST(a_key_finds_the_first_answer) {
  static const char body[] = "{\"sdk_version\":\"0.38.0\"}";
  local_options_t options = LOCAL_OPTIONS_INIT;
  local_faults_t *faults = local_faults_new(test_allocator());
  char session[96];
  rig_t rig;
  exchange_t *x;

  CHECK_INT(
      local_faults_set(faults, "drop_after_commit/create_session@1", NULL, 0),
      TNK_OK);
  options.faults = faults;
  rig_open(&rig, &options);
  x = with_key(&rig, "/api/v1/create_session", "k1", body);
  CHECK(x->closed && x->n_done == 0);
  rig_free(x);
  x = with_key(&rig, "/api/v1/create_session", "k1", body);
  CHECK_INT(x->status, 200);
  snprintf(session, sizeof(session), "%s", rig_text(x, "session_id"));
  rig_free(x);
  x = with_key(&rig, "/api/v1/create_session", "k1", body);
  CHECK_STR(rig_text(x, "session_id"), session);
  rig_free(x);
  CHECK_INT(local_server_counts(rig.server).n_sessions, 1);
  x = with_key(&rig, "/api/v1/create_session", "k2", body);
  CHECK(strcmp(rig_text(x, "session_id"), session) != 0);
  rig_free(x);
  CHECK_INT(rig_status(with_key(&rig, "/api/v1/create_session", "k1",
                                "{\"sdk_version\":\"0.38.1\"}")),
            422);
  rig_close(&rig);
  local_faults_free(faults);
}

TEST(a_model_number_is_made_once) {
  char first[96];
  char again[96];
  char session[96];
  rig_t rig;
  exchange_t *x;
  static const char format[] =
      "{\"session_id\":\"%s\",\"model_seq_id\":3,\"base_model\":"
      "\"tnk/byte-lm\",\"lora_config\":{\"rank\":%d}}";

  rig_open(&rig, NULL);
  rig_session(&rig, session);
  rig_id(rig_start(&rig, "create_model", format, session, 4), first);
  rig_id(rig_start(&rig, "create_model", format, session, 4), again);
  CHECK_STR(again, first);
  CHECK_INT(rig_status(rig_post(&rig, "create_model", format, session, 5)),
            409);
  x = rig_result(&rig, first);
  CHECK(strstr(rig_text(x, "model_id"), ":train:3"));
  rig_free(x);
  CHECK_INT(local_server_counts(rig.server).n_models, 1);
  rig_close(&rig);
}
