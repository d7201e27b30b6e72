/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/plan.h"

#include <string.h>

#include "support/test.h"
#include "tnk/error.h"

enum { MOST = 300 };

/* Returns whether the shuffle has each of n numbers once. */
static int is_permutation(uint64_t seed, uint64_t epoch, uint64_t n) {
  char seen[MOST] = "";

  for (uint64_t i = 0; i < n; i++) {
    const uint64_t at = train_shuffle(seed, epoch, n, i);

    if (at >= n || seen[at])
      return 0;
    seen[at] = 1;
  }
  return 1;
}

TEST(shuffle_has_each_number_once) {
  for (uint64_t n = 1; n <= MOST; n++)
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
      CHECK(is_permutation(0, epoch, n));
      CHECK(is_permutation(UINT64_MAX, UINT64_MAX - epoch, n));
    }
}

/* The number of elements that two orders have at the same place. */
static int n_equal(uint64_t seed_a, uint64_t epoch_a, uint64_t seed_b,
                   uint64_t epoch_b) {
  int n = 0;

  for (uint64_t i = 0; i < MOST; i++)
    n += train_shuffle(seed_a, epoch_a, MOST, i) ==
         train_shuffle(seed_b, epoch_b, MOST, i);
  return n;
}

TEST(shuffle_depends_on_seed_and_epoch) {
  CHECK_INT(n_equal(1, 2, 1, 2), MOST);
  /* A random order agrees at one place on average. */
  CHECK(n_equal(1, 2, 1, 3) < 12);
  CHECK(n_equal(1, 2, 2, 2) < 12);
  CHECK(n_equal(0, 1, 1, 0) < 12);
}

/* Over many epochs each number comes first about equally often. */
TEST(shuffle_is_even) {
  enum { N = 10, EPOCHS = 20000 };
  int count[N] = {0};

  for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
    count[train_shuffle(7, epoch, N, 0)]++;
  for (int i = 0; i < N; i++)
    CHECK(count[i] > 1800 && count[i] < 2200);
}

TEST(epochs_follow_each_other_without_a_gap) {
  train_plan_t plan;
  int count[10] = {0};
  uint64_t n = 0;

  CHECK_INT(train_plan_epochs(&plan, 3, 10, 4, 3), TNK_OK);
  CHECK_INT(plan.n_steps, 8);
  for (uint64_t step = 0; step < plan.n_steps; step++)
    for (uint64_t i = 0; i < train_plan_count(&plan, step); i++) {
      count[train_plan_example(&plan, step, i)]++;
      /* At the end of each epoch all counts are equal. */
      if (++n % 10 == 0)
        for (int k = 0; k < 10; k++)
          CHECK_INT(count[k], n / 10);
    }
  CHECK_INT(n, 30);
  CHECK_INT(train_plan_count(&plan, 6), 4);
  CHECK_INT(train_plan_count(&plan, 7), 2);
  CHECK_INT(train_plan_count(&plan, 8), 0);
  CHECK(train_plan_epoch(&plan, 5) == 2.0);
  CHECK(train_plan_epoch(&plan, 8) == 3.0);
}

TEST(steps_have_whole_batches) {
  train_plan_t plan;

  CHECK_INT(train_plan_steps(&plan, 3, 10, 4, 7), TNK_OK);
  CHECK_INT(plan.n_steps, 7);
  CHECK_INT(train_plan_count(&plan, 6), 4);
  CHECK(train_plan_epoch(&plan, 7) == 2.8);
  CHECK_INT(train_plan_epochs(&plan, 3, 8, 4, 2), TNK_OK);
  CHECK_INT(plan.n_steps, 4);
  CHECK_INT(train_plan_count(&plan, 3), 4);
}

/* Returns whether the steps have all examples of the epochs in their order, and
 * none has more than `max` tokens, unless it has one example. The next example
 * did not fit. */
static int is_full(const train_plan_t *plan, const uint64_t *tokens,
                   uint64_t max) {
  uint64_t at = 0;
  int ok = 1;

  for (uint64_t step = 0; step < plan->n_steps; step++) {
    const uint64_t n = train_plan_count(plan, step);
    uint64_t sum = 0;

    for (uint64_t i = 0; i < n; i++, at++) {
      const uint64_t example = train_plan_example(plan, step, i);

      ok &= example == train_shuffle(plan->seed, at / plan->n_examples,
                                     plan->n_examples, at % plan->n_examples);
      sum += tokens[example];
    }
    ok &= n > 0 && n <= plan->n_batch && (sum <= max || n == 1);
    if (step + 1 < plan->n_steps)
      ok &= sum + tokens[train_plan_example(plan, step + 1, 0)] > max;
  }
  return ok && at == plan->n_total;
}

TEST(batches_by_tokens_are_full) {
  const uint64_t tokens[] = {3, 9, 1, 30, 4, 4, 10, 2, 7};
  const uint64_t n = sizeof(tokens) / sizeof(*tokens);
  train_plan_t plan;

  for (uint64_t max = 1; max < 80; max++) {
    CHECK_INT(train_plan_tokens(&plan, max, n, 3, 0, max, tokens), TNK_OK);
    CHECK_INT(plan.n_total, 3 * n);
    CHECK(train_plan_epoch(&plan, plan.n_steps) == 3);
    CHECK(is_full(&plan, tokens, max));
    CHECK_INT(train_plan_count(&plan, plan.n_steps), 0);
    train_plan_free(&plan);
    CHECK_INT(train_plan_tokens(&plan, max, n, 0, 100, max, tokens), TNK_OK);
    CHECK_INT(plan.n_steps, 100);
    CHECK(is_full(&plan, tokens, max));
    train_plan_free(&plan);
  }
  CHECK_INT(train_plan_tokens(&plan, 0, n, 0, 0, 1, tokens), TNK_EINVAL);
  CHECK_INT(train_plan_tokens(&plan, 0, n, 1, 0, 0, tokens), TNK_EINVAL);
  CHECK_INT(train_plan_tokens(&plan, 0, n, 0, TRAIN_MAX_STARTS + 1, 1, tokens),
            TNK_EINVAL);
}

TEST(numbers_are_bounded) {
  train_plan_t plan;

  CHECK_INT(train_plan_steps(&plan, 0, 0, 1, 1), TNK_EINVAL);
  CHECK_INT(train_plan_steps(&plan, 0, 1, 0, 1), TNK_EINVAL);
  CHECK_INT(train_plan_steps(&plan, 0, 1, 1, 0), TNK_EINVAL);
  CHECK_INT(train_plan_epochs(&plan, 0, 1, 1, 0), TNK_EINVAL);
  CHECK_INT(train_plan_epochs(&plan, 0, TRAIN_MAX_EXAMPLES + 1, 1, 1),
            TNK_EINVAL);
  CHECK_INT(train_plan_epochs(&plan, 0, TRAIN_MAX_EXAMPLES, TRAIN_MAX_BATCH,
                              TRAIN_MAX_EPOCHS),
            TNK_OK);
  CHECK(plan.n_total == TRAIN_MAX_EXAMPLES * TRAIN_MAX_EPOCHS);
  CHECK(train_plan_example(&plan, plan.n_steps - 1, 0) < TRAIN_MAX_EXAMPLES);
  CHECK_INT(train_plan_steps(&plan, 0, 1, TRAIN_MAX_BATCH, TRAIN_MAX_STEPS),
            TNK_OK);
  CHECK_INT(train_plan_example(&plan, TRAIN_MAX_STEPS - 1, 5), 0);
}
