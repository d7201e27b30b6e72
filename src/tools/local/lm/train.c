/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"
#include "tools/local/lm/math.h"
#include "tools/local/lm/state.h"

/* ---- A model in training ---- */

/*
 * A model between steps: tnk__lm_run() adds to lm->g; a step or
 * tnk__lm_zero_grad() clears it. The memory for steps is allocated with the
 * model; the memory for passes grows with the longest example.
 */

enum { LANES = 16 };

int tnk__lm_config_check(const tnk__lm_config_t *config, tnk__lm_why_t *why) {
  if (config->rank < 1 || config->rank > TNK__LM_MAX_RANK)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the rank is %lu, 1 to %d are possible",
                          (unsigned long)config->rank, TNK__LM_MAX_RANK);
  if (!config->train_mlp && !config->train_attn && !config->train_unembed)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "at least one of train_mlp, train_attn and "
                          "train_unembed must be true");
  if (config->optimizer != TNK__LM_ADAMW && config->optimizer != TNK__LM_DIMUON)
    return tnk__lm_refuse(why, TNK_EINVAL, "the optimizer is not known");
  return TNK_OK;
}

static int is_trained(const tnk__lm_config_t *config, tnk__lm_group_t group) {
  switch (group) {
  case GROUP_ATTN:
    return config->train_attn != 0;
  case GROUP_MLP:
    return config->train_mlp != 0;
  case GROUP_UNEMBED:
    break;
  }
  return config->train_unembed != 0;
}

/* Assign each trained matrix its position in the parameter arrays. */
static void lay_out(tnk__lm_t *lm) {
  size_t i;

  lm->lanes = (lm->config.rank + LANES - 1) / LANES * LANES;
  lm->scale = (float)TNK__LM_ALPHA / (float)lm->config.rank;
  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    tnk__lm_factors_t *f = &lm->factors[i];
    f->trained = (uint8_t)is_trained(&lm->config, m.group);
    if (!f->trained)
      continue;
    f->a = lm->n_params;
    f->b = f->a + m.n_in * lm->lanes;
    lm->n_params = f->b + m.n_out * lm->lanes;
  }
}

/* A is random and B is 0, so the model starts equal to the base. A is large and
 * the scale small, so that at high learning rates B changes and A does not. The
 * features that A selects remain while the model learns to use them. */
static void init_factors(tnk__lm_t *lm) {
  size_t i;

  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    tnk__lm_rng_t rng = tnk__lm_rng(lm->config.seed, i);
    float bound = 4 * sqrtf(3.0f / (float)m.n_in);
    float *a = lm->param[PARAM_VALUE] + lm->factors[i].a;
    size_t j;
    size_t r;
    if (!lm->factors[i].trained)
      continue;
    for (j = 0; j < m.n_in; j++)
      for (r = 0; r < lm->config.rank; r++)
        a[j * lm->lanes + r] = tnk__lm_rng_uniform(&rng, bound);
  }
}

void tnk__lm_merge(tnk__lm_t *lm) {
  size_t i;

  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    const tnk__lm_factors_t *f = &lm->factors[i];
    float *w = lm->w + m.offset;
    const float *base = lm->base->weights + m.offset;
    if (f->trained) {
      const float *value = lm->param[PARAM_VALUE];
      tnk__lm_view_t a = {value + f->a, lm->lanes, 1};
      size_t j;
      tnk__lm_gemm(w, m.n_out, a, value + f->b, m.n_out, m.n_in, m.n_out,
                   lm->lanes, 0);
      for (j = 0; j < m.n_in * m.n_out; j++)
        w[j] = base[j] + lm->scale * w[j];
    } else {
      memcpy(w, base, m.n_in * m.n_out * sizeof(*w));
    }
    tnk__lm_transpose(lm->wt + m.offset, w, m.n_in, m.n_out);
  }
}

void tnk__lm_factor_grads(tnk__lm_t *lm) {
  size_t i;
  size_t j;

  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    const tnk__lm_factors_t *f = &lm->factors[i];
    const float *g = lm->g + m.offset;
    const float *value = lm->param[PARAM_VALUE];
    tnk__lm_view_t dw = {g, m.n_out, 1};
    tnk__lm_view_t at = {value + f->a, 1, lm->lanes};
    if (!f->trained)
      continue;
    tnk__lm_transpose(lm->work, value + f->b, lm->lanes, m.n_out);
    tnk__lm_gemm(lm->grad + f->a, lm->lanes, dw, lm->work, lm->lanes, m.n_in,
                 lm->lanes, m.n_out, 0);
    tnk__lm_gemm(lm->grad + f->b, m.n_out, at, g, m.n_out, lm->lanes, m.n_out,
                 m.n_in, 0);
  }
  for (j = 0; j < lm->n_params; j++)
    lm->grad[j] *= lm->scale;
}

static int allocate(tnk__lm_t *lm) {
  const size_t lanes = lm->lanes;
  /* Two copies of the longest factor, and three squares of the smaller side. */
  const size_t n_work = 2 * TNK__LM_FF * lanes + 3 * lanes * lanes;
  size_t i;
  int ok = 1;

  for (i = 0; i < PARAM_KINDS; i++) {
    lm->param[i] = tnk__calloc(lm->alloc, lm->n_params, sizeof(float));
    ok = ok && lm->param[i] != NULL;
  }
  lm->grad = tnk__calloc(lm->alloc, lm->n_params, sizeof(float));
  lm->work = tnk__calloc(lm->alloc, n_work, sizeof(float));
  lm->w = tnk__calloc(lm->alloc, TNK__LM_N_WEIGHTS, sizeof(float));
  lm->wt = tnk__calloc(lm->alloc, TNK__LM_N_WEIGHTS, sizeof(float));
  lm->g = tnk__calloc(lm->alloc, TNK__LM_N_WEIGHTS, sizeof(float));
  lm->scratch = tnk__malloc(lm->alloc, sizeof(*lm->scratch));
  lm->back_scratch = tnk__malloc(lm->alloc, sizeof(*lm->back_scratch));
  return ok && lm->grad != NULL && lm->work != NULL && lm->w != NULL &&
         lm->wt != NULL && lm->g != NULL && lm->scratch != NULL &&
         lm->back_scratch != NULL;
}

int tnk__lm_new(tnk__lm_t **out, const tnk__lm_base_t *base,
                const tnk__lm_config_t *config, const tnk_allocator_t *alloc,
                tnk__lm_why_t *why) {
  tnk__lm_t *lm;
  int err = tnk__lm_config_check(config, why);

  *out = NULL;
  if (err != TNK_OK)
    return err;
  lm = tnk__calloc(alloc, 1, sizeof(*lm));
  if (lm == NULL)
    return tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  lm->alloc = alloc;
  lm->base = base;
  lm->config = *config;
  lay_out(lm);
  if (!allocate(lm)) {
    tnk__lm_free(lm);
    return tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  }
  init_factors(lm);
  tnk__lm_merge(lm);
  *out = lm;
  return TNK_OK;
}

void tnk__lm_free(tnk__lm_t *lm) {
  size_t i;

  if (lm == NULL)
    return;
  for (i = 0; i < TNK__LM_MAX_BLOCKS; i++) {
    tnk__free(lm->alloc, lm->blocks[i]);
    tnk__free(lm->alloc, lm->saved[i]);
  }
  for (i = 0; i < PARAM_KINDS; i++)
    tnk__free(lm->alloc, lm->param[i]);
  tnk__free(lm->alloc, lm->grad);
  tnk__free(lm->alloc, lm->work);
  tnk__free(lm->alloc, lm->w);
  tnk__free(lm->alloc, lm->wt);
  tnk__free(lm->alloc, lm->g);
  tnk__free(lm->alloc, lm->scratch);
  tnk__free(lm->alloc, lm->back_scratch);
  tnk__free(lm->alloc, lm);
}

const tnk__lm_config_t *tnk__lm_config(const tnk__lm_t *lm) {
  return &lm->config;
}

void tnk__lm_zero_grad(tnk__lm_t *lm) {
  memset(lm->g, 0, TNK__LM_N_WEIGHTS * sizeof(*lm->g));
}

/* ---- AdamW ---- */

/*
 * AdamW over all factors at once: they are in one array, so a step is one loop.
 * Moments are floats, as in a checkpoint. Values that depend only on the step's
 * number are computed in double before the loop.
 */

static int refuse(tnk__lm_why_t *why, const char *name, const char *range) {
  return tnk__lm_refuse(why, TNK_EINVAL, "\"%s\" must be %s", name, range);
}

/* Written so that NaN is refused too. */
static int check_adamw(const tnk__lm_t *lm, const tnk__adam_t *p,
                       tnk__lm_why_t *why) {
  if (lm->config.optimizer != TNK__LM_ADAMW)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the model was not created for adamw");
  if (!isfinite(p->learning_rate) || p->learning_rate < 0)
    return refuse(why, "learning_rate", "at least 0");
  if (!(p->beta1 >= 0 && p->beta1 < 1))
    return refuse(why, "beta1", "in [0, 1)");
  if (!(p->beta2 >= 0 && p->beta2 < 1))
    return refuse(why, "beta2", "in [0, 1)");
  if (!isfinite(p->eps) || p->eps <= 0)
    return refuse(why, "eps", "above 0");
  if (!isfinite(p->weight_decay) || p->weight_decay < 0)
    return refuse(why, "weight_decay", "at least 0");
  if (!isfinite(p->grad_clip_norm) || p->grad_clip_norm < 0)
    return refuse(why, "grad_clip_norm", "at least 0");
  return TNK_OK;
}

/* Returns the norm before clipping. */
static double clip(tnk__lm_t *lm, double limit) {
  double sum = 0;
  double norm;
  size_t i;

  /* In double: a float would overflow for gradients that are still useful. */
  for (i = 0; i < lm->n_params; i++)
    sum += (double)lm->grad[i] * (double)lm->grad[i];
  norm = sqrt(sum);
  if (limit > 0 && norm > limit)
    for (i = 0; i < lm->n_params; i++)
      lm->grad[i] *= (float)(limit / norm);
  return norm;
}

/* Start a step: compute lm->grad, scaled down to the norm `limit` if that is
 * above 0. `out` receives the norm before scaling and the number of the
 * step. */
static void lm_step_begin(tnk__lm_t *lm, double limit, tnk__lm_step_t *out) {
  tnk__lm_factor_grads(lm);
  out->grad_norm = clip(lm, limit);
  out->step = ++lm->n_steps;
}

int tnk__lm_step_adamw(tnk__lm_t *lm, const tnk__adam_t *params,
                       tnk__lm_step_t *out, tnk__lm_why_t *why) {
  const float b1 = (float)params->beta1;
  const float b2 = (float)params->beta2;
  float *value = lm->param[PARAM_VALUE];
  float *m = lm->param[PARAM_MOMENT1];
  float *v = lm->param[PARAM_MOMENT2];
  float rate;
  float keep;
  float root;
  float eps = (float)params->eps;
  size_t i;
  int err = check_adamw(lm, params, why);

  if (err != TNK_OK)
    return err;
  lm_step_begin(lm, params->grad_clip_norm, out);
  /* Both bias corrections, moved out of the loop: m / c1 over sqrt(v / c2) is
   * (1 / c1) m over sqrt(v) sqrt(1 / c2). */
  rate = (float)(params->learning_rate /
                 (1 - pow(params->beta1, (double)lm->n_steps)));
  root = (float)(1 / sqrt(1 - pow(params->beta2, (double)lm->n_steps)));
  keep = (float)(1 - params->learning_rate * params->weight_decay);
  for (i = 0; i < lm->n_params; i++) {
    float g = lm->grad[i];
    m[i] = b1 * m[i] + (1 - b1) * g;
    v[i] = b2 * v[i] + (1 - b2) * g * g;
    /* Decay is applied to the value before the step, not to the gradient. */
    value[i] = value[i] * keep - rate * m[i] / (sqrtf(v[i]) * root + eps);
  }
  tnk__lm_zero_grad(lm);
  tnk__lm_merge(lm);
  return TNK_OK;
}

/* ---- DiMuon ---- */

enum { ROUNDS = 5 };

static int check_dimuon(const tnk__lm_t *lm, const tnk__dimuon_t *p,
                        tnk__lm_why_t *why) {
  if (lm->config.optimizer != TNK__LM_DIMUON)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the model was not created for dimuon");
  if (!isfinite(p->learning_rate) || p->learning_rate < 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "\"learning_rate\" must be at least 0");
  if (!(p->beta1 >= 0 && p->beta1 < 1))
    return tnk__lm_refuse(why, TNK_EINVAL, "\"beta1\" must be in [0, 1)");
  if (!isfinite(p->grad_clip_norm))
    return tnk__lm_refuse(why, TNK_EINVAL, "\"grad_clip_norm\" must be finite");
  return TNK_OK;
}

/* A factor: its position in the arrays, and its real shape. */
typedef struct {
  size_t at;
  size_t n_rows; /* as stored */
  size_t n_cols;
  float scale; /* scale of its update */
} factor_t;

/* One round x = a x + (b y + c y y) x with y = x x^T, for x of m x n with m <=
 * n. It moves all singular values towards 1. `room` has n x m floats and two
 * squares of m. */
static void round_of(float *x, size_t m, size_t n, float *room) {
  const float a = 3.4445f;
  const float b = -4.7750f;
  const float c = 2.0315f;
  float *y = room + n * m;
  float *yy = y + m * m;
  tnk__lm_view_t view = {x, n, 1};
  tnk__lm_view_t square = {y, m, 1};
  size_t i;

  tnk__lm_transpose(room, x, m, n);
  tnk__lm_gemm(y, m, view, room, m, m, m, n, 0);
  tnk__lm_gemm(yy, m, square, y, m, m, m, m, 0);
  for (i = 0; i < m * m; i++)
    y[i] = b * y[i] + c * yy[i];
  tnk__lm_gemm(room, n, square, x, n, m, n, m, 0);
  for (i = 0; i < m * n; i++)
    x[i] = a * x[i] + room[i];
}

/* Make `x`, n_rows x n_cols, nearly orthogonal; the shorter side is used as
 * rows. The result is in `work`, transposed if `x` was transposed. */
static int orthogonalise(float *work, const float *x, size_t n_rows,
                         size_t n_cols) {
  const size_t size = n_rows * n_cols;
  const int turned = n_rows > n_cols;
  double sum = 0;
  float by;
  size_t i;

  if (turned)
    tnk__lm_transpose(work, x, n_rows, n_cols);
  else
    memcpy(work, x, size * sizeof(*x));
  for (i = 0; i < size; i++)
    sum += (double)x[i] * (double)x[i];
  /* Scale to singular values of at most 1, for which the rounds converge; a
   * matrix of zeros stays zero. */
  by = (float)(1 / (sqrt(sum) + 1e-30));
  for (i = 0; i < size; i++)
    work[i] *= by;
  for (i = 0; i < ROUNDS; i++)
    round_of(work, turned ? n_cols : n_rows, turned ? n_rows : n_cols,
             work + size);
  return turned;
}

static void update(tnk__lm_t *lm, const factor_t *f, float rate, float beta) {
  float *value = lm->param[PARAM_VALUE] + f->at;
  float *m = lm->param[PARAM_MOMENT1] + f->at;
  const float *g = lm->grad + f->at;
  const float step = rate * f->scale;
  size_t i;
  size_t j;
  int turned;

  for (i = 0; i < f->n_rows * f->n_cols; i++)
    m[i] = beta * m[i] + g[i];
  turned = orthogonalise(lm->work, m, f->n_rows, f->n_cols);
  for (i = 0; i < f->n_rows; i++)
    for (j = 0; j < f->n_cols; j++)
      value[i * f->n_cols + j] -=
          step * lm->work[turned ? j * f->n_rows + i : i * f->n_cols + j];
}

/* sqrt(max(1, outputs / inputs)) of a factor. */
static float scale_of(size_t n_out, size_t n_in) {
  return n_out > n_in ? sqrtf((float)n_out / (float)n_in) : 1;
}

int tnk__lm_step_dimuon(tnk__lm_t *lm, const tnk__dimuon_t *params,
                        tnk__lm_step_t *out, tnk__lm_why_t *why) {
  const float rate = (float)params->learning_rate;
  const float beta = (float)params->beta1;
  const size_t rank = lm->config.rank;
  size_t i;
  int err = check_dimuon(lm, params, why);

  if (err != TNK_OK)
    return err;
  lm_step_begin(lm, params->grad_clip_norm, out);
  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    factor_t a = {lm->factors[i].a, m.n_in, lm->lanes, scale_of(rank, m.n_in)};
    factor_t b = {lm->factors[i].b, lm->lanes, m.n_out,
                  scale_of(m.n_real, rank)};
    if (!lm->factors[i].trained)
      continue;
    update(lm, &a, rate, beta);
    update(lm, &b, rate, beta);
  }
  tnk__lm_zero_grad(lm);
  tnk__lm_merge(lm);
  return TNK_OK;
}
