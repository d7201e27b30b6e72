/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_BATCH_H
#define TNK_TOOLS_TNK_RL_BATCH_H

#include "tnk/rl.h"
#include "tools/tnk/rl/play.h"

/* The examples of a step, as views of its episodes. */
typedef struct {
  tnk_datum_t *data;
  size_t n, room;
  uint64_t n_tokens; /* of the model inputs */
  double n_sampled;  /* trained tokens */
  double reward;     /* mean of the episodes */
  size_t n_useful;   /* groups whose rewards differ */
  size_t n_rewarded; /* episodes */
} rl_batch_t;

/* Collect the examples of the rewarded episodes of a step, and set their
 * advantages from the rewards of the group. An episode counts the same however
 * many examples it has. Returns TNK_OK or TNK_ENOMEM. */
int rl_batch_make(rl_batch_t *batch, const rl_play_t *play,
                  tnk_advantage_t kind);
void rl_batch_free(rl_batch_t *batch);

#endif
