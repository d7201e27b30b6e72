/* SPDX-License-Identifier: MIT */
#include "lib/io/loop/promise.h"

#include "lib/base/alloc.h"
#include "lib/base/misuse.h"

/*
 * Promises made of promises. A group holds one reference of each child and
 * registers one callback on it. Each callback holds one reference of the
 * group's promise. The group therefore exists until all children have settled,
 * whatever happened to its own promise. Groups may be nested to any depth, so
 * nothing here recurses over them.
 */

/* ---- Cancelling ---- */

static void cancel_group(void *op);

static int is_pending_group(const tnk_promise_t *promise) {
  return promise != NULL && promise->state == TNK_PENDING &&
         promise->as.pending.cancel == cancel_group;
}

/* Cancel the children. Children that are groups themselves are appended to
 * `groups` instead, by a link that is free while they are pending. */
static void cancel_children(const tnk__group_t *group, tnk__list_t *groups) {
  size_t i;

  for (i = 0; i < group->n_children; i++) {
    tnk_promise_t *child = group->children[i].promise;
    if (!is_pending_group(child))
      tnk_promise_cancel(child);
    else if (tnk__list_empty(&child->call.link))
      tnk__list_append(groups, &child->call.link);
  }
}

/* The error of a canceled child has a more specific text. */
static tnk__error_t *error_of_children(const tnk__group_t *group, int code) {
  size_t i;

  for (i = 0; i < group->n_children; i++) {
    tnk_promise_t *child = group->children[i].promise;
    if (child != NULL && child->state == TNK_REJECTED &&
        child->as.error->pub.code == code)
      return tnk__error_ref(tnk__promise_error(child));
  }
  return tnk__error_static(code);
}

static void reject_canceled(tnk_promise_t *promise) {
  tnk__timer_stop(&promise->group->timer);
  tnk__promise_reject(promise,
                      error_of_children(promise->group, TNK_ECANCELED));
}

/* Cancel all descendants, then reject the groups, the innermost first. Children
 * settle in their own time, but groups settle at once. Inner groups are linked
 * in a ring with the outermost one. */
static void cancel_all(tnk_promise_t *outermost) {
  tnk__list_t *const ring = &outermost->call.link;
  tnk_promise_t *promise;

  cancel_children(outermost->group, ring);
  TNK__LIST_FOREACH (node, ring) {
    promise = tnk__container_of(node, tnk_promise_t, call.link);
    cancel_children(promise->group, ring);
  }
  while (!tnk__list_empty(ring)) {
    promise = tnk__container_of(ring->prev, tnk_promise_t, call.link);
    tnk__list_remove(&promise->call.link);
    reject_canceled(promise);
  }
  reject_canceled(outermost);
}

static void cancel_group(void *op) {
  tnk_promise_t *promise = op;

  if (tnk__list_empty(&promise->call.link))
    cancel_all(promise);
}

/* ---- Descriptions ---- */

/* Describe the group itself; the description of a child follows. */
static void explain_self(const tnk__group_t *group, size_t n_pending,
                         tnk__text_t *out) {
  if (tnk__timer_is_active(&group->timer)) {
    tnk__text_printf(out, "times out in ");
    tnk__text_time(
        out, tnk__timer_left_ms(&group->timer,
                                tnk__context_now_ms(group->timer.context)));
    tnk__text_printf(out, "; ");
  } else if (group->n_wanted > 0) {
    tnk__text_printf(out, "waits for %zu more of %zu promises; one of them: ",
                     group->n_wanted, group->n_children);
  } else if (n_pending > 0) {
    tnk__text_printf(out, "waits for %zu of %zu promises; the first of them: ",
                     n_pending, group->n_children);
  }
}

/* The first pending child represents all of them. */
static const tnk_promise_t *first_pending(const tnk__group_t *group,
                                          size_t *n) {
  const tnk_promise_t *first = NULL;
  size_t i;

  *n = 0;
  for (i = 0; i < group->n_children; i++) {
    const tnk_promise_t *child = group->children[i].promise;
    if (child == NULL || child->state != TNK_PENDING)
      continue;
    if ((*n)++ == 0)
      first = child;
  }
  return first;
}

static void explain_group(const void *op, tnk__text_t *out) {
  const tnk_promise_t *promise = op;

  while (is_pending_group(promise)) {
    const tnk__group_t *group = promise->group;
    size_t n;
    promise = first_pending(group, &n);
    explain_self(group, n, out);
  }
  if (promise != NULL)
    tnk__promise_explain(promise, out);
  else
    tnk__text_printf(out, "is about to settle");
}

/* ---- Making one ---- */

/* The home of the first child whose service still exists, or of the first
 * child. */
static tnk__home_t *home_of(tnk_promise_t *const *promises, size_t n) {
  tnk__home_t *home = NULL;
  size_t i;

  for (i = 0; i < n; i++) {
    if (!TNK__HANDLE(promises[i], PROMISE))
      continue;
    if (promises[i]->home->context != NULL)
      return promises[i]->home;
    if (home == NULL)
      home = promises[i]->home;
  }
  return home;
}

/* The context ends while children in another context are pending. */
static void on_context_end(tnk__deferred_t *call) {
  tnk__group_t *group = tnk__container_of(call, tnk__group_t, end);

  tnk__timer_stop(&group->timer);
  tnk__promise_reject(group->promise, error_of_children(group, TNK_ECLOSED));
}

static tnk__group_t *alloc_group(const tnk_allocator_t *alloc, size_t n) {
  const tnk__group_t *group = NULL;
  /* `n` comes from the caller; the multiplication must not overflow. */
  const size_t max = (SIZE_MAX - sizeof(*group)) / sizeof(group->children[0]);

  if (n > max)
    return NULL;
  return tnk__calloc(alloc, 1, sizeof(*group) + n * sizeof(group->children[0]));
}

/* Initialize the group of a pending promise. */
static void fill_group(tnk__group_t *group, tnk_promise_t *promise,
                       tnk_promise_t *const *promises, size_t n) {
  size_t i;

  for (i = 0; i < n; i++)
    group->children[i].promise =
        TNK__HANDLE(promises[i], PROMISE) ? promises[i] : NULL;
  group->n_children = n;
  group->n_waiting = n;
  group->promise = promise;
  promise->group = group;
  tnk__promise_bind(promise, cancel_group, explain_group, promise);
  tnk__deferred_init(&group->end, on_context_end);
  tnk__defer_to_end(promise->home->context, &group->end);
}

/* Create a group over the given children, and take their references. On failure
 * the returned promise has no group and is settled. */
static tnk_promise_t *new_group(const char *name,
                                tnk_promise_t *const *promises, size_t n) {
  tnk__home_t *home = home_of(promises, n);
  tnk_promise_t *promise = NULL;
  tnk__group_t *group = NULL;
  size_t i;

  if (home != NULL && home->context == NULL) {
    promise = tnk__promise_orphan(home, tnk__error_static(TNK_ECLOSED));
  } else if (home != NULL) {
    promise = tnk__promise_new(home->context, NULL, NULL);
    if (!tnk__promise_is_oom(promise)) {
      group = alloc_group(&home->alloc, n);
      if (group == NULL)
        tnk__promise_reject(promise, tnk__error_static(TNK_ENOMEM));
      else
        fill_group(group, promise, promises, n);
    }
  }
  if (promise != NULL)
    tnk__promise_name(promise, name);
  for (i = 0; group == NULL && i < n; i++)
    tnk_promise_unref(promises[i]);
  return promise;
}

/* A NULL child has no callback. If the service of a child has ended, the child
 * is settled; its callback runs at once, because no queue could run it
 * later. */
static void watch_children(tnk_promise_t *promise, tnk_promise_cb cb) {
  tnk__group_t *group = promise->group;
  size_t i;

  for (i = 0; i < group->n_children; i++) {
    tnk_promise_t *child = group->children[i].promise;
    if (child == NULL) {
      group->n_waiting--;
      continue;
    }
    tnk_promise_ref(promise);
    if (child->home->context == NULL)
      cb(child, tnk_promise_status(child), promise);
    else
      tnk__promise_watch(tnk_promise_ref(child), &group->children[i].then, cb,
                         promise);
  }
}

/* ---- All ---- */

/* A NULL child counts as rejected with TNK_EINVAL. */
static void reject_null(tnk_promise_t *promise) {
  const tnk__group_t *group = promise->group;
  size_t i = 0;

  while (i < group->n_children && group->children[i].promise != NULL)
    i++;
  if (i == group->n_children || promise->state != TNK_PENDING)
    return;
  tnk__promise_reject(promise, tnk__error_new(&promise->home->alloc, TNK_EINVAL,
                                              "%s: child %zu is NULL",
                                              promise->name, i));
}

static void on_child_of_all(tnk_promise_t *child, int status, void *user) {
  tnk_promise_t *promise = user;

  promise->group->n_waiting--;
  if (promise->state == TNK_PENDING) {
    if (status != TNK_OK)
      tnk__promise_reject(promise, tnk__error_ref(tnk__promise_error(child)));
    else if (promise->group->n_waiting == 0)
      tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
  }
  tnk_promise_unref(promise);
}

static void on_child_of_settled(tnk_promise_t *child, int status, void *user) {
  tnk_promise_t *promise = user;

  (void)child;
  (void)status;
  if (--promise->group->n_waiting == 0 && promise->state == TNK_PENDING)
    tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
  tnk_promise_unref(promise);
}

tnk_promise_t *tnk_all(tnk_promise_t *const *promises, size_t n) {
  tnk_promise_t *promise = new_group("all", promises, n);

  if (promise == NULL || promise->group == NULL)
    return promise;
  reject_null(promise);
  watch_children(promise, on_child_of_all);
  return promise;
}

tnk_promise_t *tnk_all_settled(tnk_promise_t *const *promises, size_t n) {
  tnk_promise_t *promise = new_group("all_settled", promises, n);

  if (promise != NULL && promise->group != NULL)
    watch_children(promise, on_child_of_settled);
  return promise;
}

/* ---- Some ---- */

/* The group has settled, so the remaining children are useless. */
static void cancel_rest(tnk__group_t *group) {
  size_t i;

  for (i = 0; i < group->n_children; i++)
    tnk_promise_cancel(group->children[i].promise);
}

static void on_child_of_quorum(tnk_promise_t *child, int status, void *user) {
  tnk_promise_t *promise = user;
  tnk__group_t *group = promise->group;

  group->n_waiting--;
  if (promise->state == TNK_PENDING) {
    if (status == TNK_OK && --group->n_wanted == 0)
      tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
    else if (group->n_waiting < group->n_wanted)
      tnk__promise_reject(promise, tnk__error_ref(tnk__promise_error(child)));
    if (promise->state != TNK_PENDING)
      cancel_rest(group);
  }
  tnk_promise_unref(promise);
}

static size_t n_given(const tnk__group_t *group) {
  size_t n = 0;
  size_t i;

  for (i = 0; i < group->n_children; i++)
    n += group->children[i].promise != NULL;
  return n;
}

tnk_promise_t *tnk_quorum(tnk_promise_t *const *promises, size_t n,
                          size_t n_wanted) {
  tnk_promise_t *promise = new_group("quorum", promises, n);
  tnk__group_t *group = promise != NULL ? promise->group : NULL;

  if (group == NULL)
    return promise;
  group->n_wanted = n_wanted;
  if (n_wanted == 0 || n_wanted > n)
    tnk__promise_reject(promise,
                        tnk__error_new(&promise->home->alloc, TNK_EINVAL,
                                       "quorum: %zu of %zu promises are wanted",
                                       n_wanted, n));
  else if (n_given(group) < n_wanted)
    reject_null(promise);
  watch_children(promise, on_child_of_quorum);
  if (promise->state != TNK_PENDING)
    cancel_rest(group);
  return promise;
}

/* ---- With a time limit ---- */

static void on_timed_child(tnk_promise_t *child, int status, void *user) {
  tnk_promise_t *timed = user;

  tnk__timer_stop(&timed->group->timer);
  if (timed->state == TNK_PENDING) {
    if (status != TNK_OK)
      tnk__promise_reject(timed, tnk__error_ref(tnk__promise_error(child)));
    else
      tnk__promise_resolve(timed, TNK__RESULT_NONE, NULL, NULL);
  }
  tnk_promise_unref(timed);
}

/* Create the error. If memory suffices, it says what the group waited for. */
static tnk__error_t *timeout_error(const tnk__group_t *group) {
  tnk__error_t *error;
  char waits[512];
  tnk__text_t out;

  tnk__text_init(&out, waits, sizeof(waits));
  tnk__promise_explain(group->children[0].promise, &out);
  error = tnk__error_new(&group->promise->home->alloc, TNK_ETIMEDOUT, "%s: %s",
                         tnk_strerror(TNK_ETIMEDOUT), waits);
  return error->pub.code == TNK_ETIMEDOUT ? error
                                          : tnk__error_static(TNK_ETIMEDOUT);
}

/* Add what the canceled child's error says about whether it was run. Takes
 * `error`. */
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
  tnk_promise_t *child = group->children[0].promise;
  tnk__error_t *error;

  /* Settling drops a reference, but the child is needed afterwards. Its own
   * callbacks run later and find the promise settled. */
  tnk_promise_ref(timed);
  error = timeout_error(group);
  tnk_promise_cancel(child);
  error = with_ran(error, child);
  if (timed->state == TNK_PENDING)
    tnk__promise_reject(timed, error);
  else
    tnk__error_unref(error);
  tnk_promise_unref(timed);
}

tnk_promise_t *tnk_with_timeout(tnk_promise_t *promise, uint64_t timeout_ms) {
  tnk_promise_t *timed = new_group(
      TNK__HANDLE(promise, PROMISE) ? promise->name : NULL, &promise, 1);

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
  if (!TNK__HANDLE(promise, PROMISE) || promise->group == NULL ||
      index >= promise->group->n_children)
    return NULL;
  return promise->group->children[index].promise;
}

void *tnk__promise_value(const tnk_promise_t *promise,
                         tnk__result_kind_t kind) {
  while (promise != NULL && promise->group != NULL &&
         promise->group->is_wrapper && promise->state == TNK_RESOLVED)
    promise = promise->group->children[0].promise;
  if (promise == NULL || promise->state != TNK_RESOLVED ||
      promise->kind != kind)
    return NULL;
  return promise->as.resolved.value;
}
