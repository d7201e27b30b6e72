/* SPDX-License-Identifier: MIT */
#include "lib/policy/queue_state.h"

#include <string.h>

/* ---- Stalls ---- */

/*
 * An operation moves, or is silent since `moved_ms`. While it is silent, each
 * notice doubles the time to the next one. So a night of silence causes ten
 * notices and not a thousand. Progress restarts the interval.
 */

/* Silence before the first notice. Each further notice doubles it. */
#define TNK__STALL_MS 60000

void tnk__stall_moved(tnk__stall_t *stall, uint64_t now_ms) {
  stall->moved_ms = now_ms;
  stall->notice_ms = TNK__STALL_MS;
}

int tnk__stall_due(tnk__stall_t *stall, uint64_t now_ms) {
  const uint64_t age_ms =
      now_ms > stall->moved_ms ? now_ms - stall->moved_ms : 0;

  if (age_ms < stall->notice_ms)
    return 0;
  while (stall->notice_ms <= age_ms && stall->notice_ms <= UINT64_MAX / 2)
    stall->notice_ms *= 2;
  return 1;
}

/* ---- Outages ---- */

/*
 * Responses and failures of all requests to one origin, in order of arrival.
 * One failure alone is not an outage. A later one is, if it comes at least
 * least_ms after the first without a response in between.
 */

int tnk__outage_failed(tnk__outage_t *outage, uint64_t now_ms,
                       uint64_t least_ms) {
  if (!outage->is_failing) {
    outage->is_failing = 1;
    outage->since_ms = now_ms;
  }
  if (outage->is_out || now_ms - outage->since_ms < least_ms)
    return 0;
  outage->is_out = 1;
  return 1;
}

int tnk__outage_answered(tnk__outage_t *outage) {
  const int was_out = outage->is_out;

  outage->is_failing = 0;
  outage->is_out = 0;
  return was_out;
}

/* ---- The state ---- */

/*
 * The state that was reported last, the time since when it holds, and the time
 * of the last notice. A report of another state restarts `since_ms`. A notice
 * needs a state that has lasted for the grace, and at least
 * TNK__QUEUE_NOTICE_MS since the last notice.
 */

/* Minimum interval between two notices of one client. */
#define TNK__QUEUE_NOTICE_MS 60000

void tnk__queue_notice_init(tnk__queue_notice_t *notice, uint64_t grace_ms) {
  memset(notice, 0, sizeof(*notice));
  notice->grace_ms = grace_ms;
}

tnk_queue_state_t tnk__queue_state_parse(const char *text) {
  if (text == NULL)
    return TNK_QUEUE_UNKNOWN;
  if (strcmp(text, "active") == 0)
    return TNK_QUEUE_ACTIVE;
  if (strcmp(text, "paused_capacity") == 0)
    return TNK_QUEUE_PAUSED_CAPACITY;
  if (strcmp(text, "paused_rate_limit") == 0)
    return TNK_QUEUE_PAUSED_RATE_LIMIT;
  return TNK_QUEUE_UNKNOWN;
}

int tnk__queue_notice_due(tnk__queue_notice_t *notice, tnk_queue_state_t state,
                          uint64_t now_ms) {
  /* Any change restarts the grace. That includes "active" from another
   * operation of the client: one operation that progresses shows that the
   * client does. */
  if (!notice->has_state || notice->state != state) {
    notice->has_state = 1;
    notice->state = state;
    notice->since_ms = now_ms;
  }
  if (state == TNK_QUEUE_ACTIVE || now_ms - notice->since_ms < notice->grace_ms)
    return 0;
  if (notice->has_noticed && now_ms - notice->noticed_ms < TNK__QUEUE_NOTICE_MS)
    return 0;
  notice->has_noticed = 1;
  notice->noticed_ms = now_ms;
  return 1;
}

const char *tnk__queue_reason(tnk__queue_kind_t kind, tnk_queue_state_t state,
                              const char *server_reason) {
  if (server_reason != NULL && server_reason[0] != '\0')
    return server_reason;
  switch (state) {
  case TNK_QUEUE_PAUSED_CAPACITY:
    return "the service is short of capacity, please wait";
  case TNK_QUEUE_PAUSED_RATE_LIMIT:
    return kind == TNK__QUEUE_SAMPLING
               ? "the limit of concurrent sampler weights is reached"
               : "the limit of concurrent training clients is reached";
  case TNK_QUEUE_ACTIVE:
  case TNK_QUEUE_UNKNOWN:
  case TNK_QUEUE_STALLED:
  case TNK_QUEUE_SESSION_LOST:
  case TNK_QUEUE_UNREACHABLE:
  case TNK_QUEUE_MEMORY_LOST:
    break;
  }
  return "unknown";
}
