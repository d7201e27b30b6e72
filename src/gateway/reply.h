/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_REPLY_H
#define TNK_GATEWAY_REPLY_H

#include "gateway/state.h"

/* From the samples to the response and the record. */

/* Record all sequences and write the answer. 0, or -1 with the reason in
 * `fault`. */
int tnk__gw_reply(tnk__gw_job_t *job, tnk__gw_fault_t *fault);

#endif
