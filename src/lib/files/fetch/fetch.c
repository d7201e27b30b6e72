/* SPDX-License-Identifier: MIT */
#include "lib/files/fetch/fetch.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/io/loop/context.h"
#include "lib/policy/retry.h"
#include "lib/policy/retry_after.h"
#include "lib/wire/format/http_read.h"
#include "lib/wire/format/http_write.h"
#include "tnk/error.h"

/* ---- Messages ---- */

/* Reports the events of a fetch to an observer. */

static void tell(const tnk__fetch_t *fetch, tnk_event_t *event) {
  event->operation = fetch->observed->operation;
  event->name = fetch->observed->name;
  event->part = fetch->part;
  event->attempt = fetch->n_attempts;
  tnk__observe(fetch->context, event);
}

static void on_sent(tnk__exchange_t *exchange) {
  tell(tnk__container_of(exchange, tnk__fetch_t, exchange),
       &(tnk_event_t){.phase = TNK_PHASE_SENT});
}

static int is_observed(const tnk__fetch_t *fetch) {
  return fetch->observed != NULL && fetch->observed->operation != 0;
}

/* Report a request that is about to be sent. */
static void fetch_tell_begin(tnk__fetch_t *fetch) {
  fetch->exchange.on_sent = is_observed(fetch) ? on_sent : NULL;
  fetch->told_from = fetch->offset;
}

/* Report its answer. */
static void fetch_tell_answer(const tnk__fetch_t *fetch,
                              const tnk__http_result_t *result) {
  const uint64_t end = fetch->offset + result->body->len;

  if (is_observed(fetch))
    tell(fetch,
         &(tnk_event_t){.phase = TNK_PHASE_RESULT,
                        .status = result->status,
                        .bytes = end > fetch->told_from ? end - fetch->told_from
                                                        : 0});
}

/* Report a retry. */
static void fetch_tell_repeat(const tnk__fetch_t *fetch,
                              const tnk__http_result_t *result) {
  if (is_observed(fetch))
    tell(fetch, &(tnk_event_t){.phase = TNK_PHASE_WAITS,
                               .waits_for = TNK_WAITS_FOR_RETRY,
                               .status = result->status,
                               .code = result->err});
}

/* ---- Fetching ---- */

/*
 *   IDLE --start--> ASKING --whole answer--> done, IDLE
 *   ASKING --redirection--> ASKING elsewhere
 *   ASKING --transient failure--> PAUSING --timer--> ASKING the first address
 *     again, because a signed one may have expired
 *   anything --failure--> done with an error, IDLE
 *
 * Only on_answer() and on_failed() call the owner's `done`, as their last
 * access.
 */

enum { MAX_HEADERS = 6, MAX_SAID = 720 };

static void ask(tnk__fetch_t *fetch);
static void on_answer(tnk__exchange_t *exchange,
                      const tnk__http_result_t *result);
static void on_part(tnk__exchange_t *exchange);
static void on_failed(tnk__deferred_t *call);

void tnk__fetch_init(tnk__fetch_t *fetch, tnk__context_t *context,
                     tnk__http_t *http) {
  memset(fetch, 0, sizeof(*fetch));
  tnk__exchange_init(&fetch->exchange);
  fetch->exchange.on_done = on_answer;
  fetch->exchange.on_body = on_part;
  tnk__deferred_init(&fetch->failed, on_failed);
  fetch->context = context;
  fetch->http = http;
}

static void forget(tnk__fetch_t *fetch) {
  const tnk_allocator_t *alloc = &fetch->context->alloc;

  tnk__location_deinit(&fetch->first, alloc);
  tnk__location_deinit(&fetch->at, alloc);
  tnk__free(alloc, fetch->name);
  tnk__free_secret(alloc, fetch->token);
  tnk__free(alloc, fetch->validator);
  fetch->name = fetch->token = fetch->validator = NULL;
}

void tnk__fetch_cancel(tnk__fetch_t *fetch) {
  if (fetch->context == NULL)
    return; /* never initialized */
  tnk__exchange_cancel(&fetch->exchange);
  tnk__timer_stop(&fetch->timer);
  tnk__defer_cancel(&fetch->failed);
  tnk__error_unref(fetch->early);
  fetch->early = NULL;
  forget(fetch);
}

/* ---- Fetching: headers of the answer ---- */

const char *tnk__fetch_header(const tnk__fetch_t *fetch, const char *name) {
  return fetch->result != NULL ? tnk__http_result_header(fetch->result, name)
                               : tnk__exchange_header(&fetch->exchange, name);
}

static int read_number(const char *text, uint64_t *out) {
  return tnk__read_u64(&text, NULL, UINT64_MAX, out) == TNK_OK;
}

int tnk__fetch_number(const tnk__fetch_t *fetch, const char *name,
                      uint64_t *out) {
  const char *text = tnk__fetch_header(fetch, name);

  return text != NULL && read_number(text, out);
}

/* ---- Fetching: errors ---- */

static void hide(char *text, const char *secret) {
  const size_t n = secret != NULL ? strlen(secret) : 0;

  for (; n > 0 && (text = strstr(text, secret)) != NULL; text += n)
    memset(text, '*', n);
}

tnk__error_t *tnk__fetch_error(const tnk__fetch_t *fetch, int code,
                               const char *format, ...) {
  char said[MAX_SAID];
  va_list args;

  va_start(args, format);
  vsnprintf(said, sizeof(said), format, args);
  va_end(args);
  hide(said, fetch->token);
  return tnk__error_new(&fetch->context->alloc, code, "%s from %s: %s",
                        fetch->name,
                        fetch->at.authority != NULL ? fetch->at.authority
                                                    : fetch->first.authority,
                        said);
}

int tnk__fetch_code_of(int status) {
  switch (status) {
  case 401:
  case 403:
    return TNK_EAUTH;
  case 404:
  case 410:
    return TNK_ENOTFOUND;
  case 408:
    return TNK_ETIMEDOUT;
  case 429:
    return TNK_ERATE;
  default:
    return status / 100 == 5 ? TNK_ESERVER : TNK_EREQUEST;
  }
}

/* Parse a numeric parameter: ";t=55". */
static int read_param(const char *text, char name, uint64_t *out) {
  while ((text = strchr(text, ';')) != NULL) {
    text++;
    text += strspn(text, " ");
    if (text[0] == name && text[1] == '=')
      return read_number(text + 2, out);
  }
  return 0;
}

/* Hugging Face uses a header from an Internet-Draft: "resolvers";r=0;t=55 */
uint64_t tnk__fetch_asked_ms(tnk__context_t *context,
                             const tnk__http_result_t *result) {
  const char *after = tnk__http_result_header(result, "retry-after");
  const char *limit = tnk__http_result_header(result, "ratelimit");
  uint64_t left;
  uint64_t s;

  if (after != NULL && read_number(after, &s) && s < UINT64_MAX / 1000 &&
      s * 1000 > TNK__RETRY_AFTER_MAX_MS)
    return s * 1000;
  if (after == NULL && result->status == 429 && limit != NULL &&
      read_param(limit, 'r', &left) && left == 0 && read_param(limit, 't', &s))
    return s < UINT64_MAX / 1000 ? s * 1000 : UINT64_MAX;
  return tnk__retry_after(tnk__http_result_header(result, "retry-after-ms"),
                          after, tnk__http_result_header(result, "date"),
                          tnk__context_wall_s(context));
}

const char *tnk__fetch_said(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result) {
  const char *said = tnk__http_result_header(result, "x-error-message");

  /* The message from a store may contain the signed address. */
  if (fetch->is_signed)
    return NULL;
  /* A shortened copy of the token would not be found by hide(), so the message
   * is dropped. */
  if (said != NULL && fetch->token != NULL && strstr(said, fetch->token))
    return NULL;
  return said;
}

static tnk__error_t *length_error(const tnk__fetch_t *fetch) {
  return tnk__fetch_error(fetch, TNK_EPROTO,
                          "the response does not state its length");
}

/* The answers ended too early repeatedly. */
static tnk__error_t *short_error(const tnk__fetch_t *fetch) {
  return tnk__fetch_error(
      fetch, TNK_ECORRUPT, "it ended after %llu of %llu bytes or a little more",
      (unsigned long long)fetch->offset, (unsigned long long)fetch->n_total);
}

/* The message does not contain the body. */
static tnk__error_t *error_of(const tnk__fetch_t *fetch,
                              const tnk__http_result_t *result) {
  const char *said = tnk__fetch_said(fetch, result);
  const uint64_t wait_ms =
      result->err == TNK_OK ? tnk__fetch_asked_ms(fetch->context, result) : 0;
  const int code =
      result->err != TNK_OK ? result->err : tnk__fetch_code_of(result->status);
  char wait[64] = "";
  tnk__error_t *error;

  if (result->err == TNK_OK && fetch->is_short)
    return short_error(fetch);
  if (result->err == TNK_OK && result->status == 200)
    return length_error(fetch);
  if (wait_ms > 0)
    snprintf(wait, sizeof(wait), "; it asks for a pause of %llu s",
             (unsigned long long)((wait_ms + 999) / 1000));
  if (result->err != TNK_OK)
    error = tnk__fetch_error(fetch, code, "%s%s%.200s", tnk_strerror(code),
                             result->detail != NULL ? ": " : "",
                             result->detail != NULL ? result->detail : "");
  else
    error = tnk__fetch_error(fetch, code, "%s (HTTP %d)%s%.200s%s",
                             tnk_strerror(code), result->status,
                             said != NULL ? ": " : "", said != NULL ? said : "",
                             wait);
  if (error->refs > 0) {
    error->pub.cause = result->cause;
    error->pub.http_status = result->status;
    error->pub.n_attempts = fetch->n_attempts;
    error->pub.retry_after_ms = wait_ms;
  }
  return error;
}

static void finish(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                   tnk__error_t *error) {
  fetch->done(fetch, result, error);
  tnk__error_unref(error);
}

/* Report an error asynchronously, outside the owner's call. */
static void fail_later(tnk__fetch_t *fetch, tnk__error_t *error) {
  fetch->early = error;
  tnk__defer(fetch->context, &fetch->failed);
}

static void on_failed(tnk__deferred_t *call) {
  tnk__fetch_t *fetch = tnk__container_of(call, tnk__fetch_t, failed);
  tnk__error_t *error = fetch->early;

  fetch->early = NULL;
  finish(fetch, NULL, error);
}

/* ---- Fetching: repeats ---- */

int tnk__fetch_is_transient(const tnk__http_result_t *result) {
  switch (result->err) {
  case TNK_OK:
    return result->status == 408 || result->status == 429 ||
           result->status / 100 == 5;
  case TNK_EDNS:
  case TNK_ECONN:
  case TNK_ETLS:
  case TNK_ETIMEDOUT:
    return 1;
  default:
    return 0;
  }
}

static int may_pass(const tnk__fetch_t *fetch,
                    const tnk__http_result_t *result) {
  return tnk__fetch_is_transient(result) ||
         (result->err == TNK_OK &&
          (fetch->is_short || result->status == 206 || result->status == 416));
}

/* Pauses from this length on are reported to people. Only a server asks for
 * them. */
enum { LONG_PAUSE_MS = 10000 };

void tnk__fetch_log_pause(const tnk__context_t *context, const char *subject,
                          const char *name, unsigned n_attempts,
                          const tnk__http_result_t *result, uint64_t delay_ms) {
  char why[80];

  if (result->err != TNK_OK)
    snprintf(why, sizeof(why), "%s", tnk_strerror(result->err));
  else
    snprintf(why, sizeof(why), "HTTP %d", result->status);
  tnk__log(&context->logger,
           delay_ms >= LONG_PAUSE_MS ? TNK_LOG_WARN : TNK_LOG_DEBUG, subject,
           "%s: attempt %u failed (%s); the next one in %llu ms", name,
           n_attempts, why, (unsigned long long)delay_ms);
}

static void attempt(tnk__fetch_t *fetch) {
  fetch->n_attempts++;
  fetch->n_redirects = 0;
  ask(fetch);
}

static void on_pause_over(tnk__timer_t *timer) {
  attempt(tnk__container_of(timer, tnk__fetch_t, timer));
}

/* Decide on a retry. Returns 1 if it follows. */
static int repeat(tnk__fetch_t *fetch, const tnk__http_result_t *result) {
  uint64_t delay_ms;

  if (!may_pass(fetch, result))
    return 0;
  /* Only new progress resets the count, else retries might never end. */
  if (fetch->offset > fetch->most) {
    fetch->most = fetch->offset;
    fetch->n_retries = 0;
  }
  delay_ms = tnk__fetch_asked_ms(fetch->context, result);
  if (fetch->n_retries >= fetch->max_retries ||
      delay_ms > TNK__RETRY_AFTER_MAX_MS)
    return 0;
  if (delay_ms == 0)
    delay_ms = tnk__backoff_request_ms(fetch->n_retries,
                                       tnk__context_uniform(fetch->context));
  fetch->n_retries++;
  /* The file has changed, or the server does not support ranges. */
  if (result->err == TNK_OK && !fetch->is_short &&
      (result->status == 416 || result->status == 206))
    fetch->wants_all = 1;
  tnk__location_deinit(&fetch->at, &fetch->context->alloc);
  tnk__fetch_log_pause(fetch->context, "fetch", fetch->name, fetch->n_attempts,
                       result, delay_ms);
  fetch_tell_repeat(fetch, result);
  tnk__timer_start(fetch->context, &fetch->timer, delay_ms, on_pause_over);
  return 1;
}

/* ---- Fetching: redirections ---- */

/* Returns whether it is an address 127.x.y.z, not a name with such a prefix. */
static int is_loopback(const char *host) {
  struct in_addr address;

  return inet_pton(AF_INET, host, &address) == 1 &&
         ntohl(address.s_addr) >> 24 == 127;
}

/* A signed address is a secret, so it is not sent over a network
 * unencrypted. */
static int may_go_to(const tnk__fetch_t *fetch, const tnk__location_t *at) {
  return !fetch->is_signed || at->is_tls ||
         strcmp(at->host, "localhost") == 0 || strcmp(at->host, "::1") == 0 ||
         is_loopback(at->host);
}

static int is_redirection(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 ||
         status == 308;
}

/* Follow a redirection. Returns 1 if it is followed or an error will be
 * reported, 0 if it counts as the answer. */
static int redirect(tnk__fetch_t *fetch, const tnk__http_result_t *result) {
  const tnk_allocator_t *alloc = &fetch->context->alloc;
  const tnk__location_t *from =
      fetch->at.text != NULL ? &fetch->at : &fetch->first;
  const char *location = tnk__http_result_header(result, "location");
  const char *why = NULL;
  tnk__location_t to;
  int err = location == NULL ? TNK_EINVAL
                             : tnk__location_join(&to, alloc, from, location);

  if (err != TNK_OK) {
    fail_later(fetch,
               err == TNK_ENOMEM
                   ? tnk__error_static(TNK_ENOMEM)
                   : tnk__fetch_error(fetch, TNK_EPROTO, "%s",
                                      "redirected to an unusable address"));
    return 1;
  }
  if (fetch->is_head &&
      tnk__http_result_header(result, "x-repo-commit") != NULL &&
      !tnk__location_same_origin(&to, &fetch->first)) {
    tnk__location_deinit(&to, alloc);
    return 0;
  }
  if (!to.is_tls && (from->is_tls || !may_go_to(fetch, &to)))
    why = from->is_tls ? "redirected from https to http"
                       : "redirected to plain http";
  else if (++fetch->n_redirects > TNK__MAX_REDIRECTS)
    why = "redirected too often";
  if (why != NULL) {
    tnk__location_deinit(&to, alloc);
    fail_later(fetch, tnk__fetch_error(fetch, TNK_EPROTO, "%s", why));
    return 1;
  }
  tnk__location_deinit(&fetch->at, alloc);
  fetch->at = to;
  ask(fetch);
  return 1;
}

/* ---- Fetching: answers ---- */

/* Returns whether the validator of the answer matches the received bytes, if it
 * has one. */
static int is_same(const tnk__fetch_t *fetch) {
  const char *name = "etag";
  const char *now;

  if (fetch->validator == NULL)
    return fetch->is_signed;
  if (fetch->validator[0] != '"')
    name = "last-modified";
  now = tnk__fetch_header(fetch, name);
  return now == NULL || strcmp(now, fetch->validator) == 0;
}

/* Returns whether the answer is exactly the requested rest: "bytes
 * 100-199/200". */
static int is_rest_of(const tnk__fetch_t *fetch, int status) {
  const char *range = tnk__fetch_header(fetch, "content-range");
  uint64_t first;
  uint64_t last;
  uint64_t total;

  if (status != 206 || range == NULL || strncmp(range, "bytes ", 6) != 0 ||
      !is_same(fetch))
    return 0;
  range += 6;
  if (!read_number(range, &first) || first != fetch->offset)
    return 0;
  range += strspn(range, "0123456789");
  if (range[0] != '-' || !read_number(range + 1, &last))
    return 0;
  range += 1 + strspn(range + 1, "0123456789");
  return range[0] == '/' && read_number(range + 1, &total) && total > last &&
         total - last == 1 &&
         (fetch->n_total == UINT64_MAX || fetch->n_total == total);
}

/* Keep the validator for later ranges. */
static void keep_validator(tnk__fetch_t *fetch) {
  const char *text = tnk__fetch_header(fetch, "etag");

  if (text != NULL && text[0] != '"')
    text = NULL;
  if (text == NULL && fetch->is_signed)
    text = tnk__fetch_header(fetch, "last-modified");
  tnk__free(&fetch->context->alloc, fetch->validator);
  fetch->validator =
      text != NULL ? tnk__strdup(&fetch->context->alloc, text) : NULL;
}

/* Without a length a truncated answer cannot be detected. */
static int says_its_length(const tnk__fetch_t *fetch) {
  return tnk__fetch_header(fetch, "content-length") != NULL ||
         tnk__fetch_header(fetch, "transfer-encoding") != NULL;
}

/* Examine an answer before the owner gets its first bytes. */
static void look_at(tnk__fetch_t *fetch, int status) {
  if (!fetch->is_new)
    return;
  fetch->is_new = 0;
  fetch->is_rest = is_rest_of(fetch, status);
  fetch->is_good =
      fetch->is_rest ||
      (status == 200 && (!fetch->is_signed || says_its_length(fetch)));
  if (!fetch->is_good)
    return;
  if (!fetch->is_rest) {
    keep_validator(fetch);
    fetch->wants_all = 0;
    if (!tnk__fetch_number(fetch, "content-length", &fetch->n_total))
      fetch->n_total = UINT64_MAX;
  }
  if (fetch->on_begin != NULL)
    fetch->on_begin(fetch);
}

static void on_part(tnk__exchange_t *exchange) {
  tnk__fetch_t *fetch = tnk__container_of(exchange, tnk__fetch_t, exchange);
  const int status = tnk__exchange_status(exchange);
  tnk__buf_t unwanted;

  look_at(fetch, status);
  if (fetch->is_good && fetch->on_body != NULL) {
    fetch->on_body(fetch);
    return;
  }
  if (!fetch->is_good && status == 200) {
    tnk__exchange_cancel(exchange);
    fail_later(fetch, length_error(fetch));
    return;
  }
  tnk__buf_init(&unwanted, &fetch->context->alloc, 0);
  tnk__exchange_take_body(exchange, &unwanted);
  tnk__buf_deinit(&unwanted);
}

/* Returns whether the answer was shorter than announced. */
static int is_short(const tnk__fetch_t *fetch,
                    const tnk__http_result_t *result) {
  return !fetch->is_head && fetch->n_total != UINT64_MAX &&
         fetch->offset + result->body->len < fetch->n_total;
}

static void on_answer(tnk__exchange_t *exchange,
                      const tnk__http_result_t *result) {
  tnk__fetch_t *fetch = tnk__container_of(exchange, tnk__fetch_t, exchange);

  if (result->err == TNK_OK)
    fetch_tell_answer(fetch, result);
  if (result->err == TNK_OK && is_redirection(result->status) &&
      redirect(fetch, result))
    return;
  if (result->err == TNK_OK) {
    fetch->result = result;
    look_at(fetch, result->status);
    fetch->is_short = fetch->is_good && is_short(fetch, result);
    if (!fetch->is_short &&
        (fetch->is_good ||
         (fetch->is_head && is_redirection(result->status)))) {
      finish(fetch, result, NULL);
      return;
    }
    fetch->result = NULL;
  }
  if (!repeat(fetch, result))
    finish(fetch, result, error_of(fetch, result));
}

/* ---- Fetching: requests ---- */

static int wants_rest(const tnk__fetch_t *fetch) {
  return fetch->offset > 0 && !fetch->wants_all &&
         (fetch->validator != NULL ||
          (fetch->is_signed && fetch->n_total != UINT64_MAX));
}

static void ask(tnk__fetch_t *fetch) {
  const tnk__location_t *at =
      fetch->at.text != NULL ? &fetch->at : &fetch->first;
  const int is_home = tnk__location_same_origin(at, &fetch->first);
  tnk_pair_t headers[MAX_HEADERS];
  tnk__http_request_t request = {.headers = headers};
  char range[48];
  char *bearer = NULL;
  int err = TNK_OK;

  headers[request.n_headers++] = (tnk_pair_t){"Accept", "*/*"};
  headers[request.n_headers++] =
      (tnk_pair_t){"User-Agent", "tnk/" TNK_VERSION_STRING};
  if (fetch->token != NULL && fetch->token[0] != '\0' && is_home) {
    bearer = tnk__http_bearer(&fetch->context->alloc, fetch->token);
    err = bearer != NULL ? TNK_OK : TNK_ENOMEM;
    headers[request.n_headers++] = (tnk_pair_t){"Authorization", bearer};
  }
  if (wants_rest(fetch)) {
    snprintf(range, sizeof(range), "bytes=%llu-",
             (unsigned long long)fetch->offset);
    headers[request.n_headers++] = (tnk_pair_t){"Range", range};
    if (fetch->validator != NULL)
      headers[request.n_headers++] = (tnk_pair_t){"If-Range", fetch->validator};
  }
  request.origin = (tnk__origin_t){at->host, at->port, at->is_tls};
  request.method = fetch->is_head ? "HEAD" : "GET";
  request.target = at->target;
  request.lane = fetch->lane;
  request.timeout_ms = fetch->silence_ms;
  request.is_streamed = 1;
  request.replayable = 1;
  fetch->is_new = 1;
  fetch->is_good = 0;
  fetch_tell_begin(fetch);
  if (err == TNK_OK)
    err = tnk__exchange_start(fetch->http, &fetch->exchange, &request);
  tnk__free_secret(&fetch->context->alloc, bearer);
  if (err != TNK_OK)
    fail_later(fetch, tnk__error_ref(tnk__error_static(err)));
}

int tnk__fetch_start(tnk__fetch_t *fetch, const tnk__fetch_request_t *request) {
  const tnk_allocator_t *alloc = &fetch->context->alloc;
  int err = tnk__location_parse(&fetch->first, alloc, request->url);

  if (err != TNK_OK)
    return err;
  fetch->is_signed = request->is_signed;
  if ((request->token != NULL && !tnk__http_is_field_value(request->token)) ||
      !may_go_to(fetch, &fetch->first))
    err = TNK_EINVAL;
  fetch->name = tnk__strdup(alloc, request->name);
  if (request->token != NULL)
    fetch->token = tnk__strdup(alloc, request->token);
  if (request->validator != NULL)
    fetch->validator = tnk__strdup(alloc, request->validator);
  if (fetch->name == NULL || (request->token != NULL && fetch->token == NULL) ||
      (request->validator != NULL && fetch->validator == NULL))
    err = TNK_ENOMEM;
  if (err != TNK_OK) {
    forget(fetch);
    return err;
  }
  fetch->offset = fetch->most = request->offset;
  fetch->n_total = request->offset > 0 ? request->n_total : UINT64_MAX;
  fetch->is_head = request->is_head;
  fetch->silence_ms = request->silence_ms;
  fetch->max_retries = request->max_retries;
  fetch->lane = request->lane;
  attempt(fetch);
  return TNK_OK;
}

void tnk__fetch_explain(const tnk__fetch_t *fetch, tnk__text_t *out) {
  const uint64_t now = tnk__context_now_ms(fetch->context);

  if (tnk__timer_is_active(&fetch->timer)) {
    tnk__text_printf(out,
                     "pauses after attempt %u failed, the next follows in ",
                     fetch->n_attempts);
    tnk__text_time(out, tnk__timer_left_ms(&fetch->timer, now));
  } else if (tnk__exchange_is_active(&fetch->exchange)) {
    tnk__exchange_describe(&fetch->exchange, out);
  } else {
    tnk__text_printf(out, "is about to continue");
  }
}
