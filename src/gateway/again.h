/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_AGAIN_H
#define TNK_GATEWAY_AGAIN_H

#include "gateway/elsewhere.h"

/*
 * Requests that clients repeat. A repeated request joins the one that is in
 * progress, or receives its answer, and is not sampled again.
 *
 * A request is repeated if it has the session and the Idempotency-Key of an
 * earlier one. Without such a key it has the session, the API and the body of
 * an earlier one, and
 * - the client says that it is a retry (x-stainless-retry-count), or
 * - the client of the earlier one has disconnected without an answer, or
 * - the earlier one is in progress, its session has a name, and the client does
 *   not say that this is no retry.
 *
 * With a shared record, the earlier request may have reached another gateway,
 * see elsewhere.h. Exception: only that gateway knows whether the client of the
 * first request has disconnected.
 */

enum {
  TNK__GW_MAX_AGAIN = 65536,          /* ended requests that are known */
  TNK__GW_MAX_AGAIN_BYTES = 64 << 20, /* of their answers */
  TNK__GW_MAX_KEPT = 1024,            /* samples that no client has received */
  TNK__GW_AGAIN_MS = 600000,          /* how long they are known */
  TNK__GW_MAX_AGAIN_KEY = 256         /* bytes of an Idempotency-Key */
};

typedef enum {
  TNK__GW_AGAIN_WRONG = -1, /* the reason is in `fault` */
  TNK__GW_AGAIN_NEW = 0,
  TNK__GW_AGAIN_JOINED,    /* `job->leader` is in progress */
  TNK__GW_AGAIN_ELSEWHERE, /* another gateway samples `*other` */
  TNK__GW_AGAIN_ANSWERED   /* `job->answer` is the answer */
} tnk__gw_again_is_t;

void tnk__gw_again_init(tnk__gw_again_t *again, const tnk_allocator_t *alloc);
/* Free everything that is known. No job is left. */
void tnk__gw_again_deinit(tnk__gw_again_t *again);
/* Find what a request repeats. If nothing, later requests can repeat it. */
tnk__gw_again_is_t tnk__gw_again_find(tnk__gw_job_t *job,
                                      struct tnk__gw_other **other,
                                      tnk__gw_fault_t *fault);
/* Record that a request is about to be sampled. Returns TNK_OK or a code of the
 * record. */
int tnk__gw_again_asked(const tnk__gw_job_t *job);
/* Whether another gateway may get the same request at the same time. Then *same
 * receives what it is found by. */
int tnk__gw_again_same(const tnk__gw_job_t *job, tnk__gw_same_t *same);
/* Reject a request whose key another gateway has used with another body.
 * Returns -1. */
int tnk__gw_again_other_body(const tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* The request has its samples, but no client to receive them. */
void tnk__gw_again_keep(tnk__gw_job_t *job);
/* The samples are taken after all. */
void tnk__gw_again_take(tnk__gw_job_t *job);
/* The request ends with its answer, or with a failure. Either is called before
 * the job is freed. */
void tnk__gw_again_answered(tnk__gw_job_t *job);
void tnk__gw_again_failed(tnk__gw_job_t *job);
/* Returns the oldest job that is kept, if it is too old or there are too many.
 * Forgets other requests that are too old. */
tnk__gw_job_t *tnk__gw_again_expired(tnk__gw_again_t *again, uint64_t now_ms);

#endif
