/*
 * PENDING, then RESOLVED or REJECTED by settle(), once. References are held by
 * the caller, by the operation until it settles, by each registered callback
 * (the one tnk_then() took), and by the deferred queue while callbacks are in
 * it. Only call_out() runs code of the caller, always from that queue.
 */
#include "loop/promise.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

/* Callbacks that can be registered on the shared out-of-memory promise at one
 * time. */
enum { N_SPARES = 64 };

static void run_callbacks(tnk__deferred_t *call);

static void init(tnk_promise_t *promise, tnk__home_t *home) {
  memset(promise, 0, sizeof(*promise));
  promise->home = home;
  home->refs++;
  tnk__deferred_init(&promise->call, run_callbacks);
}

/* The shared promise, and with it the home of all that follow. */
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
  /* Nobody is blamed for not looking at it: it is many calls' answer at once.
   */
  oom->observed = 1;
  oom->refs = 1;
  oom->state = TNK_REJECTED;
  oom->as.error = tnk__error_static(TNK_ENOMEM);
  return oom;
}

int tnk__promise_reserve(tnk__context_t *context) {
  size_t i;

  context->oom = new_shared(context);
  if (context->oom == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < N_SPARES; i++) {
    tnk__then_t *spare = tnk__malloc(&context->alloc, sizeof(*spare));
    if (spare == NULL) {
      tnk__promise_reserve_free(context);
      return TNK_ENOMEM;
    }
    spare->next = context->spares;
    context->spares = spare;
  }
  return TNK_OK;
}

void tnk__promise_reserve_free(tnk__context_t *context) {
  while (context->spares != NULL) {
    tnk__then_t *next = context->spares->next;
    tnk__free(&context->alloc, context->spares);
    context->spares = next;
  }
  tnk_promise_unref(context->oom);
  context->oom = NULL;
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

tnk_promise_t *tnk_promise_ref(tnk_promise_t *promise) {
  if (promise != NULL)
    promise->refs++;
  return promise;
}

static void free_group(const tnk_allocator_t *alloc, tnk__group_t *group) {
  size_t i;

  for (i = 0; group != NULL && i < group->n_children; i++)
    tnk_promise_unref(group->children[i]);
  tnk__free(alloc, group);
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
               "nobody looked at this failure: %s",
               promise->as.error->pub.text);
    tnk__error_unref(promise->as.error);
  }
}

static void free_promise(tnk_promise_t *promise) {
  tnk__home_t *home = promise->home;
  const tnk_allocator_t alloc = home->alloc;

  while (promise->rest != NULL) {
    tnk__then_t *next = promise->rest->next;
    tnk__free(&alloc, promise->rest);
    promise->rest = next;
  }
  free_group(&alloc, promise->group);
  free_outcome(promise);
  tnk__free(&alloc, promise);
  if (--home->refs == 0)
    tnk__free(&alloc, home);
}

void tnk_promise_unref(tnk_promise_t *promise) {
  if (promise == NULL || --promise->refs > 0)
    return;
  free_promise(promise);
}

static int has_callbacks(const tnk_promise_t *promise) {
  return promise->first_cb != NULL || promise->rest != NULL;
}

/* While callbacks are queued the promise holds a reference of its own. */
static void queue_callbacks(tnk_promise_t *promise) {
  if (!has_callbacks(promise) || !tnk__list_empty(&promise->call.link))
    return;
  tnk_promise_ref(promise);
  tnk__defer(promise->home->context, &promise->call);
}

/* Give back the room of a callback that has been taken out. */
static void free_then(tnk_promise_t *promise, tnk__then_t *node) {
  if (promise->is_shared) {
    node->next = promise->home->context->spares;
    promise->home->context->spares = node;
  } else {
    tnk__free(&promise->home->alloc, node);
  }
}

/* One reference a callback: the one that tnk_then() took. */
static void call_out(tnk_promise_t *promise, tnk_promise_cb cb, void *user) {
  tnk__callout_begin();
  cb(promise, tnk_promise_status(promise), user);
  tnk__callout_end();
  tnk_promise_unref(promise);
}

/* Both places of callbacks are emptied first, so that one which registers
 * itself again waits for the next turn of the loop and cannot hold up the
 * loop. */
static void run_callbacks(tnk__deferred_t *call) {
  tnk_promise_t *promise = tnk__container_of(call, tnk_promise_t, call);
  const tnk_promise_cb first = promise->first_cb;
  tnk__then_t *rest = promise->rest;

  promise->first_cb = NULL;
  promise->rest = NULL;
  if (first != NULL)
    call_out(promise, first, promise->first_user);
  while (rest != NULL) {
    const tnk__then_t then = *rest;
    free_then(promise, rest);
    rest = then.next;
    call_out(promise, then.cb, then.user);
  }
  tnk_promise_unref(promise);
}

/* The outcome has taken the place of the hooks. */
static void settle(tnk_promise_t *promise, tnk_promise_state_t state) {
  promise->state = state;
  if (promise->group != NULL)
    tnk__list_remove(&promise->group->link);
  promise->home->context->n_pending--;
  queue_callbacks(promise);
  tnk_promise_unref(promise);
}

void tnk__promise_resolve(tnk_promise_t *promise, tnk__result_kind_t kind,
                          void *value,
                          void (*free_value)(const tnk_allocator_t *alloc,
                                             void *value)) {
  if (promise->state != TNK_PENDING) {
    promise->home->context->counters.n_double_settles++;
    if (value != NULL && free_value != NULL)
      free_value(&promise->home->alloc, value);
    return;
  }
  promise->kind = (uint8_t)kind;
  promise->as.resolved.value = value;
  promise->as.resolved.free_value = free_value;
  settle(promise, TNK_RESOLVED);
}

void tnk__promise_reject(tnk_promise_t *promise, tnk__error_t *error) {
  if (promise->state != TNK_PENDING) {
    promise->home->context->counters.n_double_settles++;
    tnk__error_unref(error);
    return;
  }
  promise->as.error = error;
  settle(promise, TNK_REJECTED);
}

/* A node for a further callback, NULL when there is no memory at all. */
static tnk__then_t *new_then(tnk_promise_t *promise) {
  tnk__then_t *node;

  if (!promise->is_shared)
    return tnk__malloc(&promise->home->alloc, sizeof(*node));
  node = promise->home->context->spares;
  if (node != NULL)
    promise->home->context->spares = node->next;
  return node;
}

/* There is no memory for a further callback: it is told so, through the
 * shared promise, instead of the outcome. */
static void then_without_memory(tnk_promise_t *promise, tnk_promise_cb cb,
                                void *user) {
  if (promise->is_shared)
    tnk__log(&promise->home->logger, TNK_LOG_ERROR, "promise",
             "no memory to remember a callback; it will not be called");
  else
    tnk_then(tnk_promise_ref(promise->home->context->oom), cb, user);
  tnk_promise_unref(promise);
}

void tnk_then(tnk_promise_t *promise, tnk_promise_cb cb, void *user) {
  tnk__then_t **tail;
  tnk__then_t *node;

  if (promise == NULL)
    return;
  promise->observed = 1;
  if (cb == NULL) {
    tnk_promise_unref(promise);
    return;
  }
  if (!has_callbacks(promise)) {
    promise->first_cb = cb;
    promise->first_user = user;
  } else {
    node = new_then(promise);
    if (node == NULL) {
      then_without_memory(promise, cb, user);
      return;
    }
    *node = (tnk__then_t){NULL, cb, user};
    for (tail = &promise->rest; *tail != NULL; tail = &(*tail)->next)
      continue;
    *tail = node;
  }
  if (promise->state != TNK_PENDING)
    queue_callbacks(promise);
}

int tnk_wait(tnk_promise_t *promise) {
  int err;

  if (promise == NULL)
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

  if (promise == NULL || promise->state != TNK_PENDING ||
      promise->as.pending.cancel == NULL ||
      tnk__context_is_forked(promise->home->context))
    return;
  cancel = promise->as.pending.cancel;
  /* The hook may settle and so free what we hold; keep it over the call. */
  tnk_promise_ref(promise);
  cancel(promise->as.pending.op);
  tnk_promise_unref(promise);
}

/* The accessors look without changing anything a caller can see; that they
 * looked is noted all the same. */
static void observe(const tnk_promise_t *promise) {
  if (promise->state != TNK_PENDING)
    ((tnk_promise_t *)promise)->observed = 1;
}

tnk_promise_state_t tnk_promise_state(const tnk_promise_t *promise) {
  if (promise == NULL)
    return TNK_REJECTED;
  observe(promise);
  return promise->state;
}

int tnk_promise_status(const tnk_promise_t *promise) {
  if (promise == NULL)
    return TNK_EINVAL;
  if (promise->state == TNK_PENDING)
    return TNK_EPENDING;
  observe(promise);
  return promise->state == TNK_RESOLVED ? TNK_OK : promise->as.error->pub.code;
}

const tnk_error_t *tnk_promise_error(const tnk_promise_t *promise) {
  static const tnk_error_t none = {
      .code = TNK_EINVAL,
      .text = "there is no promise: it, or the handle of the call, is NULL"};

  if (promise == NULL)
    return &none;
  if (promise->state != TNK_REJECTED)
    return NULL;
  observe(promise);
  return &promise->as.error->pub;
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
    tnk__text_printf(out, "has failed: %s", promise->as.error->pub.text);
  else if (promise->as.pending.explain != NULL)
    promise->as.pending.explain(promise->as.pending.op, out);
  else
    tnk__text_printf(out, "is pending");
}

size_t tnk_promise_explain(const tnk_promise_t *promise, char *text,
                           size_t text_size) {
  tnk__text_t out;

  tnk__text_init(&out, text, text != NULL ? text_size : 0);
  tnk__promise_explain(promise, &out);
  return out.len;
}
