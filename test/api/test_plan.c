/* SPDX-License-Identifier: MIT */
/* The examples of each step: tnk_plan_t and tnk_shuffle(). */
#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tnk/train.h"

enum { MOST = 300 };

/* ---- The order ---- */

/* Returns whether the shuffle has each of n numbers once. */
static int is_permutation(uint64_t seed, uint64_t epoch, uint64_t n) {
  char seen[MOST] = "";

  for (uint64_t i = 0; i < n; i++) {
    const uint64_t at = tnk_shuffle(seed, epoch, n, i);

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
    n += tnk_shuffle(seed_a, epoch_a, MOST, i) ==
         tnk_shuffle(seed_b, epoch_b, MOST, i);
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
    count[tnk_shuffle(7, epoch, N, 0)]++;
  for (int i = 0; i < N; i++)
    CHECK(count[i] > 1800 && count[i] < 2200);
}

TEST(shuffle_of_nothing_is_no_number) {
  CHECK(tnk_shuffle(1, 2, 0, 0) == UINT64_MAX);
  CHECK(tnk_shuffle(1, 2, 5, 5) == UINT64_MAX);
  CHECK(tnk_shuffle(1, 2, ((uint64_t)1 << 62) + 1, 0) == UINT64_MAX);
  CHECK(tnk_shuffle(1, 2, (uint64_t)1 << 62, 0) < (uint64_t)1 << 62);
}

/* Runs that exist are resumed with this order. */
TEST(order_never_changes) {
  static const uint64_t first[] = {9, 1, 8, 0, 6, 2, 3, 5, 4, 7};
  static const uint64_t second[] = {4, 8, 9, 5, 0, 2, 7, 1, 6, 3};
  static const uint64_t large[] = {511960217, 970697579, 762712612, 516173142};

  for (uint64_t i = 0; i < 10; i++) {
    CHECK_INT(tnk_shuffle(7, 0, 10, i), first[i]);
    CHECK_INT(tnk_shuffle(7, 1, 10, i), second[i]);
  }
  for (uint64_t i = 0; i < 4; i++)
    CHECK_INT(tnk_shuffle(UINT64_MAX, UINT64_MAX, 1000000007, i), large[i]);
}

/* ---- Plans ---- */

static tnk_plan_t *plan_of(tnk_plan_options_t options) {
  tnk_plan_t *plan;
  char why[256] = "";

  options.size = sizeof(options);
  options.allocator = test_allocator();
  if (tnk_plan_new(&plan, &options, why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
  CHECK_STR(why, "");
  return plan;
}

/* Whether the steps have all examples of the sequence in its order, and no more
 * than their limit. */
static void check_steps(const tnk_plan_t *plan, const tnk_plan_options_t *o) {
  const uint64_t n = o->n_examples;
  uint64_t at = 0;
  uint64_t most = 0;

  for (uint64_t step = 0; step < tnk_plan_steps(plan); step++) {
    const uint64_t count = tnk_plan_count(plan, step);
    const int is_last = step + 1 == tnk_plan_steps(plan);
    uint64_t sum = 0;

    for (uint64_t i = 0; i < count; i++, at++) {
      const uint64_t example = tnk_plan_example(plan, step, i);

      CHECK_INT(example, tnk_shuffle(o->seed, at / n, n, at % n));
      sum += o->tokens != NULL ? o->tokens[example] : 0;
    }
    most = count > most ? count : most;
    CHECK(tnk_plan_example(plan, step, count) == UINT64_MAX);
    CHECK(count > 0 &&
          tnk_plan_epoch(plan, step + 1) == (double)at / (double)n);
    if (o->n_batch > 0)
      CHECK(count == o->n_batch || (is_last && count < o->n_batch));
    else
      CHECK(sum <= o->max_batch_tokens || count == 1);
    /* The next example did not fit. */
    if (o->n_batch == 0 && !is_last)
      CHECK(sum + o->tokens[tnk_plan_example(plan, step + 1, 0)] >
            o->max_batch_tokens);
  }
  CHECK_INT(at, tnk_plan_total(plan));
  CHECK_INT(most, tnk_plan_max_count(plan));
  CHECK_INT(tnk_plan_count(plan, tnk_plan_steps(plan)), 0);
  CHECK(tnk_plan_example(plan, tnk_plan_steps(plan), 0) == UINT64_MAX);
  CHECK(tnk_plan_epoch(plan, UINT64_MAX) == (double)at / (double)n);
}

/* Whether each epoch has each example exactly once. */
static void check_epochs(const tnk_plan_t *plan, uint64_t n_examples) {
  int count[MOST] = {0};
  uint64_t n = 0;

  for (uint64_t step = 0; step < tnk_plan_steps(plan); step++)
    for (uint64_t i = 0; i < tnk_plan_count(plan, step); i++) {
      count[tnk_plan_example(plan, step, i)]++;
      if (++n % n_examples == 0)
        for (uint64_t k = 0; k < n_examples; k++)
          CHECK_INT(count[k], n / n_examples);
    }
}

/* A process that resumes at any step makes the same plan again. */
static void check_resume(const tnk_plan_t *plan, const tnk_plan_options_t *o) {
  tnk_plan_t *again = plan_of(*o);

  CHECK_INT(tnk_plan_steps(again), tnk_plan_steps(plan));
  for (uint64_t step = tnk_plan_steps(plan); step-- > 0;) {
    CHECK_INT(tnk_plan_count(again, step), tnk_plan_count(plan, step));
    for (uint64_t i = tnk_plan_count(plan, step); i-- > 0;)
      CHECK_INT(tnk_plan_example(again, step, i),
                tnk_plan_example(plan, step, i));
  }
  tnk_plan_free(again);
}

static void check_plan(const tnk_plan_options_t *options) {
  tnk_plan_t *plan = plan_of(*options);
  char text[128];

  snprintf(text, sizeof(text), "%d examples, batch %d, %d tokens, seed %d",
           (int)options->n_examples, (int)options->n_batch,
           (int)options->max_batch_tokens, (int)options->seed);
  test_context(text);
  if (options->n_steps > 0)
    CHECK_INT(tnk_plan_steps(plan), options->n_steps);
  else
    CHECK_INT(tnk_plan_total(plan),
              options->n_examples *
                  (options->n_epochs > 0 ? options->n_epochs : 1));
  check_steps(plan, options);
  check_epochs(plan, options->n_examples);
  check_resume(plan, options);
  tnk_plan_free(plan);
}

TEST(each_epoch_has_each_example_once) {
  static const uint64_t sizes[] = {1, 2, 3, 10, 64, 97};
  static const uint64_t batches[] = {1, 2, 3, 4, 7, 32, 64, 200};
  static const uint64_t seeds[] = {0, 1, UINT64_MAX};

  for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++)
    for (size_t b = 0; b < sizeof(batches) / sizeof(*batches); b++)
      for (size_t s = 0; s < sizeof(seeds) / sizeof(*seeds); s++)
        for (uint64_t length = 0; length < 4; length++) {
          tnk_plan_options_t options = {
              .n_examples = sizes[n], .n_batch = batches[b], .seed = seeds[s]};

          options.n_epochs = length;
          check_plan(&options);
          options.n_epochs = 0;
          options.n_steps = length * 5 + 1;
          check_plan(&options);
        }
}

TEST(batches_by_tokens_are_full) {
  static const uint64_t tokens[] = {3, 9, 1, 30, 4, 4, 10, 2, 7};

  for (uint64_t max = 1; max < 80; max++) {
    tnk_plan_options_t options = {.n_examples =
                                      sizeof(tokens) / sizeof(*tokens),
                                  .max_batch_tokens = max,
                                  .tokens = tokens,
                                  .seed = max};

    options.n_epochs = 3;
    check_plan(&options);
    options.n_epochs = 0;
    options.n_steps = 100;
    check_plan(&options);
  }
}

/* Runs that exist are resumed with these steps. */
TEST(batches_by_tokens_never_change) {
  static const uint64_t tokens[] = {3, 9, 1, 30, 4, 4, 10, 2, 7};
  static const char *const expected = "[2][3][50][674][81][3][457][1][6][820]";
  tnk_plan_t *plan = plan_of((tnk_plan_options_t){.n_examples = 9,
                                                  .max_batch_tokens = 16,
                                                  .tokens = tokens,
                                                  .n_epochs = 2,
                                                  .seed = 5});
  char text[128] = "";
  size_t n = 0;

  for (uint64_t step = 0; step < tnk_plan_steps(plan); step++) {
    text[n++] = '[';
    for (uint64_t i = 0; i < tnk_plan_count(plan, step); i++)
      text[n++] = (char)('0' + tnk_plan_example(plan, step, i));
    text[n++] = ']';
  }
  CHECK_STR(text, expected);
  tnk_plan_free(plan);
}

/* ---- Limits ---- */

#define TWO_TO(n) ((uint64_t)1 << (n))

TEST(the_largest_plans_do_not_overflow) {
  tnk_plan_t *plan = plan_of((tnk_plan_options_t){
      .n_examples = TWO_TO(40), .n_batch = TWO_TO(20), .n_epochs = TWO_TO(20)});

  CHECK(tnk_plan_total(plan) == TWO_TO(60));
  CHECK(tnk_plan_steps(plan) == TWO_TO(40));
  CHECK(tnk_plan_example(plan, TWO_TO(40) - 1, TWO_TO(20) - 1) < TWO_TO(40));
  CHECK(tnk_plan_epoch(plan, TWO_TO(40)) == (double)TWO_TO(20));
  tnk_plan_free(plan);
  plan = plan_of((tnk_plan_options_t){
      .n_examples = 1, .n_batch = TWO_TO(20), .n_steps = TWO_TO(40)});
  CHECK_INT(tnk_plan_example(plan, TWO_TO(40) - 1, 5), 0);
  tnk_plan_free(plan);
}

/* A refusal, and the sentence that names the option. */
typedef struct {
  tnk_plan_options_t options;
  const char *why;
} refusal_t;

TEST(each_bad_option_is_named) {
  static const uint64_t tokens[1] = {1};
  static const refusal_t rows[] = {
      {{.n_batch = 1}, "n_examples is 0"},
      {{.n_examples = TWO_TO(40) + 1, .n_batch = 1},
       "n_examples is 1099511627777, at most 1099511627776 are possible"},
      {{.n_examples = 1}, "n_batch is 0, and max_batch_tokens is not set"},
      {{.n_examples = 1, .n_batch = TWO_TO(20) + 1},
       "n_batch is 1048577, at most 1048576 are possible"},
      {{.n_examples = 1, .n_batch = 1, .max_batch_tokens = 1, .tokens = tokens},
       "n_batch and max_batch_tokens exclude each other"},
      {{.n_examples = 1, .max_batch_tokens = 1},
       "max_batch_tokens needs tokens, which is NULL"},
      {{.n_examples = 1, .n_batch = 1, .tokens = tokens},
       "tokens is set without max_batch_tokens"},
      {{.n_examples = 1, .n_batch = 1, .n_epochs = 1, .n_steps = 1},
       "n_epochs and n_steps exclude each other"},
      {{.n_examples = 1, .n_batch = 1, .n_epochs = TWO_TO(20) + 1},
       "n_epochs is 1048577, at most 1048576 are possible"},
      {{.n_examples = 1, .n_batch = 1, .n_steps = TWO_TO(40) + 1},
       "n_steps is 1099511627777, at most 1099511627776 are possible"},
      {{.n_examples = 1,
        .max_batch_tokens = 1,
        .tokens = tokens,
        .n_steps = TWO_TO(26) + 1},
       "n_steps is 67108865, at most 67108864 are possible"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    tnk_plan_options_t options = rows[i].options;
    tnk_plan_t *plan = (tnk_plan_t *)1;
    char why[256] = "";

    test_context(rows[i].why);
    options.size = sizeof(options);
    CHECK_INT(tnk_plan_new(&plan, &options, why, sizeof(why)), TNK_EINVAL);
    CHECK(plan == NULL);
    CHECK_STR(why, rows[i].why);
    CHECK_INT(tnk_plan_new(&plan, &options, NULL, 0), TNK_EINVAL);
  }
}

TEST(nothing_is_an_empty_plan) {
  tnk_plan_t *plan;
  char why[256] = "";

  CHECK_INT(tnk_plan_new(NULL, NULL, why, sizeof(why)), TNK_EINVAL);
  CHECK_STR(why, "out is NULL");
  CHECK_INT(tnk_plan_new(&plan, NULL, why, sizeof(why)), TNK_EINVAL);
  CHECK_STR(why, "n_examples is 0");
  CHECK_INT(tnk_plan_steps(NULL), 0);
  CHECK_INT(tnk_plan_total(NULL), 0);
  CHECK_INT(tnk_plan_max_count(NULL), 0);
  CHECK_INT(tnk_plan_count(NULL, 0), 0);
  CHECK(tnk_plan_example(NULL, 0, 0) == UINT64_MAX);
  CHECK(tnk_plan_epoch(NULL, 1) == 0);
  tnk_plan_free(NULL);
}

TEST(each_allocation_fails_once) {
  static const uint64_t tokens[1] = {1};
  tnk_plan_options_t options = TNK_PLAN_OPTIONS_INIT;
  int err = TNK_ENOMEM;
  long n = 0;

  options.n_examples = 1;
  options.tokens = tokens;
  options.max_batch_tokens = 1;
  options.n_steps = 1000; /* the memory for the steps grows several times */
  options.allocator = test_allocator();
  for (; err != TNK_OK; n++) {
    tnk_plan_t *plan;
    char why[256] = "";

    test_alloc_fail_at(n);
    err = tnk_plan_new(&plan, &options, why, sizeof(why));
    CHECK((err == TNK_ENOMEM) == test_alloc_did_fail());
    test_alloc_fail_at(-1);
    CHECK(err == TNK_OK || err == TNK_ENOMEM);
    CHECK((plan != NULL) == (err == TNK_OK));
    if (err == TNK_ENOMEM)
      CHECK_STR(why, tnk_strerror(TNK_ENOMEM));
    tnk_plan_free(plan);
    CHECK_INT(test_alloc_live(), 0);
  }
  CHECK(n > 4);
}
