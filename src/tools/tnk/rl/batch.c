/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/batch.h"

#include <stdlib.h>
#include <string.h>

#include "lib/wire/data/data.h"
#include "tnk/error.h"

static int make_room(rl_batch_t *batch, size_t n) {
  tnk_datum_t *data;

  if (n <= batch->room)
    return TNK_OK;
  data = realloc(batch->data, n * sizeof(*data));
  if (data == NULL)
    return TNK_ENOMEM;
  batch->data = data;
  batch->room = n;
  return TNK_OK;
}

static void add(rl_batch_t *batch, const rl_episode_t *episode,
                float advantage) {
  for (size_t i = 0; i < episode->rewards.n; i++) {
    const learn_reward_t *row = &episode->rewards.rows[i];
    tnk_datum_t *datum = &episode->store.data[row->at];
    int is_whole;

    learn_rewards_set(datum, row, advantage);
    for (size_t t = 0; t < row->n; t++)
      batch->n_sampled += row->is_sampled[t];
    batch->n_tokens += tnk__input_tokens(&datum->input, &is_whole);
    batch->data[batch->n++] = *datum;
  }
}

static void add_group(rl_batch_t *batch, const rl_episode_t *episodes, size_t n,
                      tnk_advantage_t kind, float *advantages) {
  size_t n_rewarded = 0, at = 0;
  int is_useful = 0;

  for (size_t i = 0; i < n; i++)
    if (episodes[i].outcome == RL_REWARDED)
      advantages[n_rewarded++] = (float)episodes[i].reward;
  if (n_rewarded > 0)
    (void)tnk_rl_group_advantages(advantages, advantages, n_rewarded,
                                  n_rewarded, kind);
  for (size_t i = 0; i < n; i++) {
    if (episodes[i].outcome != RL_REWARDED)
      continue;
    is_useful |= advantages[at] < 0 || advantages[at] > 0;
    batch->reward += episodes[i].reward;
    batch->n_rewarded++;
    add(batch, &episodes[i], advantages[at++]);
  }
  batch->n_useful += (size_t)is_useful;
}

/* The examples of the rewarded episodes of a step. */
static size_t count(const rl_play_t *play) {
  size_t n = 0;

  for (size_t group = 0; group < play->n_groups; group++)
    for (size_t i = 0; i < play->group_size; i++)
      n += play->groups[group][i].rewards.n;
  return n;
}

int rl_batch_make(rl_batch_t *batch, const rl_play_t *play,
                  tnk_advantage_t kind) {
  float *advantages = calloc(play->group_size, sizeof(*advantages));
  const int err =
      advantages != NULL ? make_room(batch, count(play)) : TNK_ENOMEM;

  batch->n = batch->n_useful = batch->n_rewarded = 0;
  batch->n_tokens = 0;
  batch->n_sampled = batch->reward = 0;
  for (size_t group = 0; group < play->n_groups && err == TNK_OK; group++)
    add_group(batch, play->groups[group], play->group_size, kind, advantages);
  batch->reward /= (double)batch->n_rewarded;
  free(advantages);
  return err;
}

void rl_batch_free(rl_batch_t *batch) {
  free(batch->data);
  *batch = (rl_batch_t){0};
}
