/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/base/clock.h"
#include "tools/local/server/parts.h"
#include "tools/local/train/model.h"

/* ---- Checkpoints on the disk ---- */

/* The directory is read for each request: it is small, and the result is
 * correct after a restart too. */

/* Searching for runs takes quadratic time in this number. */
enum { LOCAL_MAX_KEPT = 20000 };

void local_kept_free(local_kept_t *list) {
  for (size_t i = 0; i < list->n; i++)
    local_meta_free(list->server, &list->metas[i]);
  tnk__free(list->server->alloc, list->metas);
}

static void add(local_kept_t *list, const local_place_t *place) {
  if (list->n == list->cap && list->n < LOCAL_MAX_KEPT) {
    size_t cap = list->cap > 0 ? list->cap * 2 : 64;
    local_meta_t *metas =
        tnk__realloc(list->server->alloc, list->metas, cap * sizeof(*metas));

    if (metas == NULL) {
      list->err = TNK_ENOMEM;
      return;
    }
    list->metas = metas;
    list->cap = cap;
  }
  /* There are too many to list; the newest may be missing. */
  if (list->n == list->cap)
    return;
  if (local_meta_read(list->server, place, &list->metas[list->n]) == TNK_OK)
    list->n++;
}

static void read_kind(local_kept_t *list, const char *run, const char *kind) {
  char dir[LOCAL_FILE];
  local_place_t place;
  uv_dirent_t entry;
  uv_fs_t scan;
  int n = snprintf(dir, sizeof(dir), "%s/%s/%s", list->server->data, run, kind);

  if (n < 0 || (size_t)n >= sizeof(dir) ||
      uv_fs_scandir(NULL, &scan, dir, 0, NULL) < 0)
    return;
  while (uv_fs_scandir_next(&scan, &entry) == 0)
    if (local_place_make(&place, run, kind, entry.name))
      add(list, &place);
  uv_fs_req_cleanup(&scan);
}

static void read_run(local_kept_t *list, const char *run) {
  for (int i = LOCAL_WEIGHTS; i <= LOCAL_EXTERNAL_WEIGHTS; i++)
    read_kind(list, run, local_kind_name((local_place_kind_t)i));
}

static int newest_first(const void *a, const void *b) {
  int64_t x = ((const local_meta_t *)a)->time_ms;
  int64_t y = ((const local_meta_t *)b)->time_ms;

  return x < y ? 1 : x > y ? -1 : 0;
}

local_kept_t local_kept_read(const local_server_t *server, const char *run) {
  local_kept_t list = {.server = server};
  char name[LOCAL_ID];
  uv_dirent_t entry;
  uv_fs_t scan;

  if (run != NULL) {
    snprintf(name, sizeof(name), "%s", run);
    /* As in the names of directories, see store.h. */
    for (char *p = name; *p != '\0'; p++)
      if (*p == ':' || *p == '/')
        *p = '_';
    read_run(&list, name);
  } else if (uv_fs_scandir(NULL, &scan, server->data, 0, NULL) >= 0) {
    while (uv_fs_scandir_next(&scan, &entry) == 0)
      read_run(&list, entry.name);
    uv_fs_req_cleanup(&scan);
  }
  if (list.n > 1)
    qsort(list.metas, list.n, sizeof(*list.metas), newest_first);
  return list;
}

void local_kept_sweep(local_server_t *server) {
  local_kept_t list;

  if (server->next_expiry_ms == 0 ||
      local_now_ms(server) < server->next_expiry_ms)
    return;
  server->next_expiry_ms = 0;
  /* Reading a checkpoint removes it if it has expired. */
  list = local_kept_read(server, NULL);
  for (size_t i = 0; i < list.n; i++)
    local_store_expires(server, list.metas[i].expires_ms);
  local_kept_free(&list);
}

/* The project of a checkpoint; the first project by default. */
static const char *meta_project(const local_meta_t *meta) {
  return meta->project != NULL ? meta->project : "default";
}

/* The names of runs begin with their session's id. */
static int kept_is_of(const local_meta_t *meta,
                      const local_session_t *session) {
  const size_t n = strlen(session->id);

  return strncmp(meta->place.run, session->id, n) == 0 &&
         meta->place.run[n] == ':';
}

int local_kept_move(const local_session_t *session, const char *project) {
  const local_server_t *server = session->server;
  local_kept_t list = local_kept_read(server, NULL);
  int err = list.err;

  for (size_t i = 0; i < list.n && err == TNK_OK; i++) {
    local_meta_t *meta = &list.metas[i];

    if (!kept_is_of(meta, session))
      continue;
    tnk__free(server->alloc, meta->project);
    meta->project = tnk__strdup(server->alloc, project);
    err = meta->project != NULL ? local_meta_write(server, meta) : TNK_ENOMEM;
  }
  local_kept_free(&list);
  return err;
}

/* ---- Lists: records ---- */

static void put_checkpoint(tnk__json_writer_t *w, const local_meta_t *meta) {
  static const char *const types[] = {"training", "sampler", "external", ""};
  char text[LOCAL_PATH];

  tnk__json_begin_object(w);
  snprintf(text, sizeof(text), "%s/%s", local_kind_name(meta->place.kind),
           meta->place.name);
  tnk__json_put_text(w, "checkpoint_id", text);
  tnk__json_put_text(w, "checkpoint_type", types[meta->place.kind]);
  local_put_time(w, "time", meta->time_ms);
  local_place_text(&meta->place, text);
  tnk__json_put_text(w, "tinker_path", text);
  tnk__json_put_int(w, "size_bytes", meta->n_bytes);
  tnk__json_put_bool(w, "public", meta->is_public);
  tnk__json_put_raw(w, "user_metadata", meta->metadata);
  if (meta->expires_ms > 0)
    local_put_time(w, "expires_at", meta->expires_ms);
  else
    tnk__json_put_text(w, "expires_at", NULL);
  tnk__json_end(w);
}

static void put_cursor(tnk__json_writer_t *w, size_t offset, size_t limit,
                       size_t total) {
  tnk__json_put_object(w, "cursor");
  tnk__json_put_int(w, "offset", (int64_t)offset);
  tnk__json_put_int(w, "limit", (int64_t)limit);
  tnk__json_put_int(w, "total_count", (int64_t)total);
  tnk__json_end(w);
}

static const local_meta_t *last_of(const local_kept_t *list, const char *run,
                                   local_place_kind_t kind) {
  for (size_t i = 0; i < list->n; i++)
    if (list->metas[i].place.kind == kind &&
        strcmp(list->metas[i].place.run, run) == 0)
      return &list->metas[i];
  return NULL;
}

static void put_last(tnk__json_writer_t *w, const char *key,
                     const local_meta_t *meta) {
  tnk__json_key(w, key);
  if (meta != NULL)
    put_checkpoint(w, meta);
  else
    tnk__json_null(w);
}

static const local_model_t *live(const local_server_t *server,
                                 const char *run) {
  local_node_t *node = local_table_find(&server->models, run);

  return node != NULL ? tnk__container_of(node, local_model_t, node) : NULL;
}

/* Write the members of a run. */
static void put_run(tnk__json_writer_t *w, const local_kept_t *list,
                    const char *run) {
  const local_model_t *model = live(list->server, run);
  const local_meta_t *state = last_of(list, run, LOCAL_WEIGHTS);
  const local_meta_t *sampler = last_of(list, run, LOCAL_SAMPLER_WEIGHTS);
  int64_t ms = state != NULL ? state->time_ms : 0;
  int rank = state != NULL ? (int)state->config.rank : 0;

  if (sampler != NULL && sampler->time_ms > ms)
    ms = sampler->time_ms;
  if (sampler != NULL && rank == 0)
    rank = (int)sampler->config.rank;
  if (model != NULL) {
    ms = (int64_t)model->last_ms;
    rank = (int)model->config.rank;
  }
  tnk__json_put_text(w, "training_run_id", run);
  tnk__json_put_text(w, "base_model", local_base_name(list->server));
  tnk__json_put_text(w, "model_owner", "local");
  tnk__json_put_bool(w, "is_lora", 1);
  tnk__json_put_bool(w, "corrupted", 0);
  tnk__json_put_int(w, "lora_rank", rank);
  local_put_time(w, "last_request_time", ms);
  put_last(w, "last_checkpoint", state);
  put_last(w, "last_sampler_checkpoint", sampler);
  tnk__json_put_raw(w, "user_metadata", model != NULL ? model->metadata : NULL);
}

/* ---- Lists ---- */

size_t local_query_number(const tnk__srv_req_t *req, const char *name,
                          size_t fallback) {
  char text[24];
  uint64_t value;

  if (!tnk__srv_req_query(req, name, text, sizeof(text)) ||
      tnk__text_u64(text, 1000000000, &value) != TNK_OK)
    return fallback;
  return (size_t)value;
}

/* Returns whether checkpoint i is the first of its run in the list. */
static int first_of_run(const local_kept_t *list, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (strcmp(list->metas[k].place.run, list->metas[i].place.run) == 0)
      return 0;
  return 1;
}

/* A page of runs: first the active ones, then those that exist only on the
 * disk. */
typedef struct {
  local_out_t out;
  local_kept_t list;
  size_t offset;
  size_t limit;
  size_t total;
} page_t;

static void page_run(page_t *page, const char *run) {
  if (page->total >= page->offset && page->total - page->offset < page->limit) {
    tnk__json_begin_object(&page->out.w);
    put_run(&page->out.w, &page->list, run);
    tnk__json_end(&page->out.w);
  }
  page->total++;
}

void local_list_runs(local_call_t *call) {
  const local_server_t *server = call->server;
  page_t page = {.list = local_kept_read(server, NULL),
                 .offset = local_query_number(call->req, "offset", 0),
                 .limit = local_query_number(call->req, "limit", 20)};
  char project[LOCAL_MAX_TEXT];
  int has_project;

  has_project =
      tnk__srv_req_query(call->req, "project_id", project, sizeof(project));
  local_out_begin(&page.out, server->alloc);
  tnk__json_put_array(&page.out.w, "training_runs");
  TNK__LIST_FOREACH (s, &server->session_list) {
    const local_session_t *session =
        tnk__container_of(s, local_session_t, link);

    if (has_project && strcmp(local_session_project(session), project) != 0)
      continue;
    TNK__LIST_FOREACH (m, &session->models) {
      page_run(&page, tnk__container_of(m, local_model_t, in_session)->id);
    }
  }
  for (size_t i = 0; i < page.list.n; i++)
    if ((!has_project ||
         strcmp(meta_project(&page.list.metas[i]), project) == 0) &&
        live(server, page.list.metas[i].place.run) == NULL &&
        first_of_run(&page.list, i))
      page_run(&page, page.list.metas[i].place.run);
  tnk__json_end(&page.out.w);
  put_cursor(&page.out.w, page.offset, page.limit, page.total);
  local_kept_free(&page.list);
  local_out_reply(&page.out, call->req, 200);
}

void local_get_run(local_call_t *call) {
  const char *run = call->args[0];
  local_kept_t list = local_kept_read(call->server, run);
  local_out_t out;

  if (list.n == 0 && live(call->server, run) == NULL) {
    local_kept_free(&list);
    local_reply_error(call->req, 404, "Training run not found: %s", run);
    return;
  }
  local_out_begin(&out, call->server->alloc);
  put_run(&out.w, &list, run);
  local_kept_free(&list);
  local_out_reply(&out, call->req, 200);
}

static void reply_checkpoints(local_call_t *call, local_kept_t *list,
                              size_t offset, size_t limit) {
  local_out_t out;

  local_out_begin(&out, call->server->alloc);
  tnk__json_put_array(&out.w, "checkpoints");
  for (size_t i = offset; i < list->n && i - offset < limit; i++)
    put_checkpoint(&out.w, &list->metas[i]);
  tnk__json_end(&out.w);
  put_cursor(&out.w, offset, limit, list->n);
  local_kept_free(list);
  local_out_reply(&out, call->req, 200);
}

void local_list_run_checkpoints(local_call_t *call) {
  local_kept_t list = local_kept_read(call->server, call->args[0]);

  reply_checkpoints(call, &list, 0, LOCAL_MAX_KEPT);
}

void local_list_checkpoints(local_call_t *call) {
  local_kept_t list = local_kept_read(call->server, NULL);

  reply_checkpoints(call, &list, local_query_number(call->req, "offset", 0),
                    local_query_number(call->req, "limit", 100));
}

/* ---- Lists: sessions ---- */

const char *local_session_state(const local_session_t *session) {
  if (!session->finished)
    return "active";
  return session->reason != NULL ? "client_finished" : "cancelled";
}

const char *local_session_project(const local_session_t *session) {
  return session->project != NULL ? session->project : "default";
}

size_t local_session_checkpoints(const local_session_t *session,
                                 int64_t *n_bytes) {
  local_kept_t list = local_kept_read(session->server, NULL);
  size_t n = 0;

  *n_bytes = 0;
  for (size_t i = 0; i < list.n; i++)
    if (kept_is_of(&list.metas[i], session)) {
      n++;
      *n_bytes += list.metas[i].n_bytes;
    }
  local_kept_free(&list);
  return n;
}

/* ---- Lists: storage ---- */

/* The storage of one project. */
typedef struct {
  const char *project;
  int64_t n;
  int64_t n_bytes;
} row_t;

/* Sum up by project; NULL without memory. */
static row_t *add_up(const local_kept_t *list, size_t *n) {
  row_t *rows = tnk__calloc(list->server->alloc, list->n + 1, sizeof(*rows));

  *n = 0;
  for (size_t i = 0; rows != NULL && i < list->n; i++) {
    const char *project = meta_project(&list->metas[i]);
    size_t k = 0;

    while (k < *n && strcmp(rows[k].project, project) != 0)
      k++;
    *n += k == *n;
    rows[k].project = project;
    rows[k].n++;
    rows[k].n_bytes += list->metas[i].n_bytes;
  }
  return rows;
}

static void put_storage(tnk__json_writer_t *w, const row_t *row) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "project_id", row->project);
  tnk__json_put_text(w, "org_user_urn", LOCAL_USER);
  tnk__json_put_text(w, "user_email", NULL);
  tnk__json_put_text(w, "user_name", NULL);
  tnk__json_put_int(w, "checkpoint_count", row->n);
  tnk__json_put_int(w, "size_bytes", row->n_bytes);
  tnk__json_put_double(w, "size_gigabytes", (double)row->n_bytes / 1e9);
  tnk__json_put_double(w, "estimated_monthly_cost_usd", 0);
  tnk__json_end(w);
}

void local_storage(local_call_t *call) {
  local_kept_t list = local_kept_read(call->server, NULL);
  char project[LOCAL_MAX_TEXT + 1];
  int has_project =
      tnk__srv_req_query(call->req, "project_id", project, sizeof(project)) &&
      project[0] != '\0';
  size_t n = 0;
  row_t *rows = add_up(&list, &n);
  local_out_t out;

  if (rows == NULL) {
    local_kept_free(&list);
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_double(&out.w, "effective_rate_usd_per_gigabyte_month", 0);
  tnk__json_put_array(&out.w, "data");
  for (size_t i = 0; i < n; i++)
    if (!has_project || strcmp(rows[i].project, project) == 0)
      put_storage(&out.w, &rows[i]);
  tnk__json_end(&out.w);
  tnk__free(call->server->alloc, rows);
  local_kept_free(&list);
  local_out_reply(&out, call->req, 200);
}

/* ---- One checkpoint ---- */

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
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "base_model", local_base_name(call->server));
  tnk__json_put_bool(&out.w, "is_lora", 1);
  tnk__json_put_int(&out.w, "lora_rank", config.rank);
  tnk__json_put_bool(&out.w, "train_unembed", config.train_unembed);
  tnk__json_put_bool(&out.w, "train_mlp", config.train_mlp);
  tnk__json_put_bool(&out.w, "train_attn", config.train_attn);
  local_put_optimizer(&out.w, config.optimizer);
  local_out_reply(&out, call->req, 200);
}

/* ---- One checkpoint: copies ---- */

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
  if (to->session != NULL) {
    snprintf(place->run, sizeof(place->run), "%s:copy:%lld", to->session->id,
             (long long)to->number);
    return 1;
  }
  memcpy(place->run, "copy-", sizeof("copy-"));
  return local_random_hex(place->run + strlen(place->run), 8) == 0;
}

static void reply_copy(local_call_t *call, const local_meta_t *meta) {
  char path[LOCAL_PATH];
  local_out_t out;

  local_place_text(&meta->place, path);
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "tinker_path", path);
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
