/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_REPLY_H
#define TNK_GATEWAY_REPLY_H

#include "gateway/state.h"

/* From the prompt to the samples, the response and the record. */

/* ---- draw.c ---- */

/* The samples of a job. The service gets a request for each prompt, and all of
 * them at once. `promise` of the job stands for all. */

/* Returns the number of prompts. Only completions of plain prompts have
 * several. */
size_t tnk__gw_n_prompts(const tnk__gw_job_t *job);
/* Returns the ids of a prompt. *n receives their number. */
const int32_t *tnk__gw_prompt_at(const tnk__gw_job_t *job, size_t i, size_t *n);
/* The most tokens of one response. */
int32_t tnk__gw_max_tokens(const tnk__gw_job_t *job);
/* Ask the service. Returns 0, or -1 with the reason in `fault`. `done` is
 * called once with the outcome, unless the call fails. */
int tnk__gw_draw(tnk__gw_job_t *job, tnk_promise_cb done,
                 tnk__gw_fault_t *fault);
/* One of the requests has failed: cancel the others. */
void tnk__gw_draw_stop(const tnk__gw_job_t *job);
/* The promise of the samples of a prompt. */
tnk_promise_t *tnk__gw_draw_at(const tnk__gw_job_t *job, size_t i);

/* ---- reply.c ---- */

/* Record all sequences and write the answer. 0, or -1 with the reason in
 * `fault`. */
int tnk__gw_reply(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

#endif
