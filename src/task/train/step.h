#ifndef TNK_TASK_TRAIN_STEP_H
#define TNK_TASK_TRAIN_STEP_H

#include "task/train/training.h"

/* What an optimizer step is made with. Exactly one of the three is given, and
 * has passed its checks; NULL for all is Adam with its defaults. Copied. */
typedef struct {
  const tnk_adam_t *adam;
  const tnk_dimuon_t *dimuon;
  const char *json;
} tnk__step_params_t;

tnk_promise_t *tnk__step_start(tnk_training_t *training,
                               const tnk__step_params_t *params);

#endif
