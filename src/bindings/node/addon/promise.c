/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bindings/node/addon/addon.h"

/* ---- Errors ---- */

static napi_value make_details(napi_env env, const tnk_error_t *error) {
  static const char *const ran[] = {"unknown", "no", "yes", "partly"};
  static const char *const categories[] = {"unknown", "server", "user"};
  napi_value details = NULL;

  napi_create_object(env, &details);
  if (error == NULL)
    return details;
  if (error->http_status != 0)
    set_number(env, details, "status", error->http_status);
  if (error->cause != 0)
    set_number(env, details, "errno", error->cause);
  if (error->retry_after_ms != 0)
    set_number(env, details, "retryAfterMs", (double)error->retry_after_ms);
  if ((unsigned)error->category < COUNT(categories))
    set_text(env, details, "category", categories[error->category]);
  if ((unsigned)error->ran < COUNT(ran))
    set_text(env, details, "ran", ran[error->ran]);
  set_number(env, details, "attempts", error->n_attempts);
  set_text(env, details, "requestId", error->request_id);
  set_text(env, details, "serverMessage", error->message);
  return details;
}

/* An object of the class that suits the code. */
static napi_value make_error(addon_t *addon, int code, const char *text,
                             const tnk_error_t *details) {
  napi_env env = addon->env;
  napi_value make = NULL, error = NULL;
  napi_value args[] = {make_text(env, tnk_err_name(code)), make_text(env, text),
                       make_details(env, details)};

  if (napi_get_reference_value(env, addon->make_error, &make) != napi_ok ||
      napi_call_function(env, make_undefined(env), make, COUNT(args), args,
                         &error) != napi_ok)
    return make_undefined(env);
  return error;
}

void throw_error(addon_t *addon, int code, const char *text) {
  if (text == NULL || text[0] == '\0')
    text = tnk_strerror(code);
  napi_throw(addon->env, make_error(addon, code, text, NULL));
}

/* ---- From the loop ---- */

int scope_enter(addon_t *addon, scope_t *scope) {
  napi_value resource = NULL;

  scope->is_open = 0;
  if (addon->is_ending ||
      napi_open_handle_scope(addon->env, &scope->handles) != napi_ok)
    return 0;
  /* A terminated worker runs no more JavaScript, but its loop still runs. */
  if (napi_create_object(addon->env, &resource) != napi_ok ||
      napi_open_callback_scope(addon->env, resource, addon->async,
                               &scope->callback) != napi_ok) {
    napi_close_handle_scope(addon->env, scope->handles);
    return 0;
  }
  return 1;
}

void scope_leave(addon_t *addon, scope_t *scope) {
  napi_close_callback_scope(addon->env, scope->callback);
  napi_close_handle_scope(addon->env, scope->handles);
}

void emit(object_t *service, const char *event, napi_value value) {
  napi_env env = service->addon->env;
  napi_value function = NULL, result = NULL;
  napi_value args[] = {make_text(env, event),
                       value != NULL ? value : make_undefined(env)};

  if (service->emit == NULL ||
      napi_get_reference_value(env, service->emit, &function) != napi_ok)
    return;
  if (napi_call_function(env, make_undefined(env), function, COUNT(args), args,
                         &result) == napi_pending_exception) {
    napi_value error = NULL;
    napi_get_and_clear_last_exception(env, &error);
    napi_fatal_exception(env, error);
  }
}

/* ---- Operations ---- */

/* The native part of the object that JavaScript passes to cancel(). */
typedef struct {
  addon_t *addon;
  struct wait *wait; /* NULL after the end */
} control_t;

typedef struct wait {
  object_t *owner;
  convert_t convert;
  napi_deferred deferred;
  tnk_promise_t *promise; /* a reference, if there is a control */
  control_t *control;
  void (*end)(void *user);
  void *user;
} wait_t;

static void control_free(napi_env env, void *data, void *hint) {
  control_t *control = data;

  (void)env, (void)hint;
  if (control->wait != NULL)
    control->wait->control = NULL;
  control->addon->counts.n_controls--;
  addon_unref(control->addon);
  free(control);
}

static void wait_settle(wait_t *wait, tnk_promise_t *promise, int status) {
  addon_t *addon = wait->owner->addon;
  napi_env env = addon->env;
  napi_value value = NULL, error = NULL;

  if (status == TNK_OK) {
    value = wait->convert == NULL ? make_undefined(env)
                                  : wait->convert(addon, wait->owner, promise);
    if (value != NULL) {
      napi_resolve_deferred(env, wait->deferred, value);
      return;
    }
    if (napi_get_and_clear_last_exception(env, &error) == napi_ok)
      napi_reject_deferred(env, wait->deferred, error);
    return;
  }
  error = make_error(addon, status, tnk_promise_text(promise),
                     tnk_promise_error(promise));
  napi_reject_deferred(env, wait->deferred, error);
}

static void wait_free(wait_t *wait) {
  object_t *service = object_service(wait->owner);

  wait->owner->addon->counts.n_promises--;
  service->n_pending--;
  if (wait->control != NULL)
    wait->control->wait = NULL;
  if (wait->promise != NULL)
    tnk_promise_unref(wait->promise);
  if (wait->end != NULL)
    wait->end(wait->user);
  object_unuse(wait->owner);
  object_unref(wait->owner);
  free(wait);
}

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  wait_t *wait = user;
  object_t *owner = wait->owner;
  object_t *service = object_service(owner);
  addon_t *addon = owner->addon;
  scope_t scope;

  object_ref(owner);
  addon->n_refs++;
  int is_open = scope_enter(addon, &scope);
  if (is_open)
    wait_settle(wait, promise, status);
  wait_free(wait);
  if (is_open && service->is_waited) {
    service->is_waited = 0;
    emit(service, "room", NULL);
  }
  if (is_open)
    scope_leave(addon, &scope);
  object_unref(owner);
  addon_unref(addon);
}

/* Let cancel() find the operation by `object`. Returns 0 with an exception
 * pending, unless memory is out. */
static int add_control(napi_env env, wait_t *wait, napi_value object,
                       tnk_promise_t *promise) {
  addon_t *addon = wait->owner->addon;
  control_t *control = NULL;

  if (!is_given(env, object))
    return 1;
  control = calloc(1, sizeof(*control));
  if (control == NULL)
    return 0;
  control->addon = addon;
  if (napi_wrap(env, object, control, control_free, NULL, NULL) != napi_ok) {
    free(control);
    return 0;
  }
  addon->n_refs++;
  addon->counts.n_controls++;
  control->wait = wait;
  wait->control = control;
  wait->promise = tnk_promise_ref(promise);
  return 1;
}

/* The time limit of the options. Returns 0 with an exception pending. */
static int add_timeout(napi_env env, napi_value options,
                       tnk_promise_t **promise) {
  static const field_t field = {"timeout", 0, FIELD_U64, NULL};
  uint64_t timeout = UINT64_MAX;
  scratch_t scratch = {NULL};

  if (!is_given(env, options))
    return 1;
  if (!read_fields(env, options, &field, 1, &timeout, &scratch))
    return 0;
  if (timeout != UINT64_MAX)
    *promise = tnk_with_timeout(*promise, timeout);
  return 1;
}

/* An operation that has no promise of JavaScript. */
static void refuse(call_t *call, wait_t *wait, tnk_promise_t *promise) {
  bool is_pending = false;

  napi_is_exception_pending(call->env, &is_pending);
  if (!is_pending)
    throw_error(call->addon, TNK_ENOMEM, NULL);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  if (call->end != NULL)
    call->end(call->user);
  free(wait);
}

/* The promise of JavaScript for one of the library, which is taken. */
static napi_value promise_new(call_t *call, napi_value options,
                              napi_value control, tnk_promise_t *promise) {
  napi_env env = call->env;
  addon_t *addon = call->addon;
  napi_value result = NULL;
  wait_t *wait = calloc(1, sizeof(*wait));

  if (wait != NULL)
    wait->owner = call->object;
  if (wait == NULL || !add_timeout(env, options, &promise) ||
      napi_create_promise(env, &wait->deferred, &result) != napi_ok ||
      !add_control(env, wait, control, promise)) {
    refuse(call, wait, promise);
    return NULL;
  }
  wait->convert = call->convert;
  wait->end = call->end;
  wait->user = call->user;
  object_ref(wait->owner);
  object_use(wait->owner);
  object_service(wait->owner)->n_pending++;
  addon->counts.n_promises++;
  int err = tnk_then(promise, on_settled, wait);
  if (err != TNK_OK) {
    napi_reject_deferred(env, wait->deferred,
                         make_error(addon, err, tnk_strerror(err), NULL));
    wait_free(wait);
  }
  return result;
}

static int has_room(object_t *service) {
  if (service->n_pending < service->max_pending)
    return 1;
  service->is_waited = 1;
  return 0;
}

napi_value js_operate(napi_env env, napi_callback_info info) {
  void *data = NULL;
  napi_value result = NULL;
  call_t call;

  napi_get_cb_info(env, info, NULL, NULL, NULL, &data);
  const operation_t *operation = data;
  if (!call_begin(&call, env, info, operation->kind) ||
      !has_room(object_service(call.object)))
    return NULL;
  call.convert = operation->convert;
  tnk_promise_t *promise = operation->start(&call);
  bool is_pending = false;
  napi_is_exception_pending(env, &is_pending);
  if (promise != NULL)
    result = promise_new(&call, call.args[operation->n_args + 1],
                         call.args[operation->n_args + 2], promise);
  else if (!is_pending)
    /* Without an exception JavaScript would wait for room. */
    throw_error(call.addon, TNK_EINVAL, NULL);
  return call_end(&call, result);
}

/* cancel(control): cancels the operation, if it has not ended. */
static napi_value js_cancel(napi_env env, napi_callback_info info) {
  call_t call;
  void *control = NULL;

  if (!call_begin(&call, env, info, 0))
    return NULL;
  if (napi_unwrap(env, call.args[0], &control) == napi_ok && control != NULL) {
    wait_t *wait = ((control_t *)control)->wait;
    if (wait != NULL)
      tnk_promise_cancel(wait->promise);
  }
  return call_end(&call, NULL);
}

const function_t promise_functions[] = {{"cancel", js_cancel}, {NULL, NULL}};
