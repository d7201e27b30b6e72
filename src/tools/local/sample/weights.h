/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SAMPLE_WEIGHTS_H
#define TNK_TOOLS_LOCAL_SAMPLE_WEIGHTS_H

#include "tools/local/store/store.h"

/*
 * Weights for sampling, by directory. They are loaded from the disk on a thread
 * when they are first needed. Above a limit, unused ones are dropped, the least
 * recently used first.
 */
typedef struct local_weights {
  local_node_t node;
  tnk__list_t link; /* in local_server_t.weight_list */
  local_server_t *server;
  char *dir; /* "" for the base */
  tnk__lm_weights_t *lm;
  tnk__lm_weights_t *loaded; /* belongs to the thread until its job is done */
  size_t refs;
  int err; /* error of loading */
  tnk__lm_why_t why;
  local_job_t job;
  void (*tell)(struct local_weights *weights);
  tnk__list_t waiting; /* local_lane_t.link */
} local_weights_t;

/* Get weights with a reference; NULL without memory. `lm` is NULL until they
 * are loaded. */
local_weights_t *local_weights_get(local_server_t *server, const char *dir);
void local_weights_unref(local_weights_t *weights);
/* Add a new snapshot, so that it need not be loaded. */
void local_weights_put(local_server_t *server, const char *dir,
                       tnk__lm_weights_t *lm);
void local_weights_forget(local_server_t *server, const char *dir);
/* Load, unless it is in progress; `loaded` is called after success or
 * failure. */
void local_weights_load(local_weights_t *weights,
                        void (*loaded)(local_weights_t *weights));
void local_weights_free_all(local_server_t *server);

#endif
