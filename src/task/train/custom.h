#ifndef TNK_TASK_TRAIN_CUSTOM_H
#define TNK_TASK_TRAIN_CUSTOM_H

#include "task/train/pass.h"

/*
 * A loss of the caller: a forward pass, the caller's function, a backward pass
 * with its gradients as weights. All under one turn. Protocol: training,
 * forward_backward_custom.
 */
tnk_promise_t *tnk__custom_start(tnk_training_t *training,
                                 const tnk_datum_t *data, size_t n_data,
                                 tnk_custom_loss_cb loss, void *user,
                                 const tnk_pass_options_t *options);

#endif
