/* SPDX-License-Identifier: MIT */
#include "lib/client/service/service.h"

#include "lib/base/alloc.h"
#include "lib/client/call/reach.h"
#include "lib/client/session/member.h"
#include "lib/client/future/service_op.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/train/training.h"

enum { WATCH_MS = 1000, MAX_TEXT = 768 };

/* The number of a client's pending operations, and an explanation of the
 * oldest. */
static size_t explain_oldest(const tnk__list_t *members, tnk__text_t *out) {
  size_t n = 0;

  TNK__LIST_FOREACH (node, members) {
    const tnk__member_t *member = tnk__member_of(node);
    if (member->type->explain(member, n == 0 ? out : NULL))
      n++;
  }
  return n;
}

/* The callback may free anything, so the caller restarts its iteration. */
static void tell(tnk__session_t *session, const char *client,
                 const tnk__stall_t *stall, uint64_t now, size_t n,
                 const char *oldest) {
  char reason[MAX_TEXT];
  tnk__text_t out;

  session->context->counters.n_stalls++;
  tnk__text_init(&out, reason, sizeof(reason));
  tnk__text_printf(&out, "no progress for ");
  tnk__text_time(&out, now - stall->moved_ms);
  tnk__text_printf(&out, n == 1 ? "; " : "; the oldest of %zu operations: ", n);
  tnk__text_printf(&out, "%s", oldest);
  tnk__registry_notice(&session->registry, client, TNK_QUEUE_STALLED, reason);
}

/* A large upload or a large result in transfer is progress. */
static int advances(const tnk__list_t *members) {
  int n = 0;

  TNK__LIST_FOREACH (node, members) {
    tnk__member_t *member = tnk__member_of(node);
    n += member->type->advances(member);
  }
  return n > 0;
}

static int watch_members(tnk__session_t *session, const tnk__list_t *members,
                         const char *client, tnk__stall_t *stall,
                         uint64_t now) {
  char oldest[MAX_TEXT];
  tnk__text_t out;
  size_t n;

  if (tnk__list_empty(members) || !tnk__stall_due(stall, now))
    return 0;
  if (advances(members)) {
    tnk__stall_moved(stall, now);
    return 0;
  }
  tnk__text_init(&out, oldest, sizeof(oldest));
  n = explain_oldest(members, &out);
  if (n > 0)
    tell(session, client, stall, now, n, oldest);
  return n > 0;
}

static int watch_service_ops(tnk__session_t *session, uint64_t now) {
  char text[MAX_TEXT];
  tnk__text_t out;

  TNK__LIST_FOREACH (node, &session->registry.service_ops) {
    tnk__service_op_t *op = tnk__container_of(node, tnk__service_op_t, link);
    if (!tnk__stall_due(&op->stall, now))
      continue;
    tnk__text_init(&out, text, sizeof(text));
    tnk__promise_explain(op->promise, &out);
    tell(session, op->name, &op->stall, now, 1, text);
    return 1;
  }
  return 0;
}

/* A pass over a slow link may take minutes to send. All uploads share that
 * link, so one that moves is progress for all training clients. */
static void note_uploads(tnk__session_t *session) {
  const uint64_t moved_ms = session->endpoint.http->upload_ms;

  TNK__LIST_FOREACH (node, &session->registry.trainings) {
    tnk__stall_t *stall = &tnk__container_of(node, tnk_training_t, link)->stall;
    if (moved_ms > stall->moved_ms)
      tnk__stall_moved(stall, moved_ms);
  }
}

/* Returns 1 if a stall was reported. */
static int look(tnk__session_t *session, uint64_t now) {
  TNK__LIST_FOREACH (node, &session->registry.trainings) {
    tnk_training_t *training = tnk__container_of(node, tnk_training_t, link);
    if (watch_members(session, &training->ops, training->info.model_id,
                      &training->stall, now))
      return 1;
  }
  TNK__LIST_FOREACH (node, &session->registry.samplings) {
    tnk_sampling_t *sampling = tnk__container_of(node, tnk_sampling_t, link);
    if (watch_members(session, &sampling->samples, sampling->id,
                      &sampling->stall, now))
      return 1;
  }
  return watch_service_ops(session, now);
}

/* In an outage no client can progress, and the outage was reported. */
static void forgive(tnk__session_t *session, uint64_t now) {
  TNK__LIST_FOREACH (node, &session->registry.trainings)
    tnk__stall_moved(&tnk__container_of(node, tnk_training_t, link)->stall,
                     now);
  TNK__LIST_FOREACH (node, &session->registry.samplings)
    tnk__stall_moved(&tnk__container_of(node, tnk_sampling_t, link)->stall,
                     now);
  TNK__LIST_FOREACH (node, &session->registry.service_ops)
    tnk__stall_moved(&tnk__container_of(node, tnk__service_op_t, link)->stall,
                     now);
}

static void on_tick(tnk__timer_t *timer) {
  tnk__watch_t *watch = tnk__container_of(timer, tnk__watch_t, timer);
  tnk__session_t *session = watch->session;
  const uint64_t now = tnk__context_now_ms(session->context);

  if (tnk__reach_is_out(&session->endpoint))
    forgive(session, now);
  note_uploads(session);
  while (!session->endpoint.closing && look(session, now))
    continue;
  if (!session->endpoint.closing && session->context->n_pending > 0)
    tnk__watch_arm(watch);
}

void tnk__watch_open(tnk__watch_t *watch, tnk__session_t *session) {
  *watch = (tnk__watch_t){.session = session};
}

void tnk__watch_close(tnk__watch_t *watch) {
  tnk__timer_stop(&watch->timer);
}

void tnk__watch_arm(tnk__watch_t *watch) {
  if (!tnk__timer_is_active(&watch->timer))
    tnk__timer_start_background(watch->session->context, &watch->timer,
                                WATCH_MS, on_tick);
}
