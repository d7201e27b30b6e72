/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_OVERLAP_H
#define TNK_TOOLS_TNK_RL_OVERLAP_H

#include "tools/tnk/rl/play.h"
#include "tools/tnk/rl/stale.h"

/*
 * Environments that run while a step trains, for --max-off-policy. The groups
 * are in slots:
 *
 *     FREE -> RUNS -> READY -> TRAINS -> FREE
 *              ^        |
 *              '- AGAIN <
 *
 * A step takes the READY groups that began first. A group whose samples are too
 * old, or whose environments were stopped, is AGAIN: its task is run once more.
 * The loop of libuv starts the environments, so they run on during each wait.
 *
 * There are slots for the groups of `max_age` + 1 steps. If every group needs
 * the same time, the samples of a step are at most `max_age` steps old.
 */

typedef enum {
  RL_GROUP_FREE = 0,
  RL_GROUP_AGAIN,
  RL_GROUP_RUNS,
  RL_GROUP_READY,
  RL_GROUP_TRAINS
} rl_group_state_t;

struct rl_overlap;

typedef struct {
  struct rl_overlap *overlap;
  rl_group_state_t state;
  uint64_t task;
  uint64_t order;   /* of the first start of its task */
  uint64_t attempt; /* its number among all groups that were started */
  char name[129];   /* that an agent has given it */
  uint64_t changed_ms;
  size_t n_begun, n_ended, n_failed;
  int is_stopped;         /* an environment was stopped */
  rl_episode_t *episodes; /* [group_size] */
} rl_group_t;

/* The caller sets the members up to `serves`. */
typedef struct rl_overlap {
  rl_play_t *play;       /* how environments run; counts those of a step */
  const rl_play_t *eval; /* has precedence over the groups */
  uint64_t max_age;      /* steps */
  uint64_t n_steps;      /* of the run */
  int serves;            /* agents connect by themselves, see serve.h */

  rl_play_t late; /* counts failures until the next step is made */
  rl_group_t *slots;
  size_t n_slots;
  rl_history_t history;
  uint64_t n_done; /* steps in the weights that the next step updates */
  uint64_t next_task;
  uint64_t n_begun; /* groups */
  size_t n_running; /* environments */
  int is_active;    /* environments may be started */
  int is_gathering; /* within rl_overlap_gather() */
  int err;          /* no memory for the history; or TNK_OK */
  rl_age_t age;     /* of the groups of the step */
  uint64_t n_stale; /* groups that were left out since the last step */
} rl_overlap_t;

/* Returns the exit status; errors have been reported. Close it in any case,
 * after the gateway. */
int rl_overlap_open(rl_overlap_t *overlap);
/* The model has `n_done` steps, at the start or because it was restored. */
void rl_overlap_rewind(rl_overlap_t *overlap, uint64_t n_done);
/* The gateway samples with a version of the weights after `steps` steps. */
void rl_overlap_switched(rl_overlap_t *overlap, uint32_t version,
                         uint64_t steps);
/* Start environments, and run the loop until a step has its groups, which are
 * then the `groups` of `play`. Returns the exit status; errors have been
 * reported. After a signal, the --timeout or a limit of the run there are no
 * groups. */
int rl_overlap_gather(rl_overlap_t *overlap);
/* The step has trained its groups. */
void rl_overlap_trained(rl_overlap_t *overlap);
/* The step was not made, and its groups may be trained later. */
void rl_overlap_put_back(rl_overlap_t *overlap);
/* Stop all environments, and wait for their end. */
void rl_overlap_stop(rl_overlap_t *overlap);
/* For agents that connect by themselves. Returns whether sessions may begin
 * now. */
int rl_overlap_is_open(const rl_overlap_t *overlap);
/* Returns whether another group may begin; begin it. */
int rl_overlap_has_room(const rl_overlap_t *overlap);
rl_group_t *rl_overlap_begin_group(rl_overlap_t *overlap);
/* All episodes of the group have a reward. */
void rl_overlap_complete(rl_overlap_t *overlap, rl_group_t *group);
void rl_overlap_close(rl_overlap_t *overlap);

#endif
