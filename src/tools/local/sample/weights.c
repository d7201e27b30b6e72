/* SPDX-License-Identifier: MIT */
#include "tools/local/sample/weights.h"

#include <string.h>

#include "lib/base/alloc.h"

/* An entry is empty, loading (its job is active) or loaded. */

enum { MAX_LOADED = 24 };

#define WEIGHTS(p) tnk__container_of(p, local_weights_t, link)

static void free_weights(local_weights_t *weights) {
  local_server_t *server = weights->server;

  local_table_remove(&server->weights, &weights->node);
  tnk__list_remove(&weights->link);
  tnk__lm_weights_free(weights->lm);
  tnk__free(server->alloc, weights->dir);
  tnk__free(server->alloc, weights);
}

static void trim(local_server_t *server) {
  TNK__LIST_FOREACH_SAFE (node, next, &server->weight_list) {
    local_weights_t *weights = WEIGHTS(node);

    /* Drop the oldest, until the limit is met. */
    if (server->weights.n <= MAX_LOADED)
      return;
    if (weights->refs == 0 && !weights->job.active)
      free_weights(weights);
  }
}

local_weights_t *local_weights_get(local_server_t *server, const char *dir) {
  local_node_t *node = local_table_find(&server->weights, dir);
  local_weights_t *weights;

  if (node != NULL) {
    weights = tnk__container_of(node, local_weights_t, node);
    weights->refs++;
    tnk__list_remove(&weights->link);
    tnk__list_append(&server->weight_list, &weights->link);
    return weights;
  }
  weights = tnk__calloc(server->alloc, 1, sizeof(*weights));
  if (weights == NULL)
    return NULL;
  weights->server = server;
  weights->refs = 1;
  tnk__list_init(&weights->waiting);
  weights->dir = tnk__strdup(server->alloc, dir);
  if (weights->dir == NULL || local_table_add(&server->weights, &weights->node,
                                              weights->dir) != TNK_OK) {
    tnk__free(server->alloc, weights->dir);
    tnk__free(server->alloc, weights);
    return NULL;
  }
  tnk__list_append(&server->weight_list, &weights->link);
  return weights;
}

void local_weights_unref(local_weights_t *weights) {
  weights->refs--;
  /* Weights that could not be loaded are dropped, so that the next use tries
   * again. */
  if (weights->refs == 0 && weights->lm == NULL && !weights->job.active)
    free_weights(weights);
  else
    trim(weights->server);
}

void local_weights_put(local_server_t *server, const char *dir,
                       tnk__lm_weights_t *lm) {
  local_weights_t *weights = local_weights_get(server, dir);

  if (weights == NULL || weights->lm != NULL || weights->job.active) {
    tnk__lm_weights_free(lm);
  } else {
    weights->lm = lm;
  }
  if (weights != NULL)
    local_weights_unref(weights);
}

void local_weights_forget(local_server_t *server, const char *dir) {
  local_node_t *node = local_table_find(&server->weights, dir);
  local_weights_t *weights;

  if (node == NULL)
    return;
  weights = tnk__container_of(node, local_weights_t, node);
  if (weights->refs == 0 && !weights->job.active) {
    free_weights(weights);
    return;
  }
  /* In use: samples with a reference keep it, but it can no longer be found. */
  local_table_remove(&server->weights, &weights->node);
  if (local_table_add(&server->weights, &weights->node, "?") != TNK_OK)
    return; /* cannot happen: the table has buckets */
}

static int on_thread(local_job_t *job) {
  local_weights_t *weights = tnk__container_of(job, local_weights_t, job);
  local_server_t *server = weights->server;

  if (weights->dir[0] == '\0') {
    weights->loaded = tnk__lm_base_weights(server->base, server->alloc);
    weights->err = weights->loaded != NULL ? TNK_OK : TNK_ENOMEM;
  } else {
    weights->err =
        tnk__lm_weights_load(&weights->loaded, server->base, weights->dir,
                             server->alloc, &weights->why);
  }
  return 1;
}

static void on_done(local_job_t *job) {
  local_weights_t *weights = tnk__container_of(job, local_weights_t, job);

  /* Set on the loop, because other code reads `lm` while the thread loads.
   */
  weights->lm = weights->loaded;
  weights->loaded = NULL;
  if (!weights->server->closing)
    weights->tell(weights);
}

void local_weights_load(local_weights_t *weights,
                        void (*loaded)(local_weights_t *weights)) {
  weights->tell = loaded;
  if (weights->job.active)
    return;
  weights->job.run = on_thread;
  weights->job.done = on_done;
  local_job_start(&weights->server->work, &weights->job);
}

void local_weights_free_all(local_server_t *server) {
  while (!tnk__list_empty(&server->weight_list))
    free_weights(WEIGHTS(server->weight_list.next));
}
