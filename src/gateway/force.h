/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_FORCE_H
#define TNK_GATEWAY_FORCE_H

#include "gateway/state.h"

/* If the client forces a call, append the ids that start it to the prompt. They
 * count as ids of the prompt, as they were not sampled. Returns 0, or -1 if the
 * template has no common start of calls, or if the parser does not read its
 * calls. */
int tnk__gw_force(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

#endif
