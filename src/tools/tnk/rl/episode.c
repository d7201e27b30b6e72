/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/episode.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/tnk/text/lint.h"

/* ---- The start ---- */

void rl_episode_init(rl_episode_t *episode) {
  learn_store_init(&episode->store);
  episode->outcome = RL_UNDECIDED;
  episode->reward = NAN;
}

int rl_episode_start(rl_episode_t *episode) {
  rl_environment_t *e = &episode->environment;
  tnk_gateway_key_options_t limits = TNK_GATEWAY_KEY_OPTIONS_INIT;
  int err;

  limits.session = episode->session;
  limits.may_reward = TNK_YES;
  err =
      tnk_gateway_key_create(episode->gateway, &limits, e->key, sizeof(e->key),
                             episode->key_id, sizeof(episode->key_id));
  if (err != TNK_OK)
    return err;
  rl_episode_init(episode);
  rl_environment_start(e);
  return TNK_OK;
}

/* ---- The record ---- */

static int is_known(const learn_rewards_t *rewards, int64_t turn) {
  for (size_t i = 0; i < rewards->n_turns; i++)
    if (rewards->turns[i] == turn)
      return 1;
  return 0;
}

/* Take the reward and the version of a turn that no earlier example has. */
static int take_turn(rl_episode_t *episode, const json_t *turn) {
  int64_t number = 0, version = 0;
  double reward;

  if (tnk__json_get_int(turn, "turn", 0, INT64_MAX, &number) !=
          TNK__JSON_FOUND ||
      is_known(&episode->rewards, number))
    return TNK_OK;
  if (tnk__json_get_double(turn, "reward", &reward) == TNK__JSON_FOUND)
    episode->reward =
        isnan(episode->reward) ? reward : episode->reward + reward;
  (void)tnk__json_get_int(turn, "version", 0, UINT32_MAX, &version);
  return rl_mix_add(&episode->answers, (uint32_t)version);
}

/* The rewards are removed from the turns: the reward of the episode is that of
 * all its examples. */
static int take_turns(rl_episode_t *episode, const json_t *line) {
  const json_t *turns = NULL;
  int err = TNK_OK;

  if (tnk__json_get_array(line, "turns", &turns) != TNK__JSON_FOUND)
    return TNK_OK;
  for (size_t i = 0; i < json_array_size(turns) && err == TNK_OK; i++) {
    json_t *turn = json_array_get(turns, i);

    err = take_turn(episode, turn);
    json_object_del(turn, "reward");
  }
  return err;
}

static int on_line(void *user, const char *line, size_t n) {
  rl_episode_t *episode = user;
  learn_store_t *store = &episode->store;
  tnk__arena_t arena;
  tnk_datum_t datum;
  json_t *json = NULL;
  int err;

  tnk__arena_init(&arena, tnk__allocator_default(), SIZE_MAX / 2);
  err = cli_lint_line(&datum, &arena, &json, line, n, episode->loss,
                      episode->why, sizeof(episode->why));
  if (err == TNK_OK)
    err = learn_store_add(store, &datum);
  if (err == TNK_OK)
    err = take_turns(episode, json);
  if (err == TNK_OK)
    err = learn_rewards_add(&episode->rewards, &store->arena, json,
                            &store->data[store->n - 1], store->n - 1,
                            episode->why, sizeof(episode->why));
  json_decref(json);
  tnk__arena_deinit(&arena);
  return err;
}

/* ---- The reward ---- */

/* Read a number that is the whole text. */
static int read_number(const char *text, double *out) {
  char *end;

  if (*text == '\0' || strchr("+-.0123456789", *text) == NULL)
    return 0;
  *out = strtod(text, &end);
  while (isspace((unsigned char)*end))
    end++;
  return *end == '\0' && isfinite(*out) && isfinite((double)(float)*out);
}

/* The reward is the last line of the output, unless the environment has posted
 * one. */
static void read_output(rl_episode_t *episode) {
  char *line = rl_tail_lines(&episode->environment.said, 1);

  while (isspace((unsigned char)*line))
    line++;
  if (read_number(line, &episode->reward)) {
    /* The record then has it too. */
    (void)tnk_gateway_reward(episode->gateway, episode->session, NULL, 0,
                             episode->reward);
    return;
  }
  episode->outcome = RL_FAILED_UNREWARDED;
  if (*line == '\0')
    snprintf(episode->why, sizeof(episode->why),
             "posted no reward and printed none");
  else
    snprintf(episode->why, sizeof(episode->why),
             "posted no reward, and its last line is no number: %.200s", line);
}

static void read_record(rl_episode_t *episode) {
  const int err = tnk_gateway_datums(episode->gateway, episode->session, 0,
                                     on_line, episode);

  episode->outcome = RL_REWARDED;
  if (err != TNK_OK && err != TNK_ENOTFOUND) {
    episode->is_broken = 1;
    if (episode->why[0] == '\0')
      snprintf(episode->why, sizeof(episode->why), "%s", tnk_strerror(err));
  } else if (episode->store.n == 0) {
    episode->outcome = RL_FAILED_SILENT;
    snprintf(episode->why, sizeof(episode->why),
             "ended without a sample of the model");
  } else if (isnan(episode->reward)) {
    read_output(episode);
  }
}

void rl_episode_end(rl_episode_t *episode) {
  static const rl_outcome_t outcomes[] = {
      [RL_CRASHED] = RL_FAILED_CRASHED,
      [RL_TIMED_OUT] = RL_FAILED_TIMED_OUT,
      [RL_NOT_STARTED] = RL_FAILED_START,
      [RL_STOPPED] = RL_UNDECIDED,
  };
  const rl_environment_t *e = &episode->environment;

  (void)tnk_gateway_key_revoke(episode->gateway, episode->key_id);
  if (e->end == RL_EXITED) {
    read_record(episode);
    return;
  }
  episode->outcome = outcomes[e->end];
  snprintf(episode->why, sizeof(episode->why), "%s", e->why);
}

void rl_episode_free(rl_episode_t *episode) {
  rl_mix_free(&episode->answers);
  learn_rewards_free(&episode->rewards);
  learn_store_free(&episode->store);
}
