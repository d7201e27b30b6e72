#include "lib/client/future/job.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/session/session.h"

/* Whether an accepted request was run. A refused poll shows a failure of the
 * request, but seldom whether before or after it was run. Errors of the
 * polling, the credential or the connection say nothing about the request. */
static tnk_ran_t ran_of(const tnk__job_t *job, const tnk__reply_t *reply) {
  if (reply->error == NULL)
    return TNK_RAN_YES;
  if (reply->verdict.err == TNK_EFAILED)
    return TNK_RAN_UNKNOWN;
  switch (reply->status) {
  case 409: /* about its number: it came out of turn */
    return reply->has_expected && !job->was_doubtful ? TNK_RAN_NO
                                                     : TNK_RAN_UNKNOWN;
  case 401:
  case 402:
  case 405:
  case 408:
  case 429:
    return TNK_RAN_YES;
  default:
    return reply->status / 100 == 4 ? TNK_RAN_UNKNOWN : TNK_RAN_YES;
  }
}

static void on_result(tnk__future_t *future, const tnk__reply_t *reply) {
  tnk__job_t *job = tnk__container_of(future, tnk__job_t, future);

  job->ran = (uint8_t)ran_of(job, reply);
  job->done(job, reply);
}

/* The service has accepted the request, but there will be no result. */
static void fail(tnk__job_t *job, const tnk__reply_t *reply,
                 const tnk_error_t *pub) {
  tnk__reply_t end = *reply;

  end.error = tnk__error_with(&job->future.call.endpoint->context->alloc,
                              job->future.call.owner.name, pub,
                              pub->code == TNK_EPROTO ? reply->page : NULL);
  end.verdict = (tnk__verdict_t){.action = TNK__ACTION_FAIL,
                                 .err = pub->code,
                                 .effect = TNK__EFFECT_ACCEPTED};
  job->done(job, &end);
  tnk__error_unref(end.error);
}

/* The response to the submission is the result, or the reason for its
 * failure. */
static void answered_at_once(tnk__job_t *job, const tnk__answer_t *answer,
                             const tnk__reply_t *reply) {
  tnk__reply_t end = *reply;
  tnk_error_t pub = {.code = TNK_EPROTO,
                     .http_status = reply->status,
                     .n_attempts = job->future.call.tries.n_attempts};

  if (answer->kind == TNK__ANSWER_RESULT) {
    end.body = answer->result;
    end.body_len = answer->result_len;
    if (job->future.call.owner.operation != 0)
      tnk__call_tell(&job->future.call,
                     &(tnk_event_t){.phase = TNK_PHASE_RESULT,
                                    .bytes = end.body_len,
                                    .status = end.status});
    job->done(job, &end);
    return;
  }
  if (answer->kind == TNK__ANSWER_FAILED) {
    pub.code = TNK_EFAILED;
    pub.category = answer->failure.category;
    pub.message = answer->failure.message;
    tnk__call_hide(&job->future.call, pub.message);
    job->ran = TNK_RAN_UNKNOWN;
  }
  fail(job, reply, &pub);
}

/* Read a 2xx: the id of the future, or the result. */
static int read_answer(tnk__accepted_t *accepted, tnk__answer_t *answer,
                       tnk__arena_t *arena, const tnk__reply_t *reply) {
  int err = tnk__accepted_read(accepted, arena, reply->body, reply->body_len);

  if (err == TNK_OK && accepted->request_id == NULL)
    err = tnk__answer_read(answer, arena, reply->body, reply->body_len);
  return err;
}

static void on_submitted(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__job_t *job = tnk__container_of(call, tnk__job_t, future.call);
  tnk__context_t *context = call->endpoint->context;
  tnk__accepted_t accepted = {0};
  tnk__answer_t answer = {0};
  tnk__arena_t arena;
  int err;

  if (reply->error != NULL) {
    job->done(job, reply);
    return;
  }
  tnk__arena_init(&arena, &context->alloc, TNK__MIB);
  err = read_answer(&accepted, &answer, &arena, reply);
  if (err == TNK_EPROTO && tnk__call_repeat_unreadable(call, reply)) {
    tnk__arena_deinit(&arena);
    return;
  }
  /* A 2xx is an acceptance, even if its body is unusable. */
  job->is_accepted = 1;
  job->was_doubtful = tnk__call_was_doubtful(call) != 0;
  job->ran = err == TNK_EPROTO ? TNK_RAN_UNKNOWN : TNK_RAN_YES;
  if (call->owner.operation != 0)
    tnk__call_tell(call, &(tnk_event_t){.phase = TNK_PHASE_ACCEPTED,
                                        .status = reply->status,
                                        .request_id = accepted.request_id});
  if (job->accepted != NULL && !job->accepted(job, &accepted))
    ; /* the owner does not want the result any more */
  else if (err != TNK_OK)
    fail(job, reply,
         &(tnk_error_t){.code = err,
                        .http_status = reply->status,
                        .n_attempts = call->tries.n_attempts});
  else if (accepted.request_id != NULL)
    tnk__future_start(
        &job->future, accepted.request_id,
        tnk__context_now_ms(context) - call->tries.retry.started_ms, on_result);
  else
    answered_at_once(job, &answer, reply);
  tnk__arena_deinit(&arena);
}

void tnk__job_init(tnk__job_t *job, struct tnk__session *session,
                   tnk__route_id_t route, const char *name, const char *type) {
  memset(job, 0, sizeof(*job));
  tnk__future_init(&job->future, &session->endpoint, &session->limits, route,
                   name, type);
}

void tnk__job_start(tnk__job_t *job, const void *body, size_t n,
                    void (*done)(tnk__job_t *self, const tnk__reply_t *reply)) {
  job->done = done;
  job->is_accepted = 0;
  job->future.call.request.body = body;
  job->future.call.request.body_len = n;
  tnk__call_start(&job->future.call, on_submitted);
}

tnk_ran_t tnk__job_ran(const tnk__job_t *job) {
  if (job->future.limits == NULL)
    return TNK_RAN_NO;
  return job->is_accepted ? (tnk_ran_t)job->ran
                          : tnk__call_ran(&job->future.call);
}

void tnk__job_cancel(tnk__job_t *job) {
  tnk__future_cancel(&job->future);
}

void tnk__job_explain(const tnk__job_t *job, tnk__text_t *out) {
  if (job->is_accepted)
    tnk__future_explain(&job->future, out);
  else
    tnk__call_explain(&job->future.call, out);
}

int tnk__job_is_active(const tnk__job_t *job) {
  return tnk__future_is_active(&job->future) ||
         tnk__call_is_active(&job->future.call);
}

/* ---- Fields lent while idle ---- */

tnk__timer_t *tnk__job_timer(tnk__job_t *job) {
  return &job->future.call.timer;
}

tnk__deferred_t *tnk__job_deferred(tnk__job_t *job) {
  return &job->future.call.deferred;
}

tnk__payer_t *tnk__job_payer(tnk__job_t *job) {
  return &job->future.payer;
}

const tnk__timer_t *tnk__job_timer_const(const tnk__job_t *job) {
  return &job->future.call.timer;
}

const tnk__payer_t *tnk__job_payer_const(const tnk__job_t *job) {
  return &job->future.payer;
}

tnk__job_t *tnk__job_of_timer(tnk__timer_t *timer) {
  return tnk__container_of(timer, tnk__job_t, future.call.timer);
}

tnk__job_t *tnk__job_of_deferred(tnk__deferred_t *deferred) {
  return tnk__container_of(deferred, tnk__job_t, future.call.deferred);
}

tnk__job_t *tnk__job_of_waiter(tnk__waiter_t *waiter) {
  return tnk__container_of(waiter, tnk__job_t, future.payer.waiter);
}
