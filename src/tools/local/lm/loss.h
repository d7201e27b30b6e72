#ifndef TNK_TOOLS_LOCAL_LM_LOSS_H
#define TNK_TOOLS_LOCAL_LM_LOSS_H

#include "tools/local/lm/lm.h"

/* Computes the losses from the logprobs of the targets. All arrays are
 * borrowed.
 */
typedef struct {
  const tnk__lm_loss_t *loss;
  const tnk__lm_datum_t *datum;
  const float *logprobs; /* N x n_targets */
  double whole;          /* gspo's ratio of the whole sequence */
  double sum;            /* the loss */
} tnk__lm_terms_t;

tnk__lm_terms_t tnk__lm_terms(const tnk__lm_loss_t *loss,
                              const tnk__lm_datum_t *datum,
                              const float *logprobs);
/* The derivative of the loss with respect to logprob i. */
float tnk__lm_slope(const tnk__lm_terms_t *terms, size_t i);

#endif
