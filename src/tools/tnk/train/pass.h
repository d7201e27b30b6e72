/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_PASS_H
#define TNK_TOOLS_TNK_TRAIN_PASS_H

#include "lib/base/arena.h"
#include "tnk/train.h"
#include "tools/tnk/train/data.h"
#include "tools/tnk/train/show.h"

typedef struct train_pass train_pass_t;

/* One of the passes whose gradients are added up. */
typedef struct {
  const train_pass_t *pass;
  size_t first, n; /* its data */
  /* Results of the loss of DPO, summed over the pairs. */
  double chosen, rejected; /* rewards */
  double n_right;
} train_part_t;

/* The passes of one step: what a method trains, and its metrics. */
struct train_pass {
  tnk_datum_t *data;       /* [n], memory for a batch */
  const float **reference; /* [n], memory for DPO */
  tnk__arena_t packed;     /* has the data that packed files have */
  size_t n;
  double weight;                /* of the data */
  double reward;                /* sum for RL; NaN: none */
  double teacher_kl, n_sampled; /* sums of distillation */
  train_part_t *parts;          /* [--passes] */
  tnk_promise_t **begun;        /* [--passes], memory */
  size_t n_parts;               /* fewer if there are fewer examples */
};

/* Call the passes of a step, and get a promise of all. The pass must not be
 * freed before the service is closed, unless the promise has settled. */
tnk_promise_t *train_pass_begin(tnk_training_t *model, train_pass_t *pass);
/* The loss of their results. Adds the method's metrics to the step. */
double train_pass_end(const tnk_promise_t *promise, const train_pass_t *pass,
                      train_step_t *step);
/* Call an evaluation. */
tnk_promise_t *train_eval_begin(tnk_training_t *model, const train_set_t *eval);
/* `reference` is NULL without DPO. */
double train_eval_end(const tnk_promise_t *promise, const train_set_t *eval,
                      const float **reference, train_step_t *step);

#endif
