#ifndef TNK_TASK_TRAIN_STEP_H
#define TNK_TASK_TRAIN_STEP_H

#include "task/train/training.h"

/* Starts an optimizer step. `optim` has passed its checks and is copied. */
tnk_promise_t *tnk__step_start(tnk_training_t *training,
                               const tnk_optim_t *optim);

#endif
