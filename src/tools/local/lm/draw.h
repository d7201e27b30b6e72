/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_DRAW_H
#define TNK_TOOLS_LOCAL_LM_DRAW_H

#include "tools/local/lm/lm.h"
#include "tools/local/lm/math.h"

/* Selects tokens from a row of logits. */

typedef struct {
  double temperature; /* 0: the most likely token */
  int64_t top_k;      /* below 1: off */
  double top_p;       /* 1: off */
  int32_t n_vocab;    /* see vocab.h; 0: TNK__LM_VOCAB */
} tnk__lm_pick_t;

/* Draw one token. Equal logits are ordered by id; in a wider vocabulary first
 * by class. */
int32_t tnk__lm_pick(const float *logits, const tnk__lm_pick_t *how,
                     tnk__lm_rng_t *rng);
/* Find the `k` most likely ids, best first, with their logprobs. k is at most
 * TNK__LM_VOCAB. */
void tnk__lm_best(const float *logits, int32_t n_vocab, size_t k, int32_t *ids,
                  float *logprobs);
/* The logprob of one id, as a pass reports it. */
float tnk__lm_logprob(const float *logits, int32_t n_vocab, int32_t id);

#endif
