#ifndef TNK_TOOLS_LOCAL_LM_STATE_H
#define TNK_TOOLS_LOCAL_LM_STATE_H

#include "tools/local/lm/backward.h"

/*
 * A model in training. Its effective weights are W = base + scale * A B for
 * every trained matrix. They are recomputed whenever A or B changes, so that
 * passes and sampling read plain matrices. Passes accumulate the gradients of
 * the effective weights. A step derives the gradients of A and B from them:
 *
 *   dA = scale * dW B^T, dB = scale * A^T dW
 */

/* Position of a matrix's factors in the parameter arrays: A has n_in rows of
 * `rank` floats, B `rank` rows of n_out. Both ranks are padded to lanes. The
 * padding is 0 and stays 0, because its gradient is 0. */
typedef struct {
  uint8_t trained;
  size_t a;
  size_t b;
} tnk__lm_factors_t;

enum {
  TNK__LM_ALPHA = 12, /* the scale is this value divided by the rank */
  /* Version of the base weights; adapters fit only the base that they were
   * trained on. */
  TNK__LM_BASE_VERSION = 1
};

/* The arrays of a checkpoint, in order. */
enum { PARAM_VALUE, PARAM_MOMENT1, PARAM_MOMENT2, PARAM_KINDS };

struct tnk__lm {
  const tnk_allocator_t *alloc;
  const tnk__lm_base_t *base;
  tnk__lm_config_t config;
  uint64_t n_steps;
  size_t lanes; /* the rank, rounded up to a multiple of 16 */
  size_t n_params;
  float scale;
  tnk__lm_factors_t factors[TNK__LM_N_MATRICES];
  float *param[PARAM_KINDS]; /* n_params each */
  float *grad;               /* n_params; used only within a step */
  float *work; /* for a step: a factor, its transpose and three squares */
  float *w;    /* effective weights */
  float *wt;   /* effective weights, with each matrix transposed */
  float *g;    /* gradients of the effective weights */
  /* Memory for passes of up to n_reserved blocks. */
  size_t n_reserved;
  tnk__lm_block_t *blocks[TNK__LM_MAX_BLOCKS];
  tnk__lm_saved_t *saved[TNK__LM_MAX_BLOCKS];
  tnk__lm_scratch_t *scratch;
  tnk__lm_back_scratch_t *back_scratch;
};

/* Check a configuration: returns TNK_OK, or TNK_EINVAL for an invalid one. */
int tnk__lm_config_check(const tnk__lm_config_t *config, tnk__lm_why_t *why);
/* Recompute w and wt after the parameters have changed. */
void tnk__lm_merge(tnk__lm_t *lm);
/* Compute lm->grad from lm->g. */
void tnk__lm_factor_grads(tnk__lm_t *lm);
/* Start a step: compute lm->grad, scaled down to the norm `limit` if that is
 * above 0. `out` receives the norm before scaling and the number of the
 * step. */
void tnk__lm_step_begin(tnk__lm_t *lm, double limit, tnk__lm_step_t *out);

#endif
