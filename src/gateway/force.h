#ifndef TNK_GATEWAY_FORCE_H
#define TNK_GATEWAY_FORCE_H

#include "gateway/state.h"

/* Put what begins a call behind the prompt, where the client wants one: ids of
 * the prompt, which nobody has sampled. 0, or -1 where the template has no such
 * beginning, or no answer is read as a call. */
int tnk__gw_force(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

#endif
