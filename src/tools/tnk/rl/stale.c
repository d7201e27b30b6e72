/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/stale.h"

#include <stdlib.h>

#include "tnk/error.h"

/* ---- Versions ---- */

int rl_history_add(rl_history_t *history, uint32_t version, uint64_t steps) {
  if (version > history->room) {
    const size_t room = (size_t)version * 2;
    uint64_t *more = realloc(history->steps, room * sizeof(*more));

    if (more == NULL)
      return TNK_ENOMEM;
    history->steps = more;
    history->room = room;
  }
  while (history->n < version)
    history->steps[history->n++] = RL_STALE;
  history->steps[version - 1] = steps;
  return TNK_OK;
}

void rl_history_rewind(rl_history_t *history, uint64_t steps) {
  for (size_t i = 0; i < history->n; i++)
    if (history->steps[i] > steps)
      history->steps[i] = RL_STALE;
}

uint64_t rl_history_age(const rl_history_t *history, uint32_t version,
                        uint64_t n_done) {
  if (version == 0 || version > history->n ||
      history->steps[version - 1] > n_done)
    return RL_STALE;
  return n_done - history->steps[version - 1];
}

void rl_history_free(rl_history_t *history) {
  free(history->steps);
  *history = (rl_history_t){0};
}

/* ---- Answers ---- */

int rl_mix_add(rl_mix_t *mix, uint32_t version) {
  void *more;
  size_t i = 0;

  while (i < mix->n && mix->rows[i].version != version)
    i++;
  if (i == mix->room) {
    const size_t room = mix->room * 2 + 4;

    more = realloc(mix->rows, room * sizeof(*mix->rows));
    if (more == NULL)
      return TNK_ENOMEM;
    mix->rows = more;
    mix->room = room;
  }
  if (i == mix->n) {
    mix->rows[i].version = version;
    mix->rows[i].n = 0;
    mix->n++;
  }
  mix->rows[i].n++;
  return TNK_OK;
}

void rl_mix_age(const rl_mix_t *mix, rl_age_t *age, const rl_history_t *history,
                uint64_t n_done) {
  for (size_t i = 0; i < mix->n; i++) {
    const uint64_t one = rl_history_age(history, mix->rows[i].version, n_done);

    age->max = one > age->max ? one : age->max;
    age->n += mix->rows[i].n;
    if (one != RL_STALE)
      age->sum += one * mix->rows[i].n;
  }
}

void rl_mix_free(rl_mix_t *mix) {
  free(mix->rows);
  *mix = (rl_mix_t){0};
}
