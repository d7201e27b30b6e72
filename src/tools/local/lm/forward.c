#include "tools/local/lm/forward.h"

#include <math.h>
#include <string.h>

#include "tools/local/lm/math.h"
#include "tools/local/lm/vocab.h"

/*
 * Rows are processed in chunks only so that they use the weights while those
 * are in the cache. No result may depend on where a chunk begins. Therefore
 * sums have one order (math.h), and a key that a row does not see has a
 * probability of exactly 0, which adds nothing to a sum.
 */

enum {
  DIM = TNK__LM_DIM,
  HEAD = TNK__LM_HEAD,
  FF = TNK__LM_FF,
  BLOCK = TNK__LM_BLOCK,
  KEYS = TNK__LM_KEYS
};

/* y[n x n_out] = (add ? y : 0) + x[n x n_in] w */
static void linear(float *y, const float *x, const float *w, size_t n,
                   size_t n_in, size_t n_out, int add) {
  tnk__lm_view_t view = {x, n_in, 1};

  tnk__lm_gemm(y, n_out, view, w, n_out, n, n_out, n_in, add);
}

tnk__lm_span_t tnk__lm_span(const tnk__lm_base_t *base, size_t layer,
                            size_t pos, size_t n) {
  size_t window = base->window[layer];
  tnk__lm_span_t span = {pos < window ? 0 : (pos - window + 1) / BLOCK,
                         (pos + n - 1) / BLOCK + 1};

  return span;
}

/* Convert one row of raw scores to probabilities. The row has `n` keys; the
 * last one is its own position. All other columns become 0. */
static void normalise(float *p, size_t n_before, size_t n, size_t width,
                      const float *bias) {
  const float scale = 1.0f / sqrtf((float)HEAD);
  float *row = p + n_before;
  float max;
  float sum;
  size_t j;

  for (j = 0; j < n; j++)
    row[j] = row[j] * scale + bias[j];
  sum = tnk__lm_exp_shifted(row, n, &max);
  for (j = 0; j < n; j++)
    row[j] /= sum;
  memset(p, 0, n_before * sizeof(*p));
  memset(row + n, 0, (width - n_before - n) * sizeof(*p));
}

void tnk__lm_attend(float (*p)[TNK__LM_KEYS], const tnk__lm_base_t *base,
                    tnk__lm_block_t *const *blocks, float (*q)[TNK__LM_DIM],
                    size_t layer, size_t head, size_t pos, size_t n) {
  const size_t window = base->window[layer];
  const float *bias = base->bias[layer][head];
  tnk__lm_span_t span = tnk__lm_span(base, layer, pos, n);
  tnk__lm_view_t query = {&q[0][head * HEAD], DIM, 1};
  size_t b;
  size_t i;

  for (b = span.first; b < span.end; b++)
    tnk__lm_gemm(&p[0][(b - span.first) * BLOCK], KEYS, query,
                 &blocks[b]->kt[layer][head * HEAD][0], BLOCK, n, BLOCK, HEAD,
                 0);
  for (i = 0; i < n; i++) {
    size_t own = pos + i;
    size_t seen = own + 1 < window ? own + 1 : window;
    /* The columns begin with the span's first block. The row's own keys begin
     * inside that block and end at the row itself. */
    normalise(p[i], own + 1 - seen - span.first * BLOCK, seen,
              (span.end - span.first) * BLOCK, bias + TNK__LM_WINDOW - seen);
  }
}

/* Compute the attention of all heads into layer->o. */
static void attention(const tnk__lm_base_t *base,
                      tnk__lm_block_t *const *blocks, tnk__lm_layer_t *layer,
                      float (*p)[TNK__LM_KEYS], size_t l, size_t pos,
                      size_t n) {
  tnk__lm_span_t span = tnk__lm_span(base, l, pos, n);
  size_t h;
  size_t b;

  for (h = 0; h < TNK__LM_HEADS; h++) {
    tnk__lm_attend(p, base, blocks, layer->q, l, h, pos, n);
    /* Block by block in the order of the keys, so that a row's sum has one
     * order of additions for every span. Keys after the last row are skipped:
     * they may belong to another sample. */
    for (b = span.first; b < span.end; b++) {
      tnk__lm_view_t a = {&p[0][(b - span.first) * BLOCK], KEYS, 1};
      size_t n_keys = pos + n - b * BLOCK;
      tnk__lm_gemm(&layer->o[0][h * HEAD], DIM, a,
                   &blocks[b]->v[l][0][h * HEAD], DIM, n, HEAD,
                   n_keys < BLOCK ? n_keys : BLOCK, b > span.first);
    }
  }
}

/* Store keys and values of new rows for later rows. */
static void remember(tnk__lm_block_t *const *blocks, tnk__lm_layer_t *layer,
                     float (*v)[TNK__LM_DIM], size_t l, size_t pos, size_t n) {
  size_t i;
  size_t j;

  for (i = 0; i < n; i++) {
    tnk__lm_block_t *block = blocks[(pos + i) / BLOCK];
    size_t at = (pos + i) % BLOCK;
    memcpy(block->v[l][at], v[i], sizeof(v[i]));
    for (j = 0; j < DIM; j++)
      block->kt[l][j][at] = layer->k[i][j];
  }
}

/* x += MLP(norm(x)). */
static void mlp(tnk__lm_layer_t *layer, const float *w, size_t l,
                tnk__lm_scratch_t *scratch, size_t n) {
  float *u = layer->u[0];
  float *h = scratch->h[0];
  size_t i;

  tnk__lm_rms(layer->y2[0], layer->s2, scratch->x[0], n, DIM);
  linear(u, layer->y2[0], w + tnk__lm_offset(l, M_UP), n, DIM, FF, 0);
  for (i = 0; i < n * FF; i++) {
    float up = u[i] > 0 ? u[i] : 0;
    h[i] = up * up;
  }
  linear(scratch->x[0], h, w + tnk__lm_offset(l, M_DOWN), n, FF, DIM, 1);
}

void tnk__lm_forward(const tnk__lm_base_t *base, const float *w,
                     tnk__lm_block_t *const *blocks, tnk__lm_chunk_t *chunk,
                     tnk__lm_scratch_t *scratch, const int32_t *tokens,
                     size_t pos, size_t n) {
  float(*x)[TNK__LM_DIM] = scratch->x;
  size_t i;
  size_t l;

  for (i = 0; i < n; i++)
    memcpy(x[i], base->embed[tnk__lm_class(tokens[i])], sizeof(x[i]));
  for (l = 0; l < TNK__LM_LAYERS; l++) {
    tnk__lm_layer_t *layer = &chunk->layer[l];
    float *y1 = layer->y1[0];
    tnk__lm_rms(y1, layer->s1, x[0], n, DIM);
    linear(layer->q[0], y1, w + tnk__lm_offset(l, M_Q), n, DIM, DIM, 0);
    linear(layer->k[0], y1, w + tnk__lm_offset(l, M_K), n, DIM, DIM, 0);
    linear(scratch->h[0], y1, w + tnk__lm_offset(l, M_V), n, DIM, DIM, 0);
    remember(blocks, layer, (float(*)[TNK__LM_DIM])scratch->h[0], l, pos, n);
    attention(base, blocks, layer, scratch->p, l, pos, n);
    linear(x[0], layer->o[0], w + tnk__lm_offset(l, M_O), n, DIM, DIM, 1);
    mlp(layer, w, l, scratch, n);
  }
  tnk__lm_rms(chunk->y[0], chunk->s, x[0], n, DIM);
  linear(chunk->logits[0], chunk->y[0], w + tnk__lm_matrix(M_UNEMBED).offset, n,
         DIM, TNK__LM_LOGITS, 0);
}

void tnk__lm_softmax(float *e, const float *logits, float *max, float *sum,
                     float *log_sum) {
  memcpy(e, logits, TNK__LM_VOCAB * sizeof(*e));
  memset(e + TNK__LM_VOCAB, 0, (TNK__LM_LOGITS - TNK__LM_VOCAB) * sizeof(*e));
  *sum = tnk__lm_exp_shifted(e, TNK__LM_VOCAB, max);
  *log_sum = logf(*sum);
}
