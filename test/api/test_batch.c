/* SPDX-License-Identifier: MIT */
/*
 * Training data that owns its memory.
 */
#include "tnk/batch.h"

#include <math.h>
#include <string.h>

#include "lib/wire/message/results.h"
#include "support/test.h"
#include "tnk/error.h"

static void expect_ids(const tnk_datum_t *datum, const int32_t *tokens,
                       size_t n) {
  CHECK_INT(datum->input.n_tokens, n - 1);
  CHECK_MEM(datum->input.tokens, (n - 1) * sizeof(*tokens), tokens,
            (n - 1) * sizeof(*tokens));
  for (size_t i = 0; i < n - 1; i++)
    CHECK_INT(datum->targets[i], tokens[i + 1]);
}

TEST(each_token_is_to_be_followed_by_the_next) {
  int32_t tokens[] = {5, 6, 7, 8};
  const int32_t same[] = {5, 6, 7, 8};
  float weights[] = {9, 0, 1, 0.5f};
  tnk_batch_t *batch = tnk_batch_new(test_allocator());
  const tnk_datum_t *data;
  size_t n;

  CHECK(tnk_batch_data(batch, &n) == NULL);
  CHECK_INT(n, 0);
  CHECK_INT(tnk_batch_add_tokens(batch, tokens, NULL, 4), TNK_OK);
  CHECK_NEAR(tnk_batch_weight(batch), 3, 0);
  CHECK_INT(tnk_batch_add_tokens(batch, tokens, weights, 4), TNK_OK);
  CHECK_NEAR(tnk_batch_weight(batch), 4.5, 0);
  memset(tokens, 0, sizeof(tokens));
  memset(weights, 0, sizeof(weights));
  data = tnk_batch_data(batch, &n);
  CHECK_INT(n, 2);
  CHECK_INT(tnk_data_check(data, n, "cross_entropy", NULL, 0), TNK_OK);
  expect_ids(&data[0], same, 4);
  CHECK(data[0].weights == NULL);
  expect_ids(&data[1], same, 4);
  CHECK_NEAR(data[1].weights[0], 0, 0);
  CHECK_NEAR(data[1].weights[2], 0.5, 0);
  tnk_batch_free(batch);
  CHECK_INT(test_alloc_live(), 0);
}

/* Two sequences; the second has no log-probabilities. */
static const int32_t sampled[] = {21, 22, 23};
static const float sampled_logprobs[] = {-1, -2, -3};
static tnk__sequence_t sequences[] = {
    {.tokens = sampled,
     .n_tokens = 3,
     .logprobs = sampled_logprobs,
     .n_logprobs = 3},
    {.tokens = sampled, .n_tokens = 3},
};
static const tnk_samples_t samples = {.sequences = sequences, .n_sequences = 2};

TEST(a_sample_is_trained_from_behind_its_prompt) {
  const int32_t prompt[] = {11, 12};
  const int32_t whole[] = {11, 12, 21, 22, 23};
  const float old[] = {0, -1, -2, -3};
  const float advantages[] = {0, 0.5f, 0.5f, 0.5f};
  tnk_batch_t *batch = tnk_batch_new(test_allocator());
  const tnk_datum_t *data;
  size_t n;

  CHECK_INT(tnk_batch_add_sample(batch, prompt, 2, &samples, 0, 0.5), TNK_OK);
  data = tnk_batch_data(batch, &n);
  CHECK_INT(n, 1);
  CHECK_INT(tnk_data_check(data, n, "importance_sampling", NULL, 0), TNK_OK);
  expect_ids(data, whole, 5);
  CHECK_INT(data->n_loss_inputs, 2);
  CHECK_STR(data->loss_inputs[0].name, "logprobs");
  CHECK_MEM(data->loss_inputs[0].tensor.data, sizeof(old), old, sizeof(old));
  CHECK_STR(data->loss_inputs[1].name, "advantages");
  CHECK_MEM(data->loss_inputs[1].tensor.data, sizeof(advantages), advantages,
            sizeof(advantages));
  CHECK_NEAR(tnk_batch_weight(batch), 3, 0);
  tnk_batch_free(batch);
}

TEST(what_cannot_be_trained_from_is_refused_and_changes_nothing) {
  const int32_t tokens[] = {1, 2};
  tnk_batch_t *batch = tnk_batch_new(test_allocator());
  size_t n;

  CHECK_INT(tnk_batch_add_tokens(NULL, tokens, NULL, 2), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_tokens(batch, NULL, NULL, 2), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_tokens(batch, tokens, NULL, 1), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_tokens(batch, tokens, NULL, 0), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_sample(batch, NULL, 2, &samples, 0, 1), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_sample(batch, tokens, 0, &samples, 0, 1), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_sample(batch, tokens, 2, NULL, 0, 1), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_sample(batch, tokens, 2, &samples, 1, 1), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_sample(batch, tokens, 2, &samples, 2, 1), TNK_EINVAL);
  CHECK_INT(tnk_batch_add_sample(batch, tokens, 2, &samples, 0, NAN),
            TNK_EINVAL);
  CHECK(tnk_batch_data(batch, &n) == NULL);
  CHECK_NEAR(tnk_batch_weight(batch), 0, 0);
  CHECK(tnk_batch_data(NULL, NULL) == NULL);
  tnk_batch_clear(NULL);
  tnk_batch_free(NULL);
  tnk_batch_free(batch);
}

TEST(a_batch_is_filled_anew_after_it_was_emptied) {
  static int32_t tokens[1000];
  tnk_batch_t *batch = tnk_batch_new(test_allocator());
  size_t n;

  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 50; i++)
      CHECK_INT(tnk_batch_add_tokens(batch, tokens, NULL, 1000), TNK_OK);
    tnk_batch_data(batch, &n);
    CHECK_INT(n, 50);
    CHECK_NEAR(tnk_batch_weight(batch), 50 * 999, 0);
    tnk_batch_clear(batch);
    CHECK(tnk_batch_data(batch, &n) == NULL);
  }
  tnk_batch_free(batch);
  CHECK_INT(test_alloc_live(), 0);
}

TEST(without_memory_a_batch_stays_as_it_was) {
  const int32_t tokens[] = {1, 2, 3};
  const float weights[] = {1, 1, 1};
  tnk_batch_t *batch;
  long at;

  test_alloc_fail_at(0);
  CHECK(tnk_batch_new(test_allocator()) == NULL);
  for (at = 0; at < 100; at++) {
    int err;
    size_t n;
    batch = tnk_batch_new(test_allocator());
    test_alloc_fail_at(at);
    err = tnk_batch_add_tokens(batch, tokens, weights, 3);
    tnk_batch_data(batch, &n);
    CHECK_INT(n, err == TNK_OK);
    if (err == TNK_OK)
      err = tnk_batch_add_sample(batch, tokens, 3, &samples, 0, 1);
    test_alloc_fail_at(-1);
    tnk_batch_free(batch);
    CHECK_INT(test_alloc_live(), 0);
    if (err == TNK_OK)
      break;
    CHECK_INT(err, TNK_ENOMEM);
  }
  CHECK(at > 1 && at < 100);
}

/* ---- Trajectories ---- */

static const int32_t question[] = {11, 12};
static const int32_t answer_of_tool[] = {31};

/* A question, what was said, a tool's answer, what was said then. */
static void converse(tnk_segment_t out[5]) {
  out[0] = tnk_segment_given(question, 2);
  out[1] = tnk_segment_sampled(&samples, 0, 0.5);
  out[2] = tnk_segment_given(answer_of_tool, 1);
  out[3] = tnk_segment_sampled(&samples, 0, -2);
  out[4] = tnk_segment_given(question, 2); /* nothing follows */
}

static void expect_input(const tnk_datum_t *datum, size_t i, const char *name,
                         const float *values, size_t n) {
  CHECK_STR(datum->loss_inputs[i].name, name);
  CHECK_MEM(datum->loss_inputs[i].tensor.data, n * sizeof(*values), values,
            n * sizeof(*values));
}

TEST(a_trajectory_is_trained_from_where_it_was_sampled) {
  static const int32_t whole[] = {11, 12, 21, 22, 23, 31, 21, 22, 23};
  static const float old[] = {0, -1, -2, -3, 0, -1, -2, -3};
  static const float advantages[] = {0, 0.5f, 0.5f, 0.5f, 0, -2, -2, -2};
  static const float mask[] = {0, 1, 1, 1, 0, 1, 1, 1};
  static const char *const losses[] = {"ppo", "dro", "gspo"};
  static const char *const masks[] = {NULL, "weights", "sequence_ratio_mask"};
  tnk_batch_t *batch = tnk_batch_new(test_allocator());
  tnk_segment_t segments[5];
  const tnk_datum_t *data;
  size_t n;

  converse(segments);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(tnk_batch_add_trajectory(batch, segments, 5, masks[i]), TNK_OK);
    CHECK_STR(tnk_batch_text(batch), "success");
    data = tnk_batch_data(batch, &n);
    CHECK_INT(n, i + 1);
    CHECK_INT(tnk_data_check(&data[i], 1, losses[i], NULL, 0), TNK_OK);
    expect_ids(&data[i], whole, 9);
    CHECK_INT(data[i].n_loss_inputs, i == 0 ? 2 : 3);
    expect_input(&data[i], 0, "logprobs", old, 8);
    expect_input(&data[i], 1, "advantages", advantages, 8);
    if (i > 0)
      expect_input(&data[i], 2, masks[i], mask, 8);
    CHECK(data[i].input_spans == NULL && data[i].loss_input_spans == NULL);
  }
  CHECK_NEAR(tnk_batch_weight(batch), 18, 0);
  tnk_batch_free(batch);
  CHECK_INT(test_alloc_live(), 0);
}

static void expect_span(const tnk_span_t *span, tnk_span_kind_t kind,
                        const char *id, int64_t offset, int64_t length) {
  CHECK_INT(span->kind, kind);
  CHECK_STR(span->sequence_id, id);
  CHECK_INT(span->offset, offset);
  CHECK_INT(span->length, length);
}

/* The prompt of each sequence is all that stands before it. */
TEST(a_trajectory_tells_where_its_tokens_are_from) {
  tnk_batch_t *batch = tnk_batch_new(test_allocator());
  tnk_segment_t segments[5];
  const tnk_datum_t *data;
  size_t n;

  converse(segments);
  segments[1].sequence_id = "s-1";
  segments[3].sequence_id = "s-2";
  CHECK_INT(tnk_batch_add_trajectory(batch, segments, 5, NULL), TNK_OK);
  data = tnk_batch_data(batch, &n);
  CHECK_INT(tnk_data_check(data, n, NULL, NULL, 0), TNK_OK); /* they tile */
  CHECK_INT(data->n_input_spans, 4);
  expect_span(&data->input_spans[0], TNK_SPAN_PROMPT, "s-1", 0, 2);
  expect_span(&data->input_spans[1], TNK_SPAN_SAMPLED, "s-1", 0, 3);
  expect_span(&data->input_spans[2], TNK_SPAN_PROMPT, "s-2", 5, 1);
  expect_span(&data->input_spans[3], TNK_SPAN_SAMPLED, "s-2", 0, 2);
  CHECK_INT(data->n_loss_input_spans, 4);
  expect_span(&data->loss_input_spans[0], TNK_SPAN_PROMPT, "s-1", 1, 1);
  expect_span(&data->loss_input_spans[3], TNK_SPAN_SAMPLED, "s-2", 0, 3);
  /* A question of one token is no target, and a last word of one no input. */
  segments[0].n_tokens = 1;
  segments[3].n_tokens = 1;
  tnk_batch_clear(batch);
  CHECK_INT(tnk_batch_add_trajectory(batch, segments, 4, NULL), TNK_OK);
  data = tnk_batch_data(batch, &n);
  CHECK_INT(tnk_data_check(data, n, NULL, NULL, 0), TNK_OK);
  CHECK_INT(data->n_input_spans, 3);
  CHECK_INT(data->n_loss_input_spans, 3);
  tnk_batch_free(batch);
}

static const float odd[] = {-1, NAN, -3};

/* Each is broken in one way, and the sentence names the place. */
TEST(what_is_refused_is_named) {
  tnk_batch_t *batch = tnk_batch_new(test_allocator());
  tnk_segment_t s[5];

#define REFUSED(call, text)                                                    \
  do {                                                                         \
    CHECK_INT(call, TNK_EINVAL);                                               \
    CHECK_STR(tnk_batch_text(batch), text);                                    \
  } while (0)
#define BROKEN(change, n, text)                                                \
  do {                                                                         \
    converse(s);                                                               \
    change;                                                                    \
    REFUSED(tnk_batch_add_trajectory(batch, s, n, NULL), text);                \
  } while (0)
  BROKEN(s[2].n_tokens = 0, 5, "segment 2 has no tokens");
  BROKEN(s[3].tokens = NULL, 5, "segment 3 has no tokens");
  BROKEN(s[1].kind = (tnk_span_kind_t)9, 5, "segment 1: its kind 9 is none");
  BROKEN(s[3].logprobs = NULL, 5,
         "segment 3 is sampled and has no log-probabilities");
  BROKEN(s[3].logprobs = odd, 5,
         "segment 3: the log-probability of token 1 is not finite");
  BROKEN(s[3].advantage = INFINITY, 5,
         "segment 3: its advantage is not finite");
  BROKEN(s[0] = s[1], 5, "segment 0 is sampled: nothing stands before it");
  BROKEN(s[3].sequence_id = "a", 5,
         "segment 3 has a sequence id, unlike segment 1");
  BROKEN(s[1].sequence_id = "a", 5,
         "segment 3 has no sequence id, unlike segment 1");
  BROKEN((void)s, 1, "no segment was sampled");
  BROKEN((void)s, 0, "no segment was sampled");
  BROKEN(s[1] = tnk_segment_sampled(&samples, 1, 1), 5,
         "segment 1 is sampled and has no log-probabilities");
  BROKEN(s[1] = tnk_segment_sampled(&samples, 2, 1), 5,
         "segment 1 has no tokens");
  BROKEN(s[1] = tnk_segment_sampled(NULL, 0, 1), 5, "segment 1 has no tokens");
  REFUSED(tnk_batch_add_trajectory(batch, NULL, 2, NULL), "segments is NULL");
  REFUSED(tnk_batch_add_tokens(batch, NULL, NULL, 2), "tokens is NULL");
  REFUSED(tnk_batch_add_tokens(batch, question, NULL, 1),
          "there are 1 tokens, at least 2 are needed");
  REFUSED(tnk_batch_add_tokens(batch, question, odd, 2),
          "the weight of token 1 is not finite");
  REFUSED(tnk_batch_add_sample(batch, question, 0, &samples, 0, 1),
          "the prompt is empty");
  REFUSED(tnk_batch_add_sample(batch, question, 2, NULL, 0, 1),
          "samples is NULL");
  REFUSED(tnk_batch_add_sample(batch, question, 2, &samples, 1, 1),
          "sequence 1 came without log-probabilities");
  REFUSED(tnk_batch_add_sample(batch, question, 2, &samples, 2, 1),
          "there is no sequence 2, there are 2");
  REFUSED(tnk_batch_add_sample(batch, question, 2, &samples, 0, NAN),
          "segment 1: its advantage is not finite");
  CHECK(tnk_batch_data(batch, NULL) == NULL);
  tnk_batch_clear(batch);
  CHECK_STR(tnk_batch_text(batch), "success");
  CHECK(strstr(tnk_batch_text(NULL), "NULL") != NULL);
  CHECK_INT(tnk_batch_add_trajectory(NULL, s, 2, NULL), TNK_EINVAL);
  tnk_batch_free(batch);
}

/* Each allocation fails in turn, and the batch is as it was. */
TEST(S3_26a_a_trajectory_is_added_or_not) {
  tnk_batch_t *batch = tnk_batch_new(test_allocator());
  tnk_segment_t segments[5];
  size_t n;
  int err;

  converse(segments);
  segments[1].sequence_id = segments[3].sequence_id = "a";
  for (long at = 0;; at++) {
    test_alloc_fail_at(at);
    err = tnk_batch_add_trajectory(batch, segments, 5, "weights");
    test_alloc_fail_at(-1);
    tnk_batch_data(batch, &n);
    if (err == TNK_OK)
      break;
    CHECK_INT(err, TNK_ENOMEM);
    CHECK_STR(tnk_batch_text(batch), "out of memory");
    CHECK_INT(n, 0);
    CHECK_NEAR(tnk_batch_weight(batch), 0, 0);
  }
  CHECK_INT(n, 1);
  tnk_batch_free(batch);
}
