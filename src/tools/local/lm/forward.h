#ifndef TNK_TOOLS_LOCAL_LM_FORWARD_H
#define TNK_TOOLS_LOCAL_LM_FORWARD_H

#include "tools/local/lm/model.h"

/*
 * The forward code, the only one: passes, prompts and single decoding steps
 * all come through tnk__lm_forward(), and a row's bits depend on the tokens
 * up to it alone, never on how many rows are computed in one call.
 */

/* Keys and values of BLOCK positions. Keys are stored by feature, so that a
 * query meets a whole row of them. */
typedef struct {
  float kt[TNK__LM_LAYERS][TNK__LM_DIM][TNK__LM_BLOCK];
  float v[TNK__LM_LAYERS][TNK__LM_BLOCK][TNK__LM_DIM];
} tnk__lm_block_t;

/* Everything a layer computes for a chunk of rows that its gradient needs. */
typedef struct {
  float y1[TNK__LM_BLOCK][TNK__LM_DIM]; /* the attention's normed input */
  float s1[TNK__LM_BLOCK];
  float q[TNK__LM_BLOCK][TNK__LM_DIM];
  float k[TNK__LM_BLOCK][TNK__LM_DIM];
  float o[TNK__LM_BLOCK][TNK__LM_DIM];  /* heads side by side */
  float y2[TNK__LM_BLOCK][TNK__LM_DIM]; /* the MLP's normed input */
  float s2[TNK__LM_BLOCK];
  float u[TNK__LM_BLOCK][TNK__LM_FF]; /* before the squared ReLU */
} tnk__lm_layer_t;

typedef struct {
  tnk__lm_layer_t layer[TNK__LM_LAYERS];
  float y[TNK__LM_BLOCK][TNK__LM_DIM]; /* normed, before the unembedding */
  float s[TNK__LM_BLOCK];
  float logits[TNK__LM_BLOCK][TNK__LM_LOGITS];
} tnk__lm_chunk_t;

/* Memory that no call keeps anything in. */
typedef struct {
  float x[TNK__LM_BLOCK][TNK__LM_DIM];
  float h[TNK__LM_BLOCK][TNK__LM_FF];
  float p[TNK__LM_BLOCK][TNK__LM_KEYS];
} tnk__lm_scratch_t;

/* Which blocks of keys a chunk's rows see. */
typedef struct {
  size_t first; /* block */
  size_t end;   /* block after the last */
} tnk__lm_span_t;
tnk__lm_span_t tnk__lm_span(const tnk__lm_base_t *base, size_t layer,
                            size_t pos, size_t n);

/* Work out the probabilities of attention of one head: row i, position pos + i,
 * over the keys of the span. What a row does not see is 0. */
void tnk__lm_attend(float (*p)[TNK__LM_KEYS], const tnk__lm_base_t *base,
                    tnk__lm_block_t *const *blocks, float (*q)[TNK__LM_DIM],
                    size_t layer, size_t head, size_t pos, size_t n);

/*
 * Run rows for positions pos .. pos + n - 1, n at most BLOCK. Their keys and
 * values go into the blocks, which exist for all positions up to there and
 * hold those of the earlier ones.
 */
void tnk__lm_forward(const tnk__lm_base_t *base, const float *w,
                     tnk__lm_block_t *const *blocks, tnk__lm_chunk_t *chunk,
                     tnk__lm_scratch_t *scratch, const int32_t *tokens,
                     size_t pos, size_t n);

/* Work out the natural logarithm of the sum of the exponentials of a row of
 * logits; `e` receives exp(logit - *max), LOGITS floats, the padding 0. A
 * token's logprob is (logit - *max) - *log_sum. */
void tnk__lm_softmax(float *e, const float *logits, float *max, float *sum,
                     float *log_sum);

#endif
