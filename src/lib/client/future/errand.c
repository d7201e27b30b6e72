#include "lib/client/future/errand.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/call/auth.h"

static void on_cancel(void *arg) {
  tnk__errand_fail(arg, tnk__error_static(TNK_ECANCELED));
}

/* Name the current call: a service operation may make several in sequence. */
static void explain_call(const tnk__errand_t *errand, tnk__text_t *out) {
  const char *path = errand->call.request.route->path;

  if (errand->call.request.target == NULL && strcmp(path, errand->name) != 0)
    tnk__text_printf(out, "%.*s ", (int)strcspn(path, "/"), path);
  tnk__call_explain(&errand->call, out);
}

static void on_explain(const void *arg, tnk__text_t *out) {
  const tnk__errand_t *errand = arg;

  tnk__text_printf(out, "%s: ", errand->name);
  if (!tnk__list_empty(&errand->need.link))
    tnk__start_explain(&errand->session->start, out);
  else if (tnk__call_is_active(&errand->call))
    explain_call(errand, out);
  else if (tnk__timer_is_active(&errand->call.timer))
    tnk__text_printf(out, "waits until it asks again");
  else if (tnk__list_empty(&errand->need.call.link))
    tnk__job_explain(&errand->job, out);
  else
    tnk__text_printf(out, "is about to be sent");
}

tnk__errand_t *tnk__errand_new(tnk__session_t *session, const char *name,
                               size_t size, tnk_promise_t **promise) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  tnk__errand_t *errand = tnk__calloc(alloc, 1, size);
  tnk__error_t *error;

  if (errand == NULL) {
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
    tnk__free(alloc, errand);
    return NULL;
  }
  tnk__promise_bind(*promise, on_cancel, on_explain, errand);
  tnk__promise_enter(*promise, name, NULL);
  errand->name = name;
  tnk__stall_moved(&errand->stall, tnk__context_now_ms(session->context));
  errand->promise = *promise;
  errand->session = session;
  tnk__arena_init(&errand->arena, alloc, 4 * TNK__MIB);
  tnk__buf_init(&errand->body, alloc, 4 * TNK__MIB);
  tnk__list_append(&session->registry.errands, &errand->link);
  return errand;
}

void tnk__errand_keep_secret(tnk__errand_t *errand) {
  errand->has_secret = 1;
  tnk__buf_keep_secret(&errand->body);
}

void tnk__errand_dispose(tnk__errand_t *errand) {
  const tnk_allocator_t *alloc = &errand->session->context->alloc;

  tnk__list_remove(&errand->link);
  if (errand->clean != NULL)
    errand->clean(errand);
  if (errand->begin != NULL)
    tnk__need_cancel(&errand->need);
  tnk__call_cancel(&errand->call);
  tnk__job_cancel(&errand->job);
  tnk__buf_deinit(&errand->body);
  if (errand->has_secret)
    tnk__arena_deinit_secret(&errand->arena);
  else
    tnk__arena_deinit(&errand->arena);
  tnk__error_unref(errand->refused);
  tnk__free(alloc, errand);
}

void tnk__errand_resolve(tnk__errand_t *errand, tnk__result_kind_t kind,
                         void *value,
                         void (*free_value)(const tnk_allocator_t *, void *)) {
  tnk__promise_resolve(errand->promise, kind, value, free_value);
  tnk__errand_dispose(errand);
}

/* A query is safe to repeat, so its errors do not say whether it was run. */
static int is_question(const tnk__errand_t *errand) {
  return errand->job.future.limits == NULL && errand->call.endpoint != NULL &&
         errand->call.request.route->kind == TNK__CALL_QUERY;
}

/* Whether the object to create was created. */
static tnk_ran_t ran_of(const tnk__errand_t *errand) {
  if (errand->job.future.limits == NULL && errand->call.endpoint != NULL)
    return tnk__call_ran(&errand->call);
  return tnk__job_ran(&errand->job);
}

void tnk__errand_fail(tnk__errand_t *errand, tnk__error_t *error) {
  int says = !is_question(errand) && error->pub.code != TNK_EFAILED;

  tnk__promise_reject(errand->promise,
                      says ? tnk__error_ran(error, ran_of(errand))
                           : tnk__error_ref(error));
  tnk__errand_dispose(errand);
}

/* Errors of the connection, the key or the rate do not refer to an object. */
static int is_about_thing(const tnk__error_t *error) {
  const int code = error->pub.code;

  return code == TNK_EFAILED || code == TNK_EREQUEST || code == TNK_ENOTFOUND;
}

void tnk__errand_fail_about(tnk__errand_t *errand, tnk__error_t *error,
                            const char *thing) {
  tnk__error_t *about = thing != NULL && is_about_thing(error)
                            ? tnk__error_about(error, thing)
                            : tnk__error_ref(error);

  tnk__errand_fail(errand, about);
  tnk__error_unref(about);
}

void tnk__errand_fail_code(tnk__errand_t *errand, const char *name, int code) {
  /* Web sites and gateways respond with 200 to any request. */
  const tnk_error_t pub = {
      .code = code,
      .message = code == TNK_EPROTO
                     ? "it is not what this call is answered with; does "
                       "base_url name a Tinker server?"
                     : NULL};
  tnk__error_t *error =
      tnk__error_from(&errand->session->context->alloc, name, &pub);

  tnk__errand_fail(errand, error);
  tnk__error_unref(error);
}

static void on_need(tnk__need_t *need, tnk__error_t *error) {
  tnk__errand_t *errand = tnk__container_of(need, tnk__errand_t, need);

  if (error != NULL)
    tnk__errand_fail(errand, error);
  else
    errand->begin(errand);
}

void tnk__errand_enter(tnk__errand_t *errand, tnk__session_level_t level,
                       void (*begin)(tnk__errand_t *self)) {
  errand->begin = begin;
  tnk__need_init(&errand->need, on_need);
  if (errand->session->start.level < level)
    tnk__promise_waits(errand->promise, TNK_WAITS_FOR_SESSION, 0);
  tnk__start_need(&errand->session->start, &errand->need, level);
}

void tnk__errand_call(tnk__errand_t *errand,
                      void (*done)(tnk__call_t *call,
                                   const tnk__reply_t *reply)) {
  errand->call.request.body = errand->body.data;
  errand->call.request.body_len = errand->body.len;
  if (errand->body.err != TNK_OK) {
    tnk__errand_fail_code(errand, errand->call.owner.name, errand->body.err);
    return;
  }
  errand->call.owner.operation = errand->promise->operation;
  errand->call.owner.is_question = 1;
  tnk__call_start(&errand->call, done);
}

void tnk__errand_job(tnk__errand_t *errand,
                     void (*done)(tnk__job_t *job, const tnk__reply_t *reply)) {
  if (errand->body.err != TNK_OK) {
    tnk__errand_fail_code(errand, errand->job.future.call.owner.name,
                          errand->body.err);
    return;
  }
  errand->job.future.call.owner.operation = errand->promise->operation;
  tnk__job_start(&errand->job, errand->body.data, errand->body.len, done);
}

/* ---- Queries without the flags ---- */

/* The flags are known now. */
static void ask_again(tnk__errand_t *errand) {
  const tnk__auth_t *auth = errand->session->endpoint.auth;

  if (errand->exchanges == (auth->exchanges != 0) &&
      errand->uses_command == (auth->uses_command != 0))
    tnk__errand_fail(errand, errand->refused);
  else
    errand->ask(errand);
}

int tnk__errand_asks_again(tnk__errand_t *errand, const tnk__reply_t *reply) {
  if (!errand->is_unsure || (reply->status != 401 && reply->status != 403))
    return 0;
  errand->is_unsure = 0;
  errand->refused = tnk__error_ref(reply->error);
  tnk__errand_enter(errand, TNK__SESSION_CONFIGURED, ask_again);
  return 1;
}

static void ask_unsure(tnk__errand_t *errand) {
  const tnk__session_t *session = errand->session;
  const tnk__auth_t *auth = session->endpoint.auth;

  errand->is_unsure = session->start.level < TNK__SESSION_CONFIGURED;
  errand->exchanges = auth->exchanges != 0;
  errand->uses_command = auth->uses_command != 0;
  errand->ask(errand);
}

/* If the server wanted a token before and has issued none, its flags are
 * requested again. It may not want a token any more. */
void tnk__errand_ask(tnk__errand_t *errand, void (*ask)(tnk__errand_t *self)) {
  const int wants_token = errand->session->endpoint.auth->exchanges;

  errand->ask = ask;
  tnk__errand_enter(errand,
                    wants_token ? TNK__SESSION_CONFIGURED : TNK__SESSION_NEW,
                    ask_unsure);
}
