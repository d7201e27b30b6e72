/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_FORCE_H
#define TNK_GATEWAY_FORCE_H

#include "gateway/state.h"

/* For a client that forces a call. */

/* Find the tools that may be called. Returns 0, or -1 if there is none. */
int tnk__gw_force_find(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Append the ids that start the call to the prompt. They count as ids of the
 * prompt, as they were not sampled. Returns 0, or -1 if the template has no
 * common start of calls, or if the parser does not read its calls. Runs on the
 * thread that renders, so it must not use jansson. */
int tnk__gw_force(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

#endif
