#include "tools/local/lm/state.h"

#include <math.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/local/lm/check.h"
#include "tools/local/lm/loss.h"
#include "tools/local/lm/math.h"

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
