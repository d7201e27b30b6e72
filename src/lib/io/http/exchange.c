/* SPDX-License-Identifier: MIT */
#include "lib/io/http/exchange.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/io/http/queue.h"
#include "lib/wire/format/http_read.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/proxy.h"
#include "tnk/error.h"

/*
 * The states of an exchange, and the events that change them:
 *
 *   IDLE --start--> QUEUED --a slot of the lane--> WAITING
 *   WAITING --a connection--> ACTIVE --the end, of any kind--> DONE
 *   DONE --on_done--> IDLE
 *
 * ACTIVE returns to WAITING if the exchange can be sent again: for example when
 * a kept connection turns out to be closed. Every state changes to DONE by a
 * timeout or a close, and to IDLE by a cancel. Only tnk__exchange_deliver()
 * calls the owner, and only from the client's deferred call.
 */

void tnk__exchange_init(tnk__exchange_t *ex) {
  memset(ex, 0, sizeof(*ex));
  tnk__list_init(&ex->link);
}

int tnk__exchange_is_active(const tnk__exchange_t *ex) {
  return ex->state != TNK__EXCHANGE_IDLE;
}

int tnk__exchange_was_sent(const tnk__exchange_t *ex) {
  return ex->state == TNK__EXCHANGE_ACTIVE ||
         (ex->state != TNK__EXCHANGE_IDLE && (ex->sent || ex->replayed));
}

/* The HTTP proxy that gets the request itself, because no tunnel is used. */
static const tnk__proxy_t *proxy_for(const tnk__http_t *http,
                                     const tnk__origin_t *origin) {
  const tnk__proxy_t *proxy = NULL;

  if (!origin->is_tls)
    proxy = tnk__proxies_find(http->proxies, origin->host, origin->port, 0);
  return proxy != NULL && proxy->kind == TNK__PROXY_HTTP ? proxy : NULL;
}

static int encode_head(tnk__exchange_t *ex, const tnk__http_t *http,
                       const tnk__http_request_t *request, size_t body_len) {
  const tnk__proxy_t *proxy = proxy_for(http, &request->origin);
  const tnk__http_head_t head = {
      .method = request->method,
      .target = request->target,
      .host = request->origin.host,
      .port = request->origin.port,
      .default_port = request->origin.is_tls ? 443 : 80,
      .headers = request->headers,
      .n_headers = request->n_headers,
      .more_headers = request->more_headers,
      .n_more_headers = request->n_more_headers,
      .lines = request->lines,
      .lines_len = request->lines_len,
      .body_len = body_len,
      .is_plain = request->is_streamed,
      .is_absolute = proxy != NULL,
      .proxy_headers = proxy != NULL ? proxy->headers : NULL,
      .n_proxy_headers = proxy != NULL ? proxy->n_headers : 0,
  };
  int err;

  tnk__buf_init(&ex->head, &http->context->alloc, TNK__MAX_REQUEST_HEAD);
  err = tnk__http_write_head(&ex->head, &head);
  if (err != TNK_OK)
    tnk__buf_deinit(&ex->head);
  return err;
}

int tnk__exchange_load(tnk__exchange_t *ex, tnk__http_t *http,
                       const tnk__http_request_t *request) {
  size_t more = request->feed != NULL ? request->feed->len : 0;
  int err;

  if (request->body_len > TNK__MAX_REQUEST_BODY ||
      more > TNK__MAX_REQUEST_BODY - request->body_len)
    return TNK_ETOOBIG;
  err = encode_head(ex, http, request, request->body_len + more);
  if (err != TNK_OK)
    return err;
  ex->http = http;
  ex->lane = (uint8_t)request->lane;
  ex->timeout_ms = request->timeout_ms;
  ex->max_body =
      request->max_body > 0 ? request->max_body : TNK__MAX_RESPONSE_BODY;
  if (request->is_streamed)
    ex->max_body = TNK__MAX_UNREAD_BODY;
  ex->is_streamed = request->is_streamed != 0;
  ex->is_long = request->is_long != 0;
  ex->has_head = ex->has_body = ex->is_paused = 0;
  ex->is_head = strcmp(request->method, "HEAD") == 0;
  ex->replayable = request->replayable != 0;
  ex->background = request->background != 0;
  ex->body = request->body;
  ex->body_len = request->body_len;
  ex->feed = request->feed;
  /* If a new connection was at fault, another new one would not help. */
  ex->wants_fresh = request->wants_fresh && !ex->was_on_mute;
  ex->was_on_mute = 0;
  ex->replayed = ex->told = ex->sent = ex->is_final = 0;
  ex->is_unseen = ex->n_unseen = 0;
  ex->n_refused = 0;
  ex->err = ex->cause = 0;
  return TNK_OK;
}

/* A response and its reader in one block, allocated only when the response
 * begins. */
typedef struct {
  /* First, because `answer` points to it and is freed. */
  tnk__response_t response;
  union {
    tnk__http_reader_t http1;
    tnk__h2_reader_t http2;
  } reader;
} incoming_t;

static incoming_t *new_incoming(tnk__exchange_t *ex) {
  const tnk_allocator_t *alloc = &ex->http->context->alloc;
  incoming_t *incoming = tnk__malloc(alloc, sizeof(*incoming));

  if (incoming == NULL)
    return NULL;
  ex->answer = &incoming->response;
  tnk__response_init(ex->answer, alloc, ex->max_body);
  return incoming;
}

tnk__http_reader_t *tnk__exchange_begin_answer(tnk__exchange_t *ex) {
  incoming_t *incoming = new_incoming(ex);

  if (incoming == NULL)
    return NULL;
  tnk__http_reader_init(&incoming->reader.http1, ex->answer, ex->is_head);
  incoming->reader.http1.is_streamed = ex->is_streamed;
  return &incoming->reader.http1;
}

tnk__h2_reader_t *tnk__exchange_begin_h2(tnk__exchange_t *ex) {
  incoming_t *incoming = new_incoming(ex);

  if (incoming == NULL)
    return NULL;
  tnk__h2_reader_init(&incoming->reader.http2, ex->answer, ex->is_head);
  incoming->reader.http2.is_streamed = ex->is_streamed;
  return &incoming->reader.http2;
}

static void free_answer(const tnk_allocator_t *alloc, tnk__response_t *answer) {
  if (answer == NULL)
    return;
  tnk__response_deinit(answer);
  tnk__free(alloc, answer);
}

void tnk__exchange_forget_answer(tnk__exchange_t *ex) {
  free_answer(&ex->http->context->alloc, ex->answer);
  ex->answer = NULL;
  ex->has_head = 0;
}

/* The head contains the credential. */
static void wipe_head(tnk__exchange_t *ex) {
  tnk__wipe(ex->head.data, ex->head.len);
  tnk__buf_deinit(&ex->head);
}

void tnk__exchange_note_sent(tnk__exchange_t *ex) {
  if (ex->on_sent == NULL || ex->told)
    return;
  ex->told = 1;
  ex->on_sent(ex);
}

void tnk__exchange_note_moved(tnk__exchange_t *ex, uint64_t now_ms) {
  ex->moved_ms = now_ms;
  *ex->others_moved_ms = now_ms;
}

/* The timer is not moved, because that would cost more. It checks the time when
 * it fires. */
void tnk__exchange_note_out(tnk__exchange_t *ex, uint64_t now_ms) {
  ex->moved_ms = now_ms;
}

uint64_t tnk__exchange_size(const tnk__exchange_t *ex) {
  return (uint64_t)ex->head.len + ex->body_len +
         (ex->feed != NULL ? ex->feed->len : 0);
}

/* ---- Streamed responses ---- */

/* Limit of unread body bytes before reading pauses. Bytes that the stream had
 * already received may exceed it. */
#define ENOUGH_BODY ((size_t)256 * 1024)

/* A server could send a head slowly for any length of time, so only the
 * complete head counts as progress. */
static void note_response(tnk__exchange_t *ex, uint64_t now_ms) {
  tnk__exchange_note_moved(ex, now_ms);
  if (!ex->has_head) {
    ex->took_ms = (uint32_t)(ex->moved_ms - ex->phase_ms);
    ex->phase_ms = ex->moved_ms;
  }
  ex->has_head = 1;
}

void tnk__exchange_note_body(tnk__exchange_t *ex, uint64_t now_ms) {
  const size_t n = ex->answer->body.len;

  if (ex->answer->status != 0)
    note_response(ex, now_ms);
  if (!ex->is_streamed)
    return;
  ex->is_paused = n >= ENOUGH_BODY;
  if (ex->is_paused)
    tnk__timer_stop(&ex->timer);
  if (n == 0 || ex->has_body || ex->on_body == NULL)
    return;
  ex->has_body = 1;
  tnk__list_append(&ex->http->news, &ex->link);
  tnk__defer(ex->http->context, &ex->http->due);
}

int tnk__exchange_status(const tnk__exchange_t *ex) {
  return ex->answer != NULL ? ex->answer->status : 0;
}

const char *tnk__exchange_header(const tnk__exchange_t *ex, const char *name) {
  return ex->answer != NULL ? tnk__response_header(ex->answer, name) : NULL;
}

/* ---- The end ---- */

static void leave(tnk__exchange_t *ex) {
  tnk__lane_leave(ex);
  tnk__timer_stop(&ex->timer);
  tnk__list_remove(&ex->link);
  /* The body is returned to the caller, and a slot may be free. */
  wipe_head(ex);
  ex->body = NULL;
  ex->feed = NULL;
  tnk__defer(ex->http->context, &ex->http->due);
}

/* If an upload was too slow, concurrent uploads are too. Uploads then go one at
 * a time until some have succeeded. */
static void note_upload(tnk__exchange_t *ex, int err) {
  if (ex->lane == TNK__LANE_TRAIN && ex->state == TNK__EXCHANGE_ACTIVE &&
      tnk__exchange_size(ex) >= TNK__MIN_UPLOAD)
    tnk__lane_note_upload(ex, err);
}

/* The whole response arrived at once. */
static void note_took(tnk__exchange_t *ex) {
  if (ex->state == TNK__EXCHANGE_ACTIVE && !ex->has_head)
    ex->took_ms =
        (uint32_t)(tnk__context_now_ms(ex->http->context) - ex->phase_ms);
}

void tnk__exchange_settle(tnk__exchange_t *ex, int err, int cause) {
  note_upload(ex, err);
  note_took(ex);
  leave(ex);
  ex->state = TNK__EXCHANGE_DONE;
  ex->err = err;
  ex->cause = cause;
  tnk__list_append(&ex->http->done, &ex->link);
}

void tnk__exchange_explain(tnk__exchange_t *ex, const char *text) {
  const tnk_allocator_t *alloc = &ex->http->context->alloc;

  if (text == NULL)
    return;
  tnk__free(alloc, ex->detail);
  ex->detail = tnk__strdup(alloc, text);
}

void tnk__exchange_drop(tnk__exchange_t *ex) {
  const tnk_allocator_t *alloc = &ex->http->context->alloc;

  leave(ex);
  free_answer(alloc, ex->answer);
  ex->answer = NULL;
  tnk__free(alloc, ex->detail);
  ex->detail = NULL;
  ex->state = TNK__EXCHANGE_IDLE;
}

void tnk__exchange_deliver(tnk__exchange_t *ex) {
  const tnk_allocator_t *alloc = &ex->http->context->alloc;
  tnk__response_t *answer;
  char *detail;
  tnk__buf_t no_body;
  tnk__http_result_t result;

  if (ex->state != TNK__EXCHANGE_DONE) {
    ex->has_body = 0;
    ex->on_body(ex);
    return;
  }
  answer = ex->answer;
  detail = ex->detail;
  ex->answer = NULL;
  ex->detail = NULL;
  ex->state = TNK__EXCHANGE_IDLE;
  tnk__buf_init(&no_body, alloc, 0);
  result = (tnk__http_result_t){
      .err = ex->err,
      .cause = ex->cause,
      .detail = detail,
      .is_final = ex->is_final,
      .sent = ex->sent,
      .status = answer != NULL ? answer->status : 0,
      .body = answer != NULL ? &answer->body : &no_body,
      .answer = answer,
  };
  ex->on_done(ex, &result);
  free_answer(alloc, answer);
  tnk__free(alloc, detail);
}

const char *tnk__http_result_header(const tnk__http_result_t *result,
                                    const char *name) {
  return result->answer != NULL ? tnk__response_header(result->answer, name)
                                : NULL;
}
