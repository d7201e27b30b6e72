/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "lm_help.h"
#include "tools/local/lm/state.h"

static tnk__lm_base_t *base_of(void) {
  tnk__lm_base_t *base = tnk__lm_base_new(test_allocator());

  CHECK(base != NULL);
  return base;
}

TEST(training_lowers_the_loss) {
  tnk__lm_base_t *base = base_of();
  tnk__lm_t *lm = lm_model(base, 8, 1);
  double first = lm_learn(lm, 1, 96);
  double last = lm_learn(lm, 14, 96);

  CHECK_NEAR(first, 5.6, 0.3);
  CHECK(last < 0.6 * first);
  CHECK_INT(lm->n_steps, 15);
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
}

TEST(configurations_no_model_can_have) {
  tnk__lm_base_t *base = base_of();
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;
  tnk__lm_why_t why;
  tnk__lm_t *lm;

  config.rank = 0;
  CHECK_INT(tnk__lm_new(&lm, base, &config, test_allocator(), &why),
            TNK_EINVAL);
  CHECK_STR(why.text, "the rank is 0, 1 to 256 are possible");
  CHECK(lm == NULL);
  config.rank = TNK__LM_MAX_RANK + 1;
  CHECK_INT(tnk__lm_new(&lm, base, &config, test_allocator(), NULL),
            TNK_EINVAL);
  config.rank = 4;
  config.train_attn = config.train_mlp = config.train_unembed = 0;
  CHECK_INT(tnk__lm_new(&lm, base, &config, test_allocator(), NULL),
            TNK_EINVAL);
  tnk__lm_base_free(base);
}

static double loss_of(tnk__lm_t *lm, const tnk__lm_loss_t *loss,
                      const tnk__lm_datum_t *d) {
  float logprobs[LM_MAX_TEST];
  double sum = 0;

  CHECK_INT(tnk__lm_run(lm, loss, d, 0, logprobs, &sum), TNK_OK);
  return sum;
}

/* Go along the gradient in parameters begin .. end - 1 and compare the slope
 * met there with the gradient's length. */
static void check_slope(tnk__lm_t *lm, const tnk__lm_loss_t *loss,
                        const tnk__lm_datum_t *d, size_t begin, size_t end) {
  float *value = lm->param[PARAM_VALUE];
  float *old = malloc((end - begin) * sizeof(*old));
  double square = 0;
  double slope;
  double length;
  double step;
  double side[2];
  size_t i;
  int s;

  CHECK(old != NULL);
  memcpy(old, value + begin, (end - begin) * sizeof(*old));
  for (i = begin; i < end; i++)
    square += (double)lm->grad[i] * (double)lm->grad[i];
  length = sqrt(square);
  CHECK(length > 1e-3);
  step = 0.02 / (length > 1 ? length : 1);
  for (s = 0; s < 2; s++) {
    double by = (s == 0 ? -step : step) / length;
    for (i = begin; i < end; i++)
      value[i] = old[i - begin] + (float)(by * (double)lm->grad[i]);
    tnk__lm_merge(lm);
    side[s] = loss_of(lm, loss, d);
  }
  memcpy(value + begin, old, (end - begin) * sizeof(*old));
  tnk__lm_merge(lm);
  slope = (side[1] - side[0]) / (2 * step);
  free(old);
  CHECK_NEAR(slope / length, 1, 0.02);
}

/* A model whose two factors are both away from 0. */
static tnk__lm_t *shaken(const tnk__lm_base_t *base, uint32_t rank) {
  tnk__lm_t *lm = lm_model(base, rank, 3);
  uint64_t state = 5;
  size_t i;
  size_t j;

  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    for (j = 0; j < rank * m.n_out; j++)
      if (j % m.n_out < m.n_real)
        lm->param[PARAM_VALUE][lm->factors[i].b + j] =
            0.02f * ((float)(test_random(&state) % 1000) / 500 - 1);
  }
  tnk__lm_merge(lm);
  return lm;
}

static void run_gradients(tnk__lm_t *lm, const tnk__lm_loss_t *loss,
                          const tnk__lm_datum_t *d) {
  float logprobs[LM_MAX_TEST];
  double sum = 0;

  tnk__lm_zero_grad(lm);
  CHECK_INT(tnk__lm_run(lm, loss, d, 1, logprobs, &sum), TNK_OK);
  tnk__lm_factor_grads(lm);
}

TEST_LIMIT(gradients_of_every_factor, 20) {
  tnk__lm_base_t *base = base_of();
  tnk__lm_t *lm = shaken(base, 2);
  tnk__lm_loss_t loss = lm_loss(NULL);
  lm_example_t ex;
  /* More than a block, so that gradients cross between chunks. */
  tnk__lm_datum_t d = lm_datum(&ex, 0, 70);
  size_t i;

  run_gradients(lm, &loss, &d);
  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    const tnk__lm_factors_t *f = &lm->factors[i];
    check_slope(lm, &loss, &d, f->a, f->a + m.n_in * lm->lanes);
    check_slope(lm, &loss, &d, f->b, f->b + m.n_out * lm->lanes);
  }
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
}

/* Rows that no longer see the first block, in both layers. */
TEST_LIMIT(gradients_beyond_the_window, 20) {
  tnk__lm_base_t *base = base_of();
  tnk__lm_t *lm = shaken(base, 2);
  tnk__lm_loss_t loss = lm_loss(NULL);
  lm_example_t ex;
  tnk__lm_datum_t d = lm_datum(&ex, 0, 350);
  size_t i;

  CHECK(TNK__LM_WINDOW + TNK__LM_BLOCK < 350);
  run_gradients(lm, &loss, &d);
  for (i = 0; i < TNK__LM_N_MATRICES; i += M_PER_LAYER)
    check_slope(lm, &loss, &d, lm->factors[i].a,
                i == M_UNEMBED ? lm->n_params : lm->factors[i + M_PER_LAYER].a);
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
}

TEST_LIMIT(gradients_of_every_loss, 20) {
  static const char *const names[] = {"cross_entropy", "importance_sampling",
                                      "ppo", "dro", NULL};
  tnk__lm_base_t *base = base_of();
  tnk__lm_t *lm = shaken(base, 2);
  lm_example_t ex;
  tnk__lm_datum_t d = lm_datum(&ex, 3, 24);
  size_t i;

  for (i = 0; names[i] != NULL; i++) {
    tnk__lm_loss_t loss = lm_loss(names[i]);
    if (loss.kind == TNK__LM_PPO)
      loss.clip_high = 1.3;
    run_gradients(lm, &loss, &d);
    check_slope(lm, &loss, &d, 0, lm->n_params);
  }
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
}

static void check_same(const tnk__lm_t *a, const tnk__lm_t *b) {
  CHECK_INT(memcmp(a->param[PARAM_VALUE], b->param[PARAM_VALUE],
                   a->n_params * sizeof(float)),
            0);
  CHECK_INT(memcmp(a->w, b->w, TNK__LM_N_WEIGHTS * sizeof(float)), 0);
}

TEST(equal_seeds_train_alike) {
  tnk__lm_base_t *base = base_of();
  tnk__lm_base_t *other = base_of();
  tnk__lm_t *a = lm_model(base, 3, 7);
  tnk__lm_t *b = lm_model(other, 3, 7);
  tnk__lm_t *c = lm_model(base, 3, 8);

  CHECK_INT(memcmp(base->weights, other->weights, sizeof(base->weights)), 0);
  check_same(a, b);
  lm_learn(a, 3, 50);
  lm_learn(b, 3, 50);
  check_same(a, b);
  CHECK(memcmp(a->param[PARAM_VALUE], c->param[PARAM_VALUE],
               c->n_params * sizeof(float)) != 0);
  tnk__lm_free(a);
  tnk__lm_free(b);
  tnk__lm_free(c);
  tnk__lm_base_free(base);
  tnk__lm_base_free(other);
}

/* Longer and forward-only passes, reserved room and zeroed gradients in
 * between leave no trace. */
TEST(what_runs_in_between_does_not_matter) {
  tnk__lm_base_t *base = base_of();
  tnk__lm_t *a = lm_model(base, 3, 7);
  tnk__lm_t *b = lm_model(base, 3, 7);
  tnk__lm_loss_t loss = lm_loss(NULL);
  float logprobs[LM_MAX_TEST];
  lm_example_t ex;
  tnk__lm_datum_t d;
  double sum = 0;
  int i;

  lm_learn(a, 2, 50);
  CHECK_INT(tnk__lm_reserve(b, 300), TNK_OK);
  for (i = 0; i < 2; i++) {
    tnk__adam_t adam = TNK__ADAM_INIT;
    tnk__lm_step_t step;
    adam.learning_rate = 0.01;
    d = lm_datum(&ex, 3, 150);
    CHECK_INT(tnk__lm_run(b, &loss, &d, 1, logprobs, &sum), TNK_OK);
    tnk__lm_zero_grad(b);
    d = lm_datum(&ex, (size_t)i * 5, 50);
    d.weights = NULL;
    CHECK_INT(tnk__lm_run(b, &loss, &d, 1, logprobs, &sum), TNK_OK);
    d = lm_datum(&ex, 9, 130);
    CHECK_INT(tnk__lm_run(b, &loss, &d, 0, logprobs, &sum), TNK_OK);
    CHECK_INT(tnk__lm_step_adamw(b, &adam, &step, NULL), TNK_OK);
  }
  check_same(a, b);
  tnk__lm_free(a);
  tnk__lm_free(b);
  tnk__lm_base_free(base);
}

TEST(only_what_is_asked_for_is_trained) {
  tnk__lm_base_t *base = base_of();
  int group;

  for (group = 0; group < 3; group++) {
    tnk__lm_config_t config = {2, 0, 0, 0, 0, TNK__LM_ADAMW};
    tnk__lm_t *lm;
    size_t i;
    config.train_attn = group == GROUP_ATTN;
    config.train_mlp = group == GROUP_MLP;
    config.train_unembed = group == GROUP_UNEMBED;
    CHECK_INT(tnk__lm_new(&lm, base, &config, test_allocator(), NULL), TNK_OK);
    lm_learn(lm, 2, 30);
    for (i = 0; i < TNK__LM_N_MATRICES; i++) {
      tnk__lm_matrix_t m = tnk__lm_matrix(i);
      int changed = memcmp(lm->w + m.offset, base->weights + m.offset,
                           m.n_in * m.n_out * sizeof(float)) != 0;
      CHECK_INT(changed, (int)m.group == group);
    }
    tnk__lm_free(lm);
  }
  tnk__lm_base_free(base);
}

/* Two targets a position: the loss and its gradients are the sum of those of
 * each alone. */
TEST(targets_by_the_row) {
  tnk__lm_base_t *base = base_of();
  tnk__lm_t *lm = lm_model(base, 2, 1);
  tnk__lm_loss_t loss = lm_loss(NULL);
  lm_example_t ex;
  tnk__lm_datum_t d = lm_datum(&ex, 0, 20);
  int64_t targets[40];
  float weights[40];
  float both[40];
  float one[LM_MAX_TEST];
  double sum = 0;
  double sums = 0;
  size_t i;

  for (i = 0; i < 20; i++) {
    targets[2 * i] = ex.targets[i];
    weights[2 * i] = ex.weights[i];
    /* The second is padding now and then, with an id of nothing. */
    targets[2 * i + 1] = i % 3 == 0 ? -100 : 'e';
    weights[2 * i + 1] = i % 3 == 0 ? 0 : 2;
  }
  CHECK_INT(tnk__lm_run(lm, &loss, &d, 0, one, &sum), TNK_OK);
  d.targets = targets;
  d.weights = weights;
  d.n_targets = 2;
  CHECK_INT(tnk__lm_datum_check(&d, &loss, NULL), TNK_OK);
  CHECK_INT(tnk__lm_run(lm, &loss, &d, 1, both, &sums), TNK_OK);
  for (i = 0; i < 20; i++) {
    CHECK_NEAR(both[2 * i], one[i], 0);
    if (i % 3 == 0)
      CHECK_NEAR(both[2 * i + 1], 0, 0);
    else
      sum += -2 * (double)both[2 * i + 1];
  }
  CHECK_NEAR(sums, sum, 1e-6);
  tnk__lm_factor_grads(lm);
  check_slope(lm, &loss, &d, lm->factors[M_UNEMBED].b, lm->n_params);
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
}

TEST(every_allocation_of_a_model_may_fail) {
  tnk__lm_base_t *base = NULL;
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;
  tnk__lm_weights_t *weights = NULL;
  tnk__lm_t *lm = NULL;
  int err = TNK_ENOMEM;
  long n;

  test_alloc_fail_at(0);
  CHECK(tnk__lm_base_new(test_allocator()) == NULL);
  test_alloc_fail_at(-1);
  base = base_of();
  config.rank = 1;
  for (n = 0; err != TNK_OK; n++) {
    test_alloc_fail_at(n);
    err = tnk__lm_new(&lm, base, &config, test_allocator(), NULL);
    CHECK(err == TNK_OK || (err == TNK_ENOMEM && lm == NULL));
  }
  CHECK(n > 8);
  test_alloc_fail_at(0);
  CHECK(tnk__lm_snapshot(lm) == NULL);
  test_alloc_fail_at(0);
  CHECK(tnk__lm_base_weights(base, test_allocator()) == NULL);
  test_alloc_fail_at(-1);
  weights = tnk__lm_base_weights(base, test_allocator());
  tnk__lm_weights_free(weights);
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
}

/* A pass without memory leaves the gradients alone, and after a reserve
 * there is no such pass. */
TEST(every_allocation_of_a_pass_may_fail) {
  tnk__lm_base_t *base = base_of();
  tnk__lm_t *lm = lm_model(base, 1, 1);
  tnk__lm_loss_t loss = lm_loss(NULL);
  lm_example_t ex;
  float logprobs[LM_MAX_TEST];
  tnk__lm_datum_t d = lm_datum(&ex, 0, 70);
  double sum = 0;
  size_t i;
  long n;
  int err = TNK_ENOMEM;

  for (n = 0; err != TNK_OK; n++) {
    test_alloc_fail_at(n);
    err = tnk__lm_run(lm, &loss, &d, 1, logprobs, &sum);
    for (i = 0; err != TNK_OK && i < TNK__LM_N_WEIGHTS; i++)
      CHECK(lm->g[i] == 0);
  }
  CHECK(n > 2);
  test_alloc_fail_at(-1);
  CHECK_INT(tnk__lm_reserve(lm, 140), TNK_OK);
  test_alloc_fail_at(0);
  d = lm_datum(&ex, 0, 140);
  CHECK_INT(tnk__lm_run(lm, &loss, &d, 1, logprobs, &sum), TNK_OK);
  test_alloc_fail_at(-1);
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
}
