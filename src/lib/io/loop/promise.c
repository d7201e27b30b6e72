/* SPDX-License-Identifier: MIT */
/*
 * PENDING, then RESOLVED or REJECTED by settle(), once. The holders of
 * references are the caller, the operation until it settles, and each
 * registered callback. The deferred queue holds one while callbacks are queued.
 * Only call_out() runs code of the caller, always from that queue.
 */
#include "lib/io/loop/promise.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/base/misuse.h"

/* Number of callbacks that can be registered when no memory is left. */
enum { N_SPARES = 64 };

/* The owner of a callback's node, which decides how it is freed. */
typedef enum { NODE_OURS = 0, NODE_SPARE, NODE_OF_GROUP } node_origin_t;

static void run_callbacks(tnk__deferred_t *call);

static void init(tnk_promise_t *promise, tnk__home_t *home) {
  memset(promise, 0, sizeof(*promise));
  promise->magic = TNK__MAGIC_PROMISE;
  promise->home = home;
  home->refs++;
  tnk__deferred_init(&promise->call, run_callbacks);
}

/* Create the shared promise and the home of all later promises. */
static tnk_promise_t *new_shared(tnk__context_t *context) {
  tnk__home_t *home = tnk__malloc(&context->alloc, sizeof(*home));
  tnk_promise_t *oom = tnk__malloc(&context->alloc, sizeof(*oom));

  if (home == NULL || oom == NULL) {
    tnk__free(&context->alloc, home);
    tnk__free(&context->alloc, oom);
    return NULL;
  }
  *home = (tnk__home_t){
      .alloc = context->alloc, .logger = context->logger, .context = context};
  init(oom, home);
  oom->is_shared = 1;
  /* Several calls return it, so it is not reported as unobserved. */
  oom->observed = 1;
  oom->refs = 1;
  oom->state = TNK_REJECTED;
  oom->as.error = tnk__error_static(TNK_ENOMEM);
  return oom;
}

void tnk__promise_release(tnk__context_t *context) {
  while (context->spares != NULL) {
    tnk__then_t *next = context->spares->next;
    tnk__free(&context->alloc, context->spares);
    context->spares = next;
  }
  if (context->oom == NULL)
    return;
  /* Promises may outlive the context; from here on `home` says so. */
  context->oom->home->context = NULL;
  tnk_promise_unref(context->oom);
  context->oom = NULL;
}

int tnk__promise_reserve(tnk__context_t *context) {
  size_t i;

  context->oom = new_shared(context);
  if (context->oom == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < N_SPARES; i++) {
    tnk__then_t *spare = tnk__malloc(&context->alloc, sizeof(*spare));
    if (spare == NULL) {
      tnk__promise_release(context);
      return TNK_ENOMEM;
    }
    *spare = (tnk__then_t){.next = context->spares, .origin = NODE_SPARE};
    context->spares = spare;
  }
  return TNK_OK;
}

int tnk__context_open(tnk__context_t *context, uv_loop_t *uv,
                      const tnk_allocator_t *alloc,
                      const tnk_logger_t *logger) {
  int err = tnk__context_init(context, uv, alloc, logger);

  if (err == TNK_OK)
    err = tnk__promise_reserve(context);
  if (err == TNK_OK)
    tnk__context_start(context);
  return err;
}

static void on_ended(void *user) {
  tnk__context_t *context = user;
  void (*closed)(void *) = context->oom->home->closed;
  void *closed_user = context->oom->home->closed_user;

  tnk__promise_release(context);
  closed(closed_user);
}

void tnk__context_close(tnk__context_t *context, void (*closed)(void *user),
                        void *user) {
  tnk__home_t *home = context->oom->home;

  home->closed = closed;
  home->closed_user = user;
  tnk__context_end(context, on_ended, context);
}

tnk_promise_t *tnk__promise_new(tnk__context_t *context,
                                void (*cancel)(void *op), void *op) {
  tnk_promise_t *promise = tnk__malloc(&context->alloc, sizeof(*promise));

  if (promise == NULL)
    return tnk_promise_ref(context->oom);
  init(promise, context->oom->home);
  promise->refs = 2;
  promise->as.pending.cancel = cancel;
  promise->as.pending.op = op;
  context->n_pending++;
  return promise;
}

void tnk__promise_bind(tnk_promise_t *promise, void (*cancel)(void *op),
                       void (*explain)(const void *op, tnk__text_t *out),
                       void *op) {
  if (promise->state != TNK_PENDING)
    return;
  promise->as.pending.cancel = cancel;
  promise->as.pending.explain = explain;
  promise->as.pending.op = op;
}

void tnk__promise_name(tnk_promise_t *promise, const char *name) {
  if (!promise->is_shared)
    promise->name = name;
}

void tnk__promise_enter(tnk_promise_t *promise, const char *name,
                        const char *client) {
  tnk__promise_name(promise, name);
  if (!promise->is_shared && promise->operation == 0)
    promise->operation =
        tnk__observe_begin(promise->home->context, name, client);
}

int tnk__promise_is_oom(const tnk_promise_t *promise) {
  return promise->is_shared;
}

tnk_promise_t *tnk__promise_rejected(tnk__context_t *context,
                                     tnk__error_t *error) {
  tnk_promise_t *promise = tnk__promise_new(context, NULL, NULL);

  if (tnk__promise_is_oom(promise))
    tnk__error_unref(error);
  else
    tnk__promise_reject(promise, error);
  return promise;
}

tnk_promise_t *tnk__promise_orphan(tnk__home_t *home, tnk__error_t *error) {
  tnk_promise_t *promise = tnk__malloc(&home->alloc, sizeof(*promise));

  if (promise == NULL) {
    tnk__error_unref(error);
    return NULL;
  }
  init(promise, home);
  promise->refs = 1;
  promise->state = TNK_REJECTED;
  promise->as.error = error;
  return promise;
}

tnk_promise_t *tnk_promise_ref(tnk_promise_t *promise) {
  if (!TNK__HANDLE(promise, PROMISE))
    return NULL;
  promise->refs++;
  return promise;
}

/* A static error does not name the operation. The name is added when the error
 * is read, because settling must not allocate. */
static int lacks_name(const tnk_promise_t *promise) {
  return promise->name != NULL && promise->as.error->refs == 0;
}

static const char *name_of(const tnk_promise_t *promise) {
  return lacks_name(promise) ? promise->name : "";
}

static const char *colon_of(const tnk_promise_t *promise) {
  return lacks_name(promise) ? ": " : "";
}

tnk__error_t *tnk__promise_error(tnk_promise_t *promise) {
  tnk__error_t *named;

  if (!lacks_name(promise))
    return promise->as.error;
  named =
      tnk__error_named(&promise->home->alloc, promise->name, promise->as.error);
  if (named != NULL)
    promise->as.error = named;
  return promise->as.error;
}

static void free_outcome(tnk_promise_t *promise) {
  tnk__home_t *home = promise->home;

  if (promise->state == TNK_RESOLVED) {
    if (promise->as.resolved.value != NULL &&
        promise->as.resolved.free_value != NULL)
      promise->as.resolved.free_value(&home->alloc, promise->as.resolved.value);
  } else if (promise->state == TNK_REJECTED) {
    if (!promise->observed)
      tnk__log(&home->logger, TNK_LOG_WARN, "promise",
               "the program ignored this failure: %s%s%s", name_of(promise),
               colon_of(promise), promise->as.error->pub.text);
    tnk__error_unref(promise->as.error);
  }
}

/* Drop a group's references. Children without other references are pushed on
 * the stack `dead`. */
static tnk__list_t *drop_children(tnk_promise_t *promise, tnk__list_t *dead) {
  tnk__group_t *group = promise->group;
  size_t i;

  for (i = 0; group != NULL && i < group->n_children; i++) {
    tnk_promise_t *child = group->children[i].promise;
    if (child == NULL || --child->refs > 0)
      continue;
    child->call.link.next = dead;
    dead = &child->call.link;
  }
  tnk__free(&promise->home->alloc, group);
  return dead;
}

/* Groups may be nested to any depth, so promises to be freed are kept in a
 * stack. Their links are free, because an unreferenced promise is in no
 * queue. */
static void free_promise(tnk_promise_t *promise) {
  tnk__list_t *dead = &promise->call.link;

  dead->next = NULL;
  while (dead != NULL) {
    tnk__home_t *home;
    tnk_allocator_t alloc;
    promise = tnk__container_of(dead, tnk_promise_t, call.link);
    home = promise->home;
    alloc = home->alloc;
    dead = drop_children(promise, dead->next);
    free_outcome(promise);
    tnk__handle_end(promise, sizeof(*promise));
    tnk__free(&alloc, promise);
    if (--home->refs == 0)
      tnk__free(&alloc, home);
  }
}

void tnk_promise_unref(tnk_promise_t *promise) {
  if (TNK__HANDLE(promise, PROMISE) && --promise->refs == 0)
    free_promise(promise);
}

/* ---- Reports to the observer ---- */

static void tell(const tnk_promise_t *promise, tnk_event_t *event) {
  event->operation = promise->operation;
  event->name = promise->name;
  tnk__observe(promise->home->context, event);
}

void tnk__promise_waits(const tnk_promise_t *promise, tnk_waits_for_t what,
                        size_t part) {
  if (promise != NULL && promise->operation != 0)
    tell(promise, &(tnk_event_t){.phase = TNK_PHASE_WAITS,
                                 .waits_for = what,
                                 .part = (uint32_t)part});
}

/* Decoding the response took time, and the event must show the time after
 * it. */
static void tell_end(const tnk_promise_t *promise) {
  const tnk_error_t *error;

  tnk__context_took_time(promise->home->context);
  if (promise->state == TNK_RESOLVED) {
    tell(promise, &(tnk_event_t){.phase = TNK_PHASE_DECODED});
    return;
  }
  error = &promise->as.error->pub;
  tell(promise, &(tnk_event_t){.phase = TNK_PHASE_FAILED,
                               .attempt = error->n_attempts,
                               .status = error->http_status,
                               .code = error->code,
                               .request_id = error->request_id});
}

/* After the service has ended nothing is reported. */
static void tell_delivery(tnk_promise_t *promise) {
  if (promise->operation == 0 || promise->delivered ||
      promise->home->context == NULL)
    return;
  promise->delivered = 1;
  tell(promise, &(tnk_event_t){.phase = TNK_PHASE_DELIVERED});
}

/* ---- Callbacks ---- */

/* The position for the next callback. */
static tnk__then_t **tail_of(tnk_promise_t *promise) {
  tnk__then_t **tail = &promise->rest;

  while (*tail != NULL)
    tail = &(*tail)->next;
  return tail;
}

static int has_callbacks(const tnk_promise_t *promise) {
  return promise->first_cb != NULL || promise->rest != NULL;
}

/* The promise holds a reference to itself while callbacks are queued. */
static void queue_callbacks(tnk_promise_t *promise) {
  if (!has_callbacks(promise) || !tnk__list_empty(&promise->call.link))
    return;
  tnk_promise_ref(promise);
  tnk__defer(promise->home->context, &promise->call);
}

/* Free the node of a removed callback. Nodes of a group are freed with the
 * group. */
static void free_then(tnk_promise_t *promise, tnk__then_t *node) {
  tnk__context_t *context = promise->home->context;

  if (node->origin == NODE_OURS) {
    tnk__free(&promise->home->alloc, node);
  } else if (node->origin == NODE_SPARE) {
    node->next = context->spares;
    context->spares = node;
  }
}

/* Call a callback and drop the reference that tnk_then() took for it. */
static void call_out(tnk_promise_t *promise, tnk_promise_cb cb, void *user) {
  tnk__callout_begin();
  cb(promise, tnk_promise_status(promise), user);
  tnk__callout_end();
  tnk_promise_unref(promise);
}

/* Remove the next callback. Returns 0 if there is none before `end`. */
static int pop_then(tnk_promise_t *promise, const tnk__then_t *end,
                    tnk__then_t *out) {
  tnk__then_t *node = promise->rest;

  if (node == NULL)
    return 0;
  promise->rest = node->next;
  *out = *node;
  if (node == end)
    return 0;
  free_then(promise, node);
  return 1;
}

/* An end mark follows the registered callbacks. A callback that registers
 * itself again thus waits for the next turn of the loop, and cannot block it.
 * Callbacks before the mark can still be removed. */
static void run_callbacks(tnk__deferred_t *call) {
  tnk_promise_t *promise = tnk__container_of(call, tnk_promise_t, call);
  const tnk_promise_cb first = promise->first_cb;
  tnk__then_t end = {.origin = NODE_OF_GROUP}; /* its memory is not freed */
  tnk__then_t then;

  *tail_of(promise) = &end;
  promise->first_cb = NULL;
  tell_delivery(promise);
  if (first != NULL)
    call_out(promise, first, promise->first_user);
  while (pop_then(promise, &end, &then))
    if (then.cb != NULL)
      call_out(promise, then.cb, then.user);
  tnk_promise_unref(promise);
}

/* The outcome replaces the hooks in the union. */
static void settle(tnk_promise_t *promise, tnk_promise_state_t state) {
  promise->state = state;
  if (promise->group != NULL)
    tnk__defer_cancel(&promise->group->end);
  promise->home->context->n_pending--;
  if (promise->operation != 0)
    tell_end(promise);
  queue_callbacks(promise);
  tnk_promise_unref(promise);
}

/* A promise can settle twice only through an error in this library. */
static void settled_twice(tnk_promise_t *promise) {
  if (promise->home->context != NULL)
    promise->home->context->counters.n_double_settles++;
  TNK__BROKEN("a promise was settled twice");
}

void tnk__promise_resolve(tnk_promise_t *promise, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *alloc,
                                             void *value)) {
  if (promise->state != TNK_PENDING) {
    if (value != NULL && free_value != NULL)
      free_value(&promise->home->alloc, value);
    settled_twice(promise);
    return;
  }
  promise->kind = (uint8_t)kind;
  promise->as.resolved.value = value;
  promise->as.resolved.free_value = free_value;
  settle(promise, TNK_RESOLVED);
}

void tnk__promise_reject(tnk_promise_t *promise, tnk__error_t *error) {
  if (promise->state != TNK_PENDING) {
    tnk__error_unref(error);
    settled_twice(promise);
    return;
  }
  promise->as.error = error;
  settle(promise, TNK_REJECTED);
}

/* Allocate a node for another callback. NULL if no memory and no spare is
 * left. */
static tnk__then_t *new_then(tnk_promise_t *promise) {
  tnk__context_t *context = promise->home->context;
  tnk__then_t *node = tnk__malloc(&promise->home->alloc, sizeof(*node));

  if (node != NULL) {
    node->origin = NODE_OURS;
    return node;
  }
  node = context->spares;
  if (node != NULL)
    context->spares = node->next;
  return node;
}

/* Returns whether the next callback is stored in the promise itself. It must
 * not overtake one that waits behind the end mark. */
static int has_first_place(const tnk_promise_t *promise) {
  const tnk__then_t *last = promise->rest;

  while (last != NULL && last->next != NULL)
    last = last->next;
  return promise->first_cb == NULL && (last == NULL || last->cb == NULL);
}

/* Register a callback, which holds the given reference. */
static void put_first(tnk_promise_t *promise, tnk_promise_cb cb, void *user) {
  promise->first_cb = cb;
  promise->first_user = user;
}

static void put_last(tnk_promise_t *promise, tnk__then_t *node,
                     tnk_promise_cb cb, void *user) {
  node->next = NULL;
  node->cb = cb;
  node->user = user;
  *tail_of(promise) = node;
}

void tnk__promise_watch(tnk_promise_t *promise, tnk__then_t *node,
                        tnk_promise_cb cb, void *user) {
  node->origin = NODE_OF_GROUP;
  promise->observed = 1;
  if (has_first_place(promise))
    put_first(promise, cb, user);
  else
    put_last(promise, node, cb, user);
  if (promise->state != TNK_PENDING)
    queue_callbacks(promise);
}

/* Returns TNK_OK, or why the callback was not registered. */
static int add_callback(tnk_promise_t *promise, tnk_promise_cb cb, void *user) {
  tnk__then_t *node;

  if (promise->home->context == NULL)
    return TNK_ECLOSED;
  if (has_first_place(promise)) {
    put_first(promise, cb, user);
  } else {
    node = new_then(promise);
    if (node == NULL)
      return TNK_ENOMEM;
    put_last(promise, node, cb, user);
  }
  if (promise->state != TNK_PENDING)
    queue_callbacks(promise);
  return TNK_OK;
}

int tnk_then(tnk_promise_t *promise, tnk_promise_cb cb, void *user) {
  int err = TNK_OK;

  if (!TNK__HANDLE(promise, PROMISE))
    return TNK_EINVAL;
  promise->observed = 1;
  if (cb != NULL)
    err = add_callback(promise, cb, user);
  if (cb == NULL || err != TNK_OK)
    tnk_promise_unref(promise);
  return err;
}

int tnk_promise_forget(tnk_promise_t *promise, tnk_promise_cb cb, void *user) {
  size_t n = 0;
  size_t i;

  if (!TNK__HANDLE(promise, PROMISE) || cb == NULL)
    return TNK_EINVAL;
  if (promise->first_cb == cb && promise->first_user == user) {
    promise->first_cb = NULL;
    n++;
  }
  for (tnk__then_t **at = &promise->rest; *at != NULL;) {
    tnk__then_t *node = *at;
    if (node->cb != cb || node->user != user) {
      at = &node->next;
      continue;
    }
    *at = node->next;
    free_then(promise, node);
    n++;
  }
  for (i = 0; i < n; i++)
    tnk_promise_unref(promise);
  return n > 0 ? TNK_OK : TNK_ENOTFOUND;
}

int tnk_wait(tnk_promise_t *promise) {
  int err;

  if (!TNK__HANDLE(promise, PROMISE))
    return TNK_EINVAL;
  if (promise->state == TNK_PENDING) {
    err = tnk__context_check_caller(promise->home->context);
    if (err != TNK_OK)
      return err;
    if (tnk__callout_active())
      return TNK_EREENTRANT;
  }
  promise->observed = 1;
  while (promise->state == TNK_PENDING)
    if (uv_run(promise->home->context->uv, UV_RUN_ONCE) == 0 &&
        promise->state == TNK_PENDING)
      return TNK_EPENDING;
  return tnk_promise_status(promise);
}

void tnk_promise_cancel(tnk_promise_t *promise) {
  void (*cancel)(void *op);

  if (!TNK__HANDLE(promise, PROMISE) || promise->state != TNK_PENDING ||
      promise->as.pending.cancel == NULL ||
      tnk__context_is_forked(promise->home->context))
    return;
  cancel = promise->as.pending.cancel;
  /* The hook may settle the promise and drop its reference, so keep one during
   * the call. */
  tnk_promise_ref(promise);
  cancel(promise->as.pending.op);
  tnk_promise_unref(promise);
}

/* The accessors change nothing that the caller can see. They still record that
 * the outcome was read. */
static void observe(const tnk_promise_t *promise) {
  if (promise->state == TNK_PENDING)
    return;
  /* Written once, so that a promise from a queue is only read later. */
  if (!promise->observed)
    ((tnk_promise_t *)promise)->observed = 1;
  tell_delivery((tnk_promise_t *)promise);
}

tnk_promise_state_t tnk_promise_state(const tnk_promise_t *promise) {
  if (!TNK__HANDLE(promise, PROMISE))
    return TNK_REJECTED;
  observe(promise);
  return promise->state;
}

int tnk_promise_status(const tnk_promise_t *promise) {
  if (!TNK__HANDLE(promise, PROMISE))
    return TNK_EINVAL;
  if (promise->state == TNK_PENDING)
    return TNK_EPENDING;
  observe(promise);
  return promise->state == TNK_RESOLVED ? TNK_OK : promise->as.error->pub.code;
}

const tnk_error_t *tnk_promise_error(const tnk_promise_t *promise) {
  static const tnk_error_t none = {
      .code = TNK_EINVAL,
      .text =
          "there is no promise: the promise or the handle of the call is NULL"};

  if (!TNK__HANDLE(promise, PROMISE))
    return &none;
  if (promise->state != TNK_REJECTED)
    return NULL;
  observe(promise);
  return &tnk__promise_error((tnk_promise_t *)promise)->pub;
}

const char *tnk_promise_text(const tnk_promise_t *promise) {
  const tnk_error_t *error = tnk_promise_error(promise);

  return error != NULL ? error->text
                       : tnk_strerror(tnk_promise_status(promise));
}

void tnk__promise_explain(const tnk_promise_t *promise, tnk__text_t *out) {
  if (promise == NULL)
    tnk__text_printf(out, "there is no such promise");
  else if (promise->state == TNK_RESOLVED)
    tnk__text_printf(out, "has succeeded");
  else if (promise->state == TNK_REJECTED)
    tnk__text_printf(out, "has failed: %s%s%s", name_of(promise),
                     colon_of(promise), promise->as.error->pub.text);
  else if (promise->as.pending.explain != NULL)
    promise->as.pending.explain(promise->as.pending.op, out);
  else
    tnk__text_printf(out, "is pending");
}

size_t tnk_promise_explain(const tnk_promise_t *promise, char *text,
                           size_t text_size) {
  tnk__text_t out;

  tnk__text_init(&out, text, text != NULL ? text_size : 0);
  tnk__promise_explain(TNK__HANDLE(promise, PROMISE) ? promise : NULL, &out);
  return out.len;
}
