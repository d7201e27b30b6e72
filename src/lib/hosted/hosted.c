/* SPDX-License-Identifier: MIT */
/*
 * A service operation with one call. The answer is taken as a whole, or piece
 * by piece in on_part(), which may be called any number of times before
 * on_done().
 *
 *   begun --a piece of the stream--> begun --the end mark--> ended
 *   begun or ended --end of the answer--> settled, by on_done()
 *   ended --timeout--> settled, by on_lingered()
 *
 * on_event() calls the program, which may end the operation inside its
 * callback.
 */
#include "lib/hosted/hosted.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/call/auth.h"
#include "lib/client/call/events.h"
#include "lib/client/call/headers.h"
#include "lib/client/future/service_op.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/message/answer.h"

enum { SILENCE_MS = 600000, MAX_FAILURE = 64 * 1024 };

static const struct {
  const char *name;
  const char *path;
} forms[] = {
    [TNK_HOSTED_CHAT] = {"chat", "/oai/api/v1/chat/completions"},
    [TNK_HOSTED_COMPLETIONS] = {"completions", "/oai/api/v1/completions"},
    [TNK_HOSTED_MESSAGES] = {"messages", "/anthropic/api/v1/messages"}};

typedef struct {
  tnk__service_op_t op; /* its arena has the path */
  tnk__events_t events;
  tnk__timer_t timer; /* limits the wait after the end mark */
  const char *path;
  char *bearer; /* key of the current attempt; secret */
  tnk_hosted_form_t form;
  tnk_hosted_event_cb on_event;
  void *user;
  uint64_t n_events;
  uint32_t silence_ms;
} hosted_t;

static hosted_t *hosted_of(tnk__service_op_t *op) {
  return tnk__container_of(op, hosted_t, op);
}

static hosted_t *hosted_of_call(tnk__call_t *call) {
  return hosted_of(tnk__container_of(call, tnk__service_op_t, call));
}

static const tnk_allocator_t *alloc_of(const hosted_t *hosted) {
  return &hosted->op.session->context->alloc;
}

const char *tnk__hosted_name(tnk_hosted_form_t form) {
  return forms[form].name;
}

/* ---- The end ---- */

/* The operation is about to be freed. */
static void clean(tnk__service_op_t *op) {
  hosted_t *hosted = hosted_of(op);

  tnk__timer_stop(&hosted->timer);
  tnk__free_secret(alloc_of(hosted), hosted->bearer);
  tnk__events_deinit(&hosted->events);
}

static void free_result(const tnk_allocator_t *alloc, void *value) {
  tnk_hosted_t *result = value;

  tnk__free(alloc, result->body);
  tnk__free(alloc, result);
}

static void fail_code(hosted_t *hosted, int code) {
  tnk__service_op_fail(&hosted->op, tnk__error_static(code));
}

/* Takes ownership of `body`, which may be NULL. */
static void resolve(hosted_t *hosted, char *body, size_t n) {
  tnk_hosted_t *result = tnk__calloc(alloc_of(hosted), 1, sizeof(*result));

  if (result == NULL) {
    tnk__free(alloc_of(hosted), body);
    fail_code(hosted, TNK_ENOMEM);
    return;
  }
  result->body = body;
  result->n_body = n;
  result->n_events = hosted->n_events;
  tnk__service_op_resolve(&hosted->op, TNK__RESULT_HOSTED, result, free_result);
}

/* Fail with a message that includes how much of the stream has arrived. */
static void fail(hosted_t *hosted, int code, const char *words) {
  tnk__error_t *error = tnk__error_new(
      alloc_of(hosted), code, "%s: %s after %llu events", hosted->op.name,
      words, (unsigned long long)hosted->n_events);

  tnk__service_op_fail(&hosted->op, error);
  tnk__error_unref(error);
}

static void on_lingered(tnk__timer_t *timer) {
  resolve(tnk__container_of(timer, hosted_t, timer), NULL, 0);
}

/* ---- Events ---- */

static int is_mark(const hosted_t *hosted, const tnk__sse_event_t *event) {
  return hosted->form == TNK_HOSTED_MESSAGES
             ? strcmp(event->type, "message_stop") == 0
             : strcmp(event->data, "[DONE]") == 0;
}

/* Returns whether the event reports a failure, or TNK_ENOMEM. OpenAI's events
 * have no types: a member `error` reports a failure. */
static int is_failure(const hosted_t *hosted, const tnk__sse_event_t *event) {
  json_t *json = NULL;
  const json_t *error;
  int is;

  if (strcmp(event->type, "error") == 0)
    return 1;
  if (hosted->form == TNK_HOSTED_MESSAGES ||
      strstr(event->data, "\"error\"") == NULL)
    return 0;
  is = tnk__json_parse_object(&json, event->data, event->n);
  if (is != TNK_OK)
    return is == TNK_ENOMEM ? is : 0;
  error = json_object_get(json, "error");
  is = json_is_object(error) || json_is_string(error);
  json_decref(json);
  return is;
}

static void fail_with(hosted_t *hosted, const tnk__sse_event_t *event) {
  tnk__failure_t failure = {0};
  tnk_error_t pub = {.code = TNK_ESERVER};
  tnk__error_t *error;
  tnk__arena_t arena;

  tnk__arena_init(&arena, alloc_of(hosted), TNK__MIB);
  if (event->n <= MAX_FAILURE &&
      tnk__failure_read(&failure, &arena, (const uint8_t *)event->data,
                        event->n) == TNK_OK) {
    tnk__call_hide(&hosted->op.call, failure.message);
    pub.message = failure.message;
    pub.category = failure.category;
    pub.retry_after_ms = failure.retry_after_ms;
  }
  pub.http_status = 200;
  pub.n_attempts = hosted->op.call.tries.n_attempts;
  error = tnk__error_from(alloc_of(hosted), hosted->op.name, &pub);
  tnk__service_op_fail(&hosted->op, error);
  tnk__error_unref(error);
  tnk__arena_deinit(&arena);
}

/* Pass the event to the program. */
static void tell(hosted_t *hosted, const tnk__sse_event_t *event,
                 const int *is_gone) {
  const tnk_hosted_event_t told = {event->type, event->data, event->n};
  int refused;

  hosted->n_events++;
  /* A delivered event must not be delivered twice, so the call is not
   * retried. */
  hosted->op.call.request.once = 1;
  tnk__callout_begin();
  refused = hosted->on_event(&told, hosted->user);
  tnk__callout_end();
  if (refused && !*is_gone)
    fail_code(hosted, TNK_ECANCELED);
}

static void on_event(tnk__events_t *events, const tnk__sse_event_t *event,
                     const int *is_gone) {
  hosted_t *hosted = tnk__container_of(events, hosted_t, events);
  const int is = is_failure(hosted, event);

  if (is != 0) {
    if (is < 0)
      fail_code(hosted, is);
    else
      fail_with(hosted, event);
    return;
  }
  events->is_ended = is_mark(hosted, event);
  if (!events->is_ended || hosted->form == TNK_HOSTED_MESSAGES)
    tell(hosted, event, is_gone);
}

/* Returns whether reading continues; otherwise the operation has ended and is
 * freed. */
static int goes_on(hosted_t *hosted, int got) {
  const char *words = got < 0 ? tnk__events_words(got) : NULL;

  if (words != NULL)
    fail(hosted, got, words);
  else if (got < 0)
    fail_code(hosted, got);
  return got > 0;
}

/* ---- The answer ---- */

static void on_part(tnk__call_t *call) {
  hosted_t *hosted = hosted_of_call(call);
  size_t n;

  if (goes_on(hosted, tnk__events_take(&hosted->events, call, &n)) &&
      hosted->events.is_ended && !tnk__timer_is_active(&hosted->timer))
    tnk__timer_start(hosted->op.session->context, &hosted->timer,
                     TNK__EVENTS_LINGER_MS, on_lingered);
}

static void end_stream(hosted_t *hosted, const tnk__reply_t *reply) {
  if (!goes_on(hosted,
               tnk__events_finish(&hosted->events, &hosted->op.call, reply)))
    return;
  if (hosted->events.is_ended)
    resolve(hosted, NULL, 0);
  else if (reply->error != NULL && hosted->n_events == 0)
    tnk__service_op_fail(&hosted->op, reply->error);
  else if (reply->error != NULL)
    fail(hosted, reply->error->pub.code,
         reply->error->pub.code == TNK_ETIMEDOUT ? "the stream fell silent"
                                                 : "the stream broke off");
  else if (tnk__sse_end(&hosted->events.sse) == TNK_OK)
    fail(hosted, TNK_ECONN,
         "the stream was truncated: it ended without its end,");
  else
    fail(hosted, TNK_ECONN,
         "the stream was truncated: it ended within an event,");
}

static void end_whole(hosted_t *hosted, const tnk__reply_t *reply) {
  json_t *json = NULL;
  size_t n = 0;
  char *body;
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail(&hosted->op, reply->error);
    return;
  }
  err = tnk__json_parse_object(&json, reply->body, reply->body_len);
  json_decref(json);
  if (err == TNK_OK && tnk__buf_cstr(reply->buf) == NULL)
    err = TNK_ENOMEM;
  if (err != TNK_OK) {
    tnk__service_op_fail_code(&hosted->op, hosted->op.name, err);
    return;
  }
  body = (char *)tnk__buf_take(reply->buf, &n);
  resolve(hosted, body, n);
}

static void on_done(tnk__call_t *call, const tnk__reply_t *reply) {
  hosted_t *hosted = hosted_of_call(call);

  if (tnk__service_op_asks_again(&hosted->op, reply))
    return;
  if (hosted->on_event != NULL)
    end_stream(hosted, reply);
  else
    end_whole(hosted, reply);
}

/* ---- The request ---- */

/* Add the headers that servers of this form expect: the API version, or the key
 * as a bearer token. Without memory for the token the key is sent only in the
 * usual header. */
static void add_headers(const tnk__call_t *call, tnk__headers_t *headers) {
  const tnk__service_op_t *op =
      tnk__container_of_const(call, tnk__service_op_t, call);
  const hosted_t *hosted = tnk__container_of_const(op, hosted_t, op);

  if (hosted->form == TNK_HOSTED_MESSAGES)
    tnk__headers_add(headers, "anthropic-version", "2023-06-01");
  else if (hosted->bearer != NULL)
    tnk__headers_add(headers, "Authorization", hosted->bearer);
}

/* Called before each attempt. */
static void use_key(tnk__call_t *call, const char *key) {
  hosted_t *hosted = hosted_of_call(call);

  tnk__free_secret(alloc_of(hosted), hosted->bearer);
  hosted->bearer = hosted->form == TNK_HOSTED_MESSAGES
                       ? NULL
                       : tnk__http_bearer(alloc_of(hosted), key);
}

static void begin(tnk__service_op_t *op) {
  hosted_t *hosted = hosted_of(op);
  tnk__call_t *call = &op->call;

  tnk__call_init(call, &op->session->endpoint, TNK__ROUTE_HOSTED, op->name);
  call->request.target = hosted->path;
  call->request.max_body = TNK__HOSTED_MAX_BODY;
  call->request.timeout_ms = hosted->silence_ms;
  call->request.use_key = use_key;
  call->request.add_headers = add_headers;
  if (hosted->on_event != NULL)
    call->request.on_part = on_part;
  tnk__service_op_call(op, on_done);
}

tnk_promise_t *tnk__hosted_ask(tnk__session_t *session,
                               const tnk_hosted_request_t *request) {
  const char *path =
      request->path != NULL ? request->path : forms[request->form].path;
  tnk_promise_t *promise = NULL;
  tnk__service_op_t *op = tnk__service_op_new(
      session, forms[request->form].name, sizeof(hosted_t), &promise);
  hosted_t *hosted;

  if (op == NULL)
    return promise;
  hosted = hosted_of(op);
  op->clean = clean;
  tnk__events_init(&hosted->events, alloc_of(hosted), on_event);
  hosted->form = request->form;
  hosted->on_event = request->on_event;
  hosted->user = request->user;
  hosted->silence_ms =
      request->silence_ms > 0 ? (uint32_t)request->silence_ms : SILENCE_MS;
  op->body.max = TNK__HOSTED_MAX_BODY;
  tnk__buf_append(&op->body, request->body, request->n_body);
  hosted->path = tnk__arena_strdup(&op->arena, path);
  if (hosted->path != NULL)
    tnk__service_op_ask(op, begin);
  else
    fail_code(hosted, TNK_ENOMEM);
  return promise;
}
