/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_STALE_H
#define TNK_TOOLS_TNK_RL_STALE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The age of samples in optimizer steps. The gateway counts the versions of its
 * weights, and records the version of each answer. All functions that can fail
 * return TNK_OK or TNK_ENOMEM.
 */

/* The age of samples whose weights are unknown, or belong to steps that were
 * lost with the model. */
#define RL_STALE UINT64_MAX

/* The optimizer steps in each version of the weights. Zeros are an empty one.
 */
typedef struct {
  uint64_t *steps; /* [n], by version - 1; RL_STALE: unknown or lost */
  size_t n, room;
} rl_history_t;

/* The answers of an episode by the version of their weights. Zeros are an empty
 * one. */
typedef struct {
  struct {
    uint32_t version;
    uint32_t n; /* answers */
  } * rows;
  size_t n, room;
} rl_mix_t;

typedef struct {
  uint64_t max;
  uint64_t sum; /* over the answers */
  uint64_t n;   /* answers */
} rl_age_t;

/* Note that `version` has the weights after `steps` steps. */
int rl_history_add(rl_history_t *history, uint32_t version, uint64_t steps);
/* The model continues after step `steps`. The later steps will be made again,
 * with other weights. */
void rl_history_rewind(rl_history_t *history, uint64_t steps);
/* The age of a version when it trains weights of `n_done` steps. */
uint64_t rl_history_age(const rl_history_t *history, uint32_t version,
                        uint64_t n_done);
void rl_history_free(rl_history_t *history);

/* Count an answer. */
int rl_mix_add(rl_mix_t *mix, uint32_t version);
/* Add the ages of the answers to `age`. If one of them is RL_STALE, so is
 * `max`. */
void rl_mix_age(const rl_mix_t *mix, rl_age_t *age, const rl_history_t *history,
                uint64_t n_done);
void rl_mix_free(rl_mix_t *mix);

#endif
