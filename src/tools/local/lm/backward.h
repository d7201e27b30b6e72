#ifndef TNK_TOOLS_LOCAL_LM_BACKWARD_H
#define TNK_TOOLS_LOCAL_LM_BACKWARD_H

#include "tools/local/lm/forward.h"

/* A chunk of a pass: what the forward code left, and the gradients of its
 * keys and values, to which this chunk and later ones add. */
typedef struct {
  tnk__lm_chunk_t chunk;
  float dk[TNK__LM_LAYERS][TNK__LM_BLOCK][TNK__LM_DIM];
  float dv[TNK__LM_LAYERS][TNK__LM_BLOCK][TNK__LM_DIM];
} tnk__lm_saved_t;

typedef struct {
  float dx[TNK__LM_BLOCK][TNK__LM_DIM]; /* of the residual stream */
  float dy[TNK__LM_BLOCK][TNK__LM_DIM];
  float dq[TNK__LM_BLOCK][TNK__LM_DIM];
  float h[TNK__LM_BLOCK][TNK__LM_FF];
  float dh[TNK__LM_BLOCK][TNK__LM_FF];
  float xt[TNK__LM_FF][TNK__LM_BLOCK];
  float p[TNK__LM_BLOCK][TNK__LM_KEYS];
  float dp[TNK__LM_BLOCK][TNK__LM_KEYS];
  float vt[TNK__LM_HEAD][TNK__LM_BLOCK];
} tnk__lm_back_scratch_t;

/* What stays the same for all chunks of a pass. */
typedef struct {
  const tnk__lm_base_t *base;
  const float *wt;   /* the weights, each matrix transposed */
  float *g;          /* gradients of the weights, added to */
  uint8_t wanted[3]; /* by group: whether its gradients are */
  tnk__lm_block_t *const *blocks;
  tnk__lm_saved_t *const *saved;
  tnk__lm_back_scratch_t *scratch;
} tnk__lm_back_t;

/*
 * Work out the gradients of chunk `index`, which has n rows and whose logits
 * have been replaced by their gradients. Chunks come from the last to the
 * first; dk and dv of all are zero at the start.
 */
void tnk__lm_backward(const tnk__lm_back_t *back, size_t index, size_t n);

#endif
