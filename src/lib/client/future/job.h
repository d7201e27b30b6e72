#ifndef TNK_LIB_CLIENT_FUTURE_JOB_H
#define TNK_LIB_CLIENT_FUTURE_JOB_H

#include "lib/client/future/future.h"
#include "lib/wire/message/answer.h"

struct tnk__session;

/*
 * A request that the service accepts first and answers later: a call, and then
 * the future it returned, which uses the same call object. Some servers answer
 * at once; then the future is skipped.
 *
 * Idle, while its call and its future are idle; submitting, while only its call
 * is active; accepted, while its future is. Idle again right before `done`,
 * which is called once and never inside start. Cancel leads to idle without
 * `done`.
 */
typedef struct tnk__job {
  tnk__future_t future;
  /* The service has accepted the request, and its body is no longer needed. May
   * be NULL. Returns whether to wait for its future. If not, `done` will not be
   * called, and the job may be freed. */
  int (*accepted)(struct tnk__job *self, const tnk__accepted_t *answer);
  /* Called with the result or an error. For an error, is_accepted shows whether
   * the submission or the operation failed. */
  void (*done)(struct tnk__job *self, const tnk__reply_t *reply);
  uint8_t is_accepted;
  uint8_t was_doubtful; /* an earlier attempt may have been accepted too */
  uint8_t ran;          /* tnk_ran_t, once it is accepted */
} tnk__job_t;

/* Clear and bind; strings are static. The owner then sets the fields that
 * differ from the defaults, in `future` and, for the submission, in
 * `future.call`. */
void tnk__job_init(tnk__job_t *job, struct tnk__session *session,
                   tnk__route_id_t route, const char *name, const char *type);
/* Submit the request. The body is borrowed until `accepted` or `done`. */
void tnk__job_start(tnk__job_t *job, const void *body, size_t n,
                    void (*done)(tnk__job_t *self, const tnk__reply_t *reply));
/* Whether it was started and `done` is still to come. */
int tnk__job_is_active(const tnk__job_t *job);
/* Whether the server has run or will run the request, in any state. A job that
 * was never bound has not been run. */
tnk_ran_t tnk__job_ran(const tnk__job_t *job);
void tnk__job_cancel(tnk__job_t *job);
/* Write the end of a sentence: the reason why an active job waits. */
void tnk__job_explain(const tnk__job_t *job, tnk__text_t *out);

/* ---- Fields that the owner may use while the job is idle ---- */

tnk__timer_t *tnk__job_timer(tnk__job_t *job);
tnk__deferred_t *tnk__job_deferred(tnk__job_t *job);
tnk__payer_t *tnk__job_payer(tnk__job_t *job);
const tnk__timer_t *tnk__job_timer_const(const tnk__job_t *job);
const tnk__payer_t *tnk__job_payer_const(const tnk__job_t *job);
tnk__job_t *tnk__job_of_timer(tnk__timer_t *timer);
tnk__job_t *tnk__job_of_deferred(tnk__deferred_t *deferred);
tnk__job_t *tnk__job_of_waiter(tnk__waiter_t *waiter);

#endif
