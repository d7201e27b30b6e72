/* SPDX-License-Identifier: MIT */
#include "tools/local/lm/state.h"

#include <math.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/local/lm/math.h"
#include "tools/local/lm/vocab.h"

/* ---- Forward ---- */

/*
 * Rows are processed in chunks only so that they use the weights while those
 * are in the cache. No result may depend on where a chunk begins. Therefore
 * sums have one order (math.h), and a key that a row does not see has a
 * probability of exactly 0, which adds nothing to a sum.
 */

/* The blocks of keys that a chunk's rows see. */
typedef struct {
  size_t first; /* first block */
  size_t end;   /* block after the last one */
} lm_span_t;

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

static lm_span_t lm_span(const tnk__lm_base_t *base, size_t layer, size_t pos,
                         size_t n) {
  size_t window = base->window[layer];
  lm_span_t span = {pos < window ? 0 : (pos - window + 1) / BLOCK,
                    (pos + n - 1) / BLOCK + 1};

  return span;
}

/* Convert one row of raw scores to probabilities. The row has `n` keys; the
 * last one is its own position. All other columns become 0. */
static void normalize(float *p, size_t n_before, size_t n, size_t width,
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

/* Compute the attention probabilities of one head: row i, position pos + i,
 * over the keys of the span. Keys that a row does not see have probability
 * 0. */
static void lm_attend(float (*p)[TNK__LM_KEYS], const tnk__lm_base_t *base,
                      tnk__lm_block_t *const *blocks, float (*q)[TNK__LM_DIM],
                      size_t layer, size_t head, size_t pos, size_t n) {
  const size_t window = base->window[layer];
  const float *bias = base->bias[layer][head];
  lm_span_t span = lm_span(base, layer, pos, n);
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
    normalize(p[i], own + 1 - seen - span.first * BLOCK, seen,
              (span.end - span.first) * BLOCK, bias + TNK__LM_WINDOW - seen);
  }
}

/* Compute the attention of all heads into layer->o. */
static void attention(const tnk__lm_base_t *base,
                      tnk__lm_block_t *const *blocks, tnk__lm_layer_t *layer,
                      float (*p)[TNK__LM_KEYS], size_t l, size_t pos,
                      size_t n) {
  lm_span_t span = lm_span(base, l, pos, n);
  size_t h;
  size_t b;

  for (h = 0; h < TNK__LM_HEADS; h++) {
    lm_attend(p, base, blocks, layer->q, l, h, pos, n);
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

/* ---- Backward ---- */

/*
 * The forward code in reverse, chunk by chunk. A key gets gradients only from
 * its own and later rows. So when a chunk is processed, the gradients of its
 * keys and values lack only its own rows. Probabilities are recomputed: storing
 * them would take more memory than everything else.
 */

/* The data that all chunks of a pass share. */
typedef struct {
  const tnk__lm_base_t *base;
  const float *wt;   /* the weights, with each matrix transposed */
  float *g;          /* gradients of the weights, accumulated */
  uint8_t wanted[3]; /* by group: whether its gradients are needed */
  tnk__lm_block_t *const *blocks;
  tnk__lm_saved_t *const *saved;
  tnk__lm_back_scratch_t *scratch;
} lm_back_t;

/* Gradients of y = x w: dx = (add ? dx : 0) + dy w^T, unless dx is NULL, and
 * the gradient of w, if it is needed. */
static void linear_back(const lm_back_t *back, tnk__lm_matrix_t m, float *dx,
                        int add, const float *x, const float *dy, size_t n) {
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
static void mlp_back(const lm_back_t *back, tnk__lm_layer_t *layer, size_t l,
                     size_t n) {
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
static void head_back(const lm_back_t *back, tnk__lm_layer_t *layer, size_t l,
                      size_t head, size_t pos, size_t n) {
  tnk__lm_back_scratch_t *s = back->scratch;
  lm_span_t span = lm_span(back->base, l, pos, n);
  const size_t at = head * HEAD;
  tnk__lm_view_t d_out = {&s->dy[0][at], DIM, 1};
  size_t b;

  lm_attend(s->p, back->base, back->blocks, layer->q, l, head, pos, n);
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

static void attention_back(const lm_back_t *back, tnk__lm_saved_t *saved,
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

/*
 * Compute the gradients of chunk `index`, which has n rows. Its logits have
 * been replaced by their gradients. Chunks are processed from the last to the
 * first; dk and dv of all chunks are zero at the start.
 */
static void lm_backward(const lm_back_t *back, size_t index, size_t n) {
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

/* ---- Losses ---- */

/* Bounds of the ratio at position i; the example's own bounds have priority. */
typedef struct {
  double low;
  double high;
} bounds_t;

static bounds_t bounds_at(const tnk__lm_loss_t *loss,
                          const tnk__lm_datum_t *datum, size_t i) {
  bounds_t b = {loss->clip_low, loss->clip_high};

  if (datum->clip_low != NULL)
    b.low = datum->clip_low[i];
  if (datum->clip_high != NULL)
    b.high = datum->clip_high[i];
  return b;
}

static double clip(double x, bounds_t b) {
  return x < b.low ? b.low : x > b.high ? b.high : x;
}

/* One term: its value and its derivative with respect to the logprob. */
typedef struct {
  double value;
  double slope;
} term_t;

/* -min(r A, clip(r) A), where r depends on the logprob. */
static term_t clipped(double ratio, double advantage, bounds_t b) {
  double open = ratio * advantage;
  double held = clip(ratio, b) * advantage;
  term_t t = {-held, 0};

  /* The smaller value counts. If both are equal, the ratio is within its
   * bounds, and its derivative is not 0. */
  if (open <= held) {
    t.value = -open;
    t.slope = -open;
  }
  return t;
}

/* gspo's ratio of the whole sequence: the geometric mean of the ratios at the
 * counted positions. */
static double sequence_ratio(const tnk__lm_datum_t *datum,
                             const float *logprobs) {
  double sum = 0;
  size_t n = 0;
  size_t i;

  for (i = 0; i < datum->n_tokens; i++)
    if (datum->mask == NULL || datum->mask[i] != 0) {
      sum += (double)logprobs[i] - (double)datum->logprobs[i];
      n++;
    }
  return n > 0 ? exp(sum / (double)n) : 1;
}

/* The formulas, with p the logprob, q the sampler's logprob, a the advantage.
 * The slope omits factors that count as constants. */
static term_t term_of(const tnk__lm_terms_t *terms, size_t i) {
  const tnk__lm_loss_t *loss = terms->loss;
  const tnk__lm_datum_t *datum = terms->datum;
  const int rl = loss->kind != TNK__LM_CROSS_ENTROPY;
  const double p = (double)terms->logprobs[i];
  const double q = rl ? (double)datum->logprobs[i] : 0;
  const double a = rl ? (double)datum->advantages[i] : 0;
  bounds_t b = bounds_at(loss, datum, i / datum->n_targets);
  term_t t = {0, 0};
  double held;

  switch (loss->kind) {
  case TNK__LM_CROSS_ENTROPY:
    t.value = -p;
    t.slope = -1;
    break;
  case TNK__LM_IMPORTANCE_SAMPLING:
    t.value = t.slope = -exp(p - q) * a;
    break;
  case TNK__LM_PPO:
    t = clipped(exp(p - q), a, b);
    break;
  case TNK__LM_CISPO:
    held = clip(exp(p - q), b);
    t.value = -held * p * a;
    t.slope = -held * a;
    break;
  case TNK__LM_DRO:
    t.value = -(p * a - 0.5 * loss->beta * (p - q) * (p - q));
    t.slope = -(a - loss->beta * (p - q));
    break;
  case TNK__LM_GSPO:
    t = clipped(terms->whole, a, b);
    break;
  case TNK__LM_STABLE_REINFORCE:
    /* A token that is now more likely than for the sampler has weight 1. A
     * token that is now less likely has the ratio of the probabilities as its
     * weight. */
    held = p < q ? exp(p - q) : 1;
    t.value = -held * p * a + 0.5 * loss->kl_coeff * (p - q) * (p - q);
    t.slope = -held * a + loss->kl_coeff * (p - q);
    break;
  }
  return t;
}

static double weight_of(const tnk__lm_datum_t *datum, size_t i) {
  return datum->weights != NULL ? (double)datum->weights[i] : 1;
}

tnk__lm_terms_t tnk__lm_terms(const tnk__lm_loss_t *loss,
                              const tnk__lm_datum_t *datum,
                              const float *logprobs) {
  tnk__lm_terms_t terms = {loss, datum, logprobs, 1, 0};
  const size_t n = datum->n_tokens * datum->n_targets;
  size_t i;

  if (loss->kind == TNK__LM_GSPO)
    terms.whole = sequence_ratio(datum, logprobs);
  for (i = 0; i < n; i++)
    if (weight_of(datum, i) != 0)
      terms.sum += weight_of(datum, i) * term_of(&terms, i).value;
  return terms;
}

float tnk__lm_slope(const tnk__lm_terms_t *terms, size_t i) {
  double weight = weight_of(terms->datum, i);

  return weight != 0 ? (float)(weight * term_of(terms, i).slope) : 0;
}

/* ---- A pass ---- */

/*
 * A pass over one example: all chunks forward, then the loss, then all chunks
 * backward. The loss comes first because it may need the whole sequence. The
 * activations are kept for that; they take 13 kB per token.
 */

int tnk__lm_reserve(tnk__lm_t *lm, size_t n_tokens) {
  const size_t n = (n_tokens + BLOCK - 1) / BLOCK;

  while (lm->n_reserved < n) {
    size_t i = lm->n_reserved;
    /* After a failure the first allocation is kept for the next try. */
    if (lm->blocks[i] == NULL)
      lm->blocks[i] = tnk__calloc(lm->alloc, 1, sizeof(*lm->blocks[i]));
    if (lm->saved[i] == NULL)
      lm->saved[i] = tnk__malloc(lm->alloc, sizeof(*lm->saved[i]));
    if (lm->blocks[i] == NULL || lm->saved[i] == NULL)
      return TNK_ENOMEM;
    lm->n_reserved++;
  }
  return TNK_OK;
}

static int in_vocabulary(const tnk__lm_datum_t *datum, int64_t id) {
  return id >= 0 && id < tnk__lm_width(datum->n_vocab);
}

/* The logprob of its class, minus the share of the other members. */
static float logprob_of(const tnk__lm_datum_t *datum, const float *logits,
                        int64_t id, float max, float log_sum) {
  const int32_t of = tnk__lm_class(id);

  return (logits[of] - max) - log_sum -
         logf((float)tnk__lm_members(of, datum->n_vocab));
}

/* Logprobs of a chunk's targets, from position `pos` on; 0 for padding ids. */
static void target_logprobs(tnk__lm_chunk_t *chunk,
                            const tnk__lm_datum_t *datum, size_t pos, size_t n,
                            float *logprobs) {
  const size_t n_targets = datum->n_targets;
  const int64_t *targets = datum->targets + pos * n_targets;
  float e[TNK__LM_LOGITS];
  size_t i;
  size_t k;

  for (i = 0; i < n; i++) {
    float max;
    float sum;
    float log_sum;
    tnk__lm_softmax(e, chunk->logits[i], &max, &sum, &log_sum);
    for (k = 0; k < n_targets; k++) {
      int64_t id = targets[i * n_targets + k];
      logprobs[i * n_targets + k] =
          in_vocabulary(datum, id)
              ? logprob_of(datum, chunk->logits[i], id, max, log_sum)
              : 0;
    }
  }
}

/* Replace a chunk's logits by their gradients; the chunk begins at position
 * `pos`. */
static void logit_grads(tnk__lm_chunk_t *chunk, const tnk__lm_terms_t *terms,
                        size_t pos, size_t n) {
  const size_t n_targets = terms->datum->n_targets;
  float e[TNK__LM_LOGITS];
  size_t i;
  size_t k;

  for (i = 0; i < n; i++) {
    const size_t first = (pos + i) * n_targets;
    const int64_t *targets = terms->datum->targets + first;
    float *logits = chunk->logits[i];
    float total = 0;
    float max;
    float sum;
    float log_sum;
    tnk__lm_softmax(e, logits, &max, &sum, &log_sum);
    for (k = 0; k < n_targets; k++)
      total += tnk__lm_slope(terms, first + k);
    for (k = 0; k < TNK__LM_LOGITS; k++)
      logits[k] = -total * (e[k] / sum);
    for (k = 0; k < n_targets; k++)
      if (in_vocabulary(terms->datum, targets[k]))
        logits[tnk__lm_class(targets[k])] += tnk__lm_slope(terms, first + k);
  }
}

/* Number of rows in a chunk; the last one may be short. */
static size_t rows_of(size_t index, size_t n_tokens) {
  size_t left = n_tokens - index * BLOCK;

  return left < BLOCK ? left : BLOCK;
}

static void forward(tnk__lm_t *lm, const tnk__lm_datum_t *datum,
                    float *logprobs) {
  const size_t n_blocks = (datum->n_tokens + BLOCK - 1) / BLOCK;
  const size_t k = datum->n_targets;
  size_t b;

  for (b = 0; b < n_blocks; b++) {
    size_t n = rows_of(b, datum->n_tokens);
    tnk__lm_chunk_t *chunk = &lm->saved[b]->chunk;
    tnk__lm_forward(lm->base, lm->w, lm->blocks, chunk, lm->scratch,
                    datum->tokens + b * BLOCK, b * BLOCK, n);
    target_logprobs(chunk, datum, b * BLOCK, n, logprobs + b * BLOCK * k);
  }
}

static void backward(tnk__lm_t *lm, const tnk__lm_terms_t *terms) {
  const tnk__lm_datum_t *datum = terms->datum;
  const size_t n_blocks = (datum->n_tokens + BLOCK - 1) / BLOCK;
  const size_t n_last = rows_of(n_blocks - 1, datum->n_tokens);
  /* In the order of tnk__lm_group_t. */
  const lm_back_t back = {
      lm->base,
      lm->wt,
      lm->g,
      {lm->config.train_attn, lm->config.train_mlp, lm->config.train_unembed},
      lm->blocks,
      lm->saved,
      lm->back_scratch};
  size_t b;
  size_t l;

  /* Clear values of an earlier pass. They are multiplied by a probability of 0,
   * which gives 0 only for finite values. */
  for (l = 0; l < TNK__LM_LAYERS; l++)
    memset(lm->blocks[n_blocks - 1]->v[l] + n_last, 0,
           (BLOCK - n_last) * TNK__LM_DIM * sizeof(float));
  for (b = 0; b < n_blocks; b++) {
    memset(lm->saved[b]->dk, 0, sizeof(lm->saved[b]->dk));
    memset(lm->saved[b]->dv, 0, sizeof(lm->saved[b]->dv));
  }
  for (b = n_blocks; b-- > 0;) {
    size_t n = rows_of(b, datum->n_tokens);
    logit_grads(&lm->saved[b]->chunk, terms, b * BLOCK, n);
    lm_backward(&back, b, n);
  }
}

int tnk__lm_run(tnk__lm_t *lm, const tnk__lm_loss_t *loss,
                const tnk__lm_datum_t *datum, int with_gradients,
                float *logprobs, double *loss_sum) {
  tnk__lm_terms_t terms;
  int err = tnk__lm_reserve(lm, datum->n_tokens);

  if (err != TNK_OK)
    return err;
  forward(lm, datum, logprobs);
  terms = tnk__lm_terms(loss, datum, logprobs);
  *loss_sum += terms.sum;
  if (with_gradients)
    backward(lm, &terms);
  return TNK_OK;
}
