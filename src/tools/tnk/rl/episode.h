/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_EPISODE_H
#define TNK_TOOLS_TNK_RL_EPISODE_H

#include "tnk/gateway.h"
#include "tools/tnk/learn/rewards.h"
#include "tools/tnk/learn/store.h"
#include "tools/tnk/rl/environment.h"
#include "tools/tnk/rl/stale.h"

/* The result of an environment. */
typedef enum {
  RL_REWARDED = 0,
  RL_FAILED_CRASHED,
  RL_FAILED_TIMED_OUT,
  RL_FAILED_START,
  RL_FAILED_UNREWARDED, /* it has set no reward */
  RL_FAILED_SILENT,     /* it has sampled nothing */
  RL_N_OUTCOMES,
  RL_UNDECIDED /* not ended, or stopped by this command */
} rl_outcome_t;

/* One environment and what the gateway has recorded of it. */
typedef struct {
  rl_environment_t environment;
  tnk_gateway_t *gateway;
  const char *loss;
  char session[96];
  char key_id[TNK_GATEWAY_KEY_ID_SIZE];
  uint64_t deadline_ms; /* of an agent that connects by itself */
  rl_outcome_t outcome;
  int is_broken; /* it could not be read; `why` is an error of this command */
  char why[512];
  double reward;
  learn_store_t store; /* its examples, one for each branch */
  learn_rewards_t rewards;
  rl_mix_t answers; /* by their weights */
} rl_episode_t;

/* Begin an episode of zeros, whose outcome is not decided. */
void rl_episode_init(rl_episode_t *episode);
/* Create a key and start the environment, whose members the caller has set
 * except for the key. Returns TNK_OK, or an error of tnk_gateway_key_create();
 * nothing is then started. */
int rl_episode_start(rl_episode_t *episode);
/* After the environment has ended: end its key, and read its reward and its
 * examples. Sets the outcome. */
void rl_episode_end(rl_episode_t *episode);
/* Free the examples. Allowed for an episode of zeros. */
void rl_episode_free(rl_episode_t *episode);

#endif
