/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_BEGIN_H
#define TNK_GATEWAY_BEGIN_H

#include "gateway/state.h"

/* The start of a response, if the model does not choose it. */

/* ---- force.c: a call that the client forces ---- */

/* Find the tools that may be called. Returns 0, or -1 if there is none. */
int tnk__gw_force_find(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Append the ids that start the call to the prompt. They count as ids of the
 * prompt, as they were not sampled. Returns 0, or -1 if the template has no
 * common start of calls, or if the parser does not read its calls. Runs on the
 * thread that renders, so it must not use jansson. */
int tnk__gw_force(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

/* ---- prefill.c: a response that the client has begun ---- */

/*
 * A last message of the assistant, which the response continues. If it is the
 * text of a recorded turn, the prompt is the ids of that turn, as they were
 * sampled. Otherwise the template shows how it writes such a message, and the
 * text up to the end of its content is tokenized.
 */

/* Take the last message from the conversation, if it is the assistant's. The
 * functions return 0, or -1 with the reason in `fault`. */
int tnk__gw_prefill_take(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Find the turn whose response it is. `key` is the key of the messages before
 * it. */
int tnk__gw_prefill_find(tnk__gw_job_t *job, uint64_t key,
                         tnk__gw_fault_t *fault);
/* Append its ids to those of the messages before it. Runs on the thread that
 * renders, so it must not use jansson. */
int tnk__gw_prefill(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Find how much of a response the client has already, in the texts of the
 * pieces: `given` is what the parser has reported for the ids of the message.
 */
void tnk__gw_prefill_match(const tnk__gw_job_t *job, tnk__gw_choice_t *choice);
/* Remove that from what the client gets. */
void tnk__gw_prefill_cut(const tnk__gw_job_t *job, tnk__gw_choice_t *choice);

#endif
