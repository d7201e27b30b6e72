/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_DRIFT_H
#define TNK_TOOLS_TNK_LEARN_DRIFT_H

#include "tnk/data.h"
#include "tnk/observe.h"
#include "tnk/result.h"
#include "tnk/training.h"

enum { LEARN_N_DRIFT = 3 };

/* Sums over the sampled tokens of passes. */
typedef struct {
  double n;
  double k1, k2;   /* estimates of KL(sampler, model) */
  double surprise; /* -log q */
} learn_drift_t;

/* Add a pass of `data`. */
void learn_drift_add(learn_drift_t *drift, const tnk_promise_t *pass,
                     const tnk_datum_t *data, size_t n);
/* The means, as learn_drift(). */
size_t learn_drift_means(tnk_number_t *out, const learn_drift_t *drift);
/* Compute the distance of the trained model from the sampler, as means over the
 * sampled tokens: "kl" and "kl_k2", two estimates of KL(sampler, model), and
 * "entropy". Writes at most LEARN_N_DRIFT metrics and returns their number,
 * which is 0 if the service has returned no logprobs. */
size_t learn_drift(tnk_number_t *out, const tnk_promise_t *pass,
                   const tnk_datum_t *data, size_t n);

#endif
