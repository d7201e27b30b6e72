#ifndef TNK_LIB_POLICY_POLL_H
#define TNK_LIB_POLICY_POLL_H

#include <stdint.h>

#include "lib/policy/classify.h"

/* Polls are never sent closer together than a distance that grows between
 * the first two while answers come back without having been held. A server may
 * hold as briefly as it likes, so "not yet" after the third counts as held;
 * anything else must have taken the second to be more than a quick failure. */
#define TNK__POLL_MIN_MS 100
#define TNK__POLL_MAX_MS 1000
#define TNK__POLL_HELD_MS 40
/* Answers of status 400 that one future survives. */
#define TNK__POLL_MAX_400 3
/* Refusals of a proxy in a row that it survives, two minutes about: what was
 * accepted is not given up for a proxy that has changed its mind. */
#define TNK__POLL_MAX_REFUSED 8
/* Answers in a row that the result is not known which one survives, seven
 * seconds about: another machine may know it, or this one soon. */
#define TNK__POLL_MAX_UNKNOWN 3

/* The pace of one future's polling. */
typedef struct {
  uint64_t sent_ms;   /* when the last poll went out */
  uint64_t iteration; /* polls sent; the header of the next one */
  uint32_t n_early;   /* answers in a row that were not held */
  uint32_t n_errors;  /* 429 and lost connections in a row */
  int was_lost;       /* one poll in a row was lost, and repeated at once */
  uint32_t n_400;
  uint32_t n_refused; /* by a proxy, in a row */
  uint32_t n_unknown; /* 404, in a row */
} tnk__poll_t;

typedef enum {
  TNK__POLL_PENDING = 0, /* try_again, or a 408 without a JSON body */
  TNK__POLL_408_JSON,    /* the service lives: forgets earlier 400s */
  TNK__POLL_5XX,
  TNK__POLL_400,
  TNK__POLL_404, /* the server does not know the future */
  TNK__POLL_429,
  TNK__POLL_LOST,     /* connection failed or lost */
  TNK__POLL_REFUSED,  /* by a proxy */
  TNK__POLL_TIMEOUT,  /* our own limit: the server held it for longer */
  TNK__POLL_METADATA, /* ready, the result comes with the next poll */
  TNK__POLL_PAUSED    /* 402 while billing.h allows: that state's delay */
} tnk__poll_event_t;

/* The event of an outcome that tnk__classify() answered with REPOLL or PAUSE.
 * has_json: the body of a 408 is JSON. */
tnk__poll_event_t tnk__poll_event(tnk__outcome_t outcome, int has_json);

void tnk__poll_init(tnk__poll_t *poll);
/* Note that a poll goes out; returns its X-Tinker-Request-Iteration. */
uint64_t tnk__poll_sent(tnk__poll_t *poll, uint64_t now_ms);
/*
 * Decide what follows an answer that does not end the future, or none: the
 * first poll in a row whose connection broke is repeated at once, since a
 * result that becomes ready meanwhile should not wait for a back-off. 1: poll
 * again after *delay_ms. 0: no more (too many 400s, 404s, or refusals of a
 * proxy). server_ms is the wish of the answer's Retry-After (or of its body), 0
 * for none; u is uniform in [0, 1).
 */
int tnk__poll_next(tnk__poll_t *poll, tnk__poll_event_t event,
                   uint64_t server_ms, uint64_t now_ms, double u,
                   uint64_t *delay_ms);

#endif
