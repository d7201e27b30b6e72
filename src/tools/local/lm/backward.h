#ifndef TNK_TOOLS_LOCAL_LM_BACKWARD_H
#define TNK_TOOLS_LOCAL_LM_BACKWARD_H

#include "tools/local/lm/forward.h"

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

/* The data that all chunks of a pass share. */
typedef struct {
  const tnk__lm_base_t *base;
  const float *wt;   /* the weights, with each matrix transposed */
  float *g;          /* gradients of the weights, accumulated */
  uint8_t wanted[3]; /* by group: whether its gradients are needed */
  tnk__lm_block_t *const *blocks;
  tnk__lm_saved_t *const *saved;
  tnk__lm_back_scratch_t *scratch;
} tnk__lm_back_t;

/*
 * Compute the gradients of chunk `index`, which has n rows. Its logits have
 * been replaced by their gradients. Chunks are processed from the last to the
 * first; dk and dv of all chunks are zero at the start.
 */
void tnk__lm_backward(const tnk__lm_back_t *back, size_t index, size_t n);

#endif
