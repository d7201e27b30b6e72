/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "lm_help.h"
#include "tools/local/lm/state.h"

typedef struct {
  tnk__lm_base_t *base;
  tnk__lm_t *lm;
  lm_example_t ex;
} setup_t;

static void set_up(setup_t *s, uint32_t rank, tnk__lm_optimizer_t optimizer) {
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;

  config.rank = rank;
  config.optimizer = optimizer;
  s->base = tnk__lm_base_new(test_allocator());
  CHECK(s->base != NULL);
  CHECK_INT(tnk__lm_new(&s->lm, s->base, &config, test_allocator(), NULL),
            TNK_OK);
}

static void tear_down(setup_t *s) {
  tnk__lm_free(s->lm);
  tnk__lm_base_free(s->base);
}

static double pass(setup_t *s, size_t start) {
  tnk__lm_loss_t loss = lm_loss(NULL);
  tnk__lm_datum_t d = lm_datum(&s->ex, start, 30);
  float logprobs[LM_MAX_TEST];
  double sum = 0;

  d.weights = NULL;
  CHECK_INT(tnk__lm_run(s->lm, &loss, &d, 1, logprobs, &sum), TNK_OK);
  return sum / 30;
}

/* Three steps against the formulas, element by element. */
TEST(adamw_follows_its_formulas) {
  enum { N = 40 };
  setup_t s;
  tnk__adam_t adam = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.5};
  tnk__lm_step_t out;
  double value[N];
  double m[N] = {0};
  double v[N] = {0};
  size_t begin;
  size_t i;
  int t;

  set_up(&s, 3, TNK__LM_ADAMW);
  /* The unembedding's second factor, whose gradients are not 0. */
  begin = s.lm->factors[M_UNEMBED].b;
  for (i = 0; i < N; i++)
    value[i] = (double)s.lm->param[PARAM_VALUE][begin + i];
  for (t = 1; t <= 3; t++) {
    double by;
    double norm = 0;
    pass(&s, (size_t)t);
    tnk__lm_factor_grads(s.lm);
    for (i = 0; i < s.lm->n_params; i++)
      norm += (double)s.lm->grad[i] * (double)s.lm->grad[i];
    norm = sqrt(norm);
    by = norm > 0.5 ? 0.5 / norm : 1;
    for (i = 0; i < N; i++) {
      double g = (double)s.lm->grad[begin + i] * by;
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      value[i] -= 0.01 * 0.1 * value[i];
      value[i] -= 0.01 * (m[i] / (1 - pow(0.9, t))) /
                  (sqrt(v[i] / (1 - pow(0.95, t))) + 1e-8);
    }
    CHECK_INT(tnk__lm_step_adamw(s.lm, &adam, &out, NULL), TNK_OK);
    CHECK_INT(out.step, t);
    CHECK_NEAR(out.grad_norm / norm, 1, 1e-6);
    for (i = 0; i < N; i++)
      CHECK_NEAR(s.lm->param[PARAM_VALUE][begin + i], value[i], 1e-5);
  }
  tear_down(&s);
}

TEST(gradients_add_up_until_the_step) {
  setup_t s;
  float *g;
  size_t i;

  set_up(&s, 2, TNK__LM_ADAMW);
  g = s.lm->g + tnk__lm_matrix(M_UNEMBED).offset;
  pass(&s, 0);
  for (i = 0; i < 1000 && g[i] == 0; i++)
    ;
  CHECK(i < 1000);
  {
    float once = g[i];
    pass(&s, 0);
    CHECK_NEAR(g[i] / once, 2, 1e-5);
  }
  tnk__lm_zero_grad(s.lm);
  CHECK(g[i] == 0);
  tear_down(&s);
}

/* A step without gradients counts them as zero. */
TEST(a_step_without_gradients) {
  setup_t s;
  tnk__adam_t adam = TNK__ADAM_INIT;
  tnk__lm_step_t out;
  float before;

  set_up(&s, 2, TNK__LM_ADAMW);
  before = s.lm->param[PARAM_VALUE][0];
  CHECK_INT(tnk__lm_step_adamw(s.lm, &adam, &out, NULL), TNK_OK);
  CHECK_NEAR(out.grad_norm, 0, 0);
  CHECK_NEAR(s.lm->param[PARAM_VALUE][0], before, 0);
  tear_down(&s);
}

TEST(padding_stays_zero) {
  setup_t s;
  size_t i;
  size_t j;

  set_up(&s, 3, TNK__LM_ADAMW);
  lm_learn(s.lm, 3, 40);
  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    const float *a = s.lm->param[PARAM_VALUE] + s.lm->factors[i].a;
    const float *b = s.lm->param[PARAM_VALUE] + s.lm->factors[i].b;
    for (j = 0; j < m.n_in * s.lm->lanes; j++)
      CHECK(j % s.lm->lanes < 3 || a[j] == 0);
    for (j = 0; j < s.lm->lanes * m.n_out; j++)
      CHECK((j < 3 * m.n_out && j % m.n_out < m.n_real) || b[j] == 0);
  }
  tear_down(&s);
}

/* Gram matrix of the change of a factor B, whose rows are the rank's. */
static void check_orthogonal(const float *before, const float *after,
                             size_t n_rows, size_t n_cols, double length) {
  size_t i;
  size_t k;
  size_t j;

  for (i = 0; i < n_rows; i++)
    for (k = 0; k <= i; k++) {
      double sum = 0;
      for (j = 0; j < n_cols; j++)
        sum +=
            ((double)after[i * n_cols + j] - (double)before[i * n_cols + j]) *
            ((double)after[k * n_cols + j] - (double)before[k * n_cols + j]);
      sum /= length * length;
      /* The rounds leave singular values between about 0.7 and 1.2. */
      if (i == k)
        CHECK(sum > 0.3 && sum < 1.6);
      else
        CHECK(sum > -0.6 && sum < 0.6);
    }
}

TEST(dimuon_steps_are_orthogonal_and_learn) {
  static float before[4 * TNK__LM_LOGITS];
  setup_t s;
  tnk__dimuon_t dimuon = TNK__DIMUON_INIT(0.005);
  tnk__lm_step_t out;
  const float *b;
  double first;
  double last = 0;
  int i;

  set_up(&s, 4, TNK__LM_DIMUON);
  b = s.lm->param[PARAM_VALUE] + s.lm->factors[M_UNEMBED].b;
  first = pass(&s, 0);
  memcpy(before, b, sizeof(before));
  CHECK_INT(tnk__lm_step_dimuon(s.lm, &dimuon, &out, NULL), TNK_OK);
  CHECK(out.grad_norm > 0);
  check_orthogonal(before, b, 4, TNK__LM_LOGITS,
                   0.005 * sqrt(TNK__LM_VOCAB / 4.0));
  for (i = 0; i < 10; i++) {
    last = pass(&s, 0);
    CHECK_INT(tnk__lm_step_dimuon(s.lm, &dimuon, &out, NULL), TNK_OK);
  }
  CHECK_INT(out.step, 11);
  CHECK(last < 0.7 * first);
  tear_down(&s);
}

/* Ranks above the width turn the factors over. */
TEST(dimuon_with_a_high_rank) {
  setup_t s;
  tnk__dimuon_t dimuon = TNK__DIMUON_INIT(0.01);
  tnk__lm_step_t out;
  double first;

  set_up(&s, 140, TNK__LM_DIMUON);
  first = pass(&s, 0);
  CHECK_INT(tnk__lm_step_dimuon(s.lm, &dimuon, &out, NULL), TNK_OK);
  CHECK(pass(&s, 0) < first);
  tear_down(&s);
}

static void refused(tnk__lm_t *lm, tnk__adam_t adam, const char *text) {
  tnk__lm_step_t out;
  tnk__lm_why_t why;

  CHECK_INT(tnk__lm_step_adamw(lm, &adam, &out, &why), TNK_EINVAL);
  CHECK_STR(why.text, text);
  CHECK_INT(lm->n_steps, 0);
}

TEST(parameters_out_of_range) {
  setup_t s;
  const tnk__adam_t good = TNK__ADAM_INIT;
  tnk__adam_t adam;
  tnk__dimuon_t dimuon = TNK__DIMUON_INIT(0.01);
  tnk__lm_step_t out;
  tnk__lm_why_t why;

  set_up(&s, 2, TNK__LM_ADAMW);
  adam = good;
  adam.learning_rate = NAN;
  refused(s.lm, adam, "\"learning_rate\" must be at least 0");
  adam = good;
  adam.beta1 = 1;
  refused(s.lm, adam, "\"beta1\" must be in [0, 1)");
  adam = good;
  adam.beta2 = -0.1;
  refused(s.lm, adam, "\"beta2\" must be in [0, 1)");
  adam = good;
  adam.eps = 0;
  refused(s.lm, adam, "\"eps\" must be above 0");
  adam = good;
  adam.weight_decay = -1;
  refused(s.lm, adam, "\"weight_decay\" must be at least 0");
  adam = good;
  adam.grad_clip_norm = INFINITY;
  refused(s.lm, adam, "\"grad_clip_norm\" must be at least 0");
  CHECK_INT(tnk__lm_step_dimuon(s.lm, &dimuon, &out, &why), TNK_EINVAL);
  CHECK_STR(why.text, "the model was not created for dimuon");
  tear_down(&s);
  set_up(&s, 2, TNK__LM_DIMUON);
  refused(s.lm, good, "the model was not created for adamw");
  dimuon.learning_rate = -1;
  CHECK_INT(tnk__lm_step_dimuon(s.lm, &dimuon, &out, &why), TNK_EINVAL);
  dimuon.learning_rate = 1;
  dimuon.beta1 = 1;
  CHECK_INT(tnk__lm_step_dimuon(s.lm, &dimuon, &out, &why), TNK_EINVAL);
  tear_down(&s);
}
