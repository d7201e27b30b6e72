/*
 * States of a shared file:
 *
 *   created by the first wait --end--> all callbacks are called, freed
 *   created by the first wait --the last wait cancels--> freed
 *
 * It is in the hub's list while it is pending. It leaves the list before
 * callbacks are called, so that a request from a callback starts over.
 */
#include "lib/files/hub/wanted.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"

typedef struct tnk__shared_file {
  tnk__list_t link; /* in hub->files */
  tnk__hub_t *hub;
  tnk__list_t waiters;
  tnk__model_file_t *file;
  char key[]; /* model, revision and file, separated by newlines */
} shared_t;

static void free_shared(shared_t *shared) {
  tnk__list_remove(&shared->link);
  tnk__model_file_cancel(shared->file);
  tnk__free(&shared->hub->context->alloc, shared);
}

static void on_done(const tnk__model_file_result_t *result, void *user) {
  shared_t *shared = user;
  tnk__list_t *node;

  shared->file = NULL;
  tnk__list_remove(&shared->link);
  while ((node = tnk__list_pop(&shared->waiters)) != NULL) {
    tnk__wanted_t *wanted = tnk__container_of(node, tnk__wanted_t, link);
    wanted->file = NULL;
    wanted->done(wanted, result);
  }
  free_shared(shared);
}

static size_t put_key(char *out, size_t size, const char *model,
                      const char *revision, const char *file) {
  return (size_t)snprintf(out, size, "%s\n%s\n%s", model, revision, file);
}

static shared_t *new_shared(tnk__hub_t *hub, const char *model,
                            const char *revision, const char *file) {
  const size_t n = put_key(NULL, 0, model, revision, file) + 1;
  shared_t *shared = tnk__calloc(&hub->context->alloc, 1, sizeof(*shared) + n);

  if (shared == NULL)
    return NULL;
  (void)put_key(shared->key, n, model, revision, file);
  shared->hub = hub;
  tnk__list_init(&shared->link);
  tnk__list_init(&shared->waiters);
  return shared;
}

/* Return the pending one with the same key, or add this one. NULL without
 * memory. */
static shared_t *enter(tnk__hub_t *hub, shared_t *mine, const char *model,
                       const char *revision, const char *file) {
  TNK__LIST_FOREACH (node, &hub->files) {
    shared_t *known = tnk__container_of(node, shared_t, link);
    if (strcmp(known->key, mine->key) == 0) {
      free_shared(mine);
      return known;
    }
  }
  if (tnk__model_file_start(&mine->file, hub, model, revision, file, on_done,
                            mine) != TNK_OK) {
    free_shared(mine);
    return NULL;
  }
  tnk__list_append(&hub->files, &mine->link);
  return mine;
}

void tnk__wanted_init(tnk__wanted_t *wanted,
                      void (*done)(tnk__wanted_t *wanted,
                                   const tnk__model_file_result_t *result)) {
  tnk__list_init(&wanted->link);
  wanted->file = NULL;
  wanted->done = done;
}

int tnk__wanted_start(tnk__wanted_t *wanted, tnk__hub_t *hub, const char *model,
                      const char *revision, const char *file) {
  shared_t *shared = new_shared(hub, model, revision, file);

  if (shared != NULL)
    shared = enter(hub, shared, model, revision, file);
  if (shared == NULL)
    return TNK_ENOMEM;
  wanted->file = shared;
  tnk__list_append(&shared->waiters, &wanted->link);
  return TNK_OK;
}

void tnk__wanted_cancel(tnk__wanted_t *wanted) {
  shared_t *shared = wanted->file;

  if (shared == NULL)
    return;
  wanted->file = NULL;
  tnk__list_remove(&wanted->link);
  /* Without a file, on_done() frees it. */
  if (tnk__list_empty(&shared->waiters) && shared->file != NULL)
    free_shared(shared);
}

void tnk__wanted_explain(const tnk__wanted_t *wanted, tnk__text_t *out) {
  if (wanted->file != NULL && wanted->file->file != NULL)
    tnk__model_file_explain(wanted->file->file, out);
}
