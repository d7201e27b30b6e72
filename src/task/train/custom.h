#ifndef TNK_TASK_TRAIN_CUSTOM_H
#define TNK_TASK_TRAIN_CUSTOM_H

#include "task/train/pass.h"

/*
 * Start a pass with a loss of the caller's: a forward pass, the function, a
 * backward pass with its gradients as weights. It keeps its turn throughout.
 * Protocol: training, forward_backward_custom.
 */
tnk_promise_t *tnk__custom_start(tnk_training_t *training,
                                 const tnk_datum_t *data, size_t n_data,
                                 tnk_custom_loss_cb loss, void *user,
                                 const tnk_pass_options_t *options);

#endif
