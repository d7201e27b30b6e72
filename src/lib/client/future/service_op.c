/* SPDX-License-Identifier: MIT */
#include "lib/client/future/service_op.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/call/auth.h"

static void on_cancel(void *arg) {
  tnk__service_op_fail(arg, tnk__error_static(TNK_ECANCELED));
}

/* Name the current call: a service operation may make several in sequence. */
static void explain_call(const tnk__service_op_t *op, tnk__text_t *out) {
  const char *path = op->call.request.route->path;

  if (op->call.request.target == NULL && strcmp(path, op->name) != 0)
    tnk__text_printf(out, "%.*s ", (int)strcspn(path, "/"), path);
  tnk__call_explain(&op->call, out);
}

static void on_explain(const void *arg, tnk__text_t *out) {
  const tnk__service_op_t *op = arg;

  tnk__text_printf(out, "%s: ", op->name);
  if (!tnk__list_empty(&op->need.link))
    tnk__start_explain(&op->session->start, out);
  else if (tnk__call_is_active(&op->call))
    explain_call(op, out);
  else if (tnk__timer_is_active(&op->call.timer))
    tnk__text_printf(out, "waits for the next poll");
  else if (tnk__list_empty(&op->need.call.link))
    tnk__job_explain(&op->job, out);
  else
    tnk__text_printf(out, "is about to be sent");
}

tnk__service_op_t *tnk__service_op_new(tnk__session_t *session,
                                       const char *name, size_t size,
                                       tnk_promise_t **promise) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  tnk__service_op_t *op = tnk__calloc(alloc, 1, size);
  tnk__error_t *error;

  if (op == NULL) {
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
    tnk__free(alloc, op);
    return NULL;
  }
  tnk__promise_bind(*promise, on_cancel, on_explain, op);
  tnk__promise_enter(*promise, name, NULL);
  op->name = name;
  tnk__stall_moved(&op->stall, tnk__context_now_ms(session->context));
  op->promise = *promise;
  op->session = session;
  tnk__arena_init(&op->arena, alloc, 4 * TNK__MIB);
  tnk__buf_init(&op->body, alloc, 4 * TNK__MIB);
  tnk__list_append(&session->registry.service_ops, &op->link);
  return op;
}

void tnk__service_op_keep_secret(tnk__service_op_t *op) {
  op->has_secret = 1;
  tnk__buf_keep_secret(&op->body);
}

void tnk__service_op_dispose(tnk__service_op_t *op) {
  const tnk_allocator_t *alloc = &op->session->context->alloc;

  tnk__list_remove(&op->link);
  if (op->clean != NULL)
    op->clean(op);
  if (op->begin != NULL)
    tnk__need_cancel(&op->need);
  tnk__call_cancel(&op->call);
  tnk__job_cancel(&op->job);
  tnk__buf_deinit(&op->body);
  if (op->has_secret)
    tnk__arena_deinit_secret(&op->arena);
  else
    tnk__arena_deinit(&op->arena);
  tnk__error_unref(op->refused);
  tnk__free(alloc, op);
}

void tnk__service_op_resolve(tnk__service_op_t *op, tnk__result_kind_t kind,
                             void *value,
                             void (*free_value)(const tnk_allocator_t *,
                                                void *)) {
  tnk__promise_resolve(op->promise, kind, value, free_value);
  tnk__service_op_dispose(op);
}

/* A query is safe to repeat, so its errors do not say whether it was run. */
static int is_question(const tnk__service_op_t *op) {
  return op->job.future.limits == NULL && op->call.endpoint != NULL &&
         op->call.request.route->kind == TNK__CALL_QUERY;
}

/* Returns whether the object to create was created. */
static tnk_ran_t ran_of(const tnk__service_op_t *op) {
  if (op->job.future.limits == NULL && op->call.endpoint != NULL)
    return tnk__call_ran(&op->call);
  return tnk__job_ran(&op->job);
}

void tnk__service_op_fail(tnk__service_op_t *op, tnk__error_t *error) {
  int says = !is_question(op) && error->pub.code != TNK_EFAILED;

  tnk__promise_reject(op->promise, says ? tnk__error_ran(error, ran_of(op))
                                        : tnk__error_ref(error));
  tnk__service_op_dispose(op);
}

/* Errors of the connection, the key or the rate do not refer to an object. */
static int is_about_thing(const tnk__error_t *error) {
  const int code = error->pub.code;

  return code == TNK_EFAILED || code == TNK_EREQUEST || code == TNK_ENOTFOUND;
}

void tnk__service_op_fail_about(tnk__service_op_t *op, tnk__error_t *error,
                                const char *thing) {
  tnk__error_t *about = thing != NULL && is_about_thing(error)
                            ? tnk__error_about(error, thing)
                            : tnk__error_ref(error);

  tnk__service_op_fail(op, about);
  tnk__error_unref(about);
}

void tnk__service_op_fail_job(tnk__service_op_t *op, const tnk__reply_t *reply,
                              const char *thing) {
  tnk_error_t pub = reply->error->pub;
  tnk__error_t *error;

  if (!op->job.is_accepted || reply->verdict.err != TNK_ENOTFOUND ||
      (thing != NULL && pub.message != NULL &&
       strstr(pub.message, thing) != NULL)) {
    tnk__service_op_fail_about(op, reply->error, thing);
    return;
  }
  pub.code = TNK_ESESSION;
  error = tnk__error_from(&op->session->context->alloc, op->name, &pub);
  tnk__service_op_fail(op, error);
  tnk__error_unref(error);
}

void tnk__service_op_fail_code(tnk__service_op_t *op, const char *name,
                               int code) {
  /* Web sites and gateways respond with 200 to any request. */
  const tnk_error_t pub = {
      .code = code,
      .message = code == TNK_EPROTO ? "it does not belong to this call; does "
                                      "base_url name a Tinker server?"
                                    : NULL};
  tnk__error_t *error =
      tnk__error_from(&op->session->context->alloc, name, &pub);

  tnk__service_op_fail(op, error);
  tnk__error_unref(error);
}

static void on_need(tnk__need_t *need, tnk__error_t *error) {
  tnk__service_op_t *op = tnk__container_of(need, tnk__service_op_t, need);

  if (error != NULL)
    tnk__service_op_fail(op, error);
  else
    op->begin(op);
}

void tnk__service_op_enter(tnk__service_op_t *op, tnk__session_level_t level,
                           void (*begin)(tnk__service_op_t *self)) {
  op->begin = begin;
  tnk__need_init(&op->need, on_need);
  if (op->session->start.level < level)
    tnk__promise_waits(op->promise, TNK_WAITS_FOR_SESSION, 0);
  tnk__start_need(&op->session->start, &op->need, level);
}

void tnk__service_op_call(tnk__service_op_t *op,
                          void (*done)(tnk__call_t *call,
                                       const tnk__reply_t *reply)) {
  op->call.request.body = op->body.data;
  op->call.request.body_len = op->body.len;
  if (op->body.err != TNK_OK) {
    tnk__service_op_fail_code(op, op->call.owner.name, op->body.err);
    return;
  }
  op->call.owner.operation = op->promise->operation;
  op->call.owner.is_question = 1;
  tnk__call_start(&op->call, done);
}

void tnk__service_op_job(tnk__service_op_t *op,
                         void (*done)(tnk__job_t *job,
                                      const tnk__reply_t *reply)) {
  if (op->body.err != TNK_OK) {
    tnk__service_op_fail_code(op, op->job.future.call.owner.name, op->body.err);
    return;
  }
  op->job.future.call.owner.operation = op->promise->operation;
  tnk__job_start(&op->job, op->body.data, op->body.len, done);
}

/* ---- Queries without the flags ---- */

/* The flags are known now. */
static void ask_again(tnk__service_op_t *op) {
  const tnk__auth_t *auth = op->session->endpoint.auth;

  if (op->exchanges == (auth->exchanges != 0) &&
      op->uses_command == (auth->uses_command != 0))
    tnk__service_op_fail(op, op->refused);
  else
    op->ask(op);
}

int tnk__service_op_asks_again(tnk__service_op_t *op,
                               const tnk__reply_t *reply) {
  if (!op->is_unsure || (reply->status != 401 && reply->status != 403))
    return 0;
  op->is_unsure = 0;
  op->refused = tnk__error_ref(reply->error);
  tnk__service_op_enter(op, TNK__SESSION_CONFIGURED, ask_again);
  return 1;
}

static void ask_unsure(tnk__service_op_t *op) {
  const tnk__session_t *session = op->session;
  const tnk__auth_t *auth = session->endpoint.auth;

  op->is_unsure = session->start.level < TNK__SESSION_CONFIGURED;
  op->exchanges = auth->exchanges != 0;
  op->uses_command = auth->uses_command != 0;
  op->ask(op);
}

/* If the server wanted a token before and has issued none, its flags are
 * requested again. It may not want a token any more. */
void tnk__service_op_ask(tnk__service_op_t *op,
                         void (*ask)(tnk__service_op_t *self)) {
  const int wants_token = op->session->endpoint.auth->exchanges;

  op->ask = ask;
  tnk__service_op_enter(
      op, wants_token ? TNK__SESSION_CONFIGURED : TNK__SESSION_NEW, ask_unsure);
}
