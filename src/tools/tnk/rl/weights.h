/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_WEIGHTS_H
#define TNK_TOOLS_TNK_RL_WEIGHTS_H

#include "tnk/gateway.h"
#include "tnk/training.h"
#include "tools/tnk/learn/budget.h"
#include "tools/tnk/learn/sampler.h"

/* The weights that the gateway samples from. The caller sets the members up to
 * `n_before`. */
typedef struct {
  cli_ask_t *ask;
  tnk_gateway_t *gateway;
  const learn_budget_t *budget;
  size_t n_before; /* weights before the current ones that stay, because
                      environments may still sample from them */

  learn_sampler_t *samplers; /* [n_before + 1] */
  uint64_t n_given;
  uint32_t version; /* of the gateway */
  int is_priced;    /* the price of samples is known */
} rl_weights_t;

/* Returns the exit status; errors have been reported. */
int rl_weights_open(rl_weights_t *weights);
/* Save the weights of the model under a name that the run has not used, and let
 * the gateway sample from them. Returns the outcome, see
 * tools/tnk/learn/sampler.h. */
int rl_weights_give(rl_weights_t *weights, tnk_training_t *model,
                    const char *name);
/* Delete all of them, and wait for it. */
void rl_weights_end(rl_weights_t *weights);
void rl_weights_free(rl_weights_t *weights);

#endif
