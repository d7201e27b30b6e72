#include "tools/local/lm/state.h"

#include <math.h>
#include <string.h>

#include "tnk/error.h"
#include "tools/local/lm/check.h"

/*
 * AdamW over all factors at once: they are in one array, so a step is one loop.
 * Moments are floats, as in a checkpoint. Values that depend only on the step's
 * number are computed in double before the loop.
 */

static int refuse(tnk__lm_why_t *why, const char *name, const char *range) {
  return tnk__lm_refuse(why, TNK_EINVAL, "\"%s\" must be %s", name, range);
}

/* Written so that NaN is refused too. */
static int check(const tnk__lm_t *lm, const tnk__adam_t *p,
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

void tnk__lm_step_begin(tnk__lm_t *lm, double limit, tnk__lm_step_t *out) {
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
  int err = check(lm, params, why);

  if (err != TNK_OK)
    return err;
  tnk__lm_step_begin(lm, params->grad_clip_norm, out);
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
