/* SPDX-License-Identifier: MIT */
/* Sends one attempt of a call as an HTTP request, and reports the call to the
 * observer. */
#include "lib/client/call/call_private.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/call/headers.h"
#include "lib/io/loop/context.h"
#include "lib/wire/message/calls_session.h"

/* ---- Reports to the observer ---- */

void tnk__call_tell(const tnk__call_t *call, tnk_event_t *event) {
  event->operation = call->owner.operation;
  event->name = call->owner.name;
  event->part = call->owner.part;
  if (event->attempt == 0 && event->phase != TNK_PHASE_WAITS)
    event->attempt = call->tries.n_attempts;
  tnk__observe(call->endpoint->context, event);
}

/* The span id of an attempt (counted from 1) in a trace; never 0. */
static uint64_t span_of(const tnk__call_t *call, uint32_t attempt) {
  const uint64_t span = call->tries.key[1] + 0x9e3779b97f4a7c15u * attempt;

  return span != 0 ? span : 1;
}

static int is_poll(const tnk__call_t *call) {
  return call->request.route->kind == TNK__CALL_POLL ||
         call->request.route->kind == TNK__CALL_POLL_SAMPLE;
}

static void on_sent(tnk__exchange_t *exchange) {
  const tnk__call_t *call = tnk__container_of(exchange, tnk__call_t, exchange);
  tnk_event_t event = {.phase = TNK_PHASE_SENT,
                       .bytes = call->request.body_len};

  if (call->owner.operation == 0)
    return;
  if (is_poll(call))
    event.phase = TNK_PHASE_HELD;
  if (call->request.feed != NULL)
    event.bytes += call->request.feed->len;
  if (call->endpoint->config->trace.trace_id[0] != '\0')
    event.span = span_of(call, call->tries.n_attempts);
  tnk__call_tell(call, &event);
}

static void on_wait(tnk__exchange_t *exchange) {
  tnk__call_waits(tnk__container_of(exchange, tnk__call_t, exchange),
                  TNK_WAITS_FOR_CONNECTION);
}

void tnk__call_tell_retry(const tnk__call_t *call, int status, int code) {
  if (call->owner.operation != 0)
    tnk__call_tell(call, &(tnk_event_t){.phase = TNK_PHASE_WAITS,
                                        .waits_for = TNK_WAITS_FOR_RETRY,
                                        .attempt = call->tries.n_attempts,
                                        .status = status,
                                        .code = code});
}

/* ---- The request ---- */

static const char api_path[] = "/api/v1/";

static uint64_t timeout_of(const tnk__call_t *call) {
  const tnk_service_options_t *options = &call->endpoint->config->options;

  if (call->request.timeout_ms != 0)
    return call->request.timeout_ms;
  if (call->request.route->timeout_ms != 0)
    return call->request.route->timeout_ms;
  return call->request.route->lane == TNK__LANE_POLL ||
                 call->request.route->lane == TNK__LANE_TRAIN_POLL
             ? options->poll_timeout_ms
             : options->timeout_ms;
}

static void add_headers(const tnk__call_t *call, const char *key,
                        tnk__headers_t *headers) {
  static const char proto[] = "application/x-protobuf";
  static const char json[] = "application/json";
  const int is_get = call->request.route->method == TNK__GET;

  tnk__headers_add_text(headers, "Accept",
                        call->request.on_part != NULL ? "text/event-stream"
                        : call->request.wants_proto   ? proto
                                                      : json);
  if (!is_get)
    tnk__headers_add_text(headers, "Content-Type",
                          call->request.is_proto ? proto : json);
  if (call->request.is_zstd)
    tnk__headers_add_text(headers, "Content-Encoding", "zstd");
  tnk__headers_add_text(headers, "User-Agent", "tnk/" TNK_VERSION_STRING);
  tnk__headers_add(headers, "X-API-Key", key);
  tnk__headers_add_text(headers, "X-Stainless-Package-Version",
                        TNK__PROTOCOL_VERSION);
  tnk__headers_add_uint(headers, "x-stainless-retry-count",
                        call->tries.n_attempts);
  tnk__headers_add_uint(headers, "x-stainless-read-timeout",
                        timeout_of(call) / 1000);
  if (call->owner.method_name != NULL) {
    tnk__headers_add_text(headers, "x-sdk-version", TNK__PROTOCOL_VERSION);
    tnk__headers_add_text(headers, "x-sdk-method", call->owner.method_name);
  }
  if (!is_get)
    tnk__headers_add_uuid(headers, "X-Idempotency-Key", call->tries.key);
  tnk__headers_add_span(headers, span_of(call, call->tries.n_attempts + 1));
  if (call->request.add_headers != NULL)
    call->request.add_headers(call, headers);
}

/* The path of most calls is short and is written on the stack. */
enum { SHORT_TARGET = 128 };

static void write_long_target(const tnk__call_t *call, const char *path,
                              tnk__buf_t *out) {
  const char *hole = call->request.target != NULL ? NULL : strstr(path, "%s");

  tnk__buf_text(out, call->endpoint->config->url.path);
  if (path[0] != '/')
    tnk__buf_text(out, api_path);
  if (hole == NULL) {
    tnk__buf_text(out, path);
    return;
  }
  tnk__buf_append(out, path, (size_t)(hole - path));
  tnk__url_put_segment(out, call->request.path_id);
  tnk__buf_text(out, hole + 2);
}

/* The target, in `small` or else in the buffer. NULL when that has failed. */
static const char *write_target(const tnk__call_t *call,
                                char small[SHORT_TARGET], tnk__buf_t *out) {
  const char *path = call->request.target != NULL ? call->request.target
                                                  : call->request.route->path;
  const char *base = call->endpoint->config->url.path;
  const char *api = path[0] != '/' ? api_path : "";
  const size_t n_base = strlen(base), n_api = strlen(api), n = strlen(path);

  if (call->request.path_id != NULL || n_base + n_api + n >= SHORT_TARGET) {
    write_long_target(call, path, out);
    return tnk__buf_cstr(out);
  }
  memcpy(small, base, n_base);
  memcpy(small + n_base, api, n_api);
  memcpy(small + n_base + n_api, path, n + 1);
  return small;
}

/* Results may be large; other responses are small. */
static size_t max_body_of(const tnk__call_t *call) {
  const tnk__call_kind_t kind = call->request.route->kind;

  if (call->request.max_body != 0)
    return call->request.max_body;
  return kind == TNK__CALL_POLL || kind == TNK__CALL_POLL_SAMPLE
             ? TNK__MAX_RESPONSE_BODY
             : TNK__MAX_CALL_ANSWER;
}

void tnk__call_count_sent(const tnk__call_t *call) {
  if (call->owner.totals != NULL)
    tnk__totals_sent(call->owner.totals,
                     call->request.body_len + (call->request.feed != NULL
                                                   ? call->request.feed->len
                                                   : 0));
}

int tnk__call_send(tnk__call_t *call, const char *key) {
  static const char *const methods[] = {[TNK__POST] = "POST",
                                        [TNK__GET] = "GET",
                                        [TNK__PUT] = "PUT",
                                        [TNK__DELETE] = "DELETE"};
  tnk__endpoint_t *endpoint = call->endpoint;
  tnk__headers_t headers;
  tnk__http_request_t request = {0};
  char small[SHORT_TARGET];
  tnk__buf_t target;
  int err;

  tnk__headers_init(&headers, endpoint->config);
  add_headers(call, key, &headers);
  tnk__buf_init(&target, &endpoint->context->alloc, TNK__MAX_URL);
  request.origin.host = endpoint->config->url.host;
  request.origin.port = endpoint->config->url.port;
  request.origin.is_tls = endpoint->config->url.is_tls;
  request.method = methods[call->request.route->method];
  request.target = write_target(call, small, &target);
  request.headers = headers.pairs;
  request.n_headers = headers.n;
  request.more_headers = endpoint->config->headers;
  request.n_more_headers = endpoint->config->n_headers;
  request.lines = headers.text;
  request.lines_len = headers.n_text;
  request.body = call->request.body;
  request.body_len = call->request.body_len;
  request.feed = call->request.feed;
  request.lane = call->request.route->lane;
  request.timeout_ms = tnk__retry_timeout_ms(
      &call->tries.retry, endpoint->config->options.patience_ms,
      timeout_of(call), tnk__context_now_ms(endpoint->context));
  request.max_body = max_body_of(call);
  request.background = call->request.background;
  request.is_streamed = call->request.on_part != NULL;
  request.is_long = (call->request.route->traits & TNK__LONG) != 0;
  /* The cause that broke one connection may have broken the kept ones too. */
  request.wants_fresh = call->now.last_err == TNK_ECONN ||
                        call->now.last_err == TNK_ETIMEDOUT ||
                        call->now.was_cut_off;
  request.replayable = 1; /* by sequence number or idempotency key */
  call->tries.n_attempts++;
  call->exchange.on_sent = call->owner.operation != 0 ? on_sent : NULL;
  call->exchange.tells_wait = call->owner.operation != 0;
  endpoint->http->on_wait = on_wait;
  err = target.err;
  if (err == TNK_OK)
    err = tnk__exchange_start(endpoint->http, &call->exchange, &request);
  tnk__buf_deinit(&target);
  if (err == TNK_OK)
    tnk__call_count_sent(call);
  return err;
}
