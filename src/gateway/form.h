/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_FORM_H
#define TNK_GATEWAY_FORM_H

#include "gateway/state.h"

/* The format that a client asks for: JSON, or JSON that fits a schema. */

/* Ask the model for the format, in the system message of the document. Returns
 * 0, or -1 with the reason in `fault`. */
int tnk__gw_form_put(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Check what was said. Calls of tools are not checked. Returns 0, or -1 with
 * the reason in `fault`. */
int tnk__gw_form_check(const tnk__gw_job_t *job, tnk__gw_choice_t *choice,
                       tnk__gw_fault_t *fault);
/* Returns 1 if a choice has the format, -1 if not, 0 if it is unknown. */
int tnk__gw_form_verdict(const tnk__gw_choice_t *choice);
/* The number of the attempt that is recorded, or 0 if there is only one. */
uint32_t tnk__gw_form_attempt(const tnk__gw_job_t *job);
/* Returns whether the response is sampled again. */
int tnk__gw_form_retries(const tnk__gw_job_t *job);

#endif
