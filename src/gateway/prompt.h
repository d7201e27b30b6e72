#ifndef TNK_GATEWAY_PROMPT_H
#define TNK_GATEWAY_PROMPT_H

#include "gateway/state.h"

/*
 * From a request to the ids of its prompt: which turn it goes on from, and what
 * is new. 0, or -1 with the reason in `fault`.
 */
int tnk__gw_prompt(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

#endif
