/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_REWARDS_H
#define TNK_TOOLS_TNK_LEARN_REWARDS_H

#include <jansson.h>

#include "lib/base/arena.h"
#include "tnk/data.h"
#include "tools/common/frame/cli.h"

/*
 * Advantages from rewards. Examples with the same "group", or without it with
 * the same prompt, form a group. The reward of an example is its member
 * "reward", or that of its last turn in a record of the gateway.
 */
typedef struct {
  uint64_t group;
  float reward; /* NaN: none */
  size_t at;    /* index of the example */
  size_t n;
  size_t first;              /* the first sampled token; n: none */
  unsigned char *is_sampled; /* [n], whether a token gets the advantage */
} learn_reward_t;

typedef struct {
  learn_reward_t *rows;
  size_t n, room;
  int64_t *turns; /* turns of the current session that were read */
  size_t n_turns, room_turns;
  char *session;
} learn_rewards_t;

/* The use of the advantages in the data. */
typedef enum {
  LEARN_ADVANTAGES_AUTO = 0, /* CENTERED with rewards, else GIVEN */
  LEARN_ADVANTAGES_GIVEN,
  LEARN_ADVANTAGES_CENTERED,
  LEARN_ADVANTAGES_NORMALIZED,
  LEARN_ADVANTAGES_LEAVE_ONE_OUT
} learn_advantages_t;

/* Read the reward and the group of example `at` from its line. Returns TNK_OK,
 * TNK_ENOMEM, or TNK_EINVAL with the reason in `why`. */
int learn_rewards_add(learn_rewards_t *rewards, tnk__arena_t *arena,
                      const json_t *line, const tnk_datum_t *datum, size_t at,
                      char *why, size_t n_why);
/* The reward of each example, by its index; NULL if there is no memory. Freed
 * by the caller. */
float *learn_rewards_list(const learn_rewards_t *rewards);
/* Set the advantages of `data`, whose tensors belong to the caller. *kind is
 * resolved. Returns the exit status; errors have been reported. */
int learn_rewards_apply(learn_rewards_t *rewards, const cli_t *cli,
                        tnk_datum_t *data, int *kind);
/* Set the advantage of the sampled tokens of an example to this, and that of
 * the others to 0. Its tensor belongs to the caller. */
void learn_rewards_set(tnk_datum_t *datum, const learn_reward_t *row,
                       float advantage);
void learn_rewards_free(learn_rewards_t *rewards);

#endif
