/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_SERVE_H
#define TNK_TOOLS_TNK_RL_SERVE_H

#include "tools/tnk/rl/overlap.h"

/*
 * Agents that connect by themselves, for --url. A key of the gateway with a
 * group is an episode in a slot of `overlap`. The DELETE of the key ends it. An
 * episode that has failed leaves its place to another one.
 *
 * The number of open sessions is at most --parallel, and that of groups the
 * number of slots. Without --max-off-policy no session is opened while a step
 * trains, so none is too old.
 */
typedef struct {
  rl_overlap_t *overlap;
  uv_timer_t timer; /* the next timeout */
  int has_timer;
} rl_serve_t;

/* Serve the sessions of the gateway. */
void rl_serve_open(rl_serve_t *serve, rl_overlap_t *overlap);
/* Close the timer. Allowed if it was not opened. The loop must run after it. */
void rl_serve_close(rl_serve_t *serve);

#endif
