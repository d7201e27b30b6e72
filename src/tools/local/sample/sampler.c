/* SPDX-License-Identifier: MIT */
#include "tools/local/sample/sampler.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/store/files.h"

/* ---- Sampling sessions ---- */

/*
 * A sampling session exists from its creation, or from an unnamed save, to the
 * end of its session. Pending work continues without it: polls are answered,
 * samples move to the loose lane, futures drop their reference to it.
 */

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

/* ---- Requests ---- */

/* The requests about sampling sessions: create, join, poll. */

int local_read_source(local_call_t *call, local_place_t *place, int *is_base) {
  const char *base = NULL;
  const char *path = NULL;

  if (!local_want_text(call, "base_model", &base) ||
      !local_want_text(call, "model_path", &path))
    return 0;
  *is_base = path == NULL;
  if (path == NULL && base == NULL) {
    local_reply_error(call->req, 400, "base_model or model_path is needed");
    return 0;
  }
  if (path != NULL && base != NULL &&
      call->server->options.sequence == LOCAL_LENIENT) {
    local_reply_error(call->req, 400,
                      "Exactly one of base_model and model_path is needed");
    return 0;
  }
  if (base != NULL && !local_is_base(call->server, base)) {
    local_reply_error(call->req, 400, "This server has no base model %s", base);
    return 0;
  }
  if (path == NULL)
    return 1;
  if (!local_place_parse(place, path)) {
    local_reply_error(call->req, 400, "Invalid checkpoint path: %s", path);
    return 0;
  }
  if (place->kind == LOCAL_EXTERNAL_WEIGHTS) {
    local_reply_error(call->req, 400,
                      "External weights are for other programs: %s", path);
    return 0;
  }
  if (!local_place_exists(call->server, place)) {
    local_reply_error(call->req, 404, "Checkpoint not found: %s", path);
    return 0;
  }
  return 1;
}

static void reply_sampler(local_call_t *call, const char *id) {
  local_out_t out;

  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "sampling_session_id", id);
  tnk__json_put_text(&out.w, "type", "create_sampling_session");
  local_out_reply(&out, call->req, local_status_created(call->server));
}

static int same_source(const local_sampler_t *sampler, int is_base,
                       const local_place_t *place) {
  return sampler->is_base == is_base &&
         (is_base || (sampler->place.kind == place->kind &&
                      strcmp(sampler->place.run, place->run) == 0 &&
                      strcmp(sampler->place.name, place->name) == 0));
}

void local_create_sampling_session(local_call_t *call) {
  local_session_t *session = local_need_session(call);
  local_place_t place = {0};
  const local_sampler_t *old;
  char id[LOCAL_ID];
  int64_t seq;
  int is_base;

  if (session == NULL)
    return;
  seq = session->n_samplers;
  /* The next number must be representable too. */
  if (!local_want_int(call, "sampling_session_seq_id", 0, INT64_MAX - 1,
                      &seq) ||
      !local_read_source(call, &place, &is_base))
    return;
  snprintf(id, sizeof(id), "%s:sample:%lld", session->id, (long long)seq);
  old = local_sampler_find(call->server, id);
  if (old != NULL && !same_source(old, is_base, &place)) {
    local_reply_error(call->req, 409,
                      "sampling_session_seq_id %lld was used with another "
                      "request",
                      (long long)seq);
    return;
  }
  if (seq >= session->n_samplers)
    session->n_samplers = seq + 1;
  if (old == NULL &&
      local_sampler_new(session, id, is_base ? NULL : &place) == NULL) {
    local_reply_error(call->req, 429, "Too many sampling sessions");
    return;
  }
  if (old == NULL && !is_base)
    local_place_note(call->server, "checkpoint_read", &place);
  reply_sampler(call, id);
}

static local_sampler_t *need_sampler(local_call_t *call, const char *id) {
  local_sampler_t *sampler = local_sampler_find(call->server, id);

  if (sampler == NULL)
    local_reply_error(call->req, 404, "Sampling session not found: %s", id);
  return sampler;
}

void local_join_sampling_session(local_call_t *call) {
  const char *id = NULL;
  local_sampler_t *sampler;
  local_out_t out;

  if (!local_need_text(call, "sampling_session_id", &id))
    return;
  sampler = need_sampler(call, id);
  if (sampler == NULL)
    return;
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "type", "join_sampling_session");
  tnk__json_put_int(&out.w, "client_counter", ++sampler->n_clients);
  local_out_reply(&out, call->req, 200);
}

void local_get_sampler(local_call_t *call) {
  const local_sampler_t *sampler = need_sampler(call, call->args[0]);
  char path[LOCAL_PATH];
  local_out_t out;

  if (sampler == NULL)
    return;
  local_place_text(&sampler->place, path);
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "sampler_id", sampler->id);
  tnk__json_put_text(&out.w, "base_model", local_base_name(call->server));
  tnk__json_put_text(
      &out.w, "model_path",
      sampler->is_base || sampler->place.kind == LOCAL_EPHEMERAL ? NULL : path);
  local_out_reply(&out, call->req, 200);
}

/* ---- Requests: batched polls ---- */

static void drop_retrieved(local_call_t *call, local_sampler_t *sampler) {
  const json_t *ids = tnk__json_arr(call->body, "retrieved_request_ids");

  for (size_t i = 0; i < json_array_size(ids); i++) {
    const char *id = json_string_value(json_array_get(ids, i));
    local_future_t *future =
        id != NULL ? local_future_find(call->server, id) : NULL;

    if (future != NULL && future->sampler == sampler)
      local_future_forget(future);
  }
}

void local_retrieve_futures(local_call_t *call) {
  const json_t *target = tnk__json_obj(call->body, "target");
  const char *id = tnk__json_str(target, "sampling_session_id");
  local_sampler_t *sampler;
  double timeout = -1;
  int64_t clone = 0;
  int64_t prev = 0;

  if (id == NULL || tnk__json_get_int(target, "cloned_sampler_id", 0, INT64_MAX,
                                      &clone) == TNK__JSON_WRONG) {
    local_reply_invalid(call->req, "value_error", "target",
                        "Input should name a sampling session");
    return;
  }
  if (!local_want_int(call, "prev_cursor", 0, INT64_MAX, &prev) ||
      !local_want_double(call, call->body, "timeout", &timeout))
    return;
  sampler = local_sampler_find(call->server, id);
  if (sampler == NULL) {
    local_reply_error(call->req, 404, "Sampling session not found: %s", id);
    return;
  }
  drop_retrieved(call, sampler);
  local_batch_poll(call, sampler, (uint64_t)clone, (uint64_t)prev,
                   timeout != 0 && call->server->options.hold_ms > 0);
}
