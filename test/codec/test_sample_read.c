/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "tinker.pb-c.h"

#include "codec/order.h"
#include "codec/vectors.h"
#include "codec/wire.h"
#include "lib/base/alloc.h"
#include "lib/wire/message/sample_wire.h"

static int read_proto(void **out, const tnk_allocator_t *alloc,
                      const void *body, size_t n) {
  tnk_samples_t *samples;
  int err = tnk__samples_read(&samples, alloc, body, n, 1);

  *out = samples;
  return err;
}

static int read_json(void **out, const tnk_allocator_t *alloc, const void *body,
                     size_t n) {
  tnk_samples_t *samples;
  int err = tnk__samples_read(&samples, alloc, body, n, 0);

  *out = samples;
  return err;
}

static tnk_samples_t *from_hex(const char *hex) {
  uint8_t bytes[1024];
  size_t n = test_unhex(bytes, sizeof(bytes), hex);
  tnk_samples_t *samples;

  CHECK_INT(tnk__samples_read(&samples, test_allocator(), bytes, n, 1), TNK_OK);
  return samples;
}

static tnk_samples_t *from_json(const char *text) {
  tnk_samples_t *samples;

  CHECK_INT(
      tnk__samples_read(&samples, test_allocator(), text, strlen(text), 0),
      TNK_OK);
  return samples;
}

static void end(tnk_samples_t *samples) {
  tnk__samples_free(test_allocator(), samples);
  CHECK_INT(test_alloc_live(), 0);
}

static int refused_hex(const char *hex) {
  uint8_t bytes[1024];
  size_t n = test_unhex(bytes, sizeof(bytes), hex);
  tnk_samples_t *samples;
  int err = tnk__samples_read(&samples, test_allocator(), bytes, n, 1);

  tnk__samples_free(test_allocator(), samples);
  return err;
}

TEST(vector_I1_everything_of_0_25) {
  static const int32_t tokens[] = {5, -1}, topk[] = {0, 7};
  static const float logprobs[] = {-0.5f, -1}, best[] = {-99999, -2};
  tnk_samples_t *samples = from_hex(VEC_I1);
  const tnk_topk_t *matrix = tnk_samples_prompt_topk(samples);
  const void *got;
  size_t n;

  CHECK_INT(tnk_samples_count(samples), 1);
  got = tnk_samples_tokens(samples, 0, &n);
  CHECK_MEM(got, 4 * n, tokens, sizeof(tokens));
  got = tnk_samples_logprobs(samples, 0, &n);
  CHECK_MEM(got, 4 * n, logprobs, sizeof(logprobs));
  CHECK_INT(tnk_samples_stop_reason(samples, 0), TNK_STOP_LENGTH);
  CHECK(tnk_samples_sequence_id(samples, 0) == NULL);
  CHECK(tnk_samples_topk(samples, 0) == NULL);
  CHECK(isnan(tnk_samples_prompt_logprobs(samples, &n)[0]));
  CHECK_NEAR(tnk_samples_prompt_logprobs(samples, &n)[1], -2, 0);
  CHECK_INT(n, 2);
  CHECK_INT(matrix->k, 1);
  CHECK_INT(matrix->length, 2);
  CHECK_MEM(matrix->ids, 8, topk, sizeof(topk));
  CHECK_MEM(matrix->logprobs, 8, best, sizeof(best));
  CHECK_INT(tnk_samples_cache_hit_tokens(samples), 3);
  CHECK(tnk_samples_target_logprobs(samples) == NULL);
  CHECK(tnk_samples_alt_tokens(samples) == NULL);
  end(samples);
}

TEST(vector_I2_topk_of_a_sequence) {
  static const int32_t topk[] = {4, 9, 6, 0};
  static const float best[] = {-0.25f, -2, -0.125f, -99999};
  tnk_samples_t *samples = from_hex(VEC_I2);
  const tnk_topk_t *matrix = tnk_samples_topk(samples, 0);
  size_t n;

  CHECK_INT(tnk_samples_count(samples), 2);
  CHECK(tnk_samples_logprobs(samples, 0, &n) == NULL);
  CHECK_INT(n, 0);
  CHECK_INT(matrix->k, 2);
  CHECK_INT(matrix->length, 2);
  CHECK_MEM(matrix->ids, 16, topk, sizeof(topk));
  CHECK_MEM(matrix->logprobs, 16, best, sizeof(best));
  CHECK(tnk_samples_tokens(samples, 1, &n) == NULL);
  CHECK_INT(n, 0);
  CHECK_INT(tnk_samples_stop_reason(samples, 1), TNK_STOP_SEQUENCE);
  CHECK(tnk_samples_prompt_logprobs(samples, &n) == NULL);
  end(samples);
}

TEST(vector_I3_targets_and_draws) {
  static const float target[] = {-1.5f, 0, 0, -3}, draws[] = {-1, -2};
  static const int64_t tokens[] = {8, 9};
  tnk_samples_t *samples = from_hex(VEC_I3);
  const tnk_tensor_t *tensor = tnk_samples_target_logprobs(samples);

  CHECK_INT(tnk_samples_count(samples), 0);
  CHECK_INT(tensor->n_dims, 2);
  CHECK_INT(tensor->shape[1], 2);
  CHECK_MEM(tensor->data, 16, target, sizeof(target));
  tensor = tnk_samples_alt_tokens(samples);
  CHECK_INT(tensor->dtype, TNK_I64);
  CHECK_INT(tensor->shape[0], 2);
  CHECK_MEM(tensor->data, 16, tokens, sizeof(tokens));
  tensor = tnk_samples_alt_logprobs(samples);
  CHECK_MEM(tensor->data, 8, draws, sizeof(draws));
  end(samples);
}

TEST(vector_I4_sparse_stays_sparse) {
  static const int64_t crow[] = {0, 0, 1, 1};
  tnk_samples_t *samples = from_hex(VEC_I4);
  const tnk_tensor_t *tensor = tnk_samples_target_logprobs(samples);

  CHECK_INT(tensor->n_values, 1);
  CHECK_NEAR(((const float *)tensor->data)[0], -0.75, 0);
  CHECK_MEM(tensor->crow, 32, crow, sizeof(crow));
  CHECK_INT(tensor->col[0], 3);
  CHECK_INT(tensor->shape[0], 3);
  CHECK_INT(tensor->shape[1], 4);
  end(samples);
}

TEST(S3_26a_damaged_protobuf) {
  static const char *const vectors[] = {VEC_I1, VEC_I2, VEC_I3, VEC_I4};
  uint8_t bytes[1024];

  for (size_t i = 0; i < 4; i++) {
    size_t n = test_unhex(bytes, sizeof(bytes), vectors[i]);

    wire_damage(read_proto, tnk__samples_free, bytes, n);
    wire_starve(read_proto, tnk__samples_free, bytes, n);
  }
}

TEST(odd_protobuf) {
  tnk_samples_t *samples = from_hex("");

  CHECK_INT(tnk_samples_count(samples), 0);
  end(samples);
  /* An empty array counts as none; a top-k of nothing too. */
  samples = from_hex("0a021a00"
                     "1200"
                     "1a020a00");
  CHECK_INT(tnk_samples_count(samples), 1);
  CHECK(tnk_samples_logprobs(samples, 0, NULL) == NULL);
  CHECK(tnk_samples_prompt_logprobs(samples, NULL) == NULL);
  CHECK(tnk_samples_prompt_topk(samples) == NULL);
  end(samples);
  /* Unknown fields are skipped. */
  samples = from_hex("0a03f83f01"
                     "fa3f03616263");
  CHECK_INT(tnk_samples_count(samples), 1);
  end(samples);
  CHECK_INT(refused_hex("0a020802"), TNK_EPROTO);       /* stop reason 2 */
  CHECK_INT(refused_hex("0a0512030102ff"), TNK_EPROTO); /* 3 bytes of ids */
  CHECK_INT(refused_hex("12020000"), TNK_EPROTO);
  CHECK_INT(refused_hex("1a0418012001"), TNK_EPROTO); /* no cells */
  CHECK_INT(refused_hex("1a0c18ffffffff0f20ffffffff0f"), TNK_EPROTO);
  CHECK_INT(refused_hex("1a100a04000000001204000000001801"
                        "2002"),
            TNK_EPROTO);
  CHECK_INT(refused_hex("3200"), TNK_EPROTO); /* draws without tensors */
  CHECK_INT(refused_hex("2a00"), TNK_EPROTO); /* no type */
  CHECK_INT(refused_hex("2a0a0a080000000000000000"), TNK_EPROTO);
  /* A scalar of one element is one; of two it is not. */
  CHECK_INT(refused_hex("2a080a04000000001801"), TNK_OK);
  CHECK_INT(refused_hex("2a0c0a0800000000000000001801"), TNK_EPROTO);
  /* int64 where floats belong. */
  CHECK_INT(refused_hex("2a0c0a0800000000000000001802"), TNK_EPROTO);
}

/* bfloat16 of a tensor that stands alone is bits, not a number. */
TEST(bfloat16_in_a_single_tensor) {
  tnk_samples_t *samples = from_hex("2a090a02803f1804220101");

  CHECK_NEAR(((const float *)samples->target_logprobs->data)[0], 1.0, 0);
  end(samples);
}

/* ---- JSON ---- */

#define JSON_SAMPLE                                                            \
  "{\"sequences\":[{\"stop_reason\":\"length\",\"tokens\":[5,-1],"             \
  "\"logprobs\":[-0.5,null],\"topk_sampled_logprobs\":[[[4,-0.25],[9,-2]],"    \
  "[[6,-1]]]},{\"stop_reason\":\"stop\",\"tokens\":[],\"logprobs\":null}],"    \
  "\"prompt_logprobs\":[null,-2,-3.5],"                                        \
  "\"topk_prompt_logprobs\":[null,[[7,-2]],[]],"                               \
  "\"prompt_cache_hit_tokens\":3,\"target_prompt_logprobs\":{\"data\":[-1.5]," \
  "\"dtype\":\"float32\",\"shape\":[1,1]},\"prompt_alt_tokens\":{\"tokens\":"  \
  "{\"data\":[8],\"dtype\":\"int64\",\"shape\":[1,1]},\"logprobs\":{\"data\":" \
  "[-1],\"dtype\":\"float32\",\"shape\":[1,1]}},\"type\":null}"

TEST(H7_json_result) {
  static const int32_t tokens[] = {5, -1}, row[] = {4, 9, 6, 0};
  tnk_samples_t *samples = from_json(JSON_SAMPLE);
  const tnk_topk_t *matrix = tnk_samples_topk(samples, 0);
  const float *logprobs;
  size_t n;

  CHECK_INT(tnk_samples_count(samples), 2);
  CHECK_MEM(tnk_samples_tokens(samples, 0, NULL), 8, tokens, 8);
  logprobs = tnk_samples_logprobs(samples, 0, &n);
  CHECK_INT(n, 2);
  CHECK_NEAR(logprobs[0], -0.5, 0);
  CHECK(isnan(logprobs[1]));
  CHECK_INT(tnk_samples_stop_reason(samples, 0), TNK_STOP_LENGTH);
  CHECK_INT(tnk_samples_stop_reason(samples, 1), TNK_STOP_SEQUENCE);
  CHECK(tnk_samples_logprobs(samples, 1, &n) == NULL);
  CHECK_INT(matrix->k, 2);
  CHECK_MEM(matrix->ids, 16, row, 16);
  CHECK_NEAR(matrix->logprobs[3], -99999, 0);
  logprobs = tnk_samples_prompt_logprobs(samples, &n);
  CHECK_INT(n, 3);
  CHECK(isnan(logprobs[0]));
  CHECK_NEAR(logprobs[2], -3.5, 0);
  matrix = tnk_samples_prompt_topk(samples);
  CHECK_INT(matrix->k, 1);
  CHECK_INT(matrix->length, 3);
  CHECK_INT(matrix->ids[1], 7);
  CHECK_NEAR(matrix->logprobs[0], -99999, 0);
  CHECK_INT(tnk_samples_cache_hit_tokens(samples), 3);
  CHECK_INT(((const int64_t *)samples->alt_tokens->data)[0], 8);
  CHECK_NEAR(((const float *)samples->alt_logprobs->data)[0], -1, 0);
  CHECK_INT(samples->target_logprobs->n_dims, 2);
  end(samples);
}

TEST(S3_26a_damaged_json) {
  wire_damage(read_json, tnk__samples_free, JSON_SAMPLE, strlen(JSON_SAMPLE));
  wire_starve(read_json, tnk__samples_free, JSON_SAMPLE, strlen(JSON_SAMPLE));
}

TEST(json_with_everything_optional_left_out) {
  tnk_samples_t *samples = from_json(
      "{\"sequences\":[{\"tokens\":[1]},{\"tokens\":[2],\"stop_reason\":1},"
      "{\"tokens\":[],\"stop_reason\":0},"
      "{\"tokens\":[],\"stop_reason\":\"STOP_REASON_LENGTH\"}],"
      "\"prompt_logprobs\":null,\"topk_prompt_logprobs\":null,\"x\":{}}");

  CHECK_INT(tnk_samples_count(samples), 4);
  CHECK_INT(tnk_samples_stop_reason(samples, 0), TNK_STOP_SEQUENCE);
  CHECK_INT(tnk_samples_stop_reason(samples, 1), TNK_STOP_LENGTH);
  CHECK_INT(tnk_samples_stop_reason(samples, 2), TNK_STOP_SEQUENCE);
  CHECK_INT(tnk_samples_stop_reason(samples, 3), TNK_STOP_LENGTH);
  CHECK(tnk_samples_prompt_logprobs(samples, NULL) == NULL);
  CHECK(tnk_samples_prompt_topk(samples) == NULL);
  CHECK_INT(tnk_samples_cache_hit_tokens(samples), 0);
  end(samples);
}

TEST(malformed_json_samples) {
  static const char *const bodies[] = {
      "[]",
      "{}",
      "{\"sequences\":null}",
      "{\"sequences\":{}}",
      "{\"sequences\":[1]}",
      "{\"sequences\":[{}]}",
      "{\"sequences\":[{\"tokens\":null}]}",
      "{\"sequences\":[{\"tokens\":[1.5]}]}",
      "{\"sequences\":[{\"tokens\":[2147483648]}]}",
      "{\"sequences\":[{\"tokens\":[1],\"stop_reason\":\"why\"}]}",
      "{\"sequences\":[{\"tokens\":[1],\"stop_reason\":2}]}",
      "{\"sequences\":[{\"tokens\":[1],\"logprobs\":[\"1\"]}]}",
      "{\"sequences\":[{\"tokens\":[1],\"logprobs\":1}]}",
      "{\"sequences\":[],\"prompt_logprobs\":{}}",
      "{\"sequences\":[],\"topk_prompt_logprobs\":[[[1]]]}",
      "{\"sequences\":[],\"topk_prompt_logprobs\":[[[1,2,3]]]}",
      "{\"sequences\":[],\"topk_prompt_logprobs\":[[[1,null]]]}",
      "{\"sequences\":[],\"topk_prompt_logprobs\":[[[1,2]],7]}",
      "{\"sequences\":[],\"prompt_cache_hit_tokens\":-1}",
      "{\"sequences\":[],\"prompt_cache_hit_tokens\":\"3\"}",
      "{\"sequences\":[],\"prompt_alt_tokens\":{}}",
      "{\"sequences\":[],\"target_prompt_logprobs\":3}"};

  for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
    tnk_samples_t *samples;

    if (tnk__samples_read(&samples, test_allocator(), bodies[i],
                          strlen(bodies[i]), 0) != TNK_EPROTO)
      test_fail(__FILE__, __LINE__, "accepted: %s", bodies[i]);
    CHECK(samples == NULL);
  }
}

/* One long row must not make millions of short ones long. */
TEST(topk_is_bounded_by_the_body) {
  enum { SIDE = 20000 };
  tnk_samples_t *samples;
  tnk__buf_t body;

  tnk__buf_init(&body, tnk__allocator_default(), 1 << 20);
  tnk__buf_text(&body, "{\"sequences\":[],\"topk_prompt_logprobs\":[[");
  for (int i = 0; i < SIDE; i++)
    tnk__buf_text(&body, i > 0 ? ",[1,-1]" : "[1,-1]");
  tnk__buf_byte(&body, ']');
  for (int i = 0; i < SIDE; i++)
    tnk__buf_text(&body, ",[]");
  CHECK_INT(tnk__buf_text(&body, "]}"), TNK_OK);
  CHECK_INT(
      tnk__samples_read(&samples, test_allocator(), body.data, body.len, 0),
      TNK_EPROTO);
  tnk__buf_deinit(&body);
}

/* ---- Ids and checks ---- */

TEST(sequence_ids_may_be_missing) {
  static const char *const ids[] = {"p:0", "p:1"};
  tnk_samples_t *samples = from_hex(VEC_I2);

  CHECK_INT(tnk__samples_set_ids(samples, NULL, 0), TNK_OK);
  CHECK(tnk_samples_sequence_id(samples, 0) == NULL);
  CHECK_INT(tnk__samples_set_ids(samples, ids, 1), TNK_EPROTO);
  CHECK(tnk_samples_sequence_id(samples, 0) == NULL);
  CHECK_INT(tnk__samples_set_ids(samples, ids, 2), TNK_OK);
  CHECK_STR(tnk_samples_sequence_id(samples, 1), "p:1");
  CHECK(tnk_samples_sequence_id(samples, 2) == NULL);
  end(samples);
}

/* The ids come in an answer of their own; the ceiling that follows from the
 * body of the result is not theirs. */
TEST(ids_longer_than_the_result) {
  enum { N = 2, LONG = 600000 };
  static char text[LONG];
  const char *ids[N] = {text, text};
  tnk_samples_t *samples = from_hex(VEC_I2);

  memset(text, 'x', sizeof(text) - 1);
  CHECK_INT(tnk__samples_set_ids(samples, ids, N), TNK_OK);
  CHECK_INT(strlen(tnk_samples_sequence_id(samples, 1)), LONG - 1);
  end(samples);
}

TEST(S3_26a_ids_without_memory) {
  static char text[40000];
  const char *ids[] = {text, "b"};
  tnk_samples_t *samples = from_hex(VEC_I2);

  memset(text, 'x', sizeof(text) - 1);
  test_alloc_fail_at(0);
  CHECK_INT(tnk__samples_set_ids(samples, ids, 2), TNK_ENOMEM);
  test_alloc_fail_at(-1);
  CHECK(tnk_samples_sequence_id(samples, 0) == NULL);
  end(samples);
}

static int check(const char *body, const tnk_sample_options_t *options,
                 const char *text) {
  tnk_samples_t *samples = from_json(body);
  char got[128];
  int err = tnk__samples_check(samples, options, got, sizeof(got));

  CHECK_STR(got, text);
  CHECK_INT(tnk__samples_check(samples, options, NULL, 0), err);
  end(samples);
  return err;
}

TEST(what_was_asked_for_and_is_missing) {
  static const char bare[] = "{\"sequences\":[{\"tokens\":[1]}]}";
  tnk_tensor_t target = {0};
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;

  CHECK_INT(check(bare, NULL, ""), TNK_OK);
  CHECK_INT(check(bare, &options, ""), TNK_OK);
  CHECK_INT(check(JSON_SAMPLE, &options, ""), TNK_OK);
  options.target_prompt_logprobs = &target;
  CHECK_INT(
      check(bare, &options, "the server does not know target_prompt_logprobs"),
      TNK_OK);
  options.topk_sample_logprobs = 2;
  CHECK_INT(
      check(bare, &options, "the server does not know topk_sample_logprobs"),
      TNK_OK);
  options.topk_prompt_logprobs = 2;
  CHECK_INT(
      check(bare, &options, "the server does not know topk_prompt_logprobs"),
      TNK_OK);
  options.prompt_logprobs = TNK_YES;
  CHECK_INT(check(bare, &options, "the server does not know prompt_logprobs"),
            TNK_OK);
  CHECK_INT(check(JSON_SAMPLE, &options, ""), TNK_OK);
  options.prompt_alt_tokens_k = 1;
  CHECK_INT(
      check(bare, &options, "the server does not know prompt_alt_tokens_k"),
      TNK_EUNSUPPORTED);
  CHECK_INT(check(JSON_SAMPLE, &options, ""), TNK_OK);
}

TEST(only_the_last_prompt_tokens_are_scored) {
  static const char body[] =
      "{\"sequences\":[],\"prompt_logprobs\":[null,null,-1,-2]}";
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;

  options.prompt_logprobs = TNK_YES;
  for (uint32_t n = 0; n < 6; n++) {
    options.prompt_logprobs_last_n = n;
    CHECK_INT(
        check(body, &options,
              n == 1 ? "the server does not know prompt_logprobs_last_n" : ""),
        n == 1 ? TNK_EUNSUPPORTED : TNK_OK);
  }
  options.prompt_logprobs_last_n = UINT32_MAX;
  CHECK_INT(check(body, &options, ""), TNK_OK);
}

TEST(accessors_of_nothing) {
  size_t n = 1;

  CHECK_INT(tnk_samples_count(NULL), 0);
  CHECK(tnk_samples_tokens(NULL, 0, &n) == NULL);
  CHECK_INT(n, 0);
  CHECK(tnk_samples_prompt_logprobs(NULL, &n) == NULL);
  CHECK(tnk_samples_topk(NULL, 0) == NULL);
  tnk__samples_free(test_allocator(), NULL);
}

/* What the generated code writes is what we read. */
TEST(random_samples) {
  enum { N = 30, MOST = 200 };
  uint64_t seed = 3;
  static int32_t tokens[N][MOST];
  static float logprobs[N][MOST];
  static uint8_t out[N * (MOST * 8 + 64)];
  TinkerPublic__SampleResponse message = TINKER_PUBLIC__SAMPLE_RESPONSE__INIT;
  TinkerPublic__SampledSequence sequences[N], *list[N];
  tnk_samples_t *samples;
  size_t n_out;

  for (size_t i = 0; i < N; i++) {
    size_t n = (size_t)(test_random(&seed) % MOST);

    for (size_t t = 0; t < n; t++) {
      tokens[i][t] = (int32_t)test_random(&seed);
      logprobs[i][t] = -(float)t / 7;
    }
    tinker_public__sampled_sequence__init(&sequences[i]);
    sequences[i].stop_reason = (TinkerPublic__StopReason)(i % 2);
    sequences[i].tokens = (ProtobufCBinaryData){4 * n, (uint8_t *)tokens[i]};
    if (i % 3 != 0) {
      sequences[i].has_logprobs_case =
          TINKER_PUBLIC__SAMPLED_SEQUENCE__HAS_LOGPROBS_LOGPROBS;
      sequences[i].logprobs =
          (ProtobufCBinaryData){4 * n, (uint8_t *)logprobs[i]};
    }
    list[i] = &sequences[i];
  }
  message.sequences = list;
  message.n_sequences = N;
  order_swap(tokens, sizeof(tokens) / 4, 4);
  order_swap(logprobs, sizeof(logprobs) / 4, 4);
  n_out = tinker_public__sample_response__pack(&message, out);
  order_swap(tokens, sizeof(tokens) / 4, 4);
  order_swap(logprobs, sizeof(logprobs) / 4, 4);
  CHECK_INT(tnk__samples_read(&samples, test_allocator(), out, n_out, 1),
            TNK_OK);
  CHECK_INT(tnk_samples_count(samples), N);
  for (size_t i = 0; i < N; i++) {
    size_t n;
    const void *got = tnk_samples_tokens(samples, i, &n);

    CHECK_MEM(got, 4 * n, tokens[i], sequences[i].tokens.len);
    got = tnk_samples_logprobs(samples, i, &n);
    CHECK_MEM(got, 4 * n, logprobs[i],
              i % 3 != 0 ? sequences[i].tokens.len : 0);
    CHECK_INT(tnk_samples_stop_reason(samples, i), i % 2);
  }
  end(samples);
}
