/* SPDX-License-Identifier: MIT */
/*
 *   refused --a heartbeat is asked for--> ASKING --answered, or 30 s--> PACING
 *   refused --the session is known to be lost--> PACING
 *   PACING --the call has taken long enough--> `done`
 *   any --tnk__doubt_drop()--> gone
 */
#include "lib/client/call/call_private.h"

#include <stdio.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"

enum {
  MAX_ASKING_MS = 30000,
  FIRST_DELAY_MS = 500,
  MAX_DELAY_MS = 10000,
  CALM_MS = 60000
};

struct tnk__doubt {
  tnk__list_t link; /* in endpoint->doubts.asking; in no list while PACING */
  tnk__call_t *call;
  tnk__reply_t reply; /* with one reference to its error */
};

void tnk__doubts_open(tnk__endpoint_t *endpoint) {
  tnk__list_init(&endpoint->doubts.asking);
}

/* ---- Pace ---- */

/* Minimum duration of a call that is refused now. */
static uint64_t least_ms(const tnk__pace_t *pace) {
  uint64_t ms = FIRST_DELAY_MS;
  uint32_t i;

  if (pace->n_rounds == 0)
    return 0;
  for (i = 1; i < pace->n_rounds && ms < MAX_DELAY_MS; i++)
    ms *= 2;
  return ms < MAX_DELAY_MS ? ms : MAX_DELAY_MS;
}

/* Refusals that come close together count as one round. */
static void count_round(tnk__pace_t *pace, uint64_t now) {
  if (pace->n_rounds > 0 && now - pace->last_ms > CALM_MS)
    pace->n_rounds = 0;
  if (pace->n_rounds > 0 && now - pace->round_ms < least_ms(pace))
    return;
  pace->n_rounds++;
  pace->round_ms = now;
}

/* Refusals in one session do not delay the report that another one is lost. */
static tnk__pace_t *pace_of(const tnk__call_t *call) {
  return &call->endpoint->doubts.pace[call->owner.elsewhere != NULL];
}

/* The time until a call may end. The first round ends at once. */
static uint64_t pace_ms(const tnk__call_t *call) {
  const tnk__call_kind_t kind = call->request.route->kind;
  tnk__pace_t *pace = pace_of(call);
  const uint64_t now = tnk__context_now_ms(call->endpoint->context);
  const uint64_t began = call->tries.retry.started_ms;
  uint64_t least;

  if (kind == TNK__CALL_POLL || kind == TNK__CALL_POLL_SAMPLE)
    return 0; /* polls have their own pace */
  count_round(pace, now);
  pace->last_ms = now;
  /* Calls that were started before the first refusal belong to its round. */
  if (began <= pace->round_ms && pace->n_rounds == 1)
    return 0;
  least = least_ms(pace);
  return began + least > now ? began + least - now : 0;
}

/* ---- The end of a wait ---- */

static void finish(tnk__call_t *call) {
  struct tnk__doubt *doubt = call->doubt;
  tnk__reply_t reply = doubt->reply;

  call->doubt = NULL;
  tnk__list_remove(&doubt->link);
  tnk__free(&call->endpoint->context->alloc, doubt);
  call->tries.ran = (uint8_t)reply.verdict.ran;
  call->now.state = TNK__CALL_IDLE;
  tnk__call_restore_body(call);
  call->done(call, &reply);
  tnk__error_unref(reply.error);
}

static void on_over(tnk__deferred_t *deferred) {
  finish(tnk__container_of(deferred, tnk__call_t, deferred));
}

static void on_paced(tnk__timer_t *timer) {
  finish(tnk__container_of(timer, tnk__call_t, timer));
}

/* Report the same message with another code. Without memory the error stays as
 * it is. */
static void blame_session(tnk__call_t *call, tnk__reply_t *reply) {
  const char *ended = tnk__call_ended_session(call);
  tnk_error_t pub = reply->error->pub;
  tnk__error_t *error;
  char what[160];

  if (reply->verdict.err == TNK_ESESSION)
    return;
  pub.code = TNK_ESESSION;
  snprintf(what, sizeof(what), "%s in %.100s", call->owner.name,
           ended != NULL ? ended : "an earlier session");
  /* The strings of `pub` belong to the old error. */
  error = tnk__error_from(&call->endpoint->context->alloc, what, &pub);
  tnk__error_unref(reply->error);
  reply->error = error;
  reply->verdict.err = TNK_ESESSION;
  reply->verdict.action = TNK__ACTION_FAIL;
}

static void settle(struct tnk__doubt *doubt) {
  tnk__call_t *call = doubt->call;
  tnk__context_t *context = call->endpoint->context;
  uint64_t ms;

  tnk__list_remove(&doubt->link);
  tnk__timer_stop(&call->timer);
  if (tnk__call_has_lost_session(call))
    blame_session(call, &doubt->reply);
  ms = pace_ms(call);
  if (ms > 0) {
    tnk__timer_start(context, &call->timer, ms, on_paced);
    return;
  }
  call->deferred.fn = on_over;
  tnk__defer(context, &call->deferred);
}

void tnk__doubts_settle(tnk__endpoint_t *endpoint) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&endpoint->doubts.asking)) != NULL)
    settle(tnk__container_of(node, struct tnk__doubt, link));
}

/* The server no longer responds. Other calls report that. */
static void on_too_long(tnk__timer_t *timer) {
  settle(tnk__container_of(timer, tnk__call_t, timer)->doubt);
}

/* ---- The refusal ---- */

const char *tnk__call_ended_session(const tnk__call_t *call) {
  return call->owner.elsewhere != NULL ? *call->owner.elsewhere
                                       : call->endpoint->ended_session;
}

int tnk__call_has_lost_session(const tnk__call_t *call) {
  return tnk__call_ended_session(call) != NULL ||
         (call->owner.elsewhere == NULL &&
          call->request.route->kind == TNK__CALL_CREATE &&
          call->tries.session != call->endpoint->n_sessions);
}

static int is_in_session(const tnk__call_t *call) {
  const tnk__call_kind_t kind = call->request.route->kind;

  return (kind >= TNK__CALL_CREATE && kind <= TNK__CALL_POLL_SAMPLE) ||
         (call->request.route->traits & TNK__IN_SESSION) != 0;
}

static int speaks_of_session(const tnk__reply_t *reply) {
  const char *message = reply->error->pub.message;

  for (; message != NULL && *message != '\0'; message++)
    if (strncasecmp(message, "session", 7) == 0)
      return 1;
  return 0;
}

/* The service did not send an HTML page. */
static int is_suspicious(const tnk__call_t *call, const tnk__reply_t *reply) {
  if (reply->error == NULL || reply->is_page || !is_in_session(call) ||
      call->endpoint->closing || call->tries.disowned)
    return 0;
  switch (reply->outcome) {
  case TNK__OUTCOME_404:
  case TNK__OUTCOME_410:
    return 1;
  case TNK__OUTCOME_400:
  case TNK__OUTCOME_409:
  case TNK__OUTCOME_422:
    return tnk__call_has_lost_session(call) || speaks_of_session(reply);
  default:
    return 0;
  }
}

int tnk__doubt_hold(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__endpoint_t *endpoint = call->endpoint;
  tnk__doubts_t *doubts = &endpoint->doubts;
  struct tnk__doubt *doubt;

  if (!is_suspicious(call, reply) || doubts->ask == NULL)
    return 0;
  doubt = tnk__calloc(&endpoint->context->alloc, 1, sizeof(*doubt));
  if (doubt == NULL)
    return 0;
  doubt->call = call;
  doubt->reply = *reply;
  doubt->reply.error = tnk__error_ref(reply->error);
  /* Memory that the response has lent is freed after `done`. */
  doubt->reply.body = (const uint8_t *)"";
  doubt->reply.body_len = 0;
  doubt->reply.buf = NULL;
  doubt->reply.result = NULL;
  doubt->reply.detail = doubt->reply.page = NULL;
  call->doubt = doubt;
  call->now.state = TNK__CALL_DOUBTING;
  call->now.since_ms = tnk__context_now_ms(endpoint->context);
  tnk__list_init(&doubt->link);
  if (tnk__call_has_lost_session(call) || !doubts->ask(doubts->user)) {
    settle(doubt);
    return 1;
  }
  tnk__call_waits(call, TNK_WAITS_FOR_SESSION);
  tnk__list_append(&doubts->asking, &doubt->link);
  tnk__timer_start(endpoint->context, &call->timer, MAX_ASKING_MS, on_too_long);
  return 1;
}

void tnk__doubt_drop(tnk__call_t *call) {
  struct tnk__doubt *doubt = call->doubt;

  call->doubt = NULL;
  tnk__list_remove(&doubt->link);
  tnk__error_unref(doubt->reply.error);
  tnk__free(&call->endpoint->context->alloc, doubt);
}

tnk_ran_t tnk__doubt_ran(const tnk__call_t *call) {
  return (tnk_ran_t)call->doubt->reply.verdict.ran;
}

/* ---- A server that was probably restarted ---- */

void tnk__restart_open(tnk__endpoint_t *endpoint) {
  tnk__list_init(&endpoint->restart.held);
}

static int is_refused(const tnk__call_t *call, const tnk__http_result_t *result,
                      tnk__outcome_t outcome) {
  const tnk__config_t *config = call->endpoint->config;

  return outcome == TNK__OUTCOME_UNSENT && result->cause == UV_ECONNREFUSED &&
         tnk__proxies_find(&config->proxies, config->url.host, config->url.port,
                           config->url.is_tls) == NULL;
}

void tnk__restart_note(tnk__call_t *call, const tnk__http_result_t *result,
                       tnk__outcome_t outcome) {
  tnk__endpoint_t *endpoint = call->endpoint;
  tnk__restart_t *restart = &endpoint->restart;
  const uint64_t now = tnk__context_now_ms(endpoint->context);

  if (!restart->is_watching || endpoint->ended_session != NULL)
    return;
  if (is_refused(call, result, outcome)) {
    if (!restart->is_suspected)
      restart->refused_ms = now;
    restart->is_suspected = 1;
  } else if (restart->is_suspected && result->status != 0 &&
             call->now.since_ms < restart->refused_ms) {
    tnk__log(&endpoint->context->logger, TNK_LOG_INFO, "call",
             "%s: a request from before the refused connection has its "
             "response, so the server was not restarted",
             endpoint->config->url.host);
    tnk__restart_over(endpoint);
  } else if (restart->is_suspected && result->status != 0 &&
             call->request.route->kind != TNK__CALL_HEARTBEAT) {
    endpoint->doubts.ask(endpoint->doubts.user);
  }
}

int tnk__restart_holds(const tnk__call_t *call) {
  return call->endpoint->restart.is_suspected &&
         (call->request.route->kind == TNK__CALL_TRAIN ||
          call->request.route->kind == TNK__CALL_SAVE);
}

void tnk__restart_wait(tnk__call_t *call) {
  tnk__list_remove(&call->reacher.link);
  tnk__list_append(&call->endpoint->restart.held, &call->reacher.link);
}

void tnk__restart_over(tnk__endpoint_t *endpoint) {
  tnk__list_t *node;

  endpoint->restart.is_suspected = 0;
  while ((node = tnk__list_pop(&endpoint->restart.held)) != NULL) {
    tnk__reacher_t *reacher = tnk__container_of(node, tnk__reacher_t, link);
    void (*fn)(tnk__timer_t * timer) = reacher->timer->fn;

    tnk__timer_stop(reacher->timer);
    tnk__timer_start(endpoint->context, reacher->timer, 0, fn);
  }
}
