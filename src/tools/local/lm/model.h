/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_MODEL_H
#define TNK_TOOLS_LOCAL_LM_MODEL_H

#include "tools/local/lm/lm.h"

/*
 * The shapes of the model, and common declarations.
 *
 * Pre-norm layers over a residual stream of DIM floats, each with causal
 * attention and a squared-ReLU MLP, then a norm and the unembedding. There are
 * no rotations and no position embeddings: every head has a fixed bias for each
 * distance (see base.c).
 *
 * A weight matrix has n_in rows of n_out floats, y = x W. All matrices are in
 * one array, in the order of tnk__lm_matrix().
 */
enum {
  TNK__LM_DIM = 128,
  TNK__LM_LAYERS = 2,
  TNK__LM_HEADS = 4,
  TNK__LM_HEAD = TNK__LM_DIM / TNK__LM_HEADS,
  TNK__LM_FF = 4 * TNK__LM_DIM,
  TNK__LM_LOGITS = 272, /* the vocabulary, rounded up to a multiple of 16 */
  TNK__LM_BLOCK = 64,   /* positions in a block of keys, rows in a chunk */
  TNK__LM_WINDOW = 256, /* positions that a head sees, including its own */
  TNK__LM_MAX_BLOCKS = TNK__LM_MAX_CONTEXT / TNK__LM_BLOCK,
  /* Columns of a score matrix. The rows of a chunk and the keys that they see
   * may begin inside a block. */
  TNK__LM_KEYS = TNK__LM_WINDOW + 2 * TNK__LM_BLOCK
};

/* The matrices of a layer, in order, and their total number. */
enum { M_Q, M_K, M_V, M_O, M_UP, M_DOWN, M_PER_LAYER };
enum {
  M_UNEMBED = TNK__LM_LAYERS * M_PER_LAYER,
  TNK__LM_N_MATRICES = M_UNEMBED + 1,
  TNK__LM_LAYER_FLOATS =
      4 * TNK__LM_DIM * TNK__LM_DIM + 2 * TNK__LM_DIM * TNK__LM_FF,
  TNK__LM_N_WEIGHTS =
      TNK__LM_LAYERS * TNK__LM_LAYER_FLOATS + TNK__LM_DIM * TNK__LM_LOGITS
};

typedef enum { GROUP_ATTN, GROUP_MLP, GROUP_UNEMBED } tnk__lm_group_t;

typedef struct {
  tnk__lm_group_t group;
  size_t n_in;
  size_t n_out;  /* as stored */
  size_t n_real; /* without the padding of the unembedding */
  size_t offset; /* index of its first float in the weights */
} tnk__lm_matrix_t;

/* `index` is below TNK__LM_N_MATRICES. */
tnk__lm_matrix_t tnk__lm_matrix(size_t index);
/* Index of a layer's matrix in the weights. */
size_t tnk__lm_offset(size_t layer, size_t which);

struct tnk__lm_base {
  const tnk_allocator_t *alloc;
  float embed[TNK__LM_VOCAB][TNK__LM_DIM];
  /* A head's bias for a key, from the farthest visible key to the current one,
   * so that a row of keys reads it forwards. */
  float bias[TNK__LM_LAYERS][TNK__LM_HEADS][TNK__LM_WINDOW];
  size_t window[TNK__LM_LAYERS]; /* at most TNK__LM_WINDOW */
  float weights[TNK__LM_N_WEIGHTS];
};

struct tnk__lm_weights {
  const tnk_allocator_t *alloc;
  const tnk__lm_base_t *base;
  const float *w; /* TNK__LM_N_WEIGHTS floats; the base's, or after this */
};

#endif
