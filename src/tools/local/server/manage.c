#include "tools/local/server/rest.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/train/model.h"

/* The calls about one checkpoint. */

void local_delete_checkpoint(local_call_t *call) {
  char dir[LOCAL_FILE];
  local_meta_t meta;

  if (!local_need_checkpoint(call, &meta))
    return;
  local_meta_free(call->server, &meta);
  /* Samplers with a reference keep the weights, but they can no longer be
   * found. */
  if (local_place_dir(call->server, &meta.place, dir))
    local_weights_forget(call->server, dir);
  local_store_remove(call->server, &meta.place);
  local_place_note(call->server, "checkpoint_delete", &meta.place);
  tnk__srv_req_reply(call->req, 204, "application/json", NULL, NULL, 0);
}

/* Write the metadata, free it, and answer. */
static void keep_meta(local_call_t *call, local_meta_t *meta,
                      const char *event) {
  int err = local_meta_write(call->server, meta);

  if (err == TNK_OK)
    local_place_note(call->server, event, &meta->place);

  local_store_expires(call->server, meta->expires_ms);
  local_meta_free(call->server, meta);
  if (err != TNK_OK)
    local_reply_error(call->req, 500, "Cannot write the checkpoint's file");
  else
    local_reply_text(call->req, 200, "{}");
}

static void set_public(local_call_t *call, int value) {
  local_meta_t meta;

  if (!local_need_checkpoint(call, &meta))
    return;
  if (meta.is_public == value) {
    local_meta_free(call->server, &meta);
    local_reply_error(call->req, 409, "The checkpoint is already %s",
                      value ? "public" : "private");
    return;
  }
  meta.is_public = value;
  keep_meta(call, &meta, value ? "checkpoint_publish" : "checkpoint_unpublish");
}

void local_publish(local_call_t *call) {
  set_public(call, 1);
}

void local_unpublish(local_call_t *call) {
  set_public(call, 0);
}

void local_set_ttl(local_call_t *call) {
  local_meta_t meta;
  int64_t ttl = 0;

  if (!local_want_ttl(call, &ttl) || !local_need_checkpoint(call, &meta))
    return;
  meta.expires_ms = ttl > 0 ? local_now_ms(call->server) + ttl * 1000 : 0;
  keep_meta(call, &meta, "checkpoint_update");
}

/* Read the configuration of the weights; returns 0 if they do not exist. */
static int read_config(const local_server_t *server, const local_place_t *place,
                       tnk__lm_config_t *out) {
  char dir[LOCAL_FILE];
  local_meta_t meta;
  int has_optimizer = 0;

  if (local_meta_read(server, place, &meta) != TNK_OK)
    return 0;
  local_meta_free(server, &meta);
  *out = meta.config;
  return place->kind == LOCAL_EXTERNAL_WEIGHTS ||
         (local_place_dir(server, place, dir) &&
          tnk__lm_read_config(out, dir, &has_optimizer, server->alloc, NULL) ==
              TNK_OK);
}

void local_weights_info(local_call_t *call) {
  const char *path = NULL;
  tnk__lm_config_t config;
  local_place_t place;
  local_out_t out;

  if (!local_need_text(call, "tinker_path", &path))
    return;
  if (!local_place_parse(&place, path)) {
    local_reply_error(call->req, 400, "Invalid checkpoint path: %s", path);
    return;
  }
  if (!read_config(call->server, &place, &config)) {
    local_reply_error(call->req, 404, "Checkpoint not found: %s", path);
    return;
  }
  local_out_init(&out, call->server->alloc);
  tnk__json_begin_object(&out.w);
  tnk__json_put_text(&out.w, "base_model", local_base_name(call->server));
  tnk__json_put_bool(&out.w, "is_lora", 1);
  tnk__json_put_int(&out.w, "lora_rank", config.rank);
  tnk__json_put_bool(&out.w, "train_unembed", config.train_unembed);
  tnk__json_put_bool(&out.w, "train_mlp", config.train_mlp);
  tnk__json_put_bool(&out.w, "train_attn", config.train_attn);
  local_put_optimizer(&out.w, config.optimizer);
  tnk__json_end(&out.w);
  local_out_reply(&out, call->req, 200);
}

/* ---- Copies ---- */

/* The destination of a copy: a project, or a session and its project. */
typedef struct {
  const char *project;
  const local_session_t *session; /* NULL: none */
  int64_t number;                 /* number in the session */
} destination_t;

/* Returns 0 if answered. */
static int read_destination(local_call_t *call, destination_t *out) {
  const char *session = NULL;

  *out = (destination_t){.number = -1};
  if (!local_want_text(call, "destination_project_id", &out->project) ||
      !local_want_text(call, "session_id", &session) ||
      !local_want_int(call, "model_seq_id", 0, INT64_MAX - 1, &out->number))
    return 0;
  if (session == NULL)
    return out->project != NULL ||
           local_need_text(call, "destination_project_id", &out->project);
  if (out->number < 0) {
    local_reply_invalid(call->req, "missing", "model_seq_id", "Field required");
    return 0;
  }
  out->session = local_need_session(call);
  if (out->session != NULL && out->project == NULL)
    out->project = out->session->project;
  return out->session != NULL;
}

/* Each copy gets a separate run. Returns 0 if no name can be generated. */
static int name_copy(const destination_t *to, local_place_t *place) {
  unsigned char random[8];
  size_t at;

  if (to->session != NULL) {
    snprintf(place->run, sizeof(place->run), "%s:copy:%lld", to->session->id,
             (long long)to->number);
    return 1;
  }
  if (uv_random(NULL, NULL, random, sizeof(random), 0, NULL) != 0)
    return 0;
  at = (size_t)snprintf(place->run, sizeof(place->run), "copy-");
  for (size_t i = 0; i < sizeof(random); i++)
    at += (size_t)snprintf(place->run + at, sizeof(place->run) - at, "%02x",
                           random[i]);
  return 1;
}

static void reply_copy(local_call_t *call, const local_meta_t *meta) {
  char path[LOCAL_PATH];
  local_out_t out;

  local_place_text(&meta->place, path);
  local_out_init(&out, call->server->alloc);
  tnk__json_begin_object(&out.w);
  tnk__json_put_text(&out.w, "tinker_path", path);
  tnk__json_end(&out.w);
  local_out_reply(&out, call->req, 200);
}

/* Copy the checkpoint that `meta` describes, and answer. */
static void copy_to(local_call_t *call, const destination_t *to, int64_t ttl,
                    local_meta_t *meta) {
  const local_place_t from = meta->place;

  /* These members and the project are not inherited. */
  meta->expires_ms = ttl > 0 ? local_now_ms(call->server) + ttl * 1000 : 0;
  meta->is_public = 0;
  tnk__free(call->server->alloc, meta->project);
  meta->project = to->project != NULL
                      ? tnk__strdup(call->server->alloc, to->project)
                      : NULL;
  if ((to->project != NULL && meta->project == NULL) ||
      !name_copy(to, &meta->place))
    local_reply_error(call->req, 503, "Out of memory");
  else if (to->session != NULL &&
           local_place_exists(call->server, &meta->place))
    local_reply_error(call->req, 409, "model_seq_id %lld was used already",
                      (long long)to->number);
  else if (local_store_copy(call->server, &from, meta) != TNK_OK)
    local_reply_error(call->req, 500, "Cannot write the copy");
  else {
    local_store_expires(call->server, meta->expires_ms);
    local_place_note(call->server, "checkpoint_copy", &from);
    local_place_note(call->server, "checkpoint_create", &meta->place);
    reply_copy(call, meta);
  }
}

void local_copy_weights(local_call_t *call) {
  const char *path = NULL;
  local_place_t from;
  local_meta_t meta;
  destination_t to;
  int64_t ttl = 0;

  if (!local_need_text(call, "source_path", &path) ||
      !read_destination(call, &to) || !local_want_ttl(call, &ttl))
    return;
  if (!local_place_parse(&from, path)) {
    local_reply_error(call->req, 400, "Invalid checkpoint path: %s", path);
    return;
  }
  if (local_meta_read(call->server, &from, &meta) != TNK_OK) {
    local_reply_error(call->req, 404, "Checkpoint not found: %s", path);
    return;
  }
  copy_to(call, &to, ttl, &meta);
  local_meta_free(call->server, &meta);
}
