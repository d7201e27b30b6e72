/*
 * A sampling session exists from its creation, or from an unnamed save, to the
 * end of its session. Pending work continues without it: polls are answered,
 * samples move to the loose lane, futures drop their reference to it.
 */
#include "tools/local/store/files.h"
#include "tools/local/sample/sampler.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"

local_sampler_t *local_sampler_new(local_session_t *session, const char *id,
                                   const local_place_t *place) {
  local_server_t *server = session->server;
  local_sampler_t *sampler;

  /* Sampling sessions are kept until their session ends, so their number is
   * limited. */
  if (server->samplers.n >= LOCAL_MAX_SAMPLERS)
    return NULL;
  sampler = tnk__calloc(server->alloc, 1, sizeof(*sampler));
  if (sampler == NULL)
    return NULL;
  sampler->session = session;
  sampler->server = server;
  sampler->is_base = place == NULL;
  if (place != NULL)
    sampler->place = *place;
  tnk__list_init(&sampler->lane.link);
  tnk__list_init(&sampler->lane.samples);
  tnk__list_init(&sampler->futures);
  tnk__list_init(&sampler->polls);
  local_seqs_init(&sampler->seqs, server->alloc);
  snprintf(sampler->id, sizeof(sampler->id), "%s", id);
  if (local_table_find(&server->samplers, id) != NULL ||
      local_table_add(&server->samplers, &sampler->node, sampler->id) !=
          TNK_OK) {
    tnk__free(server->alloc, sampler);
    return NULL;
  }
  tnk__list_append(&session->samplers, &sampler->in_session);
  return sampler;
}

void local_sampler_free(local_sampler_t *sampler) {
  local_server_t *server = sampler->server;
  char dir[LOCAL_FILE];

  local_batch_end(sampler);
  local_lane_end(server, &sampler->lane);
  TNK__LIST_FOREACH_SAFE (node, next, &sampler->futures) {
    local_future_t *future =
        tnk__container_of(node, local_future_t, in_sampler);

    tnk__list_remove(node);
    future->sampler = NULL;
  }
  /* No other object can refer to these weights. */
  if (!sampler->is_base && sampler->place.kind == LOCAL_EPHEMERAL &&
      local_place_dir(server, &sampler->place, dir)) {
    local_weights_forget(server, dir);
    local_remove_tree(dir);
  }
  local_table_remove(&server->samplers, &sampler->node);
  tnk__list_remove(&sampler->in_session);
  local_seqs_deinit(&sampler->seqs);
  tnk__free(server->alloc, sampler);
}

local_sampler_t *local_sampler_find(local_server_t *server, const char *id) {
  local_node_t *node = local_table_find(&server->samplers, id);

  return node != NULL ? tnk__container_of(node, local_sampler_t, node) : NULL;
}
