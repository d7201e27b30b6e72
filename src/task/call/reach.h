#ifndef TNK_TASK_CALL_REACH_H
#define TNK_TASK_CALL_REACH_H

#include "flow/classify.h"
#include "task/call/endpoint.h"

/* Embedded in whoever makes attempts. */
typedef struct {
  tnk__list_t link; /* in the row of those whose pause an answer ends */
  tnk__timer_t *timer;
  int is_unanswered; /* its last attempt was not answered at all */
} tnk__reacher_t;

/*
 * Whether anything at an endpoint answers. Those who pause because their last
 * attempt was not answered stand in a row. While it is an outage, the first of
 * them goes ahead of its time every two seconds, and the first answer to
 * anything lets all of them go within a second. A service that answers, but
 * only that it cannot, is told as an outage after 30 s; nobody goes ahead
 * then.
 */
void tnk__reach_open(tnk__endpoint_t *endpoint);
/* Nobody stands in the row any more, or will. */
void tnk__reach_shut(tnk__endpoint_t *endpoint);
/* Begin without an attempt; its pauses are on that timer. */
void tnk__reacher_init(tnk__reacher_t *reacher, tnk__timer_t *timer);
/* Note how an attempt has ended; the HTTP status and the code are for the
 * observer's sentence. A status of 0: nobody waits for that answer, so that a
 * refusal says nothing, though a good answer does. */
void tnk__reach_note(tnk__endpoint_t *endpoint, tnk__reacher_t *reacher,
                     tnk__outcome_t outcome, int status, int err);
/* Whether it is an outage, or all answers have been refusals for 30 s. */
int tnk__reach_is_out(const tnk__endpoint_t *endpoint);
/* A pause began. Does nothing if the last attempt was answered. */
void tnk__reach_wait(tnk__endpoint_t *endpoint, tnk__reacher_t *reacher);
/* The pause is over, or nobody wants its end any more. */
void tnk__reach_leave(tnk__reacher_t *reacher);
/* Write that it is an outage, if that is what it pauses for, as the end of a
 * sentence. */
void tnk__reach_explain(const tnk__endpoint_t *endpoint,
                        const tnk__reacher_t *reacher, tnk__text_t *out);

#endif
