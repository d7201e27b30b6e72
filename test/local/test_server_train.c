/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "client.h"
#include "support/test.h"
#include "tinker.pb-c.h"

/* Training: models, passes in both forms, steps, what is refused. */

static void open_model(rig_t *rig, char model[96]) {
  char session[96];

  rig_open(rig, NULL);
  rig_session(rig, session);
  rig_model(rig, session, model);
}

static exchange_t *poll_proto(rig_t *rig, const char *id) {
  char body[256];
  exchange_t *x;
  int n = snprintf(body, sizeof(body), "{\"request_id\":\"%s\"}", id);

  x = rig_send(rig, "POST", "/api/v1/retrieve_future",
               "Accept: application/x-protobuf\r\n", body, (size_t)n);
  rig_wait(x, 1);
  return x;
}

/* Vector A of the protocol, with the model's id, a loss and tokens of ours. */
static size_t pass_bytes(uint8_t *out, const char *model, int seq,
                         int with_weights, int forward_only) {
  static int32_t tokens[] = {104, 101, 108};
  static int64_t targets[] = {101, 108, 108};
  static float weights[] = {1, 0, 2};
  TinkerPublic__ForwardBackwardRequest request =
      TINKER_PUBLIC__FORWARD_BACKWARD_REQUEST__INIT;
  TinkerPublic__Datum datum = TINKER_PUBLIC__DATUM__INIT;
  TinkerPublic__Datum *data[] = {&datum};
  TinkerPublic__Chunk chunk = TINKER_PUBLIC__CHUNK__INIT;
  TinkerPublic__Chunk *chunks[] = {&chunk};
  TinkerPublic__EncodedTextChunk text = TINKER_PUBLIC__ENCODED_TEXT_CHUNK__INIT;
  TinkerPublic__Tensor t = TINKER_PUBLIC__TENSOR__INIT;
  TinkerPublic__Tensor w = TINKER_PUBLIC__TENSOR__INIT;
  TinkerPublic__Datum__LossFnInputsEntry e[] = {
      TINKER_PUBLIC__DATUM__LOSS_FN_INPUTS_ENTRY__INIT,
      TINKER_PUBLIC__DATUM__LOSS_FN_INPUTS_ENTRY__INIT};
  TinkerPublic__Datum__LossFnInputsEntry *entries[] = {&e[0], &e[1]};

  text.tokens = (ProtobufCBinaryData){sizeof(tokens), (uint8_t *)tokens};
  chunk.chunk_case = TINKER_PUBLIC__CHUNK__CHUNK_ENCODED_TEXT;
  chunk.encoded_text = &text;
  t.encoding_case = w.encoding_case = TINKER_PUBLIC__TENSOR__ENCODING_DENSE;
  t.dense = (ProtobufCBinaryData){sizeof(targets), (uint8_t *)targets};
  t.dtype = TINKER_PUBLIC__DTYPE__DTYPE_INT64;
  w.dense = (ProtobufCBinaryData){sizeof(weights), (uint8_t *)weights};
  w.dtype = TINKER_PUBLIC__DTYPE__DTYPE_FLOAT32;
  /* Weights before targets: any order must do. */
  e[0].key = "weights";
  e[0].value = &w;
  e[1].key = "target_tokens";
  e[1].value = &t;
  datum.n_model_input = 1;
  datum.model_input = chunks;
  datum.n_loss_fn_inputs = with_weights ? 2 : 1;
  datum.loss_fn_inputs = with_weights ? entries : entries + 1;
  request.model_id = (char *)model;
  request.seq_id = seq;
  request.n_data = 1;
  request.data = data;
  request.loss_fn = "cross_entropy";
  request.forward_only = forward_only;
  return tinker_public__forward_backward_request__pack(&request, out);
}

static exchange_t *post_pass(rig_t *rig, const char *headers,
                             const uint8_t *bytes, size_t n) {
  exchange_t *x =
      rig_send(rig, "POST", "/api/v1/forward_backward", headers, bytes, n);

  rig_wait(x, 1);
  return x;
}

#define PROTO_TYPE "Content-Type: application/x-protobuf\r\n"

TEST_LIMIT(the_loss_falls, 20) {
  double first = 0;
  double last = 0;
  char model[96];
  rig_t rig;

  open_model(&rig, model);
  for (int i = 0; i < 12; i++) {
    exchange_t *pass = rig_pass(&rig, model, 2 * i + 1, "hello hello hello");
    exchange_t *step = rig_step(&rig, model, 2 * i + 2, 0.005);
    exchange_t *result = rig_done(&rig, pass);

    last = rig_loss(result);
    if (i == 0)
      first = last;
    rig_free(result);
    result = rig_done(&rig, step);
    CHECK_INT(result->status, 200);
    CHECK(json_is_number(json_object_get(
        json_object_get(result->json, "metrics"), "grad_norm")));
    rig_free(result);
  }
  CHECK(first > 60 && last < first / 2);
  rig_close(&rig);
}

TEST(protobuf_and_json_agree) {
  uint8_t bytes[1024];
  uint8_t packed[1024];
  char model[96];
  char id[96];
  size_t n;
  rig_t rig;
  exchange_t *x;
  TinkerPublic__ForwardBackwardOutput *out;
  TinkerPublic__ArrayRecord *record;
  const float *logprobs;
  double loss;
  json_t *data;

  open_model(&rig, model);
  n = pass_bytes(bytes, model, 1, 1, 1);
  rig_id(post_pass(&rig, PROTO_TYPE, bytes, n), id);
  rig_free(rig_result(&rig, id));
  x = poll_proto(&rig, id);
  CHECK_INT(x->status, 200);
  CHECK_STR(x->type, "application/x-protobuf");
  out = tinker_public__forward_backward_output__unpack(
      NULL, x->n_body, (const uint8_t *)x->body);
  CHECK(out != NULL);
  CHECK_INT(out->n_loss_fn_outputs, 1);
  record = out->loss_fn_outputs[0];
  CHECK_INT(record->num_datums, 1);
  CHECK_STR(record->fields[0]->key, "logprobs");
  CHECK_INT(record->fields[0]->value->data.len, 12);
  CHECK_INT(record->fields[0]->value->offsets.len, 16);
  CHECK_INT(record->fields[0]->value->dtype, 1);
  logprobs = (const float *)(const void *)record->fields[0]->value->data.data;
  CHECK_STR(out->metrics[0]->key, "loss:sum");
  loss = out->metrics[0]->value;
  CHECK_NEAR(loss, -(double)logprobs[0] - 2 * (double)logprobs[2], 1e-5);
  rig_free(x);
  /* The same result in JSON, for who does not accept protobuf. */
  x = rig_result(&rig, id);
  CHECK_NEAR(rig_loss(x), loss, 0);
  data = json_object_get(
      json_object_get(
          json_array_get(json_object_get(x->json, "loss_fn_outputs"), 0),
          "logprobs"),
      "data");
  for (size_t i = 0; i < 3; i++)
    CHECK_NEAR(json_number_value(json_array_get(data, i)), (double)logprobs[i],
               1e-6);
  rig_free(x);
  tinker_public__forward_backward_output__free_unpacked(out, NULL);
  /* And the same request compressed. */
  n = pass_bytes(bytes, model, 2, 1, 1);
  n = ZSTD_compress(packed, sizeof(packed), bytes, n, 3);
  CHECK(!ZSTD_isError(n));
  x = rig_done(&rig, post_pass(&rig, PROTO_TYPE "Content-Encoding: zstd\r\n",
                               packed, n));
  CHECK_NEAR(rig_loss(x), loss, 0);
  rig_free(x);
  rig_close(&rig);
}

/* Bytes cut anywhere, or damaged, are refused or run, and nothing else. */
TEST_LIMIT(damaged_protobuf, 30) {
  uint8_t bytes[1024];
  char session[96];
  char model[96];
  uint64_t state = 7;
  size_t n;
  rig_t rig;

  local_options_t options = LOCAL_OPTIONS_INIT;

  options.sequence = LOCAL_LENIENT;
  rig_open(&rig, &options);
  rig_session(&rig, session);
  rig_model(&rig, session, model);
  n = pass_bytes(bytes, model, 0, 1, 0);
  for (size_t cut = 0; cut < n; cut++) {
    exchange_t *x = post_pass(&rig, PROTO_TYPE, bytes, cut);

    CHECK(x->status == 422 || x->status == 404 || x->status == 200);
    rig_free(x);
  }
  for (int i = 0; i < 300; i++) {
    uint8_t copy[1024];
    exchange_t *x;

    memcpy(copy, bytes, n);
    copy[test_random(&state) % n] = (uint8_t)test_random(&state);
    x = post_pass(&rig, PROTO_TYPE, copy, n);
    CHECK(x->status == 422 || x->status == 404 || x->status == 200 ||
          x->status == 409 || x->status == 500);
    rig_free(x);
  }
  rig_close(&rig);
}

static void refused(rig_t *rig, const char *path, int status, const char *body,
                    const char *words) {
  exchange_t *x = rig_post(rig, path, "%s", body);

  if (x->status != status || strstr(x->body, words) == NULL)
    test_fail(__FILE__, __LINE__, "%s %s: %d %s", path, body, x->status,
              x->body);
  rig_free(x);
}

TEST(models_that_cannot_be_made_are_refused_at_once) {
  char session[96];
  char body[1024];
  rig_t rig;

  rig_open(&rig, NULL);
  rig_session(&rig, session);
  refused(&rig, "create_model", 404,
          "{\"session_id\":\"no\",\"base_model\":\"x\",\"lora_config\":{}}",
          "Session not found");
  snprintf(body, sizeof(body),
           "{\"session_id\":\"%s\",\"base_model\":\"tnk/byte-lm\","
           "\"lora_config\":null}",
           session);
  refused(&rig, "create_model", 422, body, "lora_config");
  snprintf(body, sizeof(body),
           "{\"session_id\":\"%s\",\"base_model\":\"tnk/byte-lm\","
           "\"lora_config\":{\"rank\":0}}",
           session);
  refused(&rig, "create_model", 422, body, "rank");
  snprintf(body, sizeof(body),
           "{\"session_id\":\"%s\",\"base_model\":\"tnk/byte-lm\","
           "\"lora_config\":{},\"optimizer_config\":{\"type\":\"sgd\"}}",
           session);
  refused(&rig, "create_model", 422, body, "adamw or dimuon");
  refused(&rig, "get_info", 404, "{\"model_id\":\"m\"}", "Model not found");
  refused(&rig, "optim_step", 404, "{\"model_id\":\"m\",\"seq_id\":1}",
          "Model not found");
  rig_close(&rig);
}

static void open_with_model(rig_t *rig, char model[96]) {
  char session[96];

  rig_open(rig, NULL);
  rig_session(rig, session);
  rig_model(rig, session, model);
}

/* A number that was refused is not used up. */
static void check_unused(rig_t *rig, const char *model) {
  rig_free(rig_done(rig, rig_pass(rig, model, 1, "still fine")));
  rig_close(rig);
}

TEST(steps_that_make_no_sense_are_refused_at_once) {
  char model[96];
  char body[1024];
  rig_t rig;

  open_with_model(&rig, model);
#define STEP(params, words)                                                    \
  do {                                                                         \
    snprintf(body, sizeof(body), "{\"model_id\":\"%s\",\"seq_id\":1%s}",       \
             model, params);                                                   \
    refused(&rig, "optim_step", 422, body, words);                             \
  } while (0)
  STEP("", "Exactly one");
  STEP(",\"adam_params\":{},\"optimizer_params\":{}", "Exactly one");
  STEP(",\"adam_params\":{\"eps\":0}", "eps");
  STEP(",\"adam_params\":{\"beta1\":1}", "beta1");
  STEP(",\"adam_params\":{\"beta2\":-0.1}", "beta2");
  STEP(",\"adam_params\":{\"learning_rate\":-1}", "learning_rate");
  STEP(",\"adam_params\":{\"learning_rate\":\"x\"}", "learning_rate");
  STEP(",\"optimizer_params\":{\"type\":\"adamw\"}", "dimuon");
  STEP(",\"optimizer_params\":{\"type\":\"dimuon\"}", "learning_rate");
  check_unused(&rig, model);
}

TEST(passes_that_make_no_sense_are_refused_at_once) {
  char model[96];
  char body[1024];
  rig_t rig;

  open_with_model(&rig, model);
#define PASS(input, words)                                                     \
  do {                                                                         \
    snprintf(body, sizeof(body),                                               \
             "{\"model_id\":\"%s\",\"seq_id\":1,"                              \
             "\"forward_backward_input\":%s}",                                 \
             model, input);                                                    \
    refused(&rig, "forward_backward", 422, body, words);                       \
  } while (0)
  PASS("1", "forward_backward_input");
  PASS("{\"loss_fn\":\"cross_entropy\"}", "data");
  PASS("{\"loss_fn\":\"nothing\",\"data\":[]}", "not known");
  PASS("{\"loss_fn\":\"\",\"data\":[]}", "loss_fn");
  PASS("{\"loss_fn\":\"ppo\",\"data\":[],\"loss_fn_config\":{\"x\":1}}", "x");
  PASS("{\"loss_fn\":\"ppo\",\"data\":[{}]}", "chunks");
  PASS("{\"loss_fn\":\"ppo\",\"data\":[{\"model_input\":{\"chunks\":[{"
       "\"type\":\"image\"}]}}]}",
       "text chunks only");
  PASS("{\"loss_fn\":\"ppo\",\"data\":[{\"model_input\":{\"chunks\":[{"
       "\"type\":\"dmel\",\"dmel\":\"AgIDBA==\"}]}}]}",
       "text chunks only");
  PASS("{\"loss_fn\":\"ppo\",\"data\":[{\"model_input\":{\"chunks\":[]},"
       "\"loss_fn_inputs\":{\"weights\":{\"data\":[],\"dtype\":\"int8\"}}}]}",
       "dtype");
  PASS("{\"loss_fn\":\"ppo\",\"data\":[{\"model_input\":{\"chunks\":[]},"
       "\"loss_fn_inputs\":{\"weights\":{\"data\":[1],\"dtype\":\"float32\","
       "\"shape\":[2]}}}]}",
       "shape");
  PASS("{\"loss_fn\":\"ppo\",\"data\":[{\"model_input\":{\"chunks\":[]},"
       "\"loss_fn_inputs\":{\"w\":{\"data\":[1],\"dtype\":\"float32\","
       "\"shape\":[1,1],\"sparse_crow_indices\":[0,2],"
       "\"sparse_col_indices\":[0]}}}]}",
       "row indices");
  check_unused(&rig, model);
}

/* Well-formed data that cannot be computed fail in their turn. */
TEST(data_that_cannot_be_computed) {
  char model[96];
  rig_t rig;
  exchange_t *x;

  open_model(&rig, model);
  x = rig_done(&rig,
               rig_start(&rig, "forward_backward",
                         "{\"model_id\":\"%s\",\"seq_id\":1,"
                         "\"forward_backward_input\":{\"loss_fn\":"
                         "\"cross_entropy\",\"data\":[{\"model_input\":{"
                         "\"chunks\":[{\"tokens\":[1,2]}]},"
                         "\"loss_fn_inputs\":{\"target_tokens\":{\"data\":[1,"
                         "999],\"dtype\":\"int64\"}}}]}}",
                         model));
  CHECK_INT(x->status, 200);
  CHECK_STR(rig_text(x, "category"), "user");
  CHECK(strstr(rig_text(x, "error"), "datum 0: \"target_tokens\"[1] is 999"));
  rig_free(x);
  x = rig_done(&rig, rig_start(&rig, "forward_backward",
                               "{\"model_id\":\"%s\",\"seq_id\":2,"
                               "\"forward_backward_input\":{\"loss_fn\":"
                               "\"cross_entropy\",\"data\":[]}}",
                               model));
  CHECK_NEAR(rig_loss(x), 0, 0);
  rig_free(x);
  /* Zero examples are no failure, and the numbers go on. */
  rig_free(rig_done(&rig, rig_step(&rig, model, 3, 0.1)));
  rig_close(&rig);
}

TEST(an_unknown_base_fails_and_so_does_what_follows) {
  char session[96];
  char id[96];
  rig_t rig;
  exchange_t *x;

  rig_open(&rig, NULL);
  rig_session(&rig, session);
  rig_id(rig_start(&rig, "create_model",
                   "{\"session_id\":\"%s\",\"base_model\":\"other/model\","
                   "\"lora_config\":{}}",
                   session),
         id);
  x = rig_result(&rig, id);
  CHECK_STR(rig_text(x, "category"), "user");
  CHECK(strstr(rig_text(x, "error"), "other/model"));
  rig_free(x);
  snprintf(id, sizeof(id), "%.80s:train:0", session);
  x = rig_done(&rig, rig_pass(&rig, id, 1, "ab"));
  CHECK(strstr(rig_text(x, "error"), "not loaded"));
  rig_free(x);
  x = rig_done(&rig, rig_start(&rig, "load_weights",
                               "{\"model_id\":\"%s\",\"seq_id\":2,\"path\":"
                               "\"tinker://a/weights/b\",\"optimizer\":true}",
                               id));
  CHECK(strstr(rig_text(x, "error"), "not loaded"));
  rig_free(x);
  x = rig_done(&rig,
               rig_start(&rig, "unload_model", "{\"model_id\":\"%s\"}", id));
  CHECK_STR(rig_text(x, "type"), "unload_model");
  rig_free(x);
  rig_close(&rig);
}

TEST(dimuon_only_for_dimuon_models) {
  char session[96];
  char model[96];
  rig_t rig;
  exchange_t *x;

  rig_open(&rig, NULL);
  rig_session(&rig, session);
  x = rig_done(&rig, rig_start(&rig, "create_model",
                               "{\"session_id\":\"%s\",\"base_model\":"
                               "\"tnk/byte-lm\",\"lora_config\":{\"rank\":4},"
                               "\"optimizer_config\":{\"type\":\"dimuon\","
                               "\"version\":1}}",
                               session));
  snprintf(model, sizeof(model), "%s", rig_text(x, "model_id"));
  rig_free(x);
  x = rig_post(&rig, "get_info", "{\"model_id\":\"%s\"}", model);
  CHECK_STR(json_string_value(json_object_get(
                json_object_get(x->json, "optimizer_config"), "type")),
            "dimuon");
  rig_free(x);
  x = rig_done(&rig, rig_step(&rig, model, 1, 0.1));
  CHECK_STR(rig_text(x, "category"), "user");
  rig_free(x);
  rig_free(rig_done(&rig, rig_pass(&rig, model, 2, "hello")));
  x = rig_done(&rig, rig_start(&rig, "optim_step",
                               "{\"model_id\":\"%s\",\"seq_id\":3,"
                               "\"optimizer_params\":{\"type\":\"dimuon\","
                               "\"learning_rate\":0.02,\"grad_clip_norm\":0.0,"
                               "\"beta1\":0.9}}",
                               model));
  CHECK_INT(x->status, 200);
  CHECK(json_object_get(x->json, "metrics") != NULL);
  rig_free(x);
  rig_close(&rig);
}

/* Sparse targets of more than one candidate come back in their shape. */
TEST(targets_of_two_dimensions) {
  char model[96];
  rig_t rig;
  exchange_t *x;
  json_t *shape;

  open_model(&rig, model);
  x = rig_done(
      &rig,
      rig_start(&rig, "forward_backward",
                "{\"model_id\":\"%s\",\"seq_id\":1,"
                "\"forward_backward_input\":{\"loss_fn\":\"cross_entropy\","
                "\"data\":[{\"model_input\":{\"chunks\":[{\"tokens\":[1,2]}]},"
                "\"loss_fn_inputs\":{\"target_tokens\":{\"data\":[3,4,5,6],"
                "\"dtype\":\"int64\",\"shape\":[2,2]},\"weights\":{\"data\":"
                "[0.5],\"dtype\":\"float32\",\"shape\":[2,2],"
                "\"sparse_crow_indices\":[0,0,1],\"sparse_col_indices\":[1]}"
                "}}]}}",
                model));
  CHECK(rig_loss(x) > 0);
  shape = json_object_get(
      json_object_get(
          json_array_get(json_object_get(x->json, "loss_fn_outputs"), 0),
          "logprobs"),
      "shape");
  CHECK_INT(json_array_size(shape), 2);
  CHECK_INT(json_integer_value(json_array_get(shape, 0)), 2);
  CHECK_INT(json_integer_value(json_array_get(shape, 1)), 2);
  rig_free(x);
  rig_close(&rig);
}

static int no_models(const local_counts_t *counts) {
  return counts->n_models == 0;
}

static int heartbeat(rig_t *rig, const char *session) {
  return rig_status(
      rig_post(rig, "session_heartbeat", "{\"session_id\":\"%s\"}", session));
}

TEST(unloading_and_finishing) {
  char session[96];
  char model[96];
  char second[96];
  char held[96];
  char path[160];
  rig_t rig;
  exchange_t *x;

  rig_open(&rig, NULL);
  rig_session(&rig, session);
  rig_model(&rig, session, model);
  rig_model(&rig, session, second);
  x = rig_done(&rig,
               rig_start(&rig, "unload_model", "{\"model_id\":\"%s\"}", model));
  CHECK_STR(rig_text(x, "type"), "unload_model");
  rig_free(x);
  CHECK_INT(rig_status(rig_step(&rig, model, 1, 0.1)), 404);
  /* One that waits for a gap to close hears of the end. */
  rig_id(rig_step(&rig, second, 7, 0.1), held);
  snprintf(path, sizeof(path), "sessions/%s/finish", session);
  CHECK_INT(
      rig_status(rig_post(
          &rig, path, "{\"reason\":{\"type\":\"success\"},\"detail\":null}")),
      200);
  rig_until(&rig, no_models);
  CHECK_INT(rig_status(rig_result(&rig, held)), 410);
  CHECK_INT(heartbeat(&rig, session), 410);
  CHECK_INT(rig_status(rig_post(&rig, path, "{}")), 200);
  rig_close(&rig);
}

TEST(silent_sessions_end) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char quiet[96];
  char session[96];
  char model[96];
  rig_t rig;

  options.session_timeout_ms = 20;
  rig_open(&rig, &options);
  rig_session(&rig, quiet);
  rig_session(&rig, session);
  rig_model(&rig, session, model);
  CHECK_INT(heartbeat(&rig, session), 200);
  rig_until(&rig, no_models);
  CHECK_INT(heartbeat(&rig, session), 410);
  /* One that never sent a heartbeat does not miss any. */
  CHECK_INT(heartbeat(&rig, quiet), 200);
  rig_close(&rig);
}

TEST(a_learning_rate_that_is_null_is_none) {
  char session[96];
  char model[96];
  exchange_t *x;
  rig_t rig;

  rig_open(&rig, NULL);
  rig_session(&rig, session);
  rig_model(&rig, session, model);
  x = rig_post(&rig, "optim_step",
               "{\"model_id\":\"%s\",\"seq_id\":1,"
               "\"adam_params\":{\"learning_rate\":null}}",
               model);
  CHECK_INT(x->status, 422);
  CHECK(strstr(x->body, "learning_rate") != NULL);
  rig_free(x);
  rig_close(&rig);
}

/* Not with a status that clients repeat. */
TEST_LIMIT(a_model_that_does_not_fit_is_refused_for_good, 60) {
  static const char format[] =
      "{\"session_id\":\"%s\",\"model_seq_id\":%d,\"base_model\":"
      "\"tnk/byte-lm\",\"lora_config\":{\"rank\":1}}";
  char session[96];
  char model[96];
  exchange_t *x;
  rig_t rig;

  rig_open(&rig, NULL);
  rig_session(&rig, session);
  rig_model(&rig, session, model);
  for (int i = 1; i < 256; i++)
    CHECK_INT(rig_status(rig_start(&rig, "create_model", format, session, i)),
              200);
  x = rig_post(&rig, "create_model", format, session, 256);
  CHECK_INT(x->status, 400);
  CHECK(strstr(rig_text(x, "detail"), "256 models") != NULL);
  rig_free(x);
  rig_free(rig_done(
      &rig, rig_post(&rig, "unload_model", "{\"model_id\":\"%s\"}", model)));
  CHECK_INT(rig_status(rig_post(&rig, "create_model", format, session, 256)),
            200);
  rig_close(&rig);
}
