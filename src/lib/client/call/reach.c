/* SPDX-License-Identifier: MIT */
/* Tracks whether an endpoint responds, and the pauses that wait for that. */
#include "lib/client/call/reach.h"

#include <stdio.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"

/* When an outage is over, all requests continue, spread over this time. */
enum { SPREAD_MS = 1000, MAX_REASON = 256 };

/* Replace the running pause. */
static void go_in(tnk__context_t *context, tnk__reacher_t *reacher,
                  uint64_t delay_ms) {
  tnk__timer_t *timer = reacher->timer;
  const int is_background = tnk__timer_is_background(timer);
  void (*fn)(tnk__timer_t * self) = timer->fn;

  if (!tnk__timer_is_active(timer) ||
      tnk__timer_left_ms(timer, tnk__context_now_ms(context)) <= delay_ms)
    return;
  tnk__timer_stop(timer);
  if (is_background)
    tnk__timer_start_background(context, timer, delay_ms, fn);
  else
    tnk__timer_start(context, timer, delay_ms, fn);
}

static tnk__reacher_t *reacher_at(tnk__list_t *node) {
  return tnk__container_of(node, tnk__reacher_t, link);
}

static void arm_probe(tnk__endpoint_t *endpoint);

static void on_probe(tnk__timer_t *timer) {
  tnk__endpoint_t *endpoint =
      tnk__container_of(timer, tnk__endpoint_t, reach.probe);
  tnk__list_t *node = tnk__list_pop(&endpoint->reach.unanswered);

  if (node != NULL)
    go_in(endpoint->context, reacher_at(node), 0);
  arm_probe(endpoint);
}

static void arm_probe(tnk__endpoint_t *endpoint) {
  if (endpoint->reach.outage.is_out &&
      !tnk__list_empty(&endpoint->reach.unanswered) &&
      !tnk__timer_is_active(&endpoint->reach.probe))
    tnk__timer_start_background(endpoint->context, &endpoint->reach.probe,
                                TNK__OUTAGE_PROBE_MS, on_probe);
}

static void wake(tnk__endpoint_t *endpoint, tnk__reacher_t *reacher) {
  go_in(
      endpoint->context, reacher,
      (uint64_t)(tnk__context_uniform(endpoint->context) * (double)SPREAD_MS));
}

static void wake_unanswered(tnk__endpoint_t *endpoint) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&endpoint->reach.unanswered)) != NULL)
    wake(endpoint, reacher_at(node));
}

/* End the pauses after a 5xx: the service works again. */
static void wake_refused(tnk__endpoint_t *endpoint) {
  const tnk__reach_t *reach = &endpoint->reach;
  const int was_long =
      reach->refused_ms - reach->refusals.since_ms >= TNK__OUTAGE_MS;

  for (int i = 0; i <= was_long; i++) {
    tnk__list_t *node;
    while ((node = tnk__list_pop(&endpoint->reach.refused[i])) != NULL) {
      reacher_at(node)->was_woken = 1;
      wake(endpoint, reacher_at(node));
    }
  }
}

static int is_out(const tnk__reach_t *reach) {
  return reach->outage.is_out || reach->refusals.is_out;
}

int tnk__reach_is_out(const tnk__endpoint_t *endpoint) {
  return is_out(&endpoint->reach);
}

static void write_outage(const tnk__reach_t *reach, uint64_t now,
                         tnk__text_t *out) {
  if (reach->is_absent) {
    tnk__text_printf(out,
                     "%s; there was no response from there yet, and one "
                     "attempt follows every %d s",
                     reach->why_absent, TNK__OUTAGE_PROBE_MS / 1000);
  } else if (reach->outage.is_out) {
    tnk__text_printf(out, "no answer for ");
    tnk__text_time(out, now - reach->outage.since_ms);
    tnk__text_printf(out, " (%s); one attempt follows every %d s",
                     tnk_strerror(reach->last_err),
                     TNK__OUTAGE_PROBE_MS / 1000);
  } else {
    tnk__text_printf(out, "every answer for ");
    tnk__text_time(out, now - reach->refusals.since_ms);
    tnk__text_printf(out,
                     " was a server error (the last one HTTP %d); pending "
                     "requests are retried after their own pauses",
                     reach->last_status);
  }
}

/* The observer may close the service, so it is called in its own turn. */
static void on_told(tnk__deferred_t *deferred) {
  tnk__endpoint_t *endpoint =
      tnk__container_of(deferred, tnk__endpoint_t, reach.notice);
  const tnk__reach_t *reach = &endpoint->reach;
  const uint64_t now = tnk__context_now_ms(endpoint->context);
  const int was_told = reach->was_told;
  char reason[MAX_REASON];
  tnk__text_t out;

  if (is_out(reach) == was_told)
    return; /* the state has changed back in the meantime */
  endpoint->reach.was_told = !was_told;
  tnk__text_init(&out, reason, sizeof(reason));
  if (!was_told) {
    write_outage(reach, now, &out);
    endpoint->reach.told_since_ms = reach->outage.is_out
                                        ? reach->outage.since_ms
                                        : reach->refusals.since_ms;
  } else {
    tnk__text_printf(&out, "answers again after ");
    tnk__text_time(&out, now - reach->told_since_ms);
  }
  tnk__log(&endpoint->context->logger, TNK_LOG_WARN, "call", "%s: %s",
           endpoint->config->url.host, reason);
  if (reach->on_change != NULL)
    reach->on_change(endpoint, !was_told, reason);
}

static void tell(tnk__endpoint_t *endpoint) {
  endpoint->reach.notice.fn = on_told;
  tnk__defer(endpoint->context, &endpoint->reach.notice);
}

static int is_answer(tnk__outcome_t outcome) {
  return outcome != TNK__OUTCOME_UNSENT && outcome != TNK__OUTCOME_LOST &&
         outcome != TNK__OUTCOME_TIMEOUT;
}

void tnk__reach_open(tnk__endpoint_t *endpoint) {
  tnk__list_init(&endpoint->reach.unanswered);
  tnk__list_init(&endpoint->reach.refused[0]);
  tnk__list_init(&endpoint->reach.refused[1]);
  tnk__deferred_init(&endpoint->reach.notice, on_told);
}

void tnk__reach_shut(tnk__endpoint_t *endpoint) {
  while (tnk__list_pop(&endpoint->reach.unanswered) != NULL ||
         tnk__list_pop(&endpoint->reach.refused[0]) != NULL ||
         tnk__list_pop(&endpoint->reach.refused[1]) != NULL)
    continue;
  tnk__timer_stop(&endpoint->reach.probe);
  tnk__defer_cancel(&endpoint->reach.notice);
}

void tnk__reacher_init(tnk__reacher_t *reacher, tnk__timer_t *timer) {
  tnk__list_init(&reacher->link);
  reacher->timer = timer;
  reacher->is_unanswered = reacher->is_refused = reacher->was_woken = 0;
}

int tnk__reach_is_absent(const tnk__endpoint_t *endpoint) {
  return endpoint->reach.is_absent;
}

/* An outage that ends with a 5xx continues as an outage. */
static void note_answer(tnk__endpoint_t *endpoint, tnk__outcome_t outcome,
                        int status) {
  tnk__reach_t *reach = &endpoint->reach;
  const tnk__outage_t before = reach->outage;

  reach->has_answered = 1;
  reach->is_absent = 0;
  if (tnk__outage_answered(&reach->outage)) {
    tnk__timer_stop(&reach->probe);
    wake_unanswered(endpoint);
    if (outcome == TNK__OUTCOME_5XX)
      reach->refusals = before;
    tell(endpoint);
  }
  if (outcome != TNK__OUTCOME_5XX) {
    wake_refused(endpoint);
    if (tnk__outage_answered(&reach->refusals))
      tell(endpoint);
    return;
  }
  if (status == 0)
    return;
  reach->last_status = status;
  reach->refused_ms = tnk__context_now_ms(endpoint->context);
  if (tnk__outage_failed(&reach->refusals, reach->refused_ms, TNK__REFUSALS_MS))
    tell(endpoint);
}

/* There was never a response: the port may be wrong, or the server has not
 * started yet. */
static void note_absence(tnk__reach_t *reach,
                         const tnk__http_result_t *result) {
  if (reach->has_answered)
    return;
  reach->is_absent = result->cause == UV_ECONNREFUSED;
  (void)snprintf(reach->why_absent, sizeof(reach->why_absent), "%s",
                 result->detail != NULL ? result->detail
                                        : "connection refused");
}

void tnk__reach_note(tnk__endpoint_t *endpoint, tnk__reacher_t *reacher,
                     tnk__outcome_t outcome, int is_awaited,
                     const tnk__http_result_t *result) {
  tnk__reach_t *reach = &endpoint->reach;

  reacher->is_unanswered = !is_answer(outcome);
  reacher->is_refused = outcome == TNK__OUTCOME_5XX;
  if (!reacher->is_unanswered && !reacher->is_refused)
    reacher->was_woken = 0;
  if (endpoint->closing)
    return;
  if (reacher->is_unanswered) {
    reach->last_err = result->err;
    note_absence(reach, result);
    if (tnk__outage_failed(&reach->outage,
                           tnk__context_now_ms(endpoint->context),
                           reach->is_absent ? 0 : TNK__OUTAGE_MS))
      tell(endpoint);
  } else {
    note_answer(endpoint, outcome, is_awaited ? result->status : 0);
  }
}

void tnk__reach_wait(tnk__endpoint_t *endpoint, tnk__reacher_t *reacher,
                     uint64_t asked_ms) {
  tnk__list_remove(&reacher->link);
  if (endpoint->closing)
    return;
  if (reacher->is_unanswered)
    tnk__list_append(&endpoint->reach.unanswered, &reacher->link);
  else if (reacher->is_refused && asked_ms == 0)
    tnk__list_append(&endpoint->reach.refused[reacher->was_woken],
                     &reacher->link);
  arm_probe(endpoint);
}

void tnk__reach_leave(tnk__reacher_t *reacher) {
  tnk__list_remove(&reacher->link);
}

void tnk__reach_explain(const tnk__endpoint_t *endpoint,
                        const tnk__reacher_t *reacher, tnk__text_t *out) {
  const tnk__reach_t *reach = &endpoint->reach;

  if (!reach->outage.is_out || !reacher->is_unanswered)
    return;
  tnk__text_printf(out, "; nothing has answered for ");
  tnk__text_time(out, tnk__context_now_ms(endpoint->context) -
                          reach->outage.since_ms);
  tnk__text_printf(out, ", and one attempt goes ahead every %d s",
                   TNK__OUTAGE_PROBE_MS / 1000);
}
