/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_PROMPT_H
#define TNK_GATEWAY_PROMPT_H

#include "gateway/state.h"

/* The part of a prompt that is made on the loop. Both functions return 0, or -1
 * with the reason in `fault`. */

/* Read the request, and find the turns that it may continue. A plain prompt
 * then has its ids. A conversation (`chat`) has the ids of the first of these
 * turns, and needs a rendering (render.h). */
int tnk__gw_prompt_read(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Replace the ids by those of the next turn to try, or by none if there is no
 * other turn. `parent`, `first` and `n_before` are set. */
int tnk__gw_prompt_next(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

#endif
