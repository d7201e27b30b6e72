/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/overlap.h"

#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"

int rl_overlap_open(rl_overlap_t *o) {
  rl_play_t *play = o->play;

  o->late.ask = play->ask;
  o->n_slots = (size_t)(o->max_age + 1) * play->n_groups;
  o->slots = calloc(o->n_slots, sizeof(*o->slots));
  play->groups = calloc(play->n_groups, sizeof(rl_episode_t *));
  if (o->slots == NULL || play->groups == NULL)
    return cli_fail(play->ask->cli, CLI_EXIT_FAILED, "out of memory");
  for (size_t i = 0; i < o->n_slots; i++) {
    o->slots[i].overlap = o;
    o->slots[i].episodes = calloc(play->group_size, sizeof(rl_episode_t));
    if (o->slots[i].episodes == NULL)
      return cli_fail(play->ask->cli, CLI_EXIT_FAILED, "out of memory");
  }
  return CLI_EXIT_OK;
}

/* ---- Groups ---- */

/* Forget the environments of a group, which have ended. */
static void empty(const rl_overlap_t *o, rl_group_t *group,
                  rl_group_state_t state) {
  for (size_t i = 0; i < o->play->group_size; i++)
    rl_episode_free(&group->episodes[i]);
  memset(group->episodes, 0, o->play->group_size * sizeof(rl_episode_t));
  group->n_begun = group->n_ended = group->n_failed = 0;
  group->is_stopped = 0;
  group->state = state;
}

static size_t count(const rl_overlap_t *o, rl_group_state_t state) {
  size_t n = 0;

  for (size_t i = 0; i < o->n_slots; i++)
    n += o->slots[i].state == state;
  return n;
}

/* The group in a state whose task began first; or NULL. */
static rl_group_t *first(const rl_overlap_t *o, rl_group_state_t state) {
  rl_group_t *found = NULL;

  for (size_t i = 0; i < o->n_slots; i++)
    if (o->slots[i].state == state &&
        (found == NULL || o->slots[i].order < found->order))
      found = &o->slots[i];
  return found;
}

/* Add the ages of all samples that a group would train. */
static void add_age(const rl_overlap_t *o, const rl_group_t *group,
                    rl_age_t *age) {
  for (size_t i = 0; i < group->n_begun; i++)
    if (group->episodes[i].outcome == RL_REWARDED)
      rl_mix_age(&group->episodes[i].answers, age, &o->history, o->n_done);
}

/* Count the environments of a group as those of the current step. */
static void settle(const rl_overlap_t *o, const rl_group_t *group) {
  for (size_t i = 0; i < group->n_begun; i++)
    rl_play_count(o->play, &group->episodes[i]);
  o->play->n += group->n_begun;
}

/* Leave out a group that is too old for the next step. Its failures count, so
 * that a program that is always late and fails does not go unnoticed. */
static void check_age(rl_overlap_t *o, rl_group_t *group) {
  rl_age_t age = {0};

  add_age(o, group, &age);
  if (age.max <= o->max_age)
    return;
  settle(o, group);
  /* Nobody but the agents themselves can run their tasks again. */
  empty(o, group, o->serves ? RL_GROUP_FREE : RL_GROUP_AGAIN);
  o->n_stale++;
}

/* ---- Environments ---- */

/* A step in which more than --max-failed have failed is certain: the groups
 * that are not trained are those of at most `max_age` + 1 steps. */
static int has_failed(const rl_overlap_t *o) {
  size_t n = o->play->n_failed + o->late.n_failed;

  for (size_t i = 0; i < o->n_slots; i++)
    if (o->slots[i].state == RL_GROUP_RUNS ||
        o->slots[i].state == RL_GROUP_READY)
      n += o->slots[i].n_failed;
  return n > (size_t)(o->max_age + 1) * o->play->max_failed;
}

static int must_stop(const rl_overlap_t *o) {
  return cli_ask_is_over(o->play->ask) || *o->play->is_broke ||
         o->play->err != TNK_OK || o->err != TNK_OK || o->play->is_broken ||
         o->late.is_broken || has_failed(o);
}

/* Returns whether a group has this task. */
static int is_taken(const rl_overlap_t *o, uint64_t task) {
  for (size_t i = 0; i < o->n_slots; i++)
    if (o->slots[i].state != RL_GROUP_FREE && o->slots[i].task == task)
      return 1;
  return 0;
}

/* The groups that the rest of the run needs, at most. */
static size_t most_groups(const rl_overlap_t *o) {
  const uint64_t n_left = o->n_steps - o->n_done;

  return n_left <= o->max_age ? (size_t)n_left * o->play->n_groups : o->n_slots;
}

int rl_overlap_is_open(const rl_overlap_t *o) {
  return o->is_active && (o->max_age > 0 || o->is_gathering) && !must_stop(o);
}

/* Returns whether the gateway has the weights of the last step. A group that
 * begins before is a step older when its turn comes. */
static int is_current(const rl_overlap_t *o) {
  const size_t n = o->history.n;

  return n > 0 && o->history.steps[n - 1] != RL_STALE &&
         o->history.steps[n - 1] >= o->n_done;
}

int rl_overlap_has_room(const rl_overlap_t *o) {
  return is_current(o) && o->n_slots - count(o, RL_GROUP_FREE) < most_groups(o);
}

rl_group_t *rl_overlap_begin_group(rl_overlap_t *o) {
  rl_group_t *group = first(o, RL_GROUP_AGAIN);

  if (!is_current(o))
    return NULL;
  if (group == NULL) {
    if (!rl_overlap_has_room(o))
      return NULL;
    group = first(o, RL_GROUP_FREE);
    while (is_taken(o, o->next_task))
      o->next_task++;
    group->task = o->next_task++;
    group->order = o->n_begun;
  }
  group->attempt = ++o->n_begun;
  group->state = RL_GROUP_RUNS;
  return group;
}

/* The group of the next environment; NULL if there is none to start. */
static rl_group_t *next_group(rl_overlap_t *o) {
  for (size_t i = 0; i < o->n_slots; i++)
    if (o->slots[i].state == RL_GROUP_RUNS && !o->slots[i].is_stopped &&
        o->slots[i].n_begun < o->play->group_size)
      return &o->slots[i];
  return rl_overlap_begin_group(o);
}

static void on_ended(rl_environment_t *e);

static void begin(rl_overlap_t *o, rl_group_t *group) {
  const size_t member = group->n_begun++;
  const rl_place_t place = {
      /* The step that would train the task if none was overtaken. */
      .step = group->task / o->play->n_groups + 1,
      .task = group->task,
      .number = group->task * o->play->group_size + member,
      .attempt = group->attempt,
      .group = (size_t)(group->task % o->play->n_groups),
      .member = member,
  };

  o->play->err =
      rl_play_start(o->play, &group->episodes[member], &place, on_ended, group);
  if (o->play->err == TNK_OK)
    o->n_running++;
  else
    group->n_begun--;
}

/* Start as many environments as may run. */
static void fill(rl_overlap_t *o) {
  const size_t n_eval = o->eval->is_playing ? o->eval->n - o->eval->n_ended : 0;
  rl_group_t *group;

  while (!o->serves && o->is_active && !must_stop(o) &&
         o->n_running + n_eval < o->play->n_parallel &&
         (group = next_group(o)) != NULL)
    begin(o, group);
}

static void end_group(rl_overlap_t *o, rl_group_t *group) {
  if (group->is_stopped) {
    empty(o, group, RL_GROUP_AGAIN);
    return;
  }
  group->state = RL_GROUP_READY;
  /* While a step trains, the counts are those of this step. */
  if (o->is_gathering)
    check_age(o, group);
}

void rl_overlap_complete(rl_overlap_t *o, rl_group_t *group) {
  group->n_begun = o->play->group_size;
  end_group(o, group);
}

static void on_ended(rl_environment_t *e) {
  rl_group_t *group = e->user;
  rl_overlap_t *o = group->overlap;
  rl_episode_t *episode = &group->episodes[e->member];

  rl_episode_end(episode);
  rl_play_show(o->play, episode);
  o->n_running--;
  group->n_ended++;
  group->is_stopped |= episode->outcome == RL_UNDECIDED;
  group->n_failed += episode->outcome != RL_UNDECIDED &&
                     (episode->outcome != RL_REWARDED || episode->is_broken);
  if (group->n_ended ==
      (group->is_stopped ? group->n_begun : o->play->group_size))
    end_group(o, group);
  fill(o);
}

void rl_overlap_stop(rl_overlap_t *o) {
  o->is_active = 0;
  for (size_t i = 0; i < o->n_slots && !o->serves; i++) {
    rl_group_t *group = &o->slots[i];

    if (group->state != RL_GROUP_RUNS)
      continue;
    group->is_stopped |= group->n_begun < o->play->group_size;
    if (group->n_ended == group->n_begun)
      end_group(o, group);
    for (size_t k = 0; k < group->n_begun; k++)
      rl_environment_stop(&group->episodes[k].environment);
  }
  while (o->n_running > 0 && !o->serves)
    uv_run(&o->play->ask->loop, UV_RUN_ONCE);
}

/* ---- Steps ---- */

void rl_overlap_rewind(rl_overlap_t *o, uint64_t n_done) {
  o->n_done = n_done;
  o->next_task = n_done * o->play->n_groups;
  rl_history_rewind(&o->history, n_done);
}

void rl_overlap_switched(rl_overlap_t *o, uint32_t version, uint64_t steps) {
  o->err = rl_history_add(&o->history, version, steps);
  fill(o);
}

/* Count the failures of agents that connect by themselves. */
static void count_late(rl_overlap_t *o) {
  rl_play_t *play = o->play;

  for (size_t i = 0; i < RL_N_OUTCOMES; i++)
    play->counts[i] += o->late.counts[i];
  play->n_failed += o->late.n_failed;
  play->n += o->late.n;
  play->is_broken |= o->late.is_broken;
  if (o->late.n > 0)
    memcpy(play->why, o->late.why, sizeof(play->why));
  rl_play_reset(&o->late);
  o->late.n = 0;
}

/* Take the groups of the next step. */
static void take(rl_overlap_t *o) {
  rl_play_t *play = o->play;

  count_late(o);
  o->age = (rl_age_t){0};
  for (size_t i = 0; i < play->n_groups; i++) {
    rl_group_t *group = first(o, RL_GROUP_READY);

    group->state = RL_GROUP_TRAINS;
    play->groups[i] = group->episodes;
    add_age(o, group, &o->age);
    settle(o, group);
  }
}

/* Stop, and report why there is no step. */
static int give_up(rl_overlap_t *o) {
  const int is_over = cli_ask_is_over(o->play->ask) || *o->play->is_broke;

  o->is_gathering = 0;
  count_late(o);
  for (size_t i = 0; i < o->n_slots && !is_over; i++)
    if (o->slots[i].state == RL_GROUP_RUNS ||
        o->slots[i].state == RL_GROUP_READY)
      settle(o, &o->slots[i]);
  rl_overlap_stop(o);
  if (is_over)
    return CLI_EXIT_OK;
  if (o->err != TNK_OK)
    return cli_fail(o->play->ask->cli, CLI_EXIT_FAILED, "%s",
                    tnk_strerror(o->err));
  return rl_play_report(o->play, o->n_done + 1);
}

int rl_overlap_gather(rl_overlap_t *o) {
  o->is_active = o->is_gathering = 1;
  for (size_t i = 0; i < o->n_slots; i++)
    if (o->slots[i].state == RL_GROUP_READY)
      check_age(o, &o->slots[i]);
  fill(o);
  while (!must_stop(o) && count(o, RL_GROUP_READY) < o->play->n_groups)
    uv_run(&o->play->ask->loop, UV_RUN_ONCE);
  if (must_stop(o))
    return give_up(o);
  o->is_gathering = 0;
  take(o);
  return rl_play_report(o->play, o->n_done + 1);
}

/* Begin the counts of the next step. */
static void reset(rl_overlap_t *o) {
  rl_play_reset(o->play);
  o->play->n = 0;
  o->n_stale = 0;
}

void rl_overlap_trained(rl_overlap_t *o) {
  for (size_t i = 0; i < o->n_slots; i++)
    if (o->slots[i].state == RL_GROUP_TRAINS)
      empty(o, &o->slots[i], RL_GROUP_FREE);
  o->n_done++;
  reset(o);
}

void rl_overlap_put_back(rl_overlap_t *o) {
  for (size_t i = 0; i < o->n_slots; i++)
    if (o->slots[i].state == RL_GROUP_TRAINS)
      o->slots[i].state = RL_GROUP_READY;
  reset(o);
}

void rl_overlap_close(rl_overlap_t *o) {
  for (size_t i = 0; i < o->n_slots && o->slots != NULL; i++) {
    if (o->slots[i].episodes != NULL)
      empty(o, &o->slots[i], RL_GROUP_FREE);
    free(o->slots[i].episodes);
  }
  free(o->slots);
  rl_history_free(&o->history);
  *o = (rl_overlap_t){0};
}
