/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_REACH_H
#define TNK_LIB_CLIENT_CALL_REACH_H

#include "lib/client/call/endpoint.h"
#include "lib/policy/classify.h"

/* Embedded in each object that makes attempts. */
typedef struct {
  tnk__list_t link; /* in a list of pauses that a response may end */
  tnk__timer_t *timer;
  uint8_t is_unanswered; /* its last attempt got no response */
  uint8_t is_refused;    /* its last attempt got a 5xx */
  uint8_t was_woken;     /* a pause after a 5xx was ended early, and no good
                            response has come since */
} tnk__reacher_t;

/*
 * Whether an endpoint responds. Two lists hold the pauses that a response may
 * end: those after an attempt without a response, and those after a 5xx.
 *
 * During an outage the first unanswered attempt is repeated early every two
 * seconds. The first response of any kind ends all unanswered pauses within a
 * second. The first response other than a 5xx ends all pauses after a 5xx
 * within a second too. The end of each pause is drawn at random, so that they
 * do not all end at once, and each request still waits for its slot.
 *
 * A request that the service always fails must not be retried at the pace of
 * the responses to others. So a pause after a 5xx is ended early only once in a
 * row, unless there were only 5xx for five seconds. A pause that the server
 * asked for (Retry-After) is never ended early.
 *
 * A service that returns only 5xx is reported as out after 30 s. A service that
 * has never responded and refuses the connection is reported at once, because
 * the port may be wrong.
 */
void tnk__reach_open(tnk__endpoint_t *endpoint);
/* Stop. No pauses are in the lists, and none will be added. */
void tnk__reach_shut(tnk__endpoint_t *endpoint);
/* Begin without an attempt; `timer` runs the pauses. */
void tnk__reacher_init(tnk__reacher_t *reacher, tnk__timer_t *timer);
/* Record the end of an attempt. is_awaited: the request has a waiting caller.
 * Without one, a 5xx does not count, but a good response does. */
void tnk__reach_note(tnk__endpoint_t *endpoint, tnk__reacher_t *reacher,
                     tnk__outcome_t outcome, int is_awaited,
                     const tnk__http_result_t *result);
/* Returns whether there is an outage, or all responses have been 5xx for 30 s.
 */
int tnk__reach_is_out(const tnk__endpoint_t *endpoint);
/* A pause began. `asked_ms` is the pause that the server asked for, 0 for none.
 * Does nothing if no response may end the pause. */
void tnk__reach_wait(tnk__endpoint_t *endpoint, tnk__reacher_t *reacher,
                     uint64_t asked_ms);
/* Returns whether there was never a response, and connections are refused. */
int tnk__reach_is_absent(const tnk__endpoint_t *endpoint);
/* The pause is over or canceled. */
void tnk__reach_leave(tnk__reacher_t *reacher);
/* Write the end of a sentence: that there is an outage, if the pause is due to
 * one. */
void tnk__reach_explain(const tnk__endpoint_t *endpoint,
                        const tnk__reacher_t *reacher, tnk__text_t *out);

#endif
