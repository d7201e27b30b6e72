/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_PROMPT_H
#define TNK_GATEWAY_PROMPT_H

#include "gateway/state.h"

/*
 * Make the ids of a request's prompt, and find the turn that it continues.
 * Returns 0, or -1 with the reason in `fault`.
 */
int tnk__gw_prompt(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

#endif
