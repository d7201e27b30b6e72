#include "local/lm.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "local/lm_math.h"
#include "local/lm_model.h"

/*
 * The frozen base weights, made from integers alone: the same bits on every
 * machine.
 */

enum { DIM = TNK__LM_DIM, FF = TNK__LM_FF, BASE_SEED = 20240811 };

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

/* Uniform values of the given standard deviation. */
static void fill(float *at, size_t n_rows, size_t n_cols, size_t n_real,
                 float deviation, uint64_t stream) {
  tnk__lm_rng_t rng = tnk__lm_rng(BASE_SEED, stream);
  size_t i;
  size_t j;

  for (i = 0; i < n_rows; i++)
    for (j = 0; j < n_cols; j++)
      at[i * n_cols + j] =
          j < n_real ? tnk__lm_rng_uniform(&rng, deviation * 1.7320508f) : 0;
}

/* Heads of the first layer look at one near position each; those of the
 * second see ever wider surroundings. */
static void make_bias(tnk__lm_base_t *base) {
  static const float slope[TNK__LM_LAYERS][TNK__LM_HEADS] = {
      {6, 6, 6, 0.5f}, {2, 0.5f, 0.05f, 0}};
  size_t l;
  size_t h;
  size_t d;

  base->window[0] = 32;
  base->window[1] = TNK__LM_WINDOW;
  for (l = 0; l < TNK__LM_LAYERS; l++)
    for (h = 0; h < TNK__LM_HEADS; h++)
      for (d = 0; d < TNK__LM_WINDOW; d++) {
        float centre = l == 0 && h < 3 ? (float)(h + 1) : 0;
        base->bias[l][h][TNK__LM_WINDOW - 1 - d] =
            -slope[l][h] * fabsf((float)d - centre);
      }
}

tnk__lm_base_t *tnk__lm_base_new(const tnk_allocator_t *alloc) {
  tnk__lm_base_t *base = tnk__malloc(alloc, sizeof(*base));
  size_t i;

  if (base == NULL)
    return NULL;
  base->alloc = alloc;
  fill(base->embed[0], TNK__LM_VOCAB, DIM, DIM, 1, 0);
  make_bias(base);
  for (i = 0; i < TNK__LM_N_MATRICES; i++) {
    tnk__lm_matrix_t m = tnk__lm_matrix(i);
    float deviation = 1.0f / sqrtf((float)m.n_in);
    if (i % M_PER_LAYER == M_Q || i % M_PER_LAYER == M_K)
      deviation *= 0.5f;
    if (i == M_UNEMBED)
      deviation *= 0.5f;
    fill(base->weights + m.offset, m.n_in, m.n_out, m.n_real, deviation, 1 + i);
  }
  return base;
}

void tnk__lm_base_free(tnk__lm_base_t *base) {
  if (base != NULL)
    tnk__free(base->alloc, base);
}
