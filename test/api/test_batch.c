/*
 * Training data that owns its memory.
 */
#include "tnk/batch.h"

#include <math.h>
#include <string.h>

#include "codec/message/results.h"
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

TEST(a_sample_is_learnt_from_behind_its_prompt) {
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

TEST(what_cannot_be_learnt_from_is_refused_and_changes_nothing) {
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
