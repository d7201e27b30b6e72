/* SPDX-License-Identifier: MIT */
/* Describes responses that are not successes (their origin, and the error), and
 * explains why an active call waits. */
#include "lib/client/call/call_private.h"

#include <stdio.h>
#include <strings.h>

#include "lib/client/call/auth.h"
#include "lib/wire/message/answer.h"
#include "lib/wire/message/page.h"

enum { MAX_NAME = 256 };

/* ---- Pages ---- */

/* Results are frequent and need no further check. */
static int is_plain(const tnk__reply_t *reply) {
  return reply->status == 0 || reply->is_proto ||
         (reply->status / 100 == 2 && reply->body_len > 0 &&
          reply->body[0] == '{');
}

/* The proxy that receives whole requests, with a credential for it, or NULL. */
static const char *confidant_of(const tnk__config_t *config) {
  const tnk__url_t *url = &config->url;
  const tnk__proxy_t *proxy = NULL;

  if (!url->is_tls)
    proxy = tnk__proxies_find(&config->proxies, url->host, url->port, 0);
  if (proxy == NULL || proxy->kind != TNK__PROXY_HTTP)
    return NULL;
  return proxy->has_credentials ? proxy->at.authority : NULL;
}

void tnk__call_hide(const tnk__call_t *call, const char *message) {
  tnk__auth_hide(call->endpoint->auth, message);
  tnk__auth_blot((char *)message, call->owner.secret);
}

void tnk__call_read_page(const tnk__call_t *call,
                         const tnk__http_result_t *result, tnk__reply_t *reply,
                         char *text, size_t size) {
  const tnk__config_t *config = call->endpoint->config;
  tnk__page_t page;

  if (is_plain(reply))
    return;
  page = (tnk__page_t){
      .status = reply->status,
      .type = tnk__http_result_header(result, "content-type"),
      .server = tnk__http_result_header(result, "server"),
      .via = tnk__http_result_header(result, "via"),
      .location = tnk__http_result_header(result, "location"),
      .cause = tnk__http_result_header(result, "x-squid-error"),
      .body = reply->body,
      .body_len = reply->body_len,
      .sent_len = call->request.body_len +
                  (call->request.feed != NULL ? call->request.feed->len : 0),
      .base_url = config->url.text,
      .path = "/api/v1/",
      .confidant = confidant_of(config),
  };
  reply->is_page = tnk__page_is(&page);
  /* The service has not seen the credential, and it never asks for a
   * proxy's. */
  if (reply->status == 407 ||
      (reply->is_page && (reply->status == 401 || reply->status == 403)))
    reply->outcome = TNK__OUTCOME_REFUSED;
  if (!tnk__page_explain(&page, text, size))
    return;
  tnk__call_hide(call, text);
  reply->page = text;
}

/* ---- The error ---- */

/* The call's name in a sentence, with the cause of the failure: the session
 * that has ended, or the URL that cannot make a session. */
static const char *name_of(const tnk__call_t *call, const tnk__reply_t *reply,
                           char *text, size_t size) {
  const char *ended = tnk__call_ended_session(call);

  if (reply->verdict.err == TNK_ESESSION && ended != NULL)
    snprintf(text, size, "%s in %s", call->owner.name, ended);
  else if (reply->status == 404 &&
           call->request.route->kind == TNK__CALL_CREATE_SESSION)
    snprintf(text, size, "%s at %s", call->owner.name,
             call->endpoint->config->url.text);
  else
    return call->owner.name;
  return text;
}

/* Returns whether the status is known and only the rest of the response is
 * missing. */
static int is_cut_refusal(const tnk__http_result_t *result,
                          const tnk__reply_t *reply) {
  if (result->err == TNK_EPROTO || result->err == TNK_ETOOBIG)
    return 0;
  return tnk__outcome_is_refusal(reply->outcome) ||
         (reply->outcome == TNK__OUTCOME_REFUSED && reply->status != 0);
}

tnk__error_t *tnk__call_error(const tnk__call_t *call,
                              const tnk__http_result_t *result,
                              const tnk__reply_t *reply,
                              const tnk__failure_t *failure) {
  const tnk_allocator_t *alloc = &call->endpoint->context->alloc;
  char named[MAX_NAME];
  const char *what = name_of(call, reply, named, sizeof(named));
  tnk_error_t pub = {.code = reply->verdict.err,
                     .cause = result->cause,
                     .http_status = result->status,
                     .n_attempts = call->tries.n_attempts,
                     .category = failure->category,
                     .message = failure->message,
                     .retry_after_ms = reply->retry_after_ms};

  /* The transport's code is more precise than the table's. */
  if (result->err != TNK_OK && !is_cut_refusal(result, reply))
    pub.code = result->err;
  return tnk__error_with(alloc, what, &pub,
                         reply->page != NULL ? reply->page : result->detail);
}

int tnk__reply_names_thing(const tnk__reply_t *reply) {
  const char *message = reply->error->pub.message;

  return !reply->is_page && message != NULL && message[0] != '\0' &&
         strcasecmp(message, "not found") != 0;
}

/* ---- Explanations of waits ---- */

void tnk__call_explain_last(const tnk__call_t *call, tnk__text_t *out) {
  if (call->now.last_status != 0)
    tnk__text_printf(out, "HTTP %d", call->now.last_status);
  else
    tnk__text_printf(out, "%s", tnk_strerror(call->now.last_err));
}

static void explain_pause(const tnk__call_t *call, uint64_t now,
                          tnk__text_t *out) {
  if (tnk__restart_holds(call) && !tnk__list_empty(&call->reacher.link)) {
    tnk__text_printf(out, "waits until a heartbeat has been answered, because "
                          "the server refused connections, since ");
    tnk__text_time(out, now - call->now.since_ms);
    return;
  }
  if (call->now.last_status == 402)
    tnk__text_printf(out, "pauses because the service refuses for billing "
                          "reasons (HTTP 402)");
  else {
    tnk__text_printf(out, "pauses after attempt %u failed (",
                     call->tries.n_attempts);
    tnk__call_explain_last(call, out);
    tnk__text_printf(out, ")");
  }
  tnk__text_printf(out, ", attempt %u follows in ", call->tries.n_attempts + 1);
  tnk__text_time(out, tnk__timer_left_ms(&call->timer, now));
  tnk__reach_explain(call->endpoint, &call->reacher, out);
}

static void explain_exchange(const tnk__call_t *call, uint64_t now,
                             tnk__text_t *out) {
  tnk__exchange_describe(&call->exchange, out);
  tnk__text_printf(out, ", attempt %u, since ", call->tries.n_attempts);
  tnk__text_time(out, now - call->now.since_ms);
  if (call->tries.n_attempts > 1 &&
      (call->now.last_status != 0 || call->now.last_err != TNK_OK)) {
    tnk__text_printf(out, "; the one before failed (");
    tnk__call_explain_last(call, out);
    tnk__text_printf(out, ")");
  }
  if (tnk__call_ended_session(call) != NULL)
    tnk__text_printf(out, "; the server has ended session %s",
                     tnk__call_ended_session(call));
}

void tnk__call_explain(const tnk__call_t *call, tnk__text_t *out) {
  const uint64_t now = tnk__context_now_ms(call->endpoint->context);

  switch ((tnk__call_state_t)call->now.state) {
  case TNK__CALL_WAITING:
    call->endpoint->auth->explain(call->endpoint->auth, out);
    break;
  case TNK__CALL_SENDING:
    explain_exchange(call, now, out);
    break;
  case TNK__CALL_PAUSING:
    explain_pause(call, now, out);
    break;
  case TNK__CALL_FAILING:
    tnk__text_printf(out, "cannot be sent and is about to fail: %s",
                     call->early->pub.text);
    break;
  case TNK__CALL_DOUBTING:
    tnk__text_printf(out, "was refused (");
    tnk__call_explain_last(call, out);
    tnk__text_printf(out, "); the service is asked whether the session still "
                          "exists, since ");
    tnk__text_time(out, now - call->now.since_ms);
    break;
  case TNK__CALL_READY:
  case TNK__CALL_IDLE:
  case TNK__CALL_DECIDING:
    tnk__text_printf(out, "is about to continue");
    break;
  }
}
