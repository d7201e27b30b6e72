/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/base/text.h"
#include "lib/otlp/exporter.h"
#include "lib/otlp/gzip.h"
#include "lib/otlp/response.h"
#include "lib/policy/retry.h"
#include "tnk/error.h"
#include "tnk/version.h"

enum {
  MAX_RESPONSE = 1 << 20,
  MAX_MESSAGE = 200, /* of the collector, in a log */
  /* The longest pause that a collector may ask for. */
  MAX_PAUSE_S = 600
};

static const char *name_of(const tnk__otlp_sender_t *sender) {
  return sender == &sender->owner->senders[TNK__OTLP_TRACES] ? "traces"
                                                             : "metrics";
}

/* ---- The log ---- */

/* Log the first failure since the last success. */
static void report(tnk__otlp_sender_t *sender, const char *why) {
  if (sender->is_down)
    return;
  sender->is_down = 1;
  tnk__log(&sender->owner->context->logger, TNK_LOG_WARN, "otlp",
           "%s: cannot export to %s: %s; further failures are not logged",
           name_of(sender), sender->target->at.authority, why);
}

static void report_success(tnk__otlp_sender_t *sender) {
  if (!sender->is_down)
    return;
  sender->is_down = 0;
  tnk__log(&sender->owner->context->logger, TNK_LOG_INFO, "otlp",
           "%s: exporting to %s works again", name_of(sender),
           sender->target->at.authority);
}

/* ---- Attempts ---- */

static void attempt(tnk__otlp_sender_t *sender);

/* The request has ended. The owner may start the next one. */
static void finish(tnk__otlp_sender_t *sender, size_t n_bad) {
  const size_t n = sender->n_items;

  tnk__buf_deinit(&sender->body);
  sender->n_items = 0;
  tnk__otlp_sent(sender, n - n_bad, n_bad);
}

static void on_pause_end(tnk__timer_t *timer) {
  tnk__otlp_sender_t *sender =
      tnk__container_of(timer, tnk__otlp_sender_t, timer);

  sender->state = TNK__OTLP_IDLE;
  if (sender->body.len > 0)
    attempt(sender);
  else
    tnk__otlp_sent(sender, 0, 0);
}

static void pause_for(tnk__otlp_sender_t *sender, uint64_t delay_ms) {
  sender->state = TNK__OTLP_PAUSING;
  tnk__timer_start_background(sender->owner->context, &sender->timer, delay_ms,
                              on_pause_end);
}

/* Try again, or give the request up. `asked_ms` is the pause that the collector
 * asks for, or 0. */
static void fail_for_now(tnk__otlp_sender_t *sender, uint64_t asked_ms,
                         const char *why) {
  tnk__context_t *context = sender->owner->context;
  const uint64_t spent_ms = tnk__context_now_ms(context) - sender->began_ms;
  const uint64_t delay_ms =
      asked_ms > 0 ? asked_ms
                   : tnk__backoff_slow_ms(sender->n_retries,
                                          tnk__context_uniform(context));

  report(sender, why);
  sender->n_retries++;
  if (spent_ms + delay_ms < sender->patience_ms) {
    pause_for(sender, delay_ms);
    return;
  }
  /* The pause counts for the next request as well. */
  if (asked_ms > 0)
    pause_for(sender, delay_ms);
  finish(sender, sender->n_items);
}

/* A number of seconds may be longer than the limit of tnk__retry_after(). */
static uint64_t asked_ms(const tnk__otlp_sender_t *sender,
                         const tnk__http_result_t *result) {
  const char *after = tnk__http_result_header(result, "retry-after");
  uint64_t s;

  if (after == NULL)
    return 0;
  if (tnk__text_u64(after, UINT64_MAX / 1000, &s) == TNK_OK)
    return (s < MAX_PAUSE_S ? s : MAX_PAUSE_S) * 1000;
  return tnk__retry_after(NULL, after, tnk__http_result_header(result, "date"),
                          tnk__context_wall_s(sender->owner->context));
}

static int is_transient(int status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

/* A text of the collector could repeat what was sent to it. */
static void copy_message(const tnk__otlp_sender_t *sender,
                         const tnk__otlp_response_t *response,
                         char out[MAX_MESSAGE + 1]) {
  size_t n = response->n_message;

  if (n > MAX_MESSAGE)
    n = MAX_MESSAGE;
  if (n > 0)
    memcpy(out, response->message, n);
  out[n] = '\0';
  tnk__text_clean(out, n);
  if (tnk__otlp_target_leaks(sender->target, out))
    out[0] = '\0';
}

static void on_accepted(tnk__otlp_sender_t *sender, const tnk__buf_t *body) {
  tnk__otlp_response_t response;
  char message[MAX_MESSAGE + 1], why[MAX_MESSAGE + 100];
  size_t n_bad;

  /* The request was accepted, whatever the body is. */
  if (tnk__otlp_response_read(&response, body->data, body->len) != TNK_OK)
    memset(&response, 0, sizeof(response));
  n_bad = (uint64_t)response.n_rejected > sender->n_items
              ? sender->n_items
              : (size_t)response.n_rejected;
  if (response.n_rejected > 0) {
    copy_message(sender, &response, message);
    (void)snprintf(why, sizeof(why), "the collector rejected %lld items%s%s",
                   (long long)response.n_rejected,
                   message[0] != '\0' ? ": " : "", message);
    report(sender, why);
  } else {
    report_success(sender);
  }
  finish(sender, n_bad);
}

static void on_done(tnk__exchange_t *exchange,
                    const tnk__http_result_t *result) {
  tnk__otlp_sender_t *sender =
      tnk__container_of(exchange, tnk__otlp_sender_t, exchange);
  char why[MAX_MESSAGE];

  tnk__timer_stop(&sender->timer);
  sender->state = TNK__OTLP_IDLE;
  if (result->err != TNK_OK) {
    (void)snprintf(why, sizeof(why), "%s%s%s", tnk_strerror(result->err),
                   result->detail != NULL ? ": " : "",
                   result->detail != NULL ? result->detail : "");
    fail_for_now(sender, 0, why);
  } else if (result->status >= 200 && result->status < 300) {
    on_accepted(sender, result->body);
  } else {
    (void)snprintf(why, sizeof(why), "HTTP status %d", result->status);
    if (is_transient(result->status)) {
      fail_for_now(sender, asked_ms(sender, result), why);
    } else {
      report(sender, why);
      finish(sender, sender->n_items);
    }
  }
}

static void on_late(tnk__timer_t *timer) {
  tnk__otlp_sender_t *sender =
      tnk__container_of(timer, tnk__otlp_sender_t, timer);
  char why[64];

  tnk__exchange_cancel(&sender->exchange);
  sender->state = TNK__OTLP_IDLE;
  (void)snprintf(why, sizeof(why), "no response in %llu ms",
                 (unsigned long long)sender->target->timeout_ms);
  fail_for_now(sender, 0, why);
}

static void attempt(tnk__otlp_sender_t *sender) {
  const tnk__otlp_target_t *target = sender->target;
  const tnk_pair_t headers[] = {{"Content-Type", "application/x-protobuf"},
                                {"User-Agent", "tnk/" TNK_VERSION_STRING},
                                {"Content-Encoding", "gzip"}};
  const tnk__http_request_t request = {
      .origin = {target->at.host, target->at.port, target->at.is_tls},
      .method = "POST",
      .target = target->at.target,
      .headers = headers,
      .n_headers = sender->is_gzip ? 3 : 2,
      .more_headers = target->headers,
      .n_more_headers = target->n_headers,
      .body = sender->body.data,
      .body_len = sender->body.len,
      .lane = TNK__LANE_CONTROL,
      .max_body = MAX_RESPONSE,
      .background = !sender->owner->is_closing};
  int err =
      tnk__exchange_start(sender->owner->http, &sender->exchange, &request);

  if (err == TNK_OK) {
    sender->state = TNK__OTLP_SENDING;
    tnk__timer_start_background(sender->owner->context, &sender->timer,
                                target->timeout_ms, on_late);
  } else {
    fail_for_now(sender, 0, tnk_strerror(err));
  }
}

/* ---- Requests ---- */

void tnk__otlp_sender_init(tnk__otlp_sender_t *sender, tnk__otlp_t *owner,
                           tnk__otlp_signal_t signal, uint64_t patience_ms) {
  sender->owner = owner;
  sender->target = &owner->settings.targets[signal];
  sender->patience_ms = patience_ms;
  tnk__exchange_init(&sender->exchange);
  sender->exchange.on_done = on_done;
  tnk__buf_init(&sender->body, &owner->context->alloc, SIZE_MAX);
}

void tnk__otlp_sender_deinit(tnk__otlp_sender_t *sender) {
  if (sender->owner != NULL)
    tnk__buf_deinit(&sender->body);
}

void tnk__otlp_sender_start(tnk__otlp_sender_t *sender, size_t n_items) {
  sender->n_items = n_items;
  sender->n_retries = 0;
  sender->began_ms = tnk__context_now_ms(sender->owner->context);
  /* Without memory it is sent as it is. */
  sender->is_gzip =
      sender->target->is_gzip && tnk__otlp_gzip(&sender->body) == TNK_OK;
  attempt(sender);
}

size_t tnk__otlp_sender_cancel(tnk__otlp_sender_t *sender) {
  const size_t n = sender->n_items;

  tnk__timer_stop(&sender->timer);
  if (sender->state == TNK__OTLP_SENDING)
    tnk__exchange_cancel(&sender->exchange);
  sender->state = TNK__OTLP_IDLE;
  sender->n_items = 0;
  tnk__buf_deinit(&sender->body);
  return n;
}
