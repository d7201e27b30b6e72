#ifndef TNK_TOOLS_LOCAL_LM_FORWARD_H
#define TNK_TOOLS_LOCAL_LM_FORWARD_H

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

/* The blocks of keys that a chunk's rows see. */
typedef struct {
  size_t first; /* first block */
  size_t end;   /* block after the last one */
} tnk__lm_span_t;
tnk__lm_span_t tnk__lm_span(const tnk__lm_base_t *base, size_t layer,
                            size_t pos, size_t n);

/* Compute the attention probabilities of one head: row i, position pos + i,
 * over the keys of the span. Keys that a row does not see have probability
 * 0. */
void tnk__lm_attend(float (*p)[TNK__LM_KEYS], const tnk__lm_base_t *base,
                    tnk__lm_block_t *const *blocks, float (*q)[TNK__LM_DIM],
                    size_t layer, size_t head, size_t pos, size_t n);

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

#endif
