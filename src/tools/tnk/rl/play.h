/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_PLAY_H
#define TNK_TOOLS_TNK_RL_PLAY_H

#include "tools/tnk/ask/ask.h"
#include "tools/tnk/rl/episode.h"

/* The environments of a step, or of an evaluation. The caller sets the members
 * up to `is_broke`. */
typedef struct {
  cli_ask_t *ask;
  tnk_gateway_t *gateway;
  const char *command;
  const char *loss;
  size_t n_groups;
  size_t group_size;
  size_t n_parallel; /* that run at once, at most */
  size_t max_failed; /* of a step */
  uint64_t timeout_ms;
  uint64_t seed;
  int is_evaluation;   /* each one has the same tasks and seeds */
  const int *is_broke; /* whether a limit of the run has been reached */

  rl_episode_t *episodes; /* [n_groups * group_size], group by group */
  size_t n;
  uint64_t n_plays; /* of this process */
  size_t n_begun, n_ended;
  size_t n_failed;
  size_t counts[RL_N_OUTCOMES];
  rl_episode_t *failed; /* the last one; or NULL */
  int err;              /* why a key could not be created; or TNK_OK */
  int is_stopping;
} rl_play_t;

/* Returns the exit status; errors have been reported. Close it in any case,
 * after the gateway. */
int rl_play_open(rl_play_t *play);
/* Run all environments of a step, which counts from 1, or of the evaluation
 * after it. Returns the exit status; errors have been reported. A signal, the
 * --timeout of the command or a limit of the run stops the environments, and
 * the step is then incomplete. */
int rl_play_step(rl_play_t *play, uint64_t step);
/* The mean reward of the environments that have not failed. */
double rl_play_reward(const rl_play_t *play);
void rl_play_close(rl_play_t *play);

#endif
