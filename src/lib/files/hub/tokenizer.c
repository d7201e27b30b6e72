/* SPDX-License-Identifier: MIT */
/*
 * Loads tokenizers. States of a load:
 *
 *   FETCHING: its files, one after the other --> OPENING (pool) --> READY
 *   FETCHING, OPENING --failure--> FAILED: waiters are rejected, it is freed
 *   FETCHING --no promise waits--> freed
 *
 * A load is in the hub's list from its start until it fails. A request during
 * the load waits for it. A later request gets the same tokenizer, or starts a
 * new load after a failure. Opening on the pool cannot be stopped. Without
 * waiting promises it still becomes READY. After the hub was closed
 * (is_closed), the tokenizer is closed at once. The list is in the order of
 * use, the latest at the end. Excess READY loads are removed from the
 * beginning.
 *
 * A tokenizer is reference-counted: one reference for its load and one for each
 * promise.
 */
#include "lib/files/hub/tokenizer.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/files/hub/model_file.h"
#include "lib/io/loop/work.h"

enum { MAX_KEY = 256 * 1024 };

typedef struct {
  tnk_allocator_t alloc; /* a copy, because promises may outlive the hub */
  size_t refs;
  void (*close)(void *tokenizer); /* from the plug-in */
  void *tokenizer;
} handle_t;

typedef enum { FETCHING = 0, OPENING, READY, FAILED } state_t;

typedef struct {
  tnk__list_t link; /* in hub->tokenizers */
  tnk__hub_t *hub;
  state_t state;
  int is_closed;
  tnk__list_t waiters;
  /* The key of a load; its strings are in the arena. */
  tnk__arena_t arena;
  const void *plugin;
  tnk__name_t name;
  tnk_pair_t *overrides; /* sorted */
  size_t n_overrides;
  tnk_tokenizer_plugin_t calls; /* from the plug-in */
  /* FETCHING. */
  tnk__wanted_t wanted;
  size_t i_main; /* index into calls.main_files */
  size_t i_more;
  tnk__error_t *absent; /* error of the first main file */
  char commit[TNK__CACHE_COMMIT + 1];
  const char *path; /* path of the main file, or the folder */
  /* READY. */
  handle_t *handle;
  /* Owned by the pool while OPENING. */
  tnk__work_t work;
  int err;
  char why[400];
} load_t;

/* A promise that waits for a load. */
typedef struct {
  tnk__hub_job_t job;
  tnk__list_t link; /* in load->waiters */
  load_t *load;     /* NULL: no memory for a load */
} waiter_t;

static void fetch(load_t *load);

/* ---- Handles ---- */

static void unref(handle_t *handle) {
  const tnk_allocator_t alloc = handle->alloc;

  if (--handle->refs > 0)
    return;
  if (handle->tokenizer != NULL)
    handle->close(handle->tokenizer);
  tnk__free(&alloc, handle);
}

static void free_value(const tnk_allocator_t *alloc, void *value) {
  (void)alloc;
  unref(value);
}

void *tnk__tokenizer_value(const void *value) {
  const handle_t *handle = value;

  return handle != NULL ? handle->tokenizer : NULL;
}

/* ---- The end of loads ---- */

static void free_load(load_t *load) {
  const tnk_allocator_t *alloc = &load->hub->context->alloc;

  tnk__list_remove(&load->link);
  tnk__wanted_cancel(&load->wanted);
  tnk__error_unref(load->absent);
  if (load->handle != NULL)
    unref(load->handle);
  tnk__arena_deinit(&load->arena);
  tnk__free(alloc, load);
}

static void stop_waiting(tnk__hub_job_t *job) {
  waiter_t *waiter = (waiter_t *)(void *)job;
  load_t *load = waiter->load;

  tnk__list_remove(&waiter->link);
  if (load != NULL && load->state == FETCHING &&
      tnk__list_empty(&load->waiters))
    free_load(load);
}

/* Reject all waiting promises and allow a new load. Takes ownership of
 * `error`. */
static void fail(load_t *load, tnk__error_t *error) {
  tnk__list_t waiters;
  tnk__list_t *node;

  load->state = FAILED;
  tnk__list_remove(&load->link);
  tnk__list_move(&waiters, &load->waiters);
  while ((node = tnk__list_pop(&waiters)) != NULL)
    tnk__hub_job_fail(&tnk__container_of(node, waiter_t, link)->job, error);
  tnk__error_unref(error);
  free_load(load);
}

static void fail_with(load_t *load, int code, const char *why) {
  fail(load, tnk__error_new(&load->hub->context->alloc, code,
                            "tokenizer of %s: %s", load->name.id, why));
}

/* Fail because of one of its files; the caller keeps `from`. */
static void fail_with_error(load_t *load, const tnk__error_t *from) {
  tnk__error_t *error =
      tnk__error_new(&load->hub->context->alloc, from->pub.code,
                     "tokenizer of %s: %s", load->name.id, from->pub.text);

  if (error->refs > 0) {
    error->pub.cause = from->pub.cause;
    error->pub.http_status = from->pub.http_status;
    error->pub.n_attempts = from->pub.n_attempts;
    error->pub.retry_after_ms = from->pub.retry_after_ms;
  }
  fail(load, error);
}

/* Move it to the end of the list. */
static void touch(load_t *load) {
  tnk__list_remove(&load->link);
  tnk__list_append(&load->hub->tokenizers, &load->link);
}

static void forget_oldest(tnk__hub_t *hub) {
  const uint32_t max = hub->config->options.max_tokenizers;
  load_t *oldest = NULL;
  uint32_t n = 0;

  TNK__LIST_FOREACH (node, &hub->tokenizers) {
    load_t *load = tnk__container_of(node, load_t, link);
    if (load->state == READY && n++ == 0)
      oldest = load;
  }
  if (n > max)
    free_load(oldest);
}

static void give(waiter_t *waiter, handle_t *handle) {
  handle->refs++;
  tnk__hub_job_resolve(&waiter->job, TNK__RESULT_TOKENIZER, handle, free_value);
}

/* ---- Opening ---- */

static void run(tnk__work_t *work) {
  load_t *load = tnk__container_of(work, load_t, work);

  load->err = load->calls.open(
      &load->handle->tokenizer, load->path, load->overrides, load->n_overrides,
      &load->handle->alloc, load->why, sizeof(load->why));
}

static void on_opened(tnk__work_t *work) {
  load_t *load = tnk__container_of(work, load_t, work);
  tnk__list_t *node;

  if (load->is_closed) {
    free_load(load);
    return;
  }
  if (load->err != TNK_OK || load->handle->tokenizer == NULL) {
    load->why[sizeof(load->why) - 1] = '\0';
    fail_with(load, load->err < 0 ? load->err : TNK_EINTERNAL, load->why);
    return;
  }
  load->state = READY;
  while ((node = tnk__list_first(&load->waiters)) != NULL)
    give(tnk__container_of(node, waiter_t, link), load->handle);
  touch(load);
  forget_oldest(load->hub);
}

static void open_it(load_t *load) {
  const tnk_allocator_t *alloc = &load->hub->context->alloc;

  load->handle = tnk__calloc(alloc, 1, sizeof(*load->handle));
  if (load->handle == NULL) {
    fail(load, tnk__error_static(TNK_ENOMEM));
    return;
  }
  load->handle->alloc = *alloc;
  load->handle->refs = 1;
  load->handle->close = load->calls.close;
  load->state = OPENING;
  /* Cannot fail: libuv rejects only a job without a function. */
  (void)tnk__work_start(load->hub->context, &load->work, run, on_opened);
}

/* ---- Fetching ---- */

static int is_there_more(const load_t *load) {
  const char *const *more = load->calls.more_files;

  return load->path != NULL && more != NULL && more[load->i_more] != NULL;
}

static void on_file(tnk__wanted_t *wanted,
                    const tnk__model_file_result_t *result) {
  load_t *load = tnk__container_of(wanted, load_t, wanted);

  if (result->error != NULL && !result->is_absent) {
    fail_with_error(load, result->error);
    return;
  }
  /* All files must be from the commit of the first file. */
  if (load->commit[0] == '\0')
    memcpy(load->commit, result->commit, strlen(result->commit) + 1);
  if (load->path != NULL) {
    load->i_more++;
  } else if (result->error != NULL) {
    if (load->absent == NULL)
      load->absent = tnk__error_ref(result->error);
    load->i_main++;
  } else {
    load->path = tnk__arena_strdup(&load->arena, result->path);
    if (load->path == NULL) {
      fail(load, tnk__error_static(TNK_ENOMEM));
      return;
    }
  }
  fetch(load);
}

/* Get the next file, or open the tokenizer. */
static void fetch(load_t *load) {
  const char *name = load->path == NULL ? load->calls.main_files[load->i_main]
                     : is_there_more(load)
                         ? load->calls.more_files[load->i_more]
                         : NULL;
  const char *revision =
      load->commit[0] != '\0' ? load->commit : load->name.revision;

  if (name == NULL && load->path != NULL)
    open_it(load);
  else if (name == NULL)
    fail_with_error(load, load->absent);
  else if (tnk__wanted_start(&load->wanted, load->hub, load->name.id, revision,
                             name) != TNK_OK)
    fail(load, tnk__error_static(TNK_ENOMEM));
}

/* ---- Beginning ---- */

static int is_same_text(const char *a, const char *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static int is_same(const load_t *a, const load_t *b) {
  if (a->plugin != b->plugin || strcmp(a->name.id, b->name.id) != 0 ||
      strcmp(a->name.revision, b->name.revision) != 0 ||
      !is_same_text(a->name.directory, b->name.directory) ||
      a->n_overrides != b->n_overrides)
    return 0;
  for (size_t i = 0; i < a->n_overrides; i++)
    if (strcmp(a->overrides[i].name, b->overrides[i].name) != 0 ||
        strcmp(a->overrides[i].value, b->overrides[i].value) != 0)
      return 0;
  return 1;
}

static int order(const tnk_pair_t *a, const tnk_pair_t *b) {
  const int names = strcmp(a->name, b->name);

  return names != 0 ? names : strcmp(a->value, b->value);
}

/* Copied and sorted, so that their order does not matter. */
static int keep_overrides(load_t *load,
                          const tnk__tokenizer_request_t *request) {
  const size_t n = request->n_overrides;
  tnk_pair_t *to = tnk__arena_calloc(&load->arena, n > 0 ? n : 1, sizeof(*to));

  for (size_t i = 0; to != NULL && i < n; i++) {
    const tnk_pair_t *from = &request->overrides[i];
    const tnk_pair_t copy = {tnk__arena_strdup(&load->arena, from->name),
                             tnk__arena_strdup(&load->arena, from->value)};
    size_t at = i;
    if (copy.name == NULL || copy.value == NULL)
      return TNK_ENOMEM;
    for (; at > 0 && order(&to[at - 1], &copy) > 0; at--)
      to[at] = to[at - 1];
    to[at] = copy;
  }
  load->overrides = to;
  load->n_overrides = n;
  return to != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Create a load that is in no list yet. */
static load_t *new_load(tnk__hub_t *hub,
                        const tnk__tokenizer_request_t *request) {
  const char *directory = request->name->directory;
  load_t *load = tnk__calloc(&hub->context->alloc, 1, sizeof(*load));

  if (load == NULL)
    return NULL;
  load->hub = hub;
  tnk__list_init(&load->link);
  tnk__list_init(&load->waiters);
  tnk__wanted_init(&load->wanted, on_file);
  tnk__arena_init(&load->arena, &hub->context->alloc, MAX_KEY);
  load->plugin = request->plugin;
  load->calls = request->calls;
  load->name = *request->name;
  if (directory != NULL)
    load->name.directory = tnk__arena_strdup(&load->arena, directory);
  if (keep_overrides(load, request) == TNK_OK &&
      (directory == NULL || load->name.directory != NULL))
    return load;
  free_load(load);
  return NULL;
}

/* Return the equal load in the list, or add this one. */
static load_t *enter(tnk__hub_t *hub, load_t *load) {
  TNK__LIST_FOREACH (node, &hub->tokenizers) {
    load_t *known = tnk__container_of(node, load_t, link);
    if (is_same(known, load)) {
      free_load(load);
      return known;
    }
  }
  tnk__list_append(&hub->tokenizers, &load->link);
  return load;
}

static void explain(const void *op, tnk__text_t *out) {
  const load_t *load = ((const waiter_t *)op)->load;

  tnk__text_printf(out, "tokenizer of %s: ", load->name.id);
  if (load->state == FETCHING)
    tnk__wanted_explain(&load->wanted, out);
  else
    tnk__text_printf(out, "is being read");
}

tnk_promise_t *tnk__tokenizer_get(tnk__hub_t *hub,
                                  const tnk__tokenizer_request_t *request) {
  tnk_promise_t *promise;
  waiter_t *waiter;
  load_t *mine;
  load_t *load;

  waiter = (waiter_t *)(void *)tnk__hub_job_new(
      hub, sizeof(*waiter), stop_waiting, explain, &promise);
  if (waiter == NULL)
    return promise;
  tnk__promise_enter(promise, "tokenizer", NULL);
  tnk__list_init(&waiter->link);
  mine = new_load(hub, request);
  if (mine == NULL) {
    tnk__hub_job_fail(&waiter->job, tnk__error_static(TNK_ENOMEM));
    return promise;
  }
  load = enter(hub, mine);
  waiter->load = load;
  if (load->state == READY) {
    touch(load);
    give(waiter, load->handle);
    return promise;
  }
  tnk__list_append(&load->waiters, &waiter->link);
  if (load != mine)
    return promise;
  load->path = load->name.directory;
  if (load->path != NULL)
    open_it(load);
  else
    fetch(load);
  return promise;
}

void tnk__tokenizers_forget(tnk__hub_t *hub, const void *tokenizer) {
  TNK__LIST_FOREACH_SAFE (node, next, &hub->tokenizers) {
    load_t *load = tnk__container_of(node, load_t, link);
    if (load->state == READY &&
        (tokenizer == NULL || load->handle->tokenizer == tokenizer))
      free_load(load);
  }
}

void tnk__tokenizers_close(tnk__hub_t *hub) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&hub->tokenizers)) != NULL) {
    load_t *load = tnk__container_of(node, load_t, link);
    load->is_closed = 1;
    if (load->state != OPENING)
      free_load(load);
  }
}
