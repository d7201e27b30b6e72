#ifndef TNK_LOCAL_LM_LOSS_H
#define TNK_LOCAL_LM_LOSS_H

#include "local/lm.h"

/*
 * The losses, from the logprobs of the targets alone. `slope` receives the
 * derivative of the loss by each logprob (N x n_targets); the loss is
 * returned.
 */
double tnk__lm_loss(const tnk__lm_loss_t *loss, const tnk__lm_datum_t *datum,
                    const float *logprobs, float *slope);

#endif
