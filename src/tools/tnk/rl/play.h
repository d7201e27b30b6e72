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
  int is_evaluation;      /* each one has the same tasks and seeds */
  const int *is_broke;    /* whether a limit of the run has been reached */
  const size_t *n_others; /* environments of others that run; or NULL */

  rl_episode_t *episodes; /* [n_groups * group_size], group by group */
  rl_episode_t **groups;  /* [n_groups], the first episode of each */
  size_t n;
  uint64_t n_plays; /* of this process */
  size_t n_begun, n_ended;
  size_t n_failed;
  size_t counts[RL_N_OUTCOMES];
  char why[1400]; /* how the last one has failed */
  int is_broken;  /* a record could not be read */
  int err;        /* why a key could not be created; or TNK_OK */
  int is_stopping;
  int is_playing; /* within rl_play_step() */
} rl_play_t;

/* The place of an environment. */
typedef struct {
  uint64_t step;    /* from 1 */
  uint64_t task;    /* the same in a group */
  uint64_t number;  /* of the seed */
  uint64_t attempt; /* that no other start of this environment has */
  size_t group, member;
} rl_place_t;

/* Returns the exit status; errors have been reported. Close it in any case,
 * after the gateway. */
int rl_play_open(rl_play_t *play);
/* Run all environments of a step, which counts from 1, or of the evaluation
 * after it. Returns the exit status; errors have been reported. A signal, the
 * --timeout of the command or a limit of the run stops the environments, and
 * the step is then incomplete. */
int rl_play_step(rl_play_t *play, uint64_t step);
/* Start one environment in an empty episode. Returns TNK_OK, or why it has no
 * key; it is not started then. */
int rl_play_start(const rl_play_t *play, rl_episode_t *episode,
                  const rl_place_t *place, rl_environment_cb ended, void *user);
/* With --verbose: show how an environment has ended. */
void rl_play_show(const rl_play_t *play, const rl_episode_t *episode);
/* Count the outcome of an environment, and keep why it has failed. */
void rl_play_count(rl_play_t *play, rl_episode_t *episode);
/* Set the counts to those of no environment. */
void rl_play_reset(rl_play_t *play);
/* Report the failures. Returns the exit status, which is not 0 if there are too
 * many of them. */
int rl_play_report(const rl_play_t *play, uint64_t step);
/* The mean reward of the environments that have not failed. */
double rl_play_reward(const rl_play_t *play);
void rl_play_close(rl_play_t *play);

#endif
