/* SPDX-License-Identifier: MIT */
/* Decides whether and when a call is retried. */
#include "lib/client/call/call_private.h"

#include <stdio.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"

/* A proxy may respond for a moment in place of the server. After this many
 * unreadable responses the failure is permanent. */
enum { MAX_REASON = 256, MAX_LIMIT = 64, MAX_UNREADABLE = 2 };

static uint64_t patience_of(const tnk__call_t *call) {
  return call->endpoint->config->options.patience_ms;
}

/* Why an attempt failed, for the log. */
static const char *reason_of(const tnk__call_t *call, const tnk__reply_t *reply,
                             char *text, size_t size) {
  if (reply->detail != NULL)
    return reply->detail;
  if (call->now.last_err != TNK_OK)
    return tnk_strerror(call->now.last_err);
  snprintf(text, size, "HTTP %d%s%s", reply->status,
           reply->page != NULL ? ": " : "",
           reply->page != NULL ? reply->page : "");
  return text;
}

/* Returns how long retries continue, as the end of a sentence. */
static void write_limit(const tnk__call_t *call, const tnk__reply_t *reply,
                        char *limit) {
  tnk__text_t out;

  tnk__text_init(&out, limit, MAX_LIMIT);
  if (reply->verdict.schedule == TNK__SCHEDULE_LONG &&
      patience_of(call) == UINT64_MAX) {
    tnk__text_printf(&out, "as long as it takes");
  } else if (reply->verdict.schedule == TNK__SCHEDULE_LONG) {
    tnk__text_printf(&out, "for ");
    tnk__text_time(&out, patience_of(call));
    tnk__text_printf(&out, " at most");
  } else {
    tnk__text_printf(&out, "%u more times at most",
                     call->tries.retry.max_retries + 1 -
                         call->tries.retry.n_retries);
  }
}

/* A server that is unreachable from the start is logged once, so that the
 * program does not wait in silence. reach.c reports a refused connection. */
static void log_failure(tnk__call_t *call, const tnk__reply_t *reply,
                        uint64_t delay_ms) {
  tnk__endpoint_t *endpoint = call->endpoint;
  char text[MAX_REASON];
  char limit[MAX_LIMIT];
  const char *why = reason_of(call, reply, text, sizeof(text));

  write_limit(call, reply, limit);
  if (!endpoint->is_known && reply->status == 0 && !call->request.background &&
      !tnk__reach_is_absent(endpoint)) {
    endpoint->is_known = 1;
    tnk__log(&endpoint->context->logger, TNK_LOG_WARN, "call",
             "%s: %s; still retrying, %s", call->owner.name, why, limit);
  }
  tnk__log(&endpoint->context->logger, TNK_LOG_DEBUG, "call",
           "%s: attempt %u failed (%s); the next one in %llu ms",
           call->owner.name, call->tries.n_attempts, why,
           (unsigned long long)delay_ms);
}

static tnk__retry_cause_t cause_of(tnk__outcome_t outcome) {
  switch (outcome) {
  case TNK__OUTCOME_UNSENT:
    return TNK__RETRY_CONNECT;
  case TNK__OUTCOME_LOST:
  case TNK__OUTCOME_TRUNCATED:
    return TNK__RETRY_LOST;
  case TNK__OUTCOME_TIMEOUT:
  case TNK__OUTCOME_408:
    return TNK__RETRY_TIMEOUT;
  case TNK__OUTCOME_429:
    return TNK__RETRY_RATE;
  case TNK__OUTCOME_402:
    return TNK__RETRY_BILLING;
  case TNK__OUTCOME_5XX:
    return TNK__RETRY_SERVER;
  default:
    return TNK__RETRY_OTHER;
  }
}

void tnk__call_count_repeat(const tnk__call_t *call, tnk__outcome_t outcome) {
  call->endpoint->context->counters.n_retries++;
  call->endpoint->n_retries_by[cause_of(outcome)]++;
}

/* Training, sampling and polls always wait for credit. Other calls report its
 * absence at once, so that a user sees it before the work begins. In a service
 * that recovers they wait too, once the service has accepted work: they belong
 * to a program that continues by itself. */
static int waits_for_credit(const tnk__call_t *call,
                            const tnk__reply_t *reply) {
  const tnk__endpoint_t *endpoint = call->endpoint;

  return reply->verdict.action == TNK__ACTION_PAUSE ||
         (reply->outcome == TNK__OUTCOME_402 && endpoint->has_credited &&
          endpoint->config->options.recovery == TNK_YES);
}

int tnk__call_may_pause(const tnk__call_t *call) {
  tnk__endpoint_t *endpoint = call->endpoint;
  tnk__context_t *context = endpoint->context;
  tnk__billing_step_t step;

  if (endpoint->config->options.max_billing_pause_ms == UINT64_MAX)
    return 0;
  step = tnk__billing_refused(&endpoint->billing, tnk__context_now_ms(context));
  if (step == TNK__BILLING_STOP)
    return 0;
  if (step == TNK__BILLING_PAUSE_AND_WARN)
    tnk__log(&context->logger, TNK_LOG_WARN, "call",
             "%s: refused for billing reasons (HTTP 402); waiting",
             call->owner.name);
  tnk__call_count_repeat(call, TNK__OUTCOME_402);
  return 1;
}

/* Returns whether the server may have accepted it without a response. */
static int is_lost(tnk__outcome_t outcome) {
  return outcome == TNK__OUTCOME_LOST || outcome == TNK__OUTCOME_TIMEOUT ||
         outcome == TNK__OUTCOME_TRUNCATED;
}

/* While a server has not started yet, retries continue as long as patience
 * lasts, whatever the number of attempts. */
static tnk__verdict_t verdict_of(const tnk__call_t *call,
                                 const tnk__reply_t *reply) {
  tnk__verdict_t verdict = reply->verdict;

  if (verdict.schedule == TNK__SCHEDULE_REQUEST &&
      tnk__reach_is_absent(call->endpoint))
    verdict.schedule = TNK__SCHEDULE_LONG;
  return verdict;
}

int tnk__call_may_repeat(tnk__call_t *call, const tnk__reply_t *reply,
                         uint64_t *delay_ms) {
  tnk__context_t *context = call->endpoint->context;
  tnk__verdict_t verdict;

  if (call->request.once || call->endpoint->closing ||
      (call->tries.disowned &&
       (call->tries.disowned++ > 1 || !is_lost(reply->outcome))))
    return 0;
  if (waits_for_credit(call, reply)) {
    if (call->request.route->kind == TNK__CALL_SAMPLE ||
        !tnk__call_may_pause(call))
      return 0; /* a sample waits without its slot */
    *delay_ms = TNK__BILLING_DELAY_MS;
    log_failure(call, reply, *delay_ms);
    return 1;
  }
  if (reply->outcome == TNK__OUTCOME_MALFORMED &&
      call->tries.n_unreadable++ == MAX_UNREADABLE)
    return 0;
  verdict = verdict_of(call, reply);
  if (verdict.action != TNK__ACTION_RETRY ||
      !tnk__retry_next(&call->tries.retry, &verdict, patience_of(call),
                       reply->retry_after_ms, tnk__context_now_ms(context),
                       tnk__context_uniform(context), delay_ms))
    return 0;
  tnk__call_count_repeat(call, reply->outcome);
  log_failure(call, reply, *delay_ms);
  return 1;
}
