/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_LOOP_H
#define TNK_TOOLS_TNK_RL_LOOP_H

#include "tnk/ledger.h"
#include "tnk/observe.h"
#include "tnk/training.h"
#include "tools/tnk/learn/budget.h"
#include "tools/tnk/learn/loss.h"
#include "tools/tnk/learn/optimizer.h"
#include "tools/tnk/rl/batch.h"
#include "tools/tnk/rl/overlap.h"
#include "tools/tnk/rl/weights.h"

/* A run. The caller sets the members up to `eval`. The loop uses the `ask` and
 * the `gateway` of `play` too. */
typedef struct {
  tnk_ledger_t *ledger;
  tnk_training_t *model;
  const char *metrics;
  const char *run; /* folder */
  const learn_loss_t *loss;
  const learn_optimizer_t *optimizer;
  tnk_advantage_t advantages;
  double rate;
  uint64_t n_steps;
  uint64_t save_every;
  learn_budget_t budget;
  uint64_t eval_every; /* 0: only after the last step */
  rl_play_t play;
  rl_play_t eval;   /* without a command: no evaluation */
  uint64_t max_age; /* 0: environments wait while a step trains */
  int serves;       /* agents connect by themselves, for --url */

  rl_batch_t batch;
  learn_used_t most;     /* the use of the largest step of this process */
  uint64_t saved_tokens; /* the use that the ledger knows */
  rl_weights_t weights;  /* at the gateway */
  uint64_t n_given;      /* steps in them; UINT64_MAX: unknown */
  int overlaps;          /* `overlap` has the groups, and not `play` */
  rl_overlap_t overlap;
  uint64_t n_done;    /* steps whose results are in the metrics */
  uint64_t n_saved;   /* steps of the last state */
  double reward;      /* of the last step; or NaN */
  double eval_reward; /* of its evaluation; or NaN */
  int is_in_doubt;    /* the result of a save was lost with the model */
  int is_broke;       /* LEARN_AFFORDABLE, or why a limit ends the run */
} rl_loop_t;

/* Open what runs environments. Returns the exit status; errors have been
 * reported. Call rl_loop_free() in any case. */
int rl_loop_open(rl_loop_t *loop, tnk_gateway_t *gateway);
/*
 * Train from step `first` to the end. A signal, the --timeout or a limit ends
 * the loop after the last complete step, and the state is saved. Returns the
 * exit status; errors have been reported.
 */
int rl_loop_run(rl_loop_t *loop, uint64_t first);
/* A tnk_observe_cb for the service: notices an operation that a limit of the
 * run has refused. `user` is the loop. */
void rl_loop_observe(const tnk_event_t *event, void *user);
/* Free the memory, after the gateway and the service have been closed. */
void rl_loop_free(rl_loop_t *loop);

#endif
