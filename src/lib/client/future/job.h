#ifndef TNK_LIB_CLIENT_FUTURE_JOB_H
#define TNK_LIB_CLIENT_FUTURE_JOB_H

#include "lib/client/future/future.h"
#include "lib/wire/message/answer.h"

/*
 * A request that the service accepts first and answers later: a call, then
 * the future it returned, which goes on with the same call object. Some servers
 * answer at once; then the future is skipped.
 *
 * Idle, while its call and its future are; submitting, while its call is under
 * way alone; accepted, while its future is. Idle again right before `done`,
 * which is called once and never inside start. Cancel leads to idle without
 * `done`.
 */
typedef struct tnk__job {
  tnk__future_t future;
  /* The service has taken it; may be NULL. The request's bytes are not needed
   * any more. Returns whether to follow its future; if not, `done` will not
   * be called, and the job may be gone. */
  int (*accepted)(struct tnk__job *self, const tnk__accepted_t *answer);
  /* The result, or an error; then is_accepted tells whether the submission or
   * the operation failed. */
  void (*done)(struct tnk__job *self, const tnk__reply_t *reply);
  uint8_t is_accepted;
  uint8_t was_doubtful; /* it was not the first attempt that was accepted */
  uint8_t ran;          /* tnk_ran_t, once it is accepted */
} tnk__job_t;

/* Clear and bind; strings are static. The owner then sets what differs from
 * the defaults in `future` and, for the submission, in `future.call`. */
void tnk__job_init(tnk__job_t *job, struct tnk__session *session,
                   tnk__route_id_t route, const char *name, const char *type);
/* Submit the request. The body is the owner's until `accepted` or `done`. */
void tnk__job_start(tnk__job_t *job, const void *body, size_t n,
                    void (*done)(tnk__job_t *self, const tnk__reply_t *reply));
/* Whether it was started and `done` is still to come. */
int tnk__job_is_active(const tnk__job_t *job);
/* Whether the server has run the request or will, in any state, also when it is
 * over. One that was never bound has not been run. */
tnk_ran_t tnk__job_ran(const tnk__job_t *job);
void tnk__job_cancel(tnk__job_t *job);
/* Write what one that is under way waits for, as the end of a sentence. */
void tnk__job_explain(const tnk__job_t *job, tnk__text_t *out);

/* ---- What it lends its owner while it is idle, and back from there ---- */

tnk__timer_t *tnk__job_timer(tnk__job_t *job);
tnk__deferred_t *tnk__job_deferred(tnk__job_t *job);
tnk__payer_t *tnk__job_payer(tnk__job_t *job);
const tnk__timer_t *tnk__job_timer_const(const tnk__job_t *job);
const tnk__payer_t *tnk__job_payer_const(const tnk__job_t *job);
tnk__job_t *tnk__job_of_timer(tnk__timer_t *timer);
tnk__job_t *tnk__job_of_deferred(tnk__deferred_t *deferred);
tnk__job_t *tnk__job_of_waiter(tnk__waiter_t *waiter);

#endif
