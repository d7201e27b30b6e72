/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/play.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tools/tnk/learn/seed.h"

/* Lines of the output of a failed environment in a message. */
enum { N_LINES = 3 };

int rl_play_open(rl_play_t *play) {
  play->n = play->n_groups * play->group_size;
  play->episodes = calloc(play->n, sizeof(*play->episodes));
  play->groups = calloc(play->n_groups, sizeof(rl_episode_t *));
  if (play->episodes == NULL || play->groups == NULL)
    return cli_fail(play->ask->cli, CLI_EXIT_FAILED, "out of memory");
  for (size_t i = 0; i < play->n_groups; i++)
    play->groups[i] = &play->episodes[i * play->group_size];
  return CLI_EXIT_OK;
}

void rl_play_reset(rl_play_t *play) {
  memset(play->counts, 0, sizeof(play->counts));
  play->n_failed = 0;
  play->is_broken = 0;
}

static void clear(rl_play_t *play) {
  for (size_t i = 0; i < play->n; i++)
    rl_episode_free(&play->episodes[i]);
  memset(play->episodes, 0, play->n * sizeof(*play->episodes));
  rl_play_reset(play);
  play->n_begun = play->n_ended = 0;
  play->err = TNK_OK;
  play->is_stopping = 0;
}

void rl_play_close(rl_play_t *play) {
  if (play->episodes != NULL)
    clear(play);
  free(play->episodes);
  free(play->groups);
  play->episodes = NULL;
  play->groups = NULL;
}

/* ---- Environments ---- */

/* Describe the failure of an environment, with the end of its output. */
static void explain(rl_play_t *play, rl_episode_t *episode) {
  const char *lines = rl_tail_lines(&episode->environment.complained, N_LINES);

  snprintf(play->why, sizeof(play->why), "The last one %s%s%.700s",
           episode->why, *lines != '\0' ? ": " : "", lines);
}

void rl_play_show(const rl_play_t *play, const rl_episode_t *episode) {
  const cli_t *cli = play->ask->cli;

  if (cli->verbose && episode->outcome == RL_REWARDED)
    cli_note(cli, "%s: reward %g", episode->session, episode->reward);
  else if (cli->verbose)
    cli_note(cli, "%s: %s", episode->session,
             episode->outcome == RL_UNDECIDED ? "stopped" : episode->why);
}

void rl_play_count(rl_play_t *play, rl_episode_t *episode) {
  if (episode->outcome == RL_UNDECIDED)
    return;
  play->counts[episode->outcome]++;
  if (episode->outcome == RL_REWARDED && !episode->is_broken)
    return;
  play->n_failed++;
  if (episode->is_broken)
    snprintf(play->why, sizeof(play->why), "%s", episode->why);
  else if (!play->is_broken)
    explain(play, episode);
  play->is_broken |= episode->is_broken;
}

int rl_play_start(const rl_play_t *play, rl_episode_t *episode,
                  const rl_place_t *place, rl_environment_cb ended,
                  void *user) {
  episode->gateway = play->gateway;
  episode->loss = play->loss;
  episode->environment = (rl_environment_t){
      .loop = &play->ask->loop,
      .command = play->command,
      .address = tnk_gateway_address(play->gateway),
      .timeout_ms = play->timeout_ms,
      .step = place->step,
      .task = place->task,
      .group = place->group,
      .member = place->member,
      .seed = learn_seed(play->seed, place->number),
      .ended = ended,
      .user = user,
  };
  /* The sessions of a repeated step have other names. */
  snprintf(episode->session, sizeof(episode->session),
           "%s%" PRIu64 "-%zu-%zu-try%" PRIu64,
           play->is_evaluation ? "evaluation" : "step", place->step,
           place->group, place->member, place->attempt);
  return rl_episode_start(episode);
}

static void on_ended(rl_environment_t *e) {
  rl_play_t *play = e->user;
  rl_episode_t *episode =
      &play->episodes[e->group * play->group_size + e->member];

  rl_episode_end(episode);
  play->n_ended++;
  rl_play_show(play, episode);
  rl_play_count(play, episode);
}

static void begin(rl_play_t *play, uint64_t step) {
  const size_t at = play->n_begun++;
  /* The first step whose tasks and seeds these are. */
  const uint64_t first = play->is_evaluation ? 0 : step - 1;
  const rl_place_t place = {
      .step = step,
      .task = first * play->n_groups + at / play->group_size,
      .number = first * play->n + at,
      .attempt = play->n_plays,
      .group = at / play->group_size,
      .member = at % play->group_size,
  };

  play->err = rl_play_start(play, &play->episodes[at], &place, on_ended, play);
  if (play->err != TNK_OK)
    play->n_ended++;
}

static int must_stop(const rl_play_t *play) {
  return cli_ask_is_over(play->ask) || *play->is_broke || play->err != TNK_OK ||
         play->n_failed > play->max_failed || play->is_broken;
}

static void stop(rl_play_t *play) {
  play->is_stopping = 1;
  for (size_t i = 0; i < play->n_begun; i++)
    rl_environment_stop(&play->episodes[i].environment);
}

/* ---- A step ---- */

/* The outcomes in words, such as "2 crashed, 1 timed out". */
static void describe(const rl_play_t *play, char *out, size_t n) {
  static const char *const names[] = {
      [RL_FAILED_CRASHED] = "crashed",
      [RL_FAILED_TIMED_OUT] = "timed out",
      [RL_FAILED_START] = "did not start",
      [RL_FAILED_UNREWARDED] = "told no reward",
      [RL_FAILED_SILENT] = "sampled nothing",
  };
  size_t at = 0;

  out[0] = '\0';
  for (size_t i = RL_REWARDED + 1; i < RL_N_OUTCOMES; i++)
    if (play->counts[i] > 0 && at < n)
      at += (size_t)snprintf(out + at, n - at, "%s%zu %s", at > 0 ? ", " : "",
                             play->counts[i], names[i]);
}

int rl_play_report(const rl_play_t *play, uint64_t step) {
  const cli_t *cli = play->ask->cli;
  const char *what = play->is_evaluation ? "evaluation after step" : "step";
  char counts[160], limit[80];

  if (play->err != TNK_OK)
    return cli_fail(cli, CLI_EXIT_FAILED, "cannot create a key: %s",
                    tnk_strerror(play->err));
  if (play->is_broken)
    return cli_fail(cli, CLI_EXIT_FAILED,
                    "the record of an environment cannot be used: %s",
                    play->why);
  if (play->n_failed == 0)
    return CLI_EXIT_OK;
  describe(play, counts, sizeof(counts));
  snprintf(limit, sizeof(limit),
           play->is_evaluation
               ? "at most %zu may fail, in proportion to --max-failed"
               : "--max-failed is %zu",
           play->max_failed);
  if (play->n_failed > play->max_failed)
    return cli_fail(cli, CLI_EXIT_FAILED,
                    "%s %" PRIu64 ": %zu of %zu environments have failed (%s), "
                    "and %s. %s",
                    what, step, play->n_failed, play->n, counts, limit,
                    play->why);
  cli_warn(cli, "%s %" PRIu64 ": %zu of %zu environments have failed (%s). %s",
           what, step, play->n_failed, play->n, counts, play->why);
  return CLI_EXIT_OK;
}

/* Whether another environment may run. */
static int has_room(const rl_play_t *play) {
  const size_t n_others = play->n_others != NULL ? *play->n_others : 0;

  return play->n_begun - play->n_ended + n_others < play->n_parallel;
}

int rl_play_step(rl_play_t *play, uint64_t step) {
  clear(play);
  play->n_plays++;
  play->is_playing = 1;
  while (play->n_ended < play->n_begun ||
         (play->n_begun < play->n && !play->is_stopping)) {
    while (!play->is_stopping && !must_stop(play) && play->n_begun < play->n &&
           has_room(play))
      begin(play, step);
    if (!play->is_stopping && must_stop(play))
      stop(play);
    if (play->n_ended < play->n_begun ||
        (play->n_begun < play->n && !play->is_stopping))
      uv_run(&play->ask->loop, UV_RUN_ONCE);
  }
  play->is_playing = 0;
  return cli_ask_is_over(play->ask) || *play->is_broke
             ? CLI_EXIT_OK
             : rl_play_report(play, step);
}

double rl_play_reward(const rl_play_t *play) {
  double sum = 0;

  for (size_t i = 0; i < play->n; i++)
    if (play->episodes[i].outcome == RL_REWARDED)
      sum += play->episodes[i].reward;
  return sum / (double)play->counts[RL_REWARDED];
}
