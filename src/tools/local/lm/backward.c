#include "tools/local/lm/backward.h"

#include <math.h>
#include <string.h>

#include "tools/local/lm/math.h"

/*
 * The forward code in reverse, chunk by chunk. A key gets gradients only from
 * its own and later rows. So when a chunk is processed, the gradients of its
 * keys and values lack only its own rows. Probabilities are recomputed: storing
 * them would take more memory than everything else.
 */

enum {
  DIM = TNK__LM_DIM,
  HEAD = TNK__LM_HEAD,
  FF = TNK__LM_FF,
  BLOCK = TNK__LM_BLOCK,
  KEYS = TNK__LM_KEYS
};

/* Gradients of y = x w: dx = (add ? dx : 0) + dy w^T, unless dx is NULL, and
 * the gradient of w, if it is needed. */
static void linear_back(const tnk__lm_back_t *back, tnk__lm_matrix_t m,
                        float *dx, int add, const float *x, const float *dy,
                        size_t n) {
  if (back->wanted[m.group]) {
    tnk__lm_view_t xt = {back->scratch->xt[0], n, 1};
    tnk__lm_transpose(back->scratch->xt[0], x, n, m.n_in);
    tnk__lm_gemm(back->g + m.offset, m.n_out, xt, dy, m.n_out, m.n_in, m.n_out,
                 n, 1);
  }
  if (dx != NULL) {
    tnk__lm_view_t view = {dy, m.n_out, 1};
    tnk__lm_gemm(dx, m.n_in, view, back->wt + m.offset, m.n_in, n, m.n_in,
                 m.n_out, add);
  }
}

static tnk__lm_matrix_t matrix_of(size_t layer, size_t which) {
  return tnk__lm_matrix(layer * M_PER_LAYER + which);
}

/* s->dx on input and output: the gradients of the stream after and before the
 * MLP. */
static void mlp_back(const tnk__lm_back_t *back, tnk__lm_layer_t *layer,
                     size_t l, size_t n) {
  tnk__lm_back_scratch_t *s = back->scratch;
  const float *u = layer->u[0];
  float *h = s->h[0];
  float *dh = s->dh[0];
  size_t i;

  for (i = 0; i < n * FF; i++) {
    float up = u[i] > 0 ? u[i] : 0;
    h[i] = up * up;
  }
  linear_back(back, matrix_of(l, M_DOWN), dh, 0, h, s->dx[0], n);
  for (i = 0; i < n * FF; i++)
    dh[i] *= u[i] > 0 ? 2 * u[i] : 0;
  linear_back(back, matrix_of(l, M_UP), s->dy[0], 0, layer->y2[0], dh, n);
  tnk__lm_rms_back(s->dx[0], layer->y2[0], layer->s2, s->dy[0], n, DIM);
}

/* Convert s->dp, the gradients of the probabilities, to the gradients of the
 * scores before scaling. Where p is 0, the result is 0. */
static void softmax_back(tnk__lm_back_scratch_t *s, size_t width, size_t n) {
  const float scale = 1.0f / sqrtf((float)HEAD);
  size_t i;
  size_t j;

  for (i = 0; i < n; i++) {
    float mean = tnk__lm_dot(s->p[i], s->dp[i], width);
    for (j = 0; j < width; j++)
      s->dp[i][j] = s->p[i][j] * (s->dp[i][j] - mean) * scale;
  }
}

/* One head, given s->dy, the gradients of the heads' outputs. Adds to the
 * gradients of keys and values in all visible blocks, and fills its part of
 * dq. */
static void head_back(const tnk__lm_back_t *back, tnk__lm_layer_t *layer,
                      size_t l, size_t head, size_t pos, size_t n) {
  tnk__lm_back_scratch_t *s = back->scratch;
  tnk__lm_span_t span = tnk__lm_span(back->base, l, pos, n);
  const size_t at = head * HEAD;
  tnk__lm_view_t d_out = {&s->dy[0][at], DIM, 1};
  size_t b;

  tnk__lm_attend(s->p, back->base, back->blocks, layer->q, l, head, pos, n);
  for (b = span.first; b < span.end; b++) {
    size_t i;
    for (i = 0; i < BLOCK; i++) {
      const float *v = &back->blocks[b]->v[l][i][at];
      size_t j;
      for (j = 0; j < HEAD; j++)
        s->vt[j][i] = v[j];
    }
    tnk__lm_gemm(&s->dp[0][(b - span.first) * BLOCK], KEYS, d_out, s->vt[0],
                 BLOCK, n, BLOCK, HEAD, 0);
  }
  softmax_back(s, (span.end - span.first) * BLOCK, n);
  for (b = span.first; b < span.end; b++) {
    size_t col = (b - span.first) * BLOCK;
    size_t n_keys = pos + n - b * BLOCK < BLOCK ? pos + n - b * BLOCK : BLOCK;
    tnk__lm_view_t ds = {&s->dp[0][col], KEYS, 1};
    tnk__lm_view_t ds_t = {&s->dp[0][col], 1, KEYS};
    tnk__lm_view_t p_t = {&s->p[0][col], 1, KEYS};
    tnk__lm_saved_t *saved = back->saved[b];
    tnk__lm_gemm(&s->dq[0][at], DIM, ds, &saved->chunk.layer[l].k[0][at], DIM,
                 n, HEAD, n_keys, b > span.first);
    tnk__lm_gemm(&saved->dk[l][0][at], DIM, ds_t, &layer->q[0][at], DIM, n_keys,
                 HEAD, n, 1);
    tnk__lm_gemm(&saved->dv[l][0][at], DIM, p_t, &s->dy[0][at], DIM, n_keys,
                 HEAD, n, 1);
  }
}

static void attention_back(const tnk__lm_back_t *back, tnk__lm_saved_t *saved,
                           size_t l, size_t pos, size_t n) {
  tnk__lm_back_scratch_t *s = back->scratch;
  tnk__lm_layer_t *layer = &saved->chunk.layer[l];
  const float *y1 = layer->y1[0];
  /* Nothing is trained below the first layer. */
  float *dy = l > 0 ? s->dy[0] : NULL;
  size_t h;

  linear_back(back, matrix_of(l, M_O), s->dy[0], 0, layer->o[0], s->dx[0], n);
  for (h = 0; h < TNK__LM_HEADS; h++)
    head_back(back, layer, l, h, pos, n);
  linear_back(back, matrix_of(l, M_Q), dy, 0, y1, s->dq[0], n);
  linear_back(back, matrix_of(l, M_K), dy, 1, y1, saved->dk[l][0], n);
  linear_back(back, matrix_of(l, M_V), dy, 1, y1, saved->dv[l][0], n);
  if (dy != NULL)
    tnk__lm_rms_back(s->dx[0], y1, layer->s1, dy, n, DIM);
}

void tnk__lm_backward(const tnk__lm_back_t *back, size_t index, size_t n) {
  tnk__lm_back_scratch_t *s = back->scratch;
  tnk__lm_saved_t *saved = back->saved[index];
  tnk__lm_chunk_t *chunk = &saved->chunk;
  size_t l;

  linear_back(back, tnk__lm_matrix(M_UNEMBED), s->dy[0], 0, chunk->y[0],
              chunk->logits[0], n);
  memset(s->dx, 0, n * sizeof(s->dx[0]));
  tnk__lm_rms_back(s->dx[0], chunk->y[0], chunk->s, s->dy[0], n, DIM);
  for (l = TNK__LM_LAYERS; l-- > 0;) {
    mlp_back(back, &chunk->layer[l], l, n);
    attention_back(back, saved, l, index * BLOCK, n);
  }
}
