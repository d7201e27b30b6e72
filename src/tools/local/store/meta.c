/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/lm/file.h"
#include "tools/local/store/files.h"
#include "tools/local/store/store.h"

/* The metadata of a checkpoint, in a file next to its weights. */

/* Limit of the file; most of it is the client's metadata. */
#define MAX_META ((size_t)32 << 20)

/* Read the metadata; NULL if there is none. */
static json_t *read_meta(const tnk_allocator_t *alloc, const char *dir) {
  json_t *json = NULL;
  tnk__buf_t buf;

  tnk__buf_init(&buf, alloc, MAX_META);
  if (tnk__lm_file_read(dir, LOCAL_META, &buf, NULL) != TNK_OK ||
      tnk__json_parse_object(&json, buf.data, buf.len) != TNK_OK)
    json = NULL;
  tnk__buf_deinit(&buf);
  return json;
}

/* Returns whether all of its files exist. */
static int is_whole(const local_place_t *place, const char *dir) {
  char path[LOCAL_FILE + 64];

  /* External weights may be encrypted, under different names. */
  snprintf(path, sizeof(path), "%s/%s", dir,
           place->kind == LOCAL_EXTERNAL_WEIGHTS ? LOCAL_META
                                                 : TNK__LM_FILE_CONFIG);
  return local_file_exists(path);
}

static int is_expired(const local_server_t *server, int64_t expires_ms) {
  return expires_ms > 0 && expires_ms <= local_now_ms(server);
}

int local_place_exists(const local_server_t *server,
                       const local_place_t *place) {
  char dir[LOCAL_FILE];
  int64_t expires_ms = 0;
  json_t *meta;

  if (!local_place_dir(server, place, dir) || !is_whole(place, dir))
    return 0;
  meta = read_meta(server->alloc, dir);
  if (meta != NULL)
    tnk__json_get_int(meta, "expires_ms", 0, INT64_MAX, &expires_ms);
  json_decref(meta);
  return !is_expired(server, expires_ms);
}

void local_meta_peek(const local_server_t *server, const local_place_t *place,
                     int64_t *time_ms, int64_t *n_bytes) {
  char dir[LOCAL_FILE];
  json_t *meta;

  *time_ms = *n_bytes = 0;
  if (!local_place_dir(server, place, dir))
    return;
  meta = read_meta(server->alloc, dir);
  if (meta == NULL)
    return;
  tnk__json_get_int(meta, "time_ms", 0, INT64_MAX, time_ms);
  tnk__json_get_int(meta, "size_bytes", 0, INT64_MAX, n_bytes);
  json_decref(meta);
}

void local_meta_free(const local_server_t *server, local_meta_t *meta) {
  tnk__free(server->alloc, meta->metadata);
  tnk__free(server->alloc, meta->project);
  meta->metadata = NULL;
  meta->project = NULL;
}

/* For external weights only this file has the configuration. */
static void put_config(tnk__json_writer_t *w, const tnk__lm_config_t *config) {
  tnk__json_put_int(w, "rank", config->rank);
  tnk__json_put_bool(w, "train_mlp", config->train_mlp);
  tnk__json_put_bool(w, "train_attn", config->train_attn);
  tnk__json_put_bool(w, "train_unembed", config->train_unembed);
  tnk__json_put_bool(w, "dimuon", config->optimizer == TNK__LM_DIMUON);
}

static void read_config(const json_t *from, tnk__lm_config_t *out) {
  int64_t rank = 0;
  int mlp = 1;
  int attn = 1;
  int unembed = 1;
  int dimuon = 0;

  tnk__json_get_int(from, "rank", 0, TNK__LM_MAX_RANK, &rank);
  tnk__json_get_bool(from, "train_mlp", &mlp);
  tnk__json_get_bool(from, "train_attn", &attn);
  tnk__json_get_bool(from, "train_unembed", &unembed);
  tnk__json_get_bool(from, "dimuon", &dimuon);
  *out =
      (tnk__lm_config_t){.rank = (uint32_t)rank,
                         .train_mlp = (uint8_t)mlp,
                         .train_attn = (uint8_t)attn,
                         .train_unembed = (uint8_t)unembed,
                         .optimizer = dimuon ? TNK__LM_DIMUON : TNK__LM_ADAMW};
}

int local_meta_write_to(const tnk_allocator_t *alloc, const char *dir,
                        const local_meta_t *meta, tnk__lm_why_t *why) {
  tnk__json_writer_t w;
  tnk__buf_t buf;
  int err;

  /* The limit for writing is lower, because reading allocates in larger
   * steps. */
  tnk__buf_init(&buf, alloc, MAX_META / 2);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  tnk__json_put_int(&w, "time_ms", meta->time_ms);
  tnk__json_put_int(&w, "expires_ms", meta->expires_ms);
  tnk__json_put_int(&w, "size_bytes", meta->n_bytes);
  put_config(&w, &meta->config);
  tnk__json_put_bool(&w, "public", meta->is_public);
  if (meta->metadata != NULL)
    tnk__json_put_raw(&w, "user_metadata", meta->metadata);
  if (meta->project != NULL)
    tnk__json_put_text(&w, "project", meta->project);
  tnk__json_put_text(&w, "run", meta->place.run);
  tnk__json_end(&w);
  err = tnk__json_finish(&w);
  if (err == TNK_OK)
    err = tnk__lm_file_write(dir, LOCAL_META, &buf, why);
  tnk__buf_deinit(&buf);
  return err;
}

int local_meta_write(const local_server_t *server, const local_meta_t *meta) {
  char dir[LOCAL_FILE];

  if (!local_place_dir(server, &meta->place, dir))
    return TNK_ENOTFOUND;
  return local_meta_write_to(server->alloc, dir, meta, NULL);
}

static void read_members(const local_server_t *server, const json_t *from,
                         local_meta_t *out) {
  const json_t *metadata = tnk__json_obj(from, "user_metadata");
  const char *run = tnk__json_str(from, "run");
  const char *project = tnk__json_str(from, "project");

  tnk__json_get_int(from, "time_ms", 0, INT64_MAX, &out->time_ms);
  tnk__json_get_int(from, "expires_ms", 0, INT64_MAX, &out->expires_ms);
  tnk__json_get_int(from, "size_bytes", 0, INT64_MAX, &out->n_bytes);
  tnk__json_get_bool(from, "public", &out->is_public);
  read_config(from, &out->config);
  /* The name of the directory has no colons. */
  if (run != NULL && local_run_ok(run))
    snprintf(out->place.run, sizeof(out->place.run), "%s", run);
  if (project != NULL)
    out->project = tnk__strdup(server->alloc, project);
  if (metadata != NULL) {
    size_t n = json_dumpb(metadata, NULL, 0, JSON_COMPACT);

    out->metadata = tnk__malloc(server->alloc, n + 1);
    if (out->metadata != NULL) {
      json_dumpb(metadata, out->metadata, n, JSON_COMPACT);
      out->metadata[n] = '\0';
    }
  }
}

int local_meta_read(const local_server_t *server, const local_place_t *place,
                    local_meta_t *out) {
  char dir[LOCAL_FILE];
  json_t *json;

  *out = (local_meta_t){.place = *place};
  if (!local_place_dir(server, place, dir) || !is_whole(place, dir))
    return TNK_ENOTFOUND;
  json = read_meta(server->alloc, dir);
  if (json != NULL) {
    read_members(server, json, out);
    json_decref(json);
  }
  if (!is_expired(server, out->expires_ms))
    return TNK_OK; /* the weights are usable without that file */
  local_ledger_stored(server, out->n_bytes, out->time_ms, out->expires_ms);
  local_place_note(server, "checkpoint_expire", place);
  local_meta_free(server, out);
  local_remove_tree(dir);
  return TNK_ENOTFOUND;
}

int local_need_checkpoint(local_call_t *call, local_meta_t *meta) {
  local_place_t place;

  if (!local_place_make(&place, call->args[0], call->args[1], call->args[2])) {
    local_reply_error(call->req, 400, "Invalid checkpoint id: %s/%s",
                      call->args[1], call->args[2]);
    return 0;
  }
  if (local_meta_read(call->server, &place, meta) == TNK_OK)
    return 1;
  local_reply_error(call->req, 404, "Checkpoint not found: %s/%s",
                    call->args[1], call->args[2]);
  return 0;
}
