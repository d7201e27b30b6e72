/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_REFERENCE_H
#define TNK_TOOLS_TNK_TRAIN_REFERENCE_H

#include "tnk/train.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/train/data.h"

/*
 * The logprobs of the model before the first step, for DPO. They are computed
 * once and stored in the folder of the run, because the weights of a resumed
 * run are no longer those of the reference.
 */
typedef struct {
  float *values; /* of all data; 0 for data that no step uses */
  size_t n_values;
  const float **train; /* by the data of the training set */
  const float **eval;
  uint64_t digest; /* of the lengths of the data */
} train_reference_t;

/* Read the logprobs from the file `path`, or compute them with `model` and
 * write the file. `first` is the number of steps in the weights of the model.
 * Returns the exit status; errors have been reported. Free the reference in any
 * case. */
int train_reference_open(train_reference_t *reference, cli_ask_t *ask,
                         const char *path, tnk_training_t *model,
                         const train_data_t *data, const tnk_plan_t *plan,
                         uint64_t first);
void train_reference_free(train_reference_t *reference);

#endif
