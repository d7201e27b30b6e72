#include "loop/promise.h"

#include "base/alloc.h"

/*
 * Promises made of promises. A group holds one reference of each child and
 * one callback on it; each callback holds one reference of the group, so the
 * group lives until all children have settled, whatever became of its own
 * promise meanwhile.
 */

static void cancel_children(tnk__group_t *group) {
  size_t i;

  for (i = 0; i < group->n_children; i++)
    tnk_promise_cancel(group->children[i]);
}

/* The group's own cancel hook: children settle in their own time, the group
 * at once. */
static void cancel_group(void *op) {
  tnk_promise_t *promise = op;

  cancel_children(promise->group);
  if (promise->state == TNK_PENDING)
    tnk__promise_reject(promise, tnk__error_static(TNK_ECANCELED));
}

/* The first child that is still pending stands for all of them. */
static void explain_group(const void *op, tnk__text_t *out) {
  const tnk_promise_t *promise = op;
  const tnk__group_t *group = promise->group;
  const tnk_promise_t *first = NULL;
  size_t n = 0;
  size_t i;

  for (i = 0; i < group->n_children; i++) {
    const tnk_promise_t *child = group->children[i];
    if (child == NULL || child->state != TNK_PENDING)
      continue;
    if (n++ == 0)
      first = child;
  }
  if (tnk__timer_is_active(&group->timer)) {
    const uint64_t now = tnk__context_now_ms(promise->home->context);
    tnk__text_printf(out, "times out in ");
    tnk__text_time(out,
                   group->timer.due_ms > now ? group->timer.due_ms - now : 0);
    tnk__text_printf(out, "; ");
  } else if (n > 0) {
    tnk__text_printf(out,
                     "waits for %zu of %zu promises; the first of them: ", n,
                     group->n_children);
  }
  if (first != NULL)
    tnk__promise_explain(first, out);
  else
    tnk__text_printf(out, "is about to settle");
}

static tnk__context_t *loop_of(tnk_promise_t *const *promises, size_t n) {
  size_t i;

  for (i = 0; i < n; i++)
    if (promises[i] != NULL)
      return promises[i]->home->context;
  return NULL;
}

static void unref_all(tnk_promise_t *const *promises, size_t n) {
  size_t i;

  for (i = 0; i < n; i++)
    tnk_promise_unref(promises[i]);
}

/* The context goes, while children live on in another one. */
static void fail_groups(tnk__context_t *context) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&context->groups)) != NULL) {
    tnk__group_t *group = tnk__container_of(node, tnk__group_t, link);
    tnk__timer_stop(&group->timer);
    tnk__promise_reject(group->promise, tnk__error_static(TNK_ECLOSED));
  }
}

static tnk__group_t *alloc_group(const tnk_allocator_t *alloc, size_t n) {
  /* The caller's n; its product must not wrap around. */
  const size_t max =
      (SIZE_MAX - sizeof(tnk__group_t)) / sizeof(tnk_promise_t *);

  if (n > max)
    return NULL;
  return tnk__calloc(alloc, 1,
                     sizeof(tnk__group_t) + n * sizeof(tnk_promise_t *));
}

/* A group over the given children, whose references it takes. */
static tnk_promise_t *new_group(tnk_promise_t *const *promises, size_t n) {
  tnk__context_t *context = loop_of(promises, n);
  tnk_promise_t *promise;
  tnk__group_t *group;
  size_t i;

  if (context == NULL)
    return NULL;
  promise = tnk__promise_new(context, NULL, NULL);
  if (!tnk__promise_is_oom(promise)) {
    group = alloc_group(&context->alloc, n);
    if (group == NULL) {
      tnk__promise_reject(promise, tnk__error_static(TNK_ENOMEM));
    } else {
      for (i = 0; i < n; i++)
        group->children[i] = promises[i];
      group->n_children = n;
      group->n_waiting = n;
      group->promise = promise;
      promise->group = group;
      tnk__promise_bind(promise, cancel_group, explain_group, promise);
      context->fail_groups = fail_groups;
      tnk__list_append(&context->groups, &group->link);
      return promise;
    }
  }
  unref_all(promises, n);
  return promise;
}

/* A NULL child counts as rejected with TNK_EINVAL, and has no callback. */
static void watch_children(tnk_promise_t *promise, tnk_promise_cb cb) {
  tnk__group_t *group = promise->group;
  size_t i;

  for (i = 0; i < group->n_children; i++) {
    if (group->children[i] == NULL) {
      group->n_waiting--;
    } else {
      tnk_promise_ref(promise);
      tnk_then(tnk_promise_ref(group->children[i]), cb, promise);
    }
  }
}

static int has_null(const tnk__group_t *group) {
  size_t i;

  for (i = 0; i < group->n_children; i++)
    if (group->children[i] == NULL)
      return 1;
  return 0;
}

static void on_child_of_all(tnk_promise_t *child, int status, void *user) {
  tnk_promise_t *promise = user;

  promise->group->n_waiting--;
  if (promise->state == TNK_PENDING) {
    if (status != TNK_OK)
      tnk__promise_reject(promise, tnk__error_ref(child->as.error));
    else if (promise->group->n_waiting == 0)
      tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
  }
  tnk_promise_unref(promise);
}

/* All children have reported. One that is still pending could only report
 * that there was no memory to watch it. */
static void settle_settled(tnk_promise_t *promise) {
  const tnk__group_t *group = promise->group;
  size_t i;

  for (i = 0; i < group->n_children; i++) {
    const tnk_promise_t *child = group->children[i];
    if (child != NULL && child->state == TNK_PENDING) {
      tnk__promise_reject(promise, tnk__error_static(TNK_ENOMEM));
      return;
    }
  }
  tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
}

static void on_child_of_settled(tnk_promise_t *child, int status, void *user) {
  tnk_promise_t *promise = user;

  (void)child;
  (void)status;
  if (--promise->group->n_waiting == 0 && promise->state == TNK_PENDING)
    settle_settled(promise);
  tnk_promise_unref(promise);
}

tnk_promise_t *tnk_all(tnk_promise_t *const *promises, size_t n) {
  tnk_promise_t *promise = new_group(promises, n);

  if (promise == NULL || promise->group == NULL)
    return promise;
  watch_children(promise, on_child_of_all);
  if (has_null(promise->group))
    tnk__promise_reject(promise, tnk__error_static(TNK_EINVAL));
  return promise;
}

tnk_promise_t *tnk_all_settled(tnk_promise_t *const *promises, size_t n) {
  tnk_promise_t *promise = new_group(promises, n);

  if (promise != NULL && promise->group != NULL)
    watch_children(promise, on_child_of_settled);
  return promise;
}

static void on_timed_child(tnk_promise_t *child, int status, void *user) {
  tnk_promise_t *timed = user;

  tnk__timer_stop(&timed->group->timer);
  if (timed->state == TNK_PENDING) {
    if (status != TNK_OK)
      tnk__promise_reject(timed, tnk__error_ref(child->as.error));
    else
      tnk__promise_resolve(timed, TNK__RESULT_NONE, NULL, NULL);
  }
  tnk_promise_unref(timed);
}

/* Make the error, which says what was waited for, if there is memory. */
static tnk__error_t *timeout_error(const tnk__group_t *group) {
  tnk__error_t *error;
  char waits[512];
  tnk__text_t out;

  tnk__text_init(&out, waits, sizeof(waits));
  tnk__promise_explain(group->children[0], &out);
  error = tnk__error_new(&group->promise->home->alloc, TNK_ETIMEDOUT, "%s: %s",
                         tnk_strerror(TNK_ETIMEDOUT), waits);
  return error->pub.code == TNK_ETIMEDOUT ? error
                                          : tnk__error_static(TNK_ETIMEDOUT);
}

/* Add what the child, once it is canceled, says of whether it was run. Takes
 * over `error`. */
static tnk__error_t *with_ran(tnk__error_t *error, const tnk_promise_t *child) {
  tnk__error_t *other;

  if (child->state != TNK_REJECTED || !tnk__error_says_ran(child->as.error))
    return error;
  other = tnk__error_ran(error, child->as.error->pub.ran);
  tnk__error_unref(error);
  return other;
}

static void on_timeout(tnk__timer_t *timer) {
  tnk__group_t *group = tnk__container_of(timer, tnk__group_t, timer);
  tnk_promise_t *timed = group->promise;
  tnk__error_t *error;

  /* Settling gives up a reference; the child is still needed after. Its own
   * callbacks come later, and find us settled. */
  tnk_promise_ref(timed);
  error = timeout_error(group);
  cancel_children(group);
  error = with_ran(error, group->children[0]);
  if (timed->state == TNK_PENDING)
    tnk__promise_reject(timed, error);
  else
    tnk__error_unref(error);
  tnk_promise_unref(timed);
}

tnk_promise_t *tnk_with_timeout(tnk_promise_t *promise, uint64_t timeout_ms) {
  tnk_promise_t *timed = new_group(&promise, promise != NULL ? 1 : 0);

  if (timed == NULL || timed->group == NULL)
    return timed;
  timed->group->is_wrapper = 1;
  watch_children(timed, on_timed_child);
  if (promise->state == TNK_PENDING)
    tnk__timer_start(timed->home->context, &timed->group->timer, timeout_ms,
                     on_timeout);
  return timed;
}

tnk_promise_t *tnk_promise_child(const tnk_promise_t *promise, size_t index) {
  if (promise == NULL || promise->group == NULL ||
      index >= promise->group->n_children)
    return NULL;
  return promise->group->children[index];
}

void *tnk__promise_value(const tnk_promise_t *promise,
                         tnk__result_kind_t kind) {
  if (promise == NULL || promise->state != TNK_RESOLVED)
    return NULL;
  if (promise->kind == kind)
    return promise->as.resolved.value;
  if (promise->kind == TNK__RESULT_NONE && promise->group != NULL &&
      promise->group->is_wrapper)
    return tnk__promise_value(promise->group->children[0], kind);
  return NULL;
}
