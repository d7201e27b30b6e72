#include <math.h>
#include <stdlib.h>

#include "lm_help.h"
#include "local/lm_state.h"

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
  CHECK_INT(tnk__lm_n_steps(lm), 15);
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
