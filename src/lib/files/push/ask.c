/* SPDX-License-Identifier: MIT */
#include "lib/files/push/ask.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/files/fetch/fetch.h"
#include "lib/policy/retry.h"
#include "lib/policy/retry_after.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/json_read.h"
#include "tnk/version.h"

enum { MAX_SAID = 300, MAX_ANSWER = 4 * 1024 * 1024 };

static void on_done(tnk__exchange_t *exchange,
                    const tnk__http_result_t *result);

void tnk__ask_init(tnk__ask_t *ask, tnk__hub_t *hub) {
  memset(ask, 0, sizeof(*ask));
  tnk__exchange_init(&ask->exchange);
  ask->exchange.on_done = on_done;
  ask->hub = hub;
}

void tnk__ask_cancel(tnk__ask_t *ask) {
  tnk__exchange_cancel(&ask->exchange);
  tnk__timer_stop(&ask->timer);
  tnk__location_deinit(&ask->at, &ask->hub->context->alloc);
}

/* ---- Errors ---- */

/* The hub's message, from a header or from JSON. */
static void read_said(const tnk__ask_t *ask, const tnk__http_result_t *result,
                      char out[MAX_SAID]) {
  const char *said = tnk__http_result_header(result, "x-error-message");
  const char *token = ask->hub->config->token;
  json_t *body = NULL;

  out[0] = '\0';
  if (result->err != TNK_OK) {
    said = result->detail;
  } else if (said == NULL && ask->request.has_token &&
             tnk__json_parse_object(&body, result->body->data,
                                    result->body->len) == TNK_OK) {
    said = tnk__json_str(body, "error");
  }
  /* A message with the token is dropped. A shortened token could not be
   * found. */
  if (said != NULL && (token == NULL || strstr(said, token) == NULL))
    snprintf(out, MAX_SAID, ": %.280s", said);
  if (body != NULL)
    json_decref(body);
}

static tnk__error_t *error_of(const tnk__ask_t *ask,
                              const tnk__http_result_t *result) {
  const int is_lost = ask->request.is_once && result->sent &&
                      (result->err != TNK_OK || result->status / 100 == 5);
  const int code =
      result->err != TNK_OK ? result->err : tnk__fetch_code_of(result->status);
  char status[32] = "";
  char said[MAX_SAID];
  tnk__error_t *error;

  read_said(ask, result, said);
  if (result->err == TNK_OK)
    snprintf(status, sizeof(status), " (HTTP %d)", result->status);
  error = tnk__error_new(&ask->hub->context->alloc, code,
                         "push: cannot %s at %s: %s%s%s%s", ask->request.what,
                         ask->at.authority, tnk_strerror(code), status, said,
                         is_lost ? "; it may have been done anyway" : "");
  if (error->refs > 0) {
    error->pub.cause = result->cause;
    error->pub.http_status = result->status;
    error->pub.n_attempts = ask->n_attempts;
    error->pub.ran = is_lost ? TNK_RAN_UNKNOWN : TNK_RAN_NO;
    if (result->err == TNK_OK)
      error->pub.retry_after_ms =
          tnk__fetch_asked_ms(ask->hub->context, result);
  }
  return error;
}

/* ---- Repeats ---- */

static int may_pass(const tnk__ask_t *ask, const tnk__http_result_t *result) {
  if (result->err == TNK_OK && result->status == 429)
    return 1;
  return !(ask->request.is_once && result->sent) &&
         tnk__fetch_is_transient(result);
}

static int attempt(tnk__ask_t *ask) {
  const tnk__ask_request_t *r = &ask->request;
  const tnk__hub_config_t *config = ask->hub->config;
  tnk_pair_t headers[4];
  tnk__http_request_t request = {.headers = headers};
  char *bearer = NULL;
  int err = TNK_OK;

  headers[request.n_headers++] = (tnk_pair_t){
      "Accept", r->accept != NULL ? r->accept : "application/json"};
  headers[request.n_headers++] =
      (tnk_pair_t){"User-Agent", "tnk/" TNK_VERSION_STRING};
  if (r->type != NULL)
    headers[request.n_headers++] = (tnk_pair_t){"Content-Type", r->type};
  if (r->has_token && config->token != NULL && config->token[0] != '\0') {
    bearer = tnk__http_bearer(&ask->hub->context->alloc, config->token);
    err = bearer != NULL ? TNK_OK : TNK_ENOMEM;
    headers[request.n_headers++] = (tnk_pair_t){"Authorization", bearer};
  }
  request.more_headers = r->headers;
  request.n_more_headers = r->n_headers;
  request.origin = (tnk__origin_t){ask->at.host, ask->at.port, ask->at.is_tls};
  request.method = r->method;
  request.target = ask->at.target;
  request.body = r->body;
  request.body_len = r->n_body;
  request.feed = r->feed;
  request.lane = TNK__LANE_CONTROL;
  request.timeout_ms = config->options.silence_timeout_ms;
  request.max_body = MAX_ANSWER;
  request.replayable = !r->is_once;
  ask->n_attempts++;
  if (err == TNK_OK)
    err = tnk__exchange_start(ask->hub->http, &ask->exchange, &request);
  tnk__free_secret(&ask->hub->context->alloc, bearer);
  return err;
}

static void give_up(tnk__ask_t *ask, tnk__error_t *error) {
  ask->done(ask, NULL, error);
  tnk__error_unref(error);
}

static void on_pause_over(tnk__timer_t *timer) {
  tnk__ask_t *ask = tnk__container_of(timer, tnk__ask_t, timer);
  const int err = attempt(ask);

  if (err != TNK_OK)
    give_up(ask, tnk__error_ref(tnk__error_static(err)));
}

/* Decide on a retry. Returns 1 if it follows. */
static int repeat(tnk__ask_t *ask, const tnk__http_result_t *result) {
  const uint32_t n = ask->n_attempts - 1;
  uint64_t delay_ms;

  if (!may_pass(ask, result) || n >= ask->hub->config->options.max_retries)
    return 0;
  delay_ms = tnk__fetch_asked_ms(ask->hub->context, result);
  if (delay_ms > TNK__RETRY_AFTER_MAX_MS)
    return 0;
  if (delay_ms == 0)
    delay_ms =
        tnk__backoff_request_ms(n, tnk__context_uniform(ask->hub->context));
  tnk__fetch_log_pause(ask->hub->context, "push", ask->request.what,
                       ask->n_attempts, result, delay_ms);
  tnk__timer_start(ask->hub->context, &ask->timer, delay_ms, on_pause_over);
  return 1;
}

static void on_done(tnk__exchange_t *exchange,
                    const tnk__http_result_t *result) {
  tnk__ask_t *ask = tnk__container_of(exchange, tnk__ask_t, exchange);

  if (result->err == TNK_OK &&
      (result->status / 100 == 2 || result->status == ask->request.may_be))
    ask->done(ask, result, NULL);
  else if (!repeat(ask, result))
    give_up(ask, error_of(ask, result));
}

int tnk__ask_start(tnk__ask_t *ask, const tnk__ask_request_t *request) {
  const tnk_allocator_t *alloc = &ask->hub->context->alloc;
  int err;

  tnk__location_deinit(&ask->at, alloc);
  err = tnk__location_parse(&ask->at, alloc, request->url);
  if (err != TNK_OK)
    return err == TNK_EINVAL ? TNK_EPROTO : err;
  ask->request = *request;
  ask->request.url = NULL;
  ask->n_attempts = 0;
  return attempt(ask);
}

void tnk__ask_explain(const tnk__ask_t *ask, tnk__text_t *out) {
  tnk__text_printf(out, "%s: ", ask->request.what);
  if (tnk__timer_is_active(&ask->timer)) {
    tnk__text_printf(out, "attempt %u failed, the next one follows in ",
                     ask->n_attempts);
    tnk__text_time(out,
                   tnk__timer_left_ms(&ask->timer,
                                      tnk__context_now_ms(ask->hub->context)));
  } else {
    tnk__exchange_describe(&ask->exchange, out);
  }
}
