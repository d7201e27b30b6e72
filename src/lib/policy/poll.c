/* SPDX-License-Identifier: MIT */
/*
 * States of a future's pace: calm; early (n_early), while the server does not
 * hold polls, which widens the distance between them; failing (n_errors), while
 * polls get no response or 429, with a back-off. A response that was held ends
 * the early state. Any response ends the failing state.
 */
#include "lib/policy/poll.h"

#include <string.h>

#include "lib/policy/billing.h"
#include "lib/policy/retry.h"

void tnk__poll_init(tnk__poll_t *poll) {
  memset(poll, 0, sizeof(*poll));
}

uint64_t tnk__poll_sent(tnk__poll_t *poll, uint64_t now_ms) {
  poll->sent_ms = now_ms;
  return poll->iteration++;
}

tnk__poll_event_t tnk__poll_event(tnk__outcome_t outcome, int has_json) {
  switch (outcome) {
  case TNK__OUTCOME_400:
    return TNK__POLL_400;
  case TNK__OUTCOME_402:
    return TNK__POLL_PAUSED;
  case TNK__OUTCOME_404:
    return TNK__POLL_404;
  case TNK__OUTCOME_408:
    return has_json ? TNK__POLL_408_JSON : TNK__POLL_PENDING;
  case TNK__OUTCOME_429:
    return TNK__POLL_429;
  case TNK__OUTCOME_5XX:
    return TNK__POLL_5XX;
  case TNK__OUTCOME_TIMEOUT:
    return TNK__POLL_TIMEOUT;
  case TNK__OUTCOME_REFUSED:
    return TNK__POLL_REFUSED;
  case TNK__OUTCOME_2XX:
    return TNK__POLL_PENDING;
  default:
    return TNK__POLL_LOST;
  }
}

/* A response that was held is followed by the next poll at once. The minimum
 * distance applies only while responses come back early. */
static uint64_t paced_ms(tnk__poll_t *poll, tnk__poll_event_t event,
                         uint64_t now_ms) {
  uint64_t held_ms = now_ms > poll->sent_ms ? now_ms - poll->sent_ms : 0;
  int is_not_yet = event == TNK__POLL_PENDING || event == TNK__POLL_408_JSON;
  uint64_t distance_ms;

  if (held_ms >= (is_not_yet ? TNK__POLL_HELD_MS : TNK__POLL_MAX_MS)) {
    poll->n_early = 0;
    return 0;
  }
  distance_ms = (uint64_t)TNK__POLL_MIN_MS << poll->n_early;
  if (distance_ms >= TNK__POLL_MAX_MS)
    distance_ms = TNK__POLL_MAX_MS;
  else
    poll->n_early++;
  return distance_ms > held_ms ? distance_ms - held_ms : 0;
}

/* A server cannot ask for polls more often than our own pace. */
static uint64_t longer(uint64_t server_ms, uint64_t ours_ms) {
  return server_ms > ours_ms ? server_ms : ours_ms;
}

static void answered(tnk__poll_t *poll) {
  poll->n_errors = 0;
  poll->n_refused = 0;
  poll->n_unknown = 0;
  poll->was_lost = 0;
}

int tnk__poll_next(tnk__poll_t *poll, tnk__poll_event_t event,
                   uint64_t server_ms, uint64_t now_ms, double u,
                   uint64_t *delay_ms) {
  *delay_ms = 0;
  switch (event) {
  case TNK__POLL_PAUSED:
    *delay_ms = TNK__BILLING_DELAY_MS;
    return 1;
  case TNK__POLL_REFUSED:
    if (poll->n_refused >= TNK__POLL_MAX_REFUSED)
      return 0;
    poll->n_refused++;
    *delay_ms = tnk__backoff_slow_ms(poll->n_errors, u);
    poll->n_errors += poll->n_errors < UINT32_MAX;
    return 1;
  case TNK__POLL_LOST:
  case TNK__POLL_429:
    if (event == TNK__POLL_LOST && !poll->was_lost && poll->n_errors == 0) {
      poll->was_lost = 1;
      *delay_ms = longer(server_ms, paced_ms(poll, event, now_ms));
      return 1;
    }
    *delay_ms = server_ms != 0
                    ? longer(server_ms, paced_ms(poll, event, now_ms))
                    : tnk__backoff_slow_ms(poll->n_errors, u);
    poll->n_errors += poll->n_errors < UINT32_MAX;
    return 1;
  case TNK__POLL_METADATA:
    answered(poll);
    return 1;
  case TNK__POLL_404:
    if (poll->n_unknown >= TNK__POLL_MAX_UNKNOWN)
      return 0;
    *delay_ms = longer(server_ms, tnk__backoff_slow_ms(poll->n_unknown, u));
    poll->n_unknown++;
    return 1;
  case TNK__POLL_400:
    if (poll->n_400 >= TNK__POLL_MAX_400)
      return 0;
    poll->n_400++;
    break;
  case TNK__POLL_408_JSON:
    poll->n_400 = 0;
    break;
  case TNK__POLL_TIMEOUT:
    /* No response, so this does not show whether the service is back. */
    *delay_ms = paced_ms(poll, event, now_ms);
    return 1;
  case TNK__POLL_PENDING:
  case TNK__POLL_5XX:
    break;
  }
  answered(poll);
  *delay_ms = longer(server_ms, paced_ms(poll, event, now_ms));
  return 1;
}
