/* SPDX-License-Identifier: MIT */
#include "lib/api/root.h"

#include <stdio.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

/* libuv's codes are above this limit and those of tnk far below; see
 * tnk/error.h. */
enum { LOWEST_OF_LIBUV = -4096 };

static _Thread_local tnk__list_t all;

static tnk__list_t *open_roots(void) {
  if (all.next == NULL)
    tnk__list_init(&all);
  return &all;
}

int tnk__root_say(char *text, size_t size, int err, const char *why) {
  if (err == TNK_OK)
    why = "";
  else if (why == NULL)
    why = tnk_strerror(err);
  if (text != NULL && size > 0)
    snprintf(text, size, "%s", why);
  return err;
}

int tnk__root_code(int err, const char **why) {
  if (err == TNK_OK || err <= LOWEST_OF_LIBUV)
    return err;
  if (err == UV_ENOMEM)
    return TNK_ENOMEM;
  *why = uv_strerror(err);
  return TNK_ESYSTEM;
}

/* ---- Opening ---- */

static void free_root(tnk__root_t *root) {
  const tnk_allocator_t alloc = root->alloc;

  root->kind->free_rest(root);
  tnk__handle_end(root, root->kind->size);
  tnk__free(&alloc, root);
}

int tnk__root_new(tnk__root_t **out, const tnk__root_kind_t *kind,
                  const uv_loop_t *uv, const tnk_allocator_t *alloc,
                  const char **why) {
  tnk__root_t *root;

  *out = NULL;
  *why = NULL;
  if (uv == NULL) {
    *why = "no loop was given";
    return TNK_EINVAL;
  }
  if (alloc == NULL)
    alloc = tnk__allocator_default();
  root = tnk__calloc(alloc, 1, kind->size);
  if (root == NULL)
    return TNK_ENOMEM;
  root->magic = kind->magic;
  root->kind = kind;
  root->alloc = *alloc;
  tnk__list_init(&root->link);
  *out = root;
  return TNK_OK;
}

int tnk__root_start(tnk__root_t *root, uv_loop_t *uv,
                    const tnk_logger_t *logger, const tnk__http_options_t *http,
                    const char **why) {
  int err = tnk__context_init(&root->context, uv, &root->alloc, logger);

  if (err == TNK_OK)
    err = tnk__promise_reserve(&root->context);
  if (err == TNK_OK)
    err = tnk__http_open(&root->http, &root->context, http);
  if (err != TNK_OK) {
    if (err == TNK_ECERT)
      *why = "ca_file cannot be read as certificates";
    return tnk__root_code(err, why);
  }
  /* From here on libuv uses it, so undoing would need another turn of the
   * loop. */
  tnk__context_start(&root->context);
  root->is_started = 1;
  return TNK_OK;
}

static void on_undone(void *user) {
  free_root(user);
}

static void undo(tnk__root_t *root) {
  if (root == NULL)
    return;
  if (!root->is_started) {
    tnk__promise_release(&root->context);
    free_root(root);
    return;
  }
  tnk__http_close(&root->http);
  /* libuv releases the context in a later turn of the loop. */
  tnk__context_close(&root->context, on_undone, root);
}

void tnk__root_finish(tnk__root_t *root, int err, const char *why, char *text,
                      size_t size) {
  tnk__root_say(text, size, err, why);
  if (err == TNK_OK)
    tnk__list_append(open_roots(), &root->link);
  else
    undo(root);
}

/* ---- Closing ---- */

int tnk__root_begin_close(tnk__root_t *root, tnk_close_cb cb, void *user) {
  if (root->closing || tnk__context_is_forked(&root->context))
    return 0;
  root->closing = 1;
  root->close_cb = cb;
  root->close_user = user;
  tnk__list_remove(&root->link);
  return 1;
}

static void on_closed(void *user) {
  tnk__root_t *root = user;
  const tnk_close_cb cb = root->close_cb;
  void *cb_user = root->close_user;

  free_root(root);
  if (cb != NULL) {
    tnk__callout_begin();
    cb(cb_user);
    tnk__callout_end();
  }
}

void tnk__root_end_close(tnk__root_t *root) {
  tnk__http_close(&root->http);
  tnk__context_close(&root->context, on_closed, root);
}

size_t tnk__root_close_all(const uv_loop_t *uv) {
  size_t n = 0;

  TNK__LIST_FOREACH_SAFE (node, next, open_roots()) {
    tnk__root_t *root = tnk__container_of(node, tnk__root_t, link);
    if (root->context.uv != uv)
      continue;
    root->kind->close(root);
    n++;
  }
  return n;
}

/* ---- Operations ---- */

tnk_promise_t *tnk__root_reject(tnk__context_t *context, int code,
                                const char *name, const char *why) {
  return tnk__root_reject_beside(context->oom, code, name, why);
}

tnk_promise_t *tnk__root_reject_beside(tnk_promise_t *kin, int code,
                                       const char *name, const char *why) {
  const tnk_allocator_t *alloc = &kin->home->alloc;
  tnk_promise_t *promise;
  tnk__error_t *error;

  error = why != NULL && why[0] != '\0'
              ? tnk__error_new(alloc, code, "%s: %s", name, why)
              : tnk__error_from(alloc, name, &(tnk_error_t){.code = code});
  if (error->refs > 0)
    error->pub.ran = TNK_RAN_NO; /* implied by the error */
  else
    error = tnk__error_ran(error, TNK_RAN_NO);
  promise = tnk__promise_orphan(kin->home, error);
  return promise != NULL ? promise : tnk_promise_ref(kin);
}
