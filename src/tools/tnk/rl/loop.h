/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_LOOP_H
#define TNK_TOOLS_TNK_RL_LOOP_H

#include "tnk/ledger.h"
#include "tnk/training.h"
#include "tools/tnk/rl/batch.h"

/* A run. The caller sets the members up to `play`, whose `ask` and `gateway`
 * the loop uses too. */
typedef struct {
  tnk_ledger_t *ledger;
  tnk_training_t *model;
  const char *metrics;
  const char *loss;
  tnk_advantage_t advantages;
  double rate;
  uint64_t n_steps;
  uint64_t save_every;
  rl_play_t play;

  rl_batch_t batch;
  char *sampler;           /* path of the weights at the gateway; or NULL */
  tnk_promise_t *deleting; /* earlier ones; or NULL */
  uint64_t n_done;         /* steps whose results are in the metrics */
  uint64_t n_saved;        /* steps of the last state */
  double reward;           /* of the last step; or NaN */
} rl_loop_t;

/*
 * Train from step `first` to the end. A signal or the --timeout ends the loop
 * after the last complete step, and the state is saved. Returns the exit
 * status; errors have been reported.
 */
int rl_loop_run(rl_loop_t *loop, uint64_t first);
/* Free the memory, after the gateway and the service have been closed. */
void rl_loop_free(rl_loop_t *loop);

#endif
