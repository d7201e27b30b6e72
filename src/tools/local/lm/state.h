/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_STATE_H
#define TNK_TOOLS_LOCAL_LM_STATE_H

#include "tools/local/lm/lm.h"
#include "tools/local/lm/model.h"

/*
 * The only forward code: passes, prompts and single decoding steps all call
 * tnk__lm_forward(). The bits of a row depend only on the tokens up to it,
 * never on the number of rows in a call.
 */

/* Keys and values of BLOCK positions. Keys are stored by feature, so that a
 * query reads a whole row of them. */
typedef struct {
  float kt[TNK__LM_LAYERS][TNK__LM_DIM][TNK__LM_BLOCK];
  float v[TNK__LM_LAYERS][TNK__LM_BLOCK][TNK__LM_DIM];
} tnk__lm_block_t;

/* The activations of a layer for a chunk of rows, which the gradient needs. */
typedef struct {
  float y1[TNK__LM_BLOCK][TNK__LM_DIM]; /* normalized input of the attention */
  float s1[TNK__LM_BLOCK];
  float q[TNK__LM_BLOCK][TNK__LM_DIM];
  float k[TNK__LM_BLOCK][TNK__LM_DIM];
  float o[TNK__LM_BLOCK][TNK__LM_DIM];  /* outputs of the heads, concatenated */
  float y2[TNK__LM_BLOCK][TNK__LM_DIM]; /* normalized input of the MLP */
  float s2[TNK__LM_BLOCK];
  float u[TNK__LM_BLOCK][TNK__LM_FF]; /* before the squared ReLU */
} tnk__lm_layer_t;

typedef struct {
  tnk__lm_layer_t layer[TNK__LM_LAYERS];
  float y[TNK__LM_BLOCK][TNK__LM_DIM]; /* normalized, before the unembedding */
  float s[TNK__LM_BLOCK];
  float logits[TNK__LM_BLOCK][TNK__LM_LOGITS];
} tnk__lm_chunk_t;

/* Scratch memory; no call keeps data in it. */
typedef struct {
  float x[TNK__LM_BLOCK][TNK__LM_DIM];
  float h[TNK__LM_BLOCK][TNK__LM_FF];
  float p[TNK__LM_BLOCK][TNK__LM_KEYS];
} tnk__lm_scratch_t;

/*
 * Run the rows for positions pos .. pos + n - 1, with n at most BLOCK. Their
 * keys and values are stored in the blocks. Blocks must exist for all these
 * positions and contain the earlier ones.
 */
void tnk__lm_forward(const tnk__lm_base_t *base, const float *w,
                     tnk__lm_block_t *const *blocks, tnk__lm_chunk_t *chunk,
                     tnk__lm_scratch_t *scratch, const int32_t *tokens,
                     size_t pos, size_t n);

/* Compute the natural logarithm of the sum of the exponentials of a row of
 * logits. `e` receives exp(logit - *max), LOGITS floats, with 0 for padding. A
 * token's logprob is (logit - *max) - *log_sum. */
void tnk__lm_softmax(float *e, const float *logits, float *max, float *sum,
                     float *log_sum);

/* A chunk of a pass: the activations of the forward code, and the gradients of
 * its keys and values. This chunk and later ones add to those gradients. */
typedef struct {
  tnk__lm_chunk_t chunk;
  float dk[TNK__LM_LAYERS][TNK__LM_BLOCK][TNK__LM_DIM];
  float dv[TNK__LM_LAYERS][TNK__LM_BLOCK][TNK__LM_DIM];
} tnk__lm_saved_t;

typedef struct {
  float dx[TNK__LM_BLOCK][TNK__LM_DIM]; /* gradient of the residual stream */
  float dy[TNK__LM_BLOCK][TNK__LM_DIM];
  float dq[TNK__LM_BLOCK][TNK__LM_DIM];
  float h[TNK__LM_BLOCK][TNK__LM_FF];
  float dh[TNK__LM_BLOCK][TNK__LM_FF];
  float xt[TNK__LM_FF][TNK__LM_BLOCK];
  float p[TNK__LM_BLOCK][TNK__LM_KEYS];
  float dp[TNK__LM_BLOCK][TNK__LM_KEYS];
  float vt[TNK__LM_HEAD][TNK__LM_BLOCK];
} tnk__lm_back_scratch_t;

/* Computes the losses from the logprobs of the targets. All arrays are
 * borrowed.
 */
typedef struct {
  const tnk__lm_loss_t *loss;
  const tnk__lm_datum_t *datum;
  const float *logprobs; /* N x n_targets */
  double whole;          /* gspo's ratio of the whole sequence */
  double sum;            /* the loss */
} tnk__lm_terms_t;

tnk__lm_terms_t tnk__lm_terms(const tnk__lm_loss_t *loss,
                              const tnk__lm_datum_t *datum,
                              const float *logprobs);
/* The derivative of the loss with respect to logprob i. */
float tnk__lm_slope(const tnk__lm_terms_t *terms, size_t i);

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

#endif
