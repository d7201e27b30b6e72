/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_POLL_H
#define TNK_LIB_POLICY_POLL_H

#include <stdint.h>

#include "lib/policy/classify.h"

/* Minimum distances between two polls of a future. The distance grows from the
 * first value to the second while the server answers without holding the polls.
 * "Not yet" counts as held after the third value, because a server may hold
 * polls as briefly as it likes. Other responses count as held after the second
 * value; a faster one is a quick failure. */
#define TNK__POLL_MIN_MS 100
#define TNK__POLL_MAX_MS 1000
#define TNK__POLL_HELD_MS 40
/* Responses with status 400 that a future survives. */
#define TNK__POLL_MAX_400 3
/* Consecutive refusals by a proxy that a future survives, for about two
 * minutes. An accepted operation is not abandoned because a proxy changes its
 * policy. */
#define TNK__POLL_MAX_REFUSED 8
/* Consecutive 404 responses that a future survives, for about seven seconds.
 * Another server may know the result, or this one may know it soon. */
#define TNK__POLL_MAX_UNKNOWN 3

/* The pace of one future's polling. */
typedef struct {
  uint64_t sent_ms;   /* when the last poll went out */
  uint64_t iteration; /* polls sent; value of the header of the next one */
  uint32_t n_early;   /* consecutive responses that were not held */
  uint32_t n_errors;  /* consecutive 429s and lost connections */
  int was_lost;       /* the last poll was lost and repeated at once */
  uint32_t n_400;
  uint32_t n_refused; /* consecutive, by a proxy */
  uint32_t n_unknown; /* consecutive 404s */
} tnk__poll_t;

typedef enum {
  TNK__POLL_PENDING = 0, /* try_again, or a 408 without a JSON body */
  TNK__POLL_408_JSON,    /* the service works: earlier 400s are forgotten */
  TNK__POLL_5XX,
  TNK__POLL_400,
  TNK__POLL_404, /* the server does not know the future */
  TNK__POLL_429,
  TNK__POLL_LOST,     /* connection failed or lost */
  TNK__POLL_REFUSED,  /* by a proxy */
  TNK__POLL_TIMEOUT,  /* our own timeout: the server held it longer */
  TNK__POLL_METADATA, /* the result is ready and comes with the next poll */
  TNK__POLL_PAUSED    /* 402, if billing.h allows a pause, with its delay */
} tnk__poll_event_t;

/* The event of an outcome that tnk__classify() answered with REPOLL or PAUSE.
 * has_json: the body of a 408 is JSON. */
tnk__poll_event_t tnk__poll_event(tnk__outcome_t outcome, int has_json);

void tnk__poll_init(tnk__poll_t *poll);
/* Record that a poll is sent. Returns its X-Tinker-Request-Iteration. */
uint64_t tnk__poll_sent(tnk__poll_t *poll, uint64_t now_ms);
/*
 * Decide the next step after a poll that does not end the future. Returns 1 to
 * poll again after *delay_ms. Returns 0 to give up (too many 400s, 404s, or
 * refusals by a proxy).
 *
 * The first poll in a row that loses its connection is repeated at once, so
 * that a result does not wait for a back-off. server_ms is the delay from
 * Retry-After or the body, 0 for none. `u` is uniform in [0, 1).
 */
int tnk__poll_next(tnk__poll_t *poll, tnk__poll_event_t event,
                   uint64_t server_ms, uint64_t now_ms, double u,
                   uint64_t *delay_ms);

#endif
