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
  size_t n_most;
  tnk_datum_t *data;       /* [n_most] */
  const float **reference; /* [n_most], for DPO */
  tnk__arena_t arena;      /* has the data that were made for this step */
  /* The library reads the data, and does not copy them. */
  size_t n_lent; /* parts that it may still read */
  int is_left;   /* it is freed with the last one */
  size_t n;
  double weight;                /* of the data, unless they are sampled */
  double reward;                /* sum for RL; NaN: none */
  double teacher_kl, n_sampled; /* sums of distillation */
  train_part_t *parts;          /* [--passes] */
  tnk_promise_t **begun;        /* [--passes] */
  size_t n_parts;               /* fewer if there are fewer examples */
};

/* Make one for at most `n_most` data. Returns NULL without memory. */
train_pass_t *train_pass_new(size_t n_most);
/* Get an empty pass for another step: the same one, or a new one while the
 * library may still read its data. Returns NULL without memory; the old one
 * then still exists. */
train_pass_t *train_pass_renew(train_pass_t *pass);
/* Free it as soon as the library does not read it any more. NULL does
 * nothing. */
void train_pass_free(train_pass_t *pass);
/* Free the data that were made for its step, if the library does not read them
 * any more. */
void train_pass_clear(train_pass_t *pass);

/* Call the passes of a step, and get a promise of all. The library may read the
 * data for longer than the promise is pending. */
tnk_promise_t *train_pass_begin(tnk_training_t *model, train_pass_t *pass);
/* The loss of their results. Adds the method's metrics to the step. */
double train_pass_end(const tnk_promise_t *promise, const train_pass_t *pass,
                      train_step_t *step);
/* Call an evaluation. It copies its data. */
tnk_promise_t *train_eval_begin(tnk_training_t *model, const train_set_t *eval);
/* `reference` is NULL without DPO. */
double train_eval_end(const tnk_promise_t *promise, const train_set_t *eval,
                      const float **reference, train_step_t *step);

#endif
