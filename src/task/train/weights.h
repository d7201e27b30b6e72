#ifndef TNK_TASK_TRAIN_WEIGHTS_H
#define TNK_TASK_TRAIN_WEIGHTS_H

#include "task/train/training.h"

/* Saves, loads and the end of a model: operations of one request each. All
 * arguments have passed their checks and are copied. */

typedef enum {
  TNK__SAVE_STATE,
  TNK__SAVE_SAMPLER,
  TNK__SAVE_EXTERNAL
} tnk__save_kind_t;

tnk_promise_t *tnk__save_start(tnk_training_t *training, tnk__save_kind_t kind,
                               const char *name,
                               const tnk_save_options_t *options);
tnk_promise_t *tnk__save_ephemeral_start(tnk_training_t *training,
                                         tnk_sampling_kind_t kind,
                                         const tnk_sampling_options_t *options);
/* Load a saved state; access_token may be NULL. */
tnk_promise_t *tnk__load_start(tnk_training_t *training, const char *path,
                               int with_optimizer, const char *access_token);
/* Load a state into a new client, as the last step of making it, then resolve
 * `promise`, which is taken over, with the client; if it fails, the client is
 * closed. */
void tnk__load_into_new(tnk_training_t *training, const char *path,
                        int with_optimizer, const char *access_token,
                        tnk_promise_t *promise);
tnk_promise_t *tnk__unload_start(tnk_training_t *training);

#endif
