#include "task/future/request.h"

#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"

static void on_cancel(void *arg) {
  tnk__request_fail(arg, tnk__error_static(TNK_ECANCELED));
}

/* A request may make several calls, one after the other: which it is at. */
static void explain_call(const tnk__request_t *request, tnk__text_t *out) {
  const char *path = request->call.route->path;

  if (strcmp(path, request->name) != 0)
    tnk__text_printf(out, "%.*s ", (int)strcspn(path, "/"), path);
  tnk__call_explain(&request->call, out);
}

static void on_explain(const void *arg, tnk__text_t *out) {
  const tnk__request_t *request = arg;

  tnk__text_printf(out, "%s: ", request->name);
  if (!tnk__list_empty(&request->need.link))
    tnk__session_explain(request->session, out);
  else if (tnk__call_is_active(&request->call))
    explain_call(request, out);
  else if (tnk__list_empty(&request->need.call.link))
    tnk__job_explain(&request->job, out);
  else
    tnk__text_printf(out, "is about to be sent");
}

tnk__request_t *tnk__request_new(tnk__session_t *session, const char *name,
                                 size_t size, tnk_promise_t **promise) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  tnk__request_t *request = tnk__calloc(alloc, 1, size);
  tnk__error_t *error;

  if (request == NULL) {
    error = tnk__error_ran(tnk__error_static(TNK_ENOMEM), TNK_RAN_NO);
    if (*promise != NULL)
      tnk__promise_reject(*promise, error);
    else
      *promise = tnk__promise_rejected(session->context, error);
    return NULL;
  }
  if (*promise == NULL)
    *promise = tnk__promise_new(session->context, NULL, NULL);
  if (tnk__promise_is_oom(*promise)) {
    tnk__free(alloc, request);
    return NULL;
  }
  tnk__promise_bind(*promise, on_cancel, on_explain, request);
  tnk__promise_name(*promise, name);
  request->name = name;
  tnk__stall_moved(&request->stall, tnk__context_now_ms(session->context));
  request->promise = *promise;
  request->session = session;
  tnk__arena_init(&request->arena, alloc, 4 * TNK__MIB);
  tnk__buf_init(&request->body, alloc, 4 * TNK__MIB);
  tnk__list_append(&session->requests, &request->link);
  return request;
}

void tnk__request_dispose(tnk__request_t *request) {
  const tnk_allocator_t *alloc = &request->session->context->alloc;

  tnk__list_remove(&request->link);
  if (request->begin != NULL)
    tnk__need_cancel(&request->need);
  tnk__call_cancel(&request->call);
  tnk__job_cancel(&request->job);
  tnk__buf_deinit(&request->body);
  tnk__arena_deinit(&request->arena);
  tnk__free(alloc, request);
}

void tnk__request_resolve(tnk__request_t *request, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *, void *)) {
  tnk__promise_resolve(request->promise, kind, value, free_value);
  tnk__request_dispose(request);
}

/* A question is safe to ask again, so of those that is not said. */
static int is_question(const tnk__request_t *request) {
  return request->job.future.session == NULL &&
         request->call.endpoint != NULL &&
         request->call.route->kind == TNK__CALL_QUERY;
}

/* Whether what it was to make has been made. */
static tnk_ran_t ran_of(const tnk__request_t *request) {
  if (request->job.future.session == NULL && request->call.endpoint != NULL)
    return tnk__call_ran(&request->call);
  return tnk__job_ran(&request->job);
}

void tnk__request_fail(tnk__request_t *request, tnk__error_t *error) {
  int says = !is_question(request) && error->pub.code != TNK_EFAILED;

  tnk__promise_reject(request->promise,
                      says ? tnk__error_ran(error, ran_of(request))
                           : tnk__error_ref(error));
  tnk__request_dispose(request);
}

void tnk__request_fail_code(tnk__request_t *request, const char *name,
                            int code) {
  /* Web sites and gateways answer 200 to anything. */
  const tnk_error_t pub = {
      .code = code,
      .message = code == TNK_EPROTO
                     ? "it is not what this call is answered with; does "
                       "base_url name a Tinker server?"
                     : NULL};
  tnk__error_t *error =
      tnk__error_from(&request->session->context->alloc, name, &pub);

  tnk__request_fail(request, error);
  tnk__error_unref(error);
}

static void on_need(tnk__need_t *need, tnk__error_t *error) {
  tnk__request_t *request = tnk__container_of(need, tnk__request_t, need);

  if (error != NULL)
    tnk__request_fail(request, error);
  else
    request->begin(request);
}

void tnk__request_enter(tnk__request_t *request, tnk__session_level_t level,
                        void (*begin)(tnk__request_t *self)) {
  request->begin = begin;
  tnk__need_init(&request->need, on_need);
  tnk__session_need(request->session, &request->need, level);
}

void tnk__request_call(tnk__request_t *request,
                       void (*done)(tnk__call_t *call,
                                    const tnk__reply_t *reply)) {
  request->call.body = request->body.data;
  request->call.body_len = request->body.len;
  if (request->body.err != TNK_OK)
    tnk__request_fail_code(request, request->call.name, request->body.err);
  else
    tnk__call_start(&request->call, done);
}

void tnk__request_job(tnk__request_t *request,
                      void (*done)(tnk__job_t *job,
                                   const tnk__reply_t *reply)) {
  if (request->body.err != TNK_OK)
    tnk__request_fail_code(request, request->job.future.call.name,
                           request->body.err);
  else
    tnk__job_start(&request->job, request->body.data, request->body.len, done);
}
