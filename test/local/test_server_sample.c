/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "support/test.h"

/* Sampling: what comes out, repeats, many at a time. */

typedef struct {
  rig_t rig;
  char session[96];
  char sampler[96];
} bench_t;

static void bench_open(bench_t *b, const local_options_t *options) {
  rig_open(&b->rig, options);
  rig_session(&b->rig, b->session);
  rig_sampler(&b->rig, b->session, b->sampler);
}

/* `params` are members of sampling_params, `rest` of the request. */
static exchange_t *start_sample(bench_t *b, int seq, const char *params,
                                const char *rest) {
  return rig_start(&b->rig, "asample",
                   "{\"prompt\":{\"chunks\":[{\"tokens\":[104,105],\"type\":"
                   "\"encoded_text\"},{\"tokens\":[33]}]},"
                   "\"sampling_params\":{%s},\"sampling_session_id\":\"%s\","
                   "\"seq_id\":%d%s}",
                   params, b->sampler, seq, rest);
}

static exchange_t *sample(bench_t *b, int seq, const char *params,
                          const char *rest) {
  return rig_done(&b->rig, start_sample(b, seq, params, rest));
}

static json_t *sequence(const exchange_t *x, size_t i) {
  return json_array_get(json_object_get(x->json, "sequences"), i);
}

static size_t n_tokens(const exchange_t *x, size_t i) {
  return json_array_size(json_object_get(sequence(x, i), "tokens"));
}

TEST(counts_and_reasons) {
  bench_t b;
  exchange_t *x;

  bench_open(&b, NULL);
  x = start_sample(&b, 0, "\"max_tokens\":5,\"stop\":[]", ",\"num_samples\":3");
  rig_wait(x, 1);
  CHECK_INT(json_array_size(json_object_get(x->json, "sample_sequence_ids")),
            3);
  x = rig_done(&b.rig, x);
  CHECK_INT(json_array_size(json_object_get(x->json, "sequences")), 3);
  for (size_t i = 0; i < 3; i++) {
    CHECK_INT(n_tokens(x, i), 5);
    CHECK_INT(json_array_size(json_object_get(sequence(x, i), "logprobs")), 5);
    CHECK_STR(json_string_value(json_object_get(sequence(x, i), "stop_reason")),
              "length");
  }
  CHECK(json_is_null(json_object_get(x->json, "prompt_logprobs")));
  CHECK(json_is_null(json_object_get(x->json, "topk_prompt_logprobs")));
  rig_free(x);
  rig_close(&b.rig);
}

/* The most likely token as a stop token ends the sequence and is part of it. */
TEST(stop_tokens_end_a_sequence) {
  char params[128];
  bench_t b;
  exchange_t *x;
  long long first;

  bench_open(&b, NULL);
  x = sample(&b, 0, "\"max_tokens\":3,\"temperature\":0.0", "");
  first = json_integer_value(
      json_array_get(json_object_get(sequence(x, 0), "tokens"), 0));
  rig_free(x);
  snprintf(params, sizeof(params),
           "\"max_tokens\":3,\"temperature\":0,\"stop\":[%lld]", first);
  x = sample(&b, 1, params, "");
  CHECK_INT(n_tokens(x, 0), 1);
  CHECK_STR(json_string_value(json_object_get(sequence(x, 0), "stop_reason")),
            "stop");
  rig_free(x);
  rig_close(&b.rig);
}

TEST(seeds_repeat_and_differ) {
  char *bodies[3];
  bench_t b;

  bench_open(&b, NULL);
  for (int i = 0; i < 3; i++) {
    exchange_t *x = sample(&b, i,
                           i < 2 ? "\"max_tokens\":8,\"seed\":7,\"stop\":[]"
                                 : "\"max_tokens\":8,\"seed\":8,\"stop\":[]",
                           ",\"num_samples\":2");

    bodies[i] = x->body;
    x->body = NULL;
    rig_free(x);
  }
  CHECK_STR(bodies[1], bodies[0]);
  CHECK(strcmp(bodies[2], bodies[0]) != 0);
  for (int i = 0; i < 3; i++)
    free(bodies[i]);
  rig_close(&b.rig);
}

TEST(outputs_about_the_prompt) {
  bench_t b;
  exchange_t *x;
  json_t *logprobs;
  json_t *topk;

  bench_open(&b, NULL);
  x = sample(&b, 0, "\"max_tokens\":1",
             ",\"prompt_logprobs\":true,\"topk_prompt_logprobs\":2");
  logprobs = json_object_get(x->json, "prompt_logprobs");
  CHECK_INT(json_array_size(logprobs), 3);
  CHECK(json_is_null(json_array_get(logprobs, 0)));
  CHECK(json_number_value(json_array_get(logprobs, 1)) < 0);
  topk = json_object_get(x->json, "topk_prompt_logprobs");
  CHECK_INT(json_array_size(topk), 3);
  CHECK(json_is_null(json_array_get(topk, 0)));
  CHECK_INT(json_array_size(json_array_get(topk, 1)), 2);
  rig_free(x);
  x = sample(&b, 1, "\"max_tokens\":1",
             ",\"prompt_logprobs\":true,\"prompt_logprobs_last_n\":1");
  logprobs = json_object_get(x->json, "prompt_logprobs");
  CHECK_INT(json_array_size(logprobs), 3);
  CHECK(json_is_null(json_array_get(logprobs, 1)));
  CHECK(json_is_number(json_array_get(logprobs, 2)));
  rig_free(x);
  rig_close(&b.rig);
}

TEST(what_is_refused) {
  static const struct {
    const char *params;
    const char *rest;
  } cases[] = {
      {"\"max_tokens\":0", ""},
      {"\"max_tokens\":1.5", ""},
      {"\"temperature\":-1", ""},
      {"\"top_p\":0", ""},
      {"\"top_p\":1.5", ""},
      {"\"stop\":[1,\"a\"]", ""},
      {"\"stop\":[\"\"]", ""},
      {"\"stop\":7", ""},
      {"", ",\"num_samples\":0"},
      {"", ",\"num_samples\":100000"},
      {"", ",\"topk_prompt_logprobs\":-1"},
      {"", ",\"prompt_logprobs\":1"},
      {"", ",\"target_prompt_logprobs\":{\"data\":[1],\"dtype\":\"int64\"}"},
      {"", ",\"target_prompt_logprobs\":{\"data\":[1,2],\"dtype\":\"float32\","
           "\"shape\":[2,1]}"},
  };
  bench_t b;
  exchange_t *x;

  bench_open(&b, NULL);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    x = start_sample(&b, 0, cases[i].params, cases[i].rest);
    rig_wait(x, 1);
    if (x->status != 422)
      test_fail(__FILE__, __LINE__, "case %zu: %d %s", i, x->status, x->body);
    rig_free(x);
  }
  CHECK_INT(rig_status(rig_post(&b.rig, "asample",
                                "{\"sampling_session_id\":\"no\"}")),
            404);
  CHECK_INT(rig_status(rig_post(&b.rig, "asample", "{}")), 400);
  CHECK_INT(rig_status(rig_post(
                &b.rig, "asample",
                "{\"base_model\":\"tnk/byte-lm\",\"sampling_params\":{},"
                "\"prompt\":{\"chunks\":[{\"tokens\":[300]}]}}")),
            422);
  CHECK_INT(rig_status(rig_post(
                &b.rig, "create_sampling_session",
                "{\"session_id\":\"%s\",\"model_path\":\"tinker://a/b/c/d\"}",
                b.session)),
            400);
  CHECK_INT(rig_status(rig_post(&b.rig, "create_sampling_session",
                                "{\"session_id\":\"%s\",\"model_path\":"
                                "\"tinker://a/sampler_weights/..\"}",
                                b.session)),
            400);
  CHECK_INT(rig_status(rig_post(&b.rig, "create_sampling_session",
                                "{\"session_id\":\"%s\",\"model_path\":"
                                "\"tinker://a/sampler_weights/x\"}",
                                b.session)),
            404);
  rig_close(&b.rig);
}

TEST(repeats_of_a_number) {
  char first[96];
  char again[96];
  bench_t b;

  bench_open(&b, NULL);
  rig_id(start_sample(&b, 0, "\"max_tokens\":1", ""), first);
  rig_id(start_sample(&b, 0, "\"max_tokens\":1", ""), again);
  CHECK_STR(again, first);
  CHECK_INT(rig_status(start_sample(&b, 0, "\"max_tokens\":2", "")), 422);
  rig_close(&b.rig);
}

TEST(joining_and_looking) {
  char path[160];
  bench_t b;
  exchange_t *x;

  bench_open(&b, NULL);
  for (int i = 1; i < 3; i++) {
    x = rig_post(&b.rig, "join_sampling_session",
                 "{\"sampling_session_id\":\"%s\"}", b.sampler);
    CHECK_INT(json_integer_value(json_object_get(x->json, "client_counter")),
              i);
    rig_free(x);
  }
  snprintf(path, sizeof(path), "samplers/%s", b.sampler);
  x = rig_get(&b.rig, path);
  CHECK_STR(rig_text(x, "base_model"), "tnk/byte-lm");
  CHECK_STR(rig_text(x, "sampler_id"), b.sampler);
  rig_free(x);
  CHECK_INT(rig_status(rig_get(&b.rig, "samplers/no")), 404);
  rig_close(&b.rig);
}

/* Two thousand at once: all are taken, all finish, a heartbeat gets through in
 * between, and nothing is left. */
TEST_LIMIT(two_thousand_samples, 60) {
  enum { N = 2000 };
  char last[96];
  char one[512];
  static char all[N * 512];
  size_t n = 0;
  bench_t b;
  exchange_t *x;

  bench_open(&b, NULL);
  for (int i = 0; i < N; i++) {
    char body[400];
    int len = snprintf(body, sizeof(body),
                       "{\"prompt\":{\"chunks\":[{\"tokens\":[%d]}]},"
                       "\"sampling_params\":{\"max_tokens\":2,\"stop\":[]},"
                       "\"sampling_session_id\":\"%s\",\"seq_id\":%d}",
                       i % 256, b.sampler, i);
    int size = snprintf(one, sizeof(one),
                        "POST /api/v1/asample HTTP/1.1\r\n"
                        "Content-Length: %d\r\n\r\n%s",
                        len, body);

    memcpy(all + n, one, (size_t)size);
    n += (size_t)size;
  }
  x = rig_raw(&b.rig, all, n);
  rig_wait(x, N);
  CHECK_INT(x->n_done, N);
  CHECK_INT(x->status, 200);
  snprintf(last, sizeof(last), "%s", rig_text(x, "request_id"));
  rig_free(x);
  CHECK_INT(rig_status(rig_post(&b.rig, "session_heartbeat",
                                "{\"session_id\":\"%s\"}", b.session)),
            200);
  x = rig_result(&b.rig, last);
  CHECK_INT(n_tokens(x, 0), 2);
  rig_free(x);
  /* First come, first served: when the last is done, so are the others. */
  CHECK_INT(local_server_counts(b.rig.server).n_futures, N);
  rig_close(&b.rig);
}

/* Closing with samples in every state: waiting, running, nobody polls. */
TEST(closing_while_drawing) {
  bench_t b;

  bench_open(&b, NULL);
  for (int i = 0; i < 100; i++) {
    char id[96];

    rig_id(start_sample(&b, i, "\"max_tokens\":4000,\"stop\":[]", ""), id);
  }
  rig_close(&b.rig);
}

/* A client with one sample does not wait for another's hundreds. */
TEST_LIMIT(clients_take_turns, 60) {
  enum { N = 400 };
  char last[96];
  char one[96];
  bench_t b;
  exchange_t *x;
  local_options_t options = LOCAL_OPTIONS_INIT;

  options.hold_ms = 5;
  bench_open(&b, &options);
  for (int i = 0; i < N; i++)
    rig_id(start_sample(&b, i, "\"max_tokens\":4000,\"stop\":[]", ""), last);
  rig_id(rig_start(&b.rig, "asample",
                   "{\"base_model\":\"tnk/byte-lm\",\"prompt\":{\"chunks\":[{"
                   "\"tokens\":[104]}]},\"sampling_params\":{\"max_tokens\":1,"
                   "\"stop\":[]}}"),
         one);
  rig_free(rig_result(&b.rig, one));
  x = rig_post(&b.rig, "retrieve_future", "{\"request_id\":\"%s\"}", last);
  CHECK_STR(rig_text(x, "type"), "try_again");
  CHECK_STR(rig_text(x, "queue_state"), "paused_capacity");
  rig_free(x);
  rig_close(&b.rig);
}

/* Training and heartbeats go on meanwhile, and samples go on without their
 * session. */
TEST_LIMIT(training_goes_on_beside_samples, 60) {
  char model[96];
  char path[160];
  char last[96];
  bench_t b;
  exchange_t *x;

  bench_open(&b, NULL);
  rig_model(&b.rig, b.session, model);
  for (int i = 0; i < 200; i++)
    rig_id(start_sample(&b, i, "\"max_tokens\":30,\"stop\":[]", ""), last);
  rig_free(rig_done(&b.rig, rig_pass(&b.rig, model, 1, "hello")));
  rig_free(rig_done(&b.rig, rig_step(&b.rig, model, 2, 0.01)));
  CHECK_INT(local_server_counts(b.rig.server).n_waiting, 0);
  snprintf(path, sizeof(path), "sessions/%s/finish", b.session);
  rig_free(rig_post(&b.rig, path, "{}"));
  x = rig_result(&b.rig, last);
  CHECK_INT(n_tokens(x, 0), 30);
  rig_free(x);
  rig_close(&b.rig);
}

/* The number after the last one there is. */
TEST(the_last_number_of_a_sampler) {
  char session[96];
  rig_t rig;
  exchange_t *x;

  rig_open(&rig, NULL);
  rig_session(&rig, session);
  CHECK_INT(rig_status(rig_post(
                &rig, "create_sampling_session",
                "{\"session_id\":\"%s\",\"base_model\":\"tnk/byte-lm\","
                "\"sampling_session_seq_id\":9223372036854775807}",
                session)),
            422);
  x = rig_post(&rig, "create_sampling_session",
               "{\"session_id\":\"%s\",\"base_model\":\"tnk/byte-lm\"}",
               session);
  CHECK(strstr(rig_text(x, "sampling_session_id"), ":sample:0") != NULL);
  rig_free(x);
  rig_close(&rig);
}
