#include "tools/local/lm/state.h"

#include <string.h>

#include "lib/base/alloc.h"

/* A snapshot copies the merged matrices. Sampling uses it while the model is
 * trained, and needs no factors. */

/* Weights with memory for their floats after the struct. */
typedef struct {
  tnk__lm_weights_t pub;
  float own[TNK__LM_N_WEIGHTS];
} owned_t;

tnk__lm_weights_t *tnk__lm_snapshot(const tnk__lm_t *lm) {
  owned_t *weights = tnk__malloc(lm->alloc, sizeof(*weights));

  if (weights == NULL)
    return NULL;
  weights->pub.alloc = lm->alloc;
  weights->pub.base = lm->base;
  weights->pub.w = weights->own;
  memcpy(weights->own, lm->w, sizeof(weights->own));
  return &weights->pub;
}

tnk__lm_weights_t *tnk__lm_base_weights(const tnk__lm_base_t *base,
                                        const tnk_allocator_t *alloc) {
  tnk__lm_weights_t *weights = tnk__malloc(alloc, sizeof(*weights));

  if (weights == NULL)
    return NULL;
  weights->alloc = alloc;
  weights->base = base;
  weights->w = base->weights;
  return weights;
}

void tnk__lm_weights_free(tnk__lm_weights_t *weights) {
  if (weights != NULL)
    tnk__free(weights->alloc, weights);
}
