/* SPDX-License-Identifier: MIT */
#include "tools/local/lm/lm.h"

#include <math.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tools/local/lm/math.h"
#include "tools/local/lm/model.h"

/*
 * The frozen base weights, generated with integer arithmetic: they have the
 * same bits on every machine. They know no language and predict every token
 * alike. Their structure lets adapters learn fast:
 *
 *   feature 0         of the residual stream is a constant, which the MLPs
 *                     use as a threshold: few of their units are active for
 *                     an input, so learning one input hardly affects others
 *   the last CHANNEL  features are empty; only the unembedding reads them,
 *                     with a high gain, so small changes written there move
 *                     the logits far
 *   three heads       of each layer look one, two and three positions back;
 *                     the fourth has a wider window in each layer
 */

enum { DIM = TNK__LM_DIM, FF = TNK__LM_FF, CHANNEL = 32, BASE_SEED = 20240811 };

static const struct {
  tnk__lm_group_t group;
  size_t n_in;
  size_t n_out;
} shapes[M_PER_LAYER] = {
    {GROUP_ATTN, DIM, DIM}, {GROUP_ATTN, DIM, DIM}, {GROUP_ATTN, DIM, DIM},
    {GROUP_ATTN, DIM, DIM}, {GROUP_MLP, DIM, FF},   {GROUP_MLP, FF, DIM},
};

size_t tnk__lm_offset(size_t layer, size_t which) {
  size_t at = layer * TNK__LM_LAYER_FLOATS;
  size_t i;

  for (i = 0; i < which; i++)
    at += shapes[i].n_in * shapes[i].n_out;
  return at;
}

tnk__lm_matrix_t tnk__lm_matrix(size_t index) {
  tnk__lm_matrix_t m = {GROUP_UNEMBED, DIM, TNK__LM_LOGITS, TNK__LM_VOCAB,
                        tnk__lm_offset(TNK__LM_LAYERS, 0)};

  if (index < M_UNEMBED) {
    size_t which = index % M_PER_LAYER;
    m.group = shapes[which].group;
    m.n_in = shapes[which].n_in;
    m.n_out = m.n_real = shapes[which].n_out;
    m.offset = tnk__lm_offset(index / M_PER_LAYER, which);
  }
  return m;
}

/* Uniform values with the given standard deviation. */
static void fill(float *at, size_t n_rows, size_t n_cols, float deviation,
                 uint64_t stream) {
  tnk__lm_rng_t rng = tnk__lm_rng(BASE_SEED, stream);
  size_t i;

  for (i = 0; i < n_rows * n_cols; i++)
    at[i] = tnk__lm_rng_uniform(&rng, deviation * 1.7320508f);
}

static void clear_columns(float *at, size_t n_rows, size_t n_cols, size_t first,
                          size_t end) {
  size_t i;

  for (i = 0; i < n_rows; i++)
    memset(at + i * n_cols + first, 0, (end - first) * sizeof(*at));
}

static void make_embedding(tnk__lm_base_t *base) {
  size_t i;

  fill(base->embed[0], TNK__LM_VOCAB, DIM, 1, 0);
  clear_columns(base->embed[0], TNK__LM_VOCAB, DIM, DIM - CHANNEL, DIM);
  for (i = 0; i < TNK__LM_VOCAB; i++)
    base->embed[i][0] = 2;
}

static void make_bias(tnk__lm_base_t *base) {
  static const float center[TNK__LM_HEADS] = {1, 2, 3, 0};
  static const float slope[TNK__LM_LAYERS][TNK__LM_HEADS] = {{6, 6, 6, 0.5f},
                                                             {6, 6, 6, 0.02f}};
  size_t l;
  size_t h;
  size_t d;

  base->window[0] = 32;
  base->window[1] = TNK__LM_WINDOW;
  for (l = 0; l < TNK__LM_LAYERS; l++)
    for (h = 0; h < TNK__LM_HEADS; h++)
      for (d = 0; d < TNK__LM_WINDOW; d++)
        base->bias[l][h][TNK__LM_WINDOW - 1 - d] =
            -slope[l][h] * fabsf((float)d - center[h]);
}

static void make_matrix(float *at, tnk__lm_matrix_t m, size_t index) {
  static const float gain[M_PER_LAYER] = {0.2f, 0.2f, 1, 1, 1, 1};
  const size_t which = index % M_PER_LAYER;
  const float unit = 1.0f / sqrtf((float)m.n_in);
  size_t j;

  if (index == M_UNEMBED) {
    fill(at, m.n_in, m.n_out, 5 * unit, 1 + index);
    memset(at, 0, (DIM - CHANNEL) * m.n_out * sizeof(*at));
    clear_columns(at, m.n_in, m.n_out, m.n_real, m.n_out);
    return;
  }
  fill(at, m.n_in, m.n_out, gain[which] * unit, 1 + index);
  if (which == M_UP)
    for (j = 0; j < m.n_out; j++)
      at[j] = -0.6f;
  if (which == M_O || which == M_DOWN) {
    clear_columns(at, m.n_in, m.n_out, 0, 1);
    clear_columns(at, m.n_in, m.n_out, DIM - CHANNEL, DIM);
  }
}

tnk__lm_base_t *tnk__lm_base_new(const tnk_allocator_t *alloc) {
  tnk__lm_base_t *base = tnk__malloc(alloc, sizeof(*base));
  size_t i;

  if (base == NULL)
    return NULL;
  base->alloc = alloc;
  make_embedding(base);
  make_bias(base);
  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    make_matrix(base->weights + m.offset, m, i);
  }
  return base;
}

void tnk__lm_base_free(tnk__lm_base_t *base) {
  if (base != NULL)
    tnk__free(base->alloc, base);
}
