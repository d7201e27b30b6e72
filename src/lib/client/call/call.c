/* SPDX-License-Identifier: MIT */
#include "lib/client/call/call_private.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/client/call/auth.h"
#include "lib/policy/retry_after.h"
#include "lib/policy/turns.h"
#include "lib/wire/message/answer.h"
#include "lib/wire/message/page.h"

/* A conflict may be temporary. After this many it is permanent. */
enum { MAX_CONFLICTS = 3 };

static void attempt(tnk__call_t *call);
static void on_part(tnk__exchange_t *exchange);

static int has(const tnk__call_t *call, tnk__trait_t trait) {
  return (call->request.route->traits & trait) != 0;
}

/* A call that has succeeded before exists, so its 404 is about the named
 * object. Before that, a 404, 405 or 501 means that the server does not have
 * the call. */
static int is_offered(const tnk__call_t *call) {
  return (call->endpoint->offered & tnk__route_bit(call->request.route)) != 0;
}

/* ---- The answer ---- */

/* Returns whether it is a redirection, for a call whose answer is one. */
static int is_pointer(const tnk__call_t *call,
                      const tnk__http_result_t *result) {
  return has(call, TNK__POINTS) && result->status / 100 == 3 &&
         result->status != 304 &&
         tnk__http_result_header(result, "location") != NULL;
}

/* Servers use several statuses for a call that they do not know. */
static int is_no_call(int status) {
  return status == 404 || status == 405 || status == 501;
}

/* The status takes precedence over the way in which the body ended. */
static tnk__outcome_t outcome_of(const tnk__call_t *call,
                                 const tnk__http_result_t *result) {
  if (is_pointer(call, result))
    return TNK__OUTCOME_2XX;
  if (result->status == 501 && has(call, TNK__OPTIONAL) && !is_offered(call))
    return TNK__OUTCOME_405;
  if (result->err == TNK_OK)
    return tnk__outcome_of_status(result->status, result->body->len);
  if (result->err == TNK_ECERT)
    return TNK__OUTCOME_UNTRUSTED;
  if (result->err == TNK_EPROXY || result->is_final)
    return TNK__OUTCOME_REFUSED;
  if (!result->sent)
    return TNK__OUTCOME_UNSENT;
  if (result->status == 0)
    return result->err == TNK_ETIMEDOUT ? TNK__OUTCOME_TIMEOUT
                                        : TNK__OUTCOME_LOST;
  if (result->err != TNK_EPROTO && result->err != TNK_ETOOBIG)
    return tnk__outcome_of_cut(call->request.route->kind, result->status);
  if (result->status / 100 != 2)
    return tnk__outcome_of_status(result->status, 1);
  return result->err == TNK_EPROTO ? TNK__OUTCOME_MALFORMED
                                   : TNK__OUTCOME_TOO_BIG;
}

static void log_deprecation(const tnk__call_t *call,
                            const tnk__http_result_t *result) {
  const char *note = tnk__http_result_header(result, "x-deprecation-note");
  const char *level = tnk__http_result_header(result, "x-deprecation-level");

  if (note == NULL || note[0] == '\0')
    return;
  /* Redacted in place, in the received head. It is not read again. */
  tnk__call_hide(call, note);
  tnk__log(&call->endpoint->context->logger,
           level != NULL && strcasecmp(level, "error") == 0 ? TNK_LOG_ERROR
                                                            : TNK_LOG_WARN,
           "http", "%s: deprecated: %s", call->owner.name, note);
}

/* Parse the body of a refusal. Without memory the result is empty, and only the
 * status decides. Strings are in the arena. */
static tnk__failure_t read_failure(const tnk__call_t *call,
                                   const tnk__http_result_t *result,
                                   const tnk__reply_t *reply,
                                   tnk__arena_t *arena) {
  tnk__failure_t failure = {0};

  if (result->err != TNK_OK || reply->outcome == TNK__OUTCOME_2XX ||
      tnk__failure_read(&failure, arena, reply->body, reply->body_len) !=
          TNK_OK)
    return (tnk__failure_t){0};
  /* The body of a redirection only repeats its target. */
  if (reply->page != NULL && reply->outcome == TNK__OUTCOME_3XX)
    failure.message = NULL;
  tnk__call_hide(call, failure.message);
  return failure;
}

/* Add the facts from the message of a refusal to those of its head. */
static void note_words(tnk__reply_t *reply, const tnk__failure_t *failure) {
  if (failure->retry_after_ms > reply->retry_after_ms &&
      failure->retry_after_ms <= TNK__RETRY_AFTER_MAX_MS)
    reply->retry_after_ms = failure->retry_after_ms;
  if (failure->message == NULL)
    return;
  if (reply->status == 409 || reply->status == 422)
    reply->is_taken = tnk__turns_parse_taken(failure->message);
  /* Other refusals may name expected values too, but not numbers. */
  if (reply->status == 409)
    reply->has_expected = tnk__turns_parse_conflict(
        failure->message, &reply->expected, &reply->got);
}

/* An owner that released resources for the pause must get them back first. */
static void on_pause_over(tnk__timer_t *timer) {
  tnk__call_t *call = tnk__container_of(timer, tnk__call_t, timer);

  tnk__reach_leave(&call->reacher);
  if (call->request.in_pause == NULL) {
    attempt(call);
    return;
  }
  call->now.state = TNK__CALL_READY;
  call->request.in_pause(call, 1);
}

void tnk__call_go_on(tnk__call_t *call) {
  if (call->now.state == TNK__CALL_READY)
    attempt(call);
}

static void pause_for(tnk__call_t *call, uint64_t delay_ms, uint64_t asked_ms) {
  call->now.state = TNK__CALL_PAUSING;
  call->now.since_ms = tnk__context_now_ms(call->endpoint->context);
  tnk__timer_start(call->endpoint->context, &call->timer, delay_ms,
                   on_pause_over);
  tnk__reach_wait(call->endpoint, &call->reacher, asked_ms);
  if (call->request.in_pause != NULL)
    call->request.in_pause(call, 0);
}

static int will_repeat(tnk__call_t *call, const tnk__reply_t *reply) {
  uint64_t delay_ms;

  if (!tnk__call_may_repeat(call, reply, &delay_ms))
    return 0;
  tnk__call_tell_retry(call, reply->status, reply->verdict.err);
  pause_for(call, delay_ms, reply->retry_after_ms);
  return 1;
}

/* Most responses have no such header, and then the time is not needed. */
static uint64_t retry_after(const tnk__call_t *call,
                            const tnk__http_result_t *result) {
  const char *ms = tnk__http_result_header(result, "retry-after-ms");
  const char *text = tnk__http_result_header(result, "retry-after");

  return ms == NULL && text == NULL
             ? 0
             : tnk__retry_after(ms, text,
                                tnk__http_result_header(result, "date"),
                                tnk__context_wall_s(call->endpoint->context));
}

/* Read the head of a response. The body is parsed by the owner. */
static void read_head(const tnk__call_t *call, const tnk__http_result_t *result,
                      tnk__reply_t *reply) {
  const char *type = tnk__http_result_header(result, "content-type");

  reply->status = result->status;
  reply->result = result;
  reply->detail = result->detail;
  if (result->status != 0)
    call->endpoint->is_known = 1;
  reply->buf = result->body;
  reply->outcome = outcome_of(call, result);
  reply->body =
      result->body->data != NULL ? result->body->data : (const uint8_t *)"";
  reply->body_len = result->body->len;
  reply->is_proto =
      type != NULL && strstr(type, "application/x-protobuf") != NULL;
  reply->retry_after_ms = retry_after(call, result);
}

/* ---- What the server offers ---- */

static int is_missing(const tnk__call_t *call) {
  return (call->endpoint->missing & tnk__route_bit(call->request.route)) != 0;
}

static void learn(tnk__call_t *call, int status) {
  tnk__endpoint_t *endpoint = call->endpoint;

  if (!has(call, TNK__OPTIONAL) || is_missing(call) || is_offered(call))
    return;
  if (status / 100 == 2) {
    endpoint->offered |= tnk__route_bit(call->request.route);
  } else if (is_no_call(status) && (status != 404 || !has(call, TNK__NAMES))) {
    endpoint->missing |= tnk__route_bit(call->request.route);
    tnk__log(&endpoint->context->logger, TNK_LOG_INFO, "call",
             "%s: not offered by this server (HTTP %d)", call->owner.name,
             status);
  }
}

/* For the next attempts. A 2xx that is unreadable or violates HTTP may come
 * from a proxy, so it proves nothing yet. */
static void note_effect(tnk__call_t *call, const tnk__reply_t *reply) {
  const tnk__effect_t effect = reply->verdict.effect;

  if (reply->status == 409)
    return; /* a refusal, complete or not: an unknown effect stays unknown */
  if (effect == TNK__EFFECT_UNKNOWN || reply->outcome == TNK__OUTCOME_MALFORMED)
    call->tries.was_unknown = 1;
  else if (effect == TNK__EFFECT_ACCEPTED && reply->outcome != TNK__OUTCOME_2XX)
    call->tries.was_accepted = 1;
}

/* Returns whether the account pays for this call. */
static int costs_credit(const tnk__call_t *call) {
  const tnk__call_kind_t kind = call->request.route->kind;

  return kind >= TNK__CALL_CREATE && kind <= TNK__CALL_SAMPLE;
}

int tnk__call_repeat_unreadable(tnk__call_t *call, const tnk__reply_t *reply) {
  const tnk__attempt_t facts = {.call = call->request.route->kind,
                                .outcome = TNK__OUTCOME_MALFORMED};
  tnk__reply_t again = *reply;

  again.outcome = TNK__OUTCOME_MALFORMED;
  again.verdict = tnk__classify(&facts);
  call->now.last_err = TNK_EPROTO;
  note_effect(call, &again);
  if (!will_repeat(call, &again))
    return 0;
  tnk__call_leave_out(call);
  return 1;
}

/* Returns whether the call sends the credential that other calls exchange for a
 * token. The command's output is kept as a token where it is not exchanged. */
static int is_raw(const tnk__call_t *call) {
  return call->request.route == tnk__route(TNK__ROUTE_AUTH_TOKEN) ||
         (has(call, TNK__ABOUT_KEY) && !call->endpoint->auth->uses_command);
}

/* Send a call again with another token, if the server refused it only because
 * the token ended early. Returns 1 if it is on its way. */
static int will_replay(tnk__call_t *call, const tnk__http_result_t *result) {
  const char *why = tnk__http_result_header(result, "www-authenticate");

  if (result->status != 401 || why == NULL ||
      strstr(why, "error=\"invalid_token\"") == NULL ||
      call->tries.was_rejected || is_raw(call) ||
      !tnk__auth_reject(call->endpoint->auth, call->now.token_number))
    return 0;
  call->tries.was_rejected = 1;
  call->tries.n_attempts--; /* the protocol counts it as the same attempt */
  tnk__call_count_repeat(call, TNK__OUTCOME_401);
  attempt(call);
  return 1;
}

/* Other bytes are another request, which needs a new key. */
static void make_key(tnk__call_t *call) {
  call->tries.key[0] = tnk__context_random(call->endpoint->context);
  call->tries.key[1] = tnk__context_random(call->endpoint->context);
}

/* Send a call again without members that the library has added, if the server
 * refused it only because of them. Returns 1 if it is on its way. */
static int will_shorten(tnk__call_t *call, const tnk__reply_t *reply) {
  if (!tnk__call_shorten(call, reply))
    return 0;
  make_key(call);
  tnk__call_count_repeat(call, reply->outcome);
  tnk__call_tell_retry(call, reply->status, reply->verdict.err);
  attempt(call);
  return 1;
}

/* The kept connection broke, and the request was sent once more on another. The
 * server may have received the first copy. */
static void note_replay(tnk__call_t *call) {
  call->tries.was_replayed = 1;
  call->tries.n_attempts++;
  tnk__call_count_sent(call);
  tnk__call_count_repeat(call, TNK__OUTCOME_LOST);
}

/* The input of the retry table. */
static tnk__attempt_t facts_of(tnk__call_t *call,
                               const tnk__http_result_t *result,
                               const tnk__reply_t *reply,
                               const tnk__failure_t *failure) {
  tnk__attempt_t facts = {
      .call = call->request.route->kind,
      .outcome = reply->outcome,
      .should_retry =
          tnk__should_retry(tnk__http_result_header(result, "x-should-retry")),
      .category = failure->category,
      .optional = has(call, TNK__OPTIONAL) && !is_offered(call),
      .was_unknown = call->tries.was_unknown,
      .was_replayed = call->tries.was_replayed,
      .was_accepted = call->tries.was_accepted,
      .is_taken = reply->is_taken,
      .in_session = has(call, TNK__IN_SESSION),
      .session_ended = tnk__call_has_lost_session(call)};

  if (reply->has_expected && reply->expected != reply->got)
    facts.conflict = reply->expected > reply->got ? 1 : -1;
  facts.doubts_number = call->request.is_reused &&
                        reply->outcome == TNK__OUTCOME_409 &&
                        call->tries.n_conflicts++ == MAX_CONFLICTS;
  return facts;
}

static void end(tnk__call_t *call, tnk__reply_t *reply) {
  tnk__error_t *error = reply->error;

  call->tries.ran = (uint8_t)reply->verdict.ran;
  call->now.state = TNK__CALL_IDLE;
  tnk__call_restore_body(call);
  if (call->owner.is_question && error == NULL && call->owner.operation != 0)
    tnk__call_tell(call, &(tnk_event_t){.phase = TNK_PHASE_RESULT,
                                        .bytes = reply->body_len,
                                        .status = reply->status});
  call->done(call, reply);
  tnk__error_unref(error);
}

static void on_done(tnk__exchange_t *exchange,
                    const tnk__http_result_t *result) {
  tnk__call_t *call = tnk__container_of(exchange, tnk__call_t, exchange);
  tnk__reply_t reply = {0};
  tnk__attempt_t facts;
  tnk__failure_t failure;
  tnk__arena_t arena;
  char page[TNK__MAX_PAGE_TEXT];
  int is_over;

  call->now.state = TNK__CALL_DECIDING;
  if (call->owner.totals != NULL)
    tnk__totals_received(call->owner.totals, result->body->len);
  if (exchange->replayed)
    note_replay(call);
  if (will_replay(call, result))
    return;
  read_head(call, result, &reply);
  tnk__call_read_page(call, result, &reply, page, sizeof(page));
  tnk__arena_init(&arena, &call->endpoint->context->alloc, TNK__MIB);
  failure = read_failure(call, result, &reply, &arena);
  note_words(&reply, &failure);
  facts = facts_of(call, result, &reply, &failure);
  reply.verdict = tnk__classify(&facts);
  note_effect(call, &reply);
  if (reply.verdict.action == TNK__ACTION_SUCCEED && costs_credit(call))
    call->endpoint->has_credited = 1;
  call->now.last_status = result->status;
  call->now.last_err = result->err;
  call->now.was_cut_off = reply.outcome == TNK__OUTCOME_400_EMPTY;
  tnk__reach_note(call->endpoint, &call->reacher, reply.outcome,
                  !call->request.background, result);
  tnk__restart_note(call, result, reply.outcome);
  is_over = !will_shorten(call, &reply) && !will_repeat(call, &reply);
  if (is_over && reply.verdict.action != TNK__ACTION_SUCCEED)
    reply.error = tnk__call_error(call, result, &reply, &failure);
  tnk__arena_deinit(&arena);
  if (!is_over)
    return;
  log_deprecation(call, result);
  learn(call, reply.status);
  if (reply.status / 100 == 2)
    tnk__call_learn_members(call);
  if (tnk__doubt_hold(call, &reply))
    tnk__error_unref(reply.error);
  else
    end(call, &reply);
}

/* ---- Lifetime ---- */

static void on_failed(tnk__deferred_t *deferred) {
  tnk__call_t *call = tnk__container_of(deferred, tnk__call_t, deferred);
  tnk__reply_t reply = {.error = call->early,
                        .body = (const uint8_t *)"",
                        .outcome = TNK__OUTCOME_UNSENT};

  call->early = NULL;
  reply.verdict =
      (tnk__verdict_t){.action = TNK__ACTION_FAIL,
                       .err = reply.error->pub.code,
                       .effect = call->tries.was_accepted ? TNK__EFFECT_ACCEPTED
                                 : call->tries.was_unknown ? TNK__EFFECT_UNKNOWN
                                                           : TNK__EFFECT_NONE,
                       .ran = tnk__call_ran(call)};
  end(call, &reply);
}

static void fail_early(tnk__call_t *call, tnk__error_t *error) {
  call->now.state = TNK__CALL_FAILING;
  call->early = error;
  call->deferred.fn = on_failed;
  tnk__defer(call->endpoint->context, &call->deferred);
}

/* For streamed responses. The body of a refusal is kept until its end. A body
 * that is too large stops the reading. */
static void on_part(tnk__exchange_t *exchange) {
  tnk__call_t *call = tnk__container_of(exchange, tnk__call_t, exchange);
  const int status = tnk__exchange_status(exchange);

  if (status / 100 == 2) {
    call->request.on_part(call);
    return;
  }
  if (!exchange->is_paused)
    return;
  tnk__exchange_cancel(exchange);
  fail_early(
      call,
      tnk__error_new(
          &call->endpoint->context->alloc, TNK_ETOOBIG,
          "%s: refused (HTTP %d) with an error text that is too long to show",
          call->owner.name, status));
}

static void send_now(tnk__call_t *call, const char *key) {
  int err;

  call->now.state = TNK__CALL_SENDING;
  if (call->request.use_key != NULL)
    call->request.use_key(call, key);
  err = tnk__call_send(call, key);
  if (err != TNK_OK)
    fail_early(call, tnk__error_ref(tnk__error_static(err)));
}

static void on_resumed(tnk__deferred_t *deferred) {
  attempt(tnk__container_of(deferred, tnk__call_t, deferred));
}

/* The end of a wait for a token: ask again in a later turn of the loop, or
 * fail. */
static void resume(tnk__deferred_t *deferred, tnk__error_t *error) {
  tnk__call_t *call = tnk__container_of(deferred, tnk__call_t, deferred);

  if (error != NULL) {
    fail_early(call, error);
    return;
  }
  call->now.state = TNK__CALL_DECIDING;
  deferred->fn = on_resumed;
  tnk__defer(call->endpoint->context, deferred);
}

/* The wait may fail or end before this returns. */
static void wait_for_token(tnk__call_t *call) {
  call->now.state = TNK__CALL_WAITING;
  tnk__call_waits(call, TNK_WAITS_FOR_TOKEN);
  tnk__auth_wait(call->endpoint->auth, &call->deferred,
                 call->request.background, resume);
}

/* Wait until it is known whether the server was restarted, but no longer than
 * the patience. Returns 1 if the call waits or has failed. */
static int waits_for_restart(tnk__call_t *call) {
  static const tnk_error_t refused = {.code = TNK_ECONN,
                                      .cause = UV_ECONNREFUSED};
  tnk__context_t *context = call->endpoint->context;
  const uint64_t patience_ms = call->endpoint->config->options.patience_ms;
  const uint64_t spent_ms =
      tnk__context_now_ms(context) - call->tries.retry.started_ms;

  if (!tnk__restart_holds(call))
    return 0;
  if (spent_ms >= patience_ms) {
    fail_early(call,
               tnk__error_from(&context->alloc, call->owner.name, &refused));
    return 1;
  }
  call->now.state = TNK__CALL_PAUSING;
  call->now.since_ms = tnk__context_now_ms(context);
  tnk__timer_start(context, &call->timer, patience_ms - spent_ms,
                   on_pause_over);
  tnk__restart_wait(call);
  call->endpoint->doubts.ask(call->endpoint->doubts.user);
  return 1;
}

/* Send the request, or wait for a credential. */
static void attempt(tnk__call_t *call) {
  tnk__auth_t *auth = call->endpoint->auth;
  tnk__error_t *error;
  const char *key;

  if (waits_for_restart(call))
    return;
  key = tnk__auth_key(auth, is_raw(call), call->owner.name, &error);
  call->now.since_ms = tnk__context_now_ms(call->endpoint->context);
  call->now.token_number = auth->number;
  if (key != NULL)
    send_now(call, key);
  else if (error != NULL)
    fail_early(call, error);
  else
    wait_for_token(call);
}

void tnk__call_init(tnk__call_t *call, tnk__endpoint_t *endpoint,
                    tnk__route_id_t route, const char *name) {
  memset(call, 0, sizeof(*call));
  tnk__exchange_init(&call->exchange);
  call->exchange.on_done = on_done;
  call->exchange.on_body = on_part;
  tnk__deferred_init(&call->deferred, NULL);
  tnk__reacher_init(&call->reacher, &call->timer);
  call->endpoint = endpoint;
  call->request.route = tnk__route(route);
  call->owner.name = name;
  call->tries.ran = TNK_RAN_NO;
}

void tnk__call_rebind(tnk__call_t *call, tnk__route_id_t route) {
  call->request = (tnk__call_request_t){.route = tnk__route(route)};
}

void tnk__call_start(tnk__call_t *call,
                     void (*done)(tnk__call_t *self,
                                  const tnk__reply_t *reply)) {
  tnk__reach_leave(&call->reacher);
  call->done = done;
  call->now.state = TNK__CALL_DECIDING;
  call->tries = (tnk__call_tries_t){.ran = TNK_RAN_NO,
                                    .session = call->endpoint->n_sessions,
                                    .was_unknown = call->request.is_repeat};
  /* Constant for all attempts, so that a server recognizes a retry. */
  make_key(call);
  tnk__retry_init(&call->tries.retry,
                  call->endpoint->config->options.max_retries,
                  tnk__context_now_ms(call->endpoint->context));
  if (is_missing(call)) {
    fail_early(
        call,
        tnk__error_new(
            &call->endpoint->context->alloc, TNK_EUNSUPPORTED,
            "%s: not offered by this server, according to an earlier response",
            call->owner.name));
    return;
  }
  tnk__call_leave_out(call);
  attempt(call);
}

void tnk__call_cancel(tnk__call_t *call) {
  if (call->endpoint == NULL)
    return; /* never bound */
  tnk__exchange_cancel(&call->exchange);
  tnk__timer_stop(&call->timer);
  tnk__reach_leave(&call->reacher);
  tnk__defer_cancel(&call->deferred);
  if (call->now.state == TNK__CALL_DOUBTING)
    tnk__doubt_drop(call);
  call->now.state = TNK__CALL_IDLE;
  tnk__call_restore_body(call);
  tnk__error_unref(call->early);
  call->early = NULL;
}

int tnk__call_is_active(const tnk__call_t *call) {
  return call->now.state != TNK__CALL_IDLE;
}

int tnk__call_disown(tnk__call_t *call) {
  if (call->now.state == TNK__CALL_SENDING)
    call->tries.disowned = tnk__exchange_was_sent(&call->exchange) != 0;
  else if ((call->now.state == TNK__CALL_PAUSING ||
            call->now.state == TNK__CALL_READY) &&
           !tnk__call_is_unseen(call) &&
           (call->now.last_status == 0 || call->now.last_status / 100 == 2))
    call->tries.disowned = 2; /* the next retry is that one */
  return call->tries.disowned;
}

/* Smaller amounts prove nothing: each poll moves some bytes. */
enum { LEAST_ADVANCE = 16 * 1024 };

int tnk__call_advances(tnk__call_t *call) {
  uint64_t n;

  if (call->now.state != TNK__CALL_SENDING)
    return 0;
  n = tnk__exchange_n_moved(&call->exchange) / LEAST_ADVANCE;
  if (n <= call->tries.n_moved)
    return 0;
  call->tries.n_moved = (uint32_t)n;
  return 1;
}

int tnk__call_is_unseen(const tnk__call_t *call) {
  return !call->tries.was_unknown && !call->tries.was_accepted &&
         !tnk__exchange_was_sent(&call->exchange);
}

int tnk__call_was_doubtful(const tnk__call_t *call) {
  return call->tries.was_unknown || call->tries.was_accepted ||
         call->tries.was_replayed;
}

tnk_ran_t tnk__call_ran(const tnk__call_t *call) {
  if (call->now.state == TNK__CALL_IDLE)
    return (tnk_ran_t)call->tries.ran;
  if (call->now.state == TNK__CALL_DOUBTING)
    return tnk__doubt_ran(call);
  if (call->tries.was_accepted)
    return TNK_RAN_YES;
  return tnk__call_is_unseen(call) && !call->tries.was_replayed
             ? TNK_RAN_NO
             : TNK_RAN_UNKNOWN;
}
