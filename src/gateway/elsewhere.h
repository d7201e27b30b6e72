/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_ELSEWHERE_H
#define TNK_GATEWAY_ELSEWHERE_H

#include "gateway/state.h"

/*
 * Requests that other gateways of a shared record are sampling, or have
 * answered. If a client repeats one of them here, it gets the answer of the
 * other gateway. These lines of the record are used for that:
 *
 *   asked   a gateway is about to sample: session, hashes of the key and body
 *   again   a client has repeated that request at another gateway
 *   here    the gateway is alive, and still has that request
 *   answer  the whole response; its turns are before it
 *   failed, gone  there is no answer
 *
 * Two gateways may get the same request at the same time. All gateways read the
 * lines in one order, so the first "asked" is the same for all of them. A
 * gateway that gets a request which others may have too samples it when it has
 * read its own "asked" (a claim). If another "asked" was before it, that
 * gateway has the request, and this one waits for its answer.
 *
 * A gateway that waits writes "again" every few seconds. If nothing comes back
 * for TNK__GW_ELSEWHERE_MS, the other gateway counts as dead, and the request
 * is sampled here. That time does not pass while the store is unavailable,
 * which ends the wait with an error after TNK__GW_ELSEWHERE_AWAY_MS. A claim
 * whose line is not read ends in the same way after the same time.
 */

enum {
  TNK__GW_MAX_ELSEWHERE = 65536,          /* requests that are known */
  TNK__GW_MAX_ELSEWHERE_BYTES = 64 << 20, /* of their answers */
  TNK__GW_ELSEWHERE_KEEP_MS = 600000,     /* how long they are known */
  TNK__GW_ELSEWHERE_MS = 5000,
  TNK__GW_ELSEWHERE_AWAY_MS = 30000,     /* as other requests wait for it */
  TNK__GW_ELSEWHERE_ASK_MS = 2000,       /* between two lines "again" */
  TNK__GW_ELSEWHERE_TICK_MS = 1000,      /* while a request waits */
  TNK__GW_MAX_ELSEWHERE_ANSWER = 4 << 20 /* longer answers are not shared */
};

typedef enum {
  TNK__GW_NOT_ELSEWHERE = 0,
  TNK__GW_ELSEWHERE,        /* tnk__gw_elsewhere_wait() waits for it */
  TNK__GW_ELSEWHERE_ANSWER, /* `answer` has it */
  TNK__GW_ELSEWHERE_OTHER,  /* the key was used with another body */
  TNK__GW_ELSEWHERE_NO_MEMORY
} tnk__gw_elsewhere_is_t;

void tnk__gw_elsewhere_init(tnk_gateway_t *gateway);
/* Forget everything. No job waits. */
void tnk__gw_elsewhere_deinit(tnk_gateway_t *gateway);
/* Take a line of another gateway. Returns TNK_OK for lines of other types too,
 * or TNK_EPROTO or TNK_ENOMEM. */
int tnk__gw_elsewhere_take(tnk_gateway_t *gateway, const char *type,
                           const json_t *line);

/* Find the request that a client repeats. *found receives what to wait for. */
tnk__gw_elsewhere_is_t tnk__gw_elsewhere_find(tnk_gateway_t *gateway,
                                              const tnk__gw_same_t *same,
                                              struct tnk__gw_other **found,
                                              tnk__buf_t *answer);
/* Wait for the answer. Afterwards tnk__gw_job_told() is called. */
void tnk__gw_elsewhere_wait(tnk__gw_job_t *job, struct tnk__gw_other *other);

/* Wait until the own line "asked" has been read. Afterwards
 * tnk__gw_job_claimed() is called, with the earlier request, or NULL. */
void tnk__gw_elsewhere_claim(tnk__gw_job_t *job, const tnk__gw_same_t *same);

/* Write the line "asked" of a job, for the other gateways. */
int tnk__gw_elsewhere_asked(const tnk__gw_job_t *job,
                            const tnk__gw_same_t *same);
/* Write the line "answer" of a job, or "ended" if no other gateway needs the
 * answer. Returns TNK_OK or a code of the record. */
int tnk__gw_elsewhere_answered(const tnk__gw_job_t *job);

/* A session was removed from the record. Its jobs wait no more for their
 * lines. */
void tnk__gw_elsewhere_removed(tnk_gateway_t *gateway, const char *session);

/* Do what is due. A timer calls this, while there is something to do. */
void tnk__gw_elsewhere_tick(tnk_gateway_t *gateway, uint64_t now_ms);

#endif
