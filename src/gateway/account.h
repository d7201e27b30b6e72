/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_ACCOUNT_H
#define TNK_GATEWAY_ACCOUNT_H

#include "gateway/state.h"

/* The account of a request whose key has limits. For other requests nothing
 * happens. */

/* Reserve the most that the request can use; its prompt is made. Returns 0, or
 * -1 with the reason in `fault`. */
int tnk__gw_account_begin(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Settle what was used, and reserve as much again. */
int tnk__gw_account_again(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* Add what the samples of a prompt have used. */
void tnk__gw_account_samples(tnk__gw_job_t *job, size_t i,
                             const tnk_samples_t *samples);
/* A request to the service has failed. Prompts that were sampled, or may still
 * be sampled, count. */
void tnk__gw_account_failed(tnk__gw_job_t *job);
/* The number of sampled tokens is unknown, because the client has hung up or
 * the gateway closes. All that was reserved counts: hanging up must not be a
 * way to sample for nothing. */
void tnk__gw_account_lost(tnk__gw_job_t *job);
/* Release the unused part. The job no longer has the key afterwards. */
void tnk__gw_account_end(tnk__gw_job_t *job);

#endif
