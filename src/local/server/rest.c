#include "local/base/clock.h"
#include "local/server/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "codec/format/json_read.h"
#include "local/train/model.h"

/* The directory is read anew for each request: it is small, and what it says
 * is then true after a restart too. */

/* Looking for runs in the list is quadratic in it. */
enum { MAX_LISTED = 20000 };

typedef struct {
  const local_server_t *server;
  local_meta_t *metas;
  size_t n;
  size_t cap;
  int err;
} list_t;

/* ---- Reading the directory ---- */

static void list_free(list_t *list) {
  for (size_t i = 0; i < list->n; i++)
    local_meta_free(list->server, &list->metas[i]);
  tnk__free(list->server->alloc, list->metas);
}

static void add(list_t *list, const local_place_t *place) {
  if (list->n == list->cap && list->n < MAX_LISTED) {
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
  /* Too many to list; the newest may be among those left out. */
  if (list->n == list->cap)
    return;
  if (local_meta_read(list->server, place, &list->metas[list->n]) == TNK_OK)
    list->n++;
}

static void read_kind(list_t *list, const char *run, const char *kind) {
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

static void read_run(list_t *list, const char *run) {
  for (int i = LOCAL_WEIGHTS; i <= LOCAL_EXTERNAL_WEIGHTS; i++)
    read_kind(list, run, local_kind_name((local_place_kind_t)i));
}

static int newest_first(const void *a, const void *b) {
  int64_t x = ((const local_meta_t *)a)->time_ms;
  int64_t y = ((const local_meta_t *)b)->time_ms;

  return x < y ? 1 : x > y ? -1 : 0;
}

/* All checkpoints, or those of one run, newest first. */
static list_t list_read(const local_server_t *server, const char *run) {
  list_t list = {.server = server};
  char name[LOCAL_ID];
  uv_dirent_t entry;
  uv_fs_t scan;

  if (run != NULL) {
    snprintf(name, sizeof(name), "%s", run);
    /* As directories are named, see store.h. */
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

/* ---- Records ---- */

static void put_time(tnk__json_writer_t *w, const char *key, int64_t ms) {
  char text[32];

  local_time_text(ms, text);
  tnk__json_put_text(w, key, ms > 0 ? text : NULL);
}

static void put_raw(tnk__json_writer_t *w, const char *key, const char *json) {
  tnk__json_key(w, key);
  if (json != NULL)
    tnk__json_raw(w, json, strlen(json));
  else
    tnk__json_null(w);
}

static void put_checkpoint(tnk__json_writer_t *w, const local_meta_t *meta) {
  static const char *const types[] = {"training", "sampler", "external", ""};
  char text[LOCAL_PATH];

  tnk__json_begin_object(w);
  snprintf(text, sizeof(text), "%s/%s", local_kind_name(meta->place.kind),
           meta->place.name);
  tnk__json_put_text(w, "checkpoint_id", text);
  tnk__json_put_text(w, "checkpoint_type", types[meta->place.kind]);
  local_time_text(meta->time_ms, text);
  tnk__json_put_text(w, "time", text);
  local_place_text(&meta->place, text);
  tnk__json_put_text(w, "tinker_path", text);
  tnk__json_put_int(w, "size_bytes", meta->n_bytes);
  tnk__json_put_bool(w, "public", meta->is_public);
  put_raw(w, "user_metadata", meta->metadata);
  put_time(w, "expires_at", meta->expires_ms);
  tnk__json_end(w);
}

static void put_cursor(tnk__json_writer_t *w, size_t offset, size_t limit,
                       size_t total) {
  tnk__json_key(w, "cursor");
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "offset", (int64_t)offset);
  tnk__json_put_int(w, "limit", (int64_t)limit);
  tnk__json_put_int(w, "total_count", (int64_t)total);
  tnk__json_end(w);
}

static const local_meta_t *last_of(const list_t *list, const char *run,
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

static void put_run(tnk__json_writer_t *w, const list_t *list,
                    const char *run) {
  const local_model_t *model = live(list->server, run);
  const local_meta_t *state = last_of(list, run, LOCAL_WEIGHTS);
  const local_meta_t *sampler = last_of(list, run, LOCAL_SAMPLER_WEIGHTS);
  int64_t ms = state != NULL ? state->time_ms : 0;
  int rank = state != NULL ? state->rank : 0;
  char text[32];

  if (sampler != NULL && sampler->time_ms > ms)
    ms = sampler->time_ms;
  if (sampler != NULL && rank == 0)
    rank = sampler->rank;
  if (model != NULL) {
    ms = (int64_t)model->last_ms;
    rank = (int)model->config.rank;
  }
  local_time_text(ms, text);
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "training_run_id", run);
  tnk__json_put_text(w, "base_model", local_base_name(list->server));
  tnk__json_put_text(w, "model_owner", "local");
  tnk__json_put_bool(w, "is_lora", 1);
  tnk__json_put_bool(w, "corrupted", 0);
  tnk__json_put_int(w, "lora_rank", rank);
  tnk__json_put_text(w, "last_request_time", text);
  put_last(w, "last_checkpoint", state);
  put_last(w, "last_sampler_checkpoint", sampler);
  put_raw(w, "user_metadata", model != NULL ? model->metadata : NULL);
  tnk__json_end(w);
}

/* ---- Lists ---- */

size_t local_query_number(const local_req_t *req, const char *name,
                          size_t fallback) {
  char text[24];
  uint64_t value;

  if (!local_req_query(req, name, text, sizeof(text)) ||
      tnk__text_u64(text, 1000000000, &value) != TNK_OK)
    return fallback;
  return (size_t)value;
}

/* Whether checkpoint i is the first of its run in the list. */
static int first_of_run(const list_t *list, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (strcmp(list->metas[k].place.run, list->metas[i].place.run) == 0)
      return 0;
  return 1;
}

/* A page of runs: those that live first, then the ones only on the disk. */
typedef struct {
  local_out_t out;
  list_t list;
  size_t offset;
  size_t limit;
  size_t total;
} page_t;

static void page_run(page_t *page, const char *run) {
  if (page->total >= page->offset && page->total - page->offset < page->limit)
    put_run(&page->out.w, &page->list, run);
  page->total++;
}

void local_list_runs(local_call_t *call) {
  const local_server_t *server = call->server;
  page_t page = {.list = list_read(server, NULL),
                 .offset = local_query_number(call->req, "offset", 0),
                 .limit = local_query_number(call->req, "limit", 20)};
  char project[LOCAL_MAX_TEXT];
  int has_project;

  /* Nobody knows the project of a run that is only on the disk. */
  has_project =
      local_req_query(call->req, "project_id", project, sizeof(project));
  local_out_init(&page.out, server->alloc);
  tnk__json_begin_object(&page.out.w);
  tnk__json_key(&page.out.w, "training_runs");
  tnk__json_begin_array(&page.out.w);
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
    if (!has_project && live(server, page.list.metas[i].place.run) == NULL &&
        first_of_run(&page.list, i))
      page_run(&page, page.list.metas[i].place.run);
  tnk__json_end(&page.out.w);
  put_cursor(&page.out.w, page.offset, page.limit, page.total);
  tnk__json_end(&page.out.w);
  list_free(&page.list);
  local_out_reply(&page.out, call->req, 200);
}

void local_get_run(local_call_t *call) {
  const char *run = call->args[0];
  list_t list = list_read(call->server, run);
  local_out_t out;

  if (list.n == 0 && live(call->server, run) == NULL) {
    list_free(&list);
    local_reply_error(call->req, 404, "Training run not found: %s", run);
    return;
  }
  local_out_init(&out, call->server->alloc);
  put_run(&out.w, &list, run);
  list_free(&list);
  local_out_reply(&out, call->req, 200);
}

static void reply_checkpoints(local_call_t *call, list_t *list, size_t offset,
                              size_t limit) {
  local_out_t out;

  local_out_init(&out, call->server->alloc);
  tnk__json_begin_object(&out.w);
  tnk__json_key(&out.w, "checkpoints");
  tnk__json_begin_array(&out.w);
  for (size_t i = offset; i < list->n && i - offset < limit; i++)
    put_checkpoint(&out.w, &list->metas[i]);
  tnk__json_end(&out.w);
  put_cursor(&out.w, offset, limit, list->n);
  tnk__json_end(&out.w);
  list_free(list);
  local_out_reply(&out, call->req, 200);
}

void local_list_run_checkpoints(local_call_t *call) {
  list_t list = list_read(call->server, call->args[0]);

  reply_checkpoints(call, &list, 0, MAX_LISTED);
}

void local_list_checkpoints(local_call_t *call) {
  list_t list = list_read(call->server, NULL);

  reply_checkpoints(call, &list, local_query_number(call->req, "offset", 0),
                    local_query_number(call->req, "limit", 100));
}

/* ---- One checkpoint ---- */

/* The checkpoint that the path names; 0 when answered. */
static int path_meta(local_call_t *call, local_meta_t *meta) {
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

void local_delete_checkpoint(local_call_t *call) {
  char dir[LOCAL_FILE];
  local_meta_t meta;

  if (!path_meta(call, &meta))
    return;
  local_meta_free(call->server, &meta);
  /* Samplers that have the weights keep them; nobody finds them any more. */
  if (local_place_dir(call->server, &meta.place, dir))
    local_weights_forget(call->server, dir);
  local_store_remove(call->server, &meta.place);
  local_req_reply(call->req, 204, "application/json", NULL, NULL, 0);
}

/* Write it, free it, answer. */
static void keep_meta(local_call_t *call, local_meta_t *meta) {
  int err = local_meta_write(call->server, meta);

  local_meta_free(call->server, meta);
  if (err != TNK_OK)
    local_reply_error(call->req, 500, "Cannot write the checkpoint's file");
  else
    local_reply_text(call->req, 200, "{}");
}

static void set_public(local_call_t *call, int value) {
  local_meta_t meta;

  if (!path_meta(call, &meta))
    return;
  if (meta.is_public == value) {
    local_meta_free(call->server, &meta);
    local_reply_error(call->req, 409, "The checkpoint is already %s",
                      value ? "public" : "private");
    return;
  }
  meta.is_public = value;
  keep_meta(call, &meta);
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

  if (!local_want_int(call, "ttl_seconds", 1, (int64_t)10 * 366 * 86400,
                      &ttl) ||
      !path_meta(call, &meta))
    return;
  meta.expires_ms = ttl > 0 ? local_wall_ms() + ttl * 1000 : 0;
  keep_meta(call, &meta);
}

void local_weights_info(local_call_t *call) {
  const char *path = NULL;
  tnk__lm_config_t config;
  tnk__lm_why_t why = {{0}};
  local_place_t place;
  char dir[LOCAL_FILE];
  int has_optimizer = 0;
  local_out_t out;

  if (!local_need_text(call, "tinker_path", &path))
    return;
  if (!local_place_parse(&place, path)) {
    local_reply_error(call->req, 400, "Invalid checkpoint path: %s", path);
    return;
  }
  if (!local_place_exists(call->server, &place) ||
      !local_place_dir(call->server, &place, dir) ||
      tnk__lm_read_config(&config, dir, &has_optimizer, call->server->alloc,
                          &why) != TNK_OK) {
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

/* A run of its own for each copy. */
static int name_copy(local_place_t *to, const local_place_t *from) {
  unsigned char random[8];
  size_t at;

  if (uv_random(NULL, NULL, random, sizeof(random), 0, NULL) != 0)
    return 0;
  *to = *from;
  at = (size_t)snprintf(to->run, sizeof(to->run), "copy-");
  for (size_t i = 0; i < sizeof(random); i++)
    at +=
        (size_t)snprintf(to->run + at, sizeof(to->run) - at, "%02x", random[i]);
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

void local_copy_weights(local_call_t *call) {
  const char *project = NULL;
  const char *path = NULL;
  local_place_t from;
  local_meta_t meta;
  int64_t ttl = 0;

  if (!local_need_text(call, "source_path", &path) ||
      !local_need_text(call, "destination_project_id", &project) ||
      !local_want_int(call, "ttl_seconds", 1, (int64_t)10 * 366 * 86400, &ttl))
    return;
  if (!local_place_parse(&from, path)) {
    local_reply_error(call->req, 400, "Invalid checkpoint path: %s", path);
    return;
  }
  if (local_meta_read(call->server, &from, &meta) != TNK_OK) {
    local_reply_error(call->req, 404, "Checkpoint not found: %s", path);
    return;
  }
  /* Neither is inherited. */
  meta.expires_ms = ttl > 0 ? local_wall_ms() + ttl * 1000 : 0;
  meta.is_public = 0;
  if (name_copy(&meta.place, &from) &&
      local_store_copy(call->server, &from, &meta) == TNK_OK)
    reply_copy(call, &meta);
  else
    local_reply_error(call->req, 500, "Cannot write the copy");
  local_meta_free(call->server, &meta);
}

/* ---- What sessions have ---- */

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
  list_t list = list_read(session->server, NULL);
  const size_t n_id = strlen(session->id);
  size_t n = 0;

  *n_bytes = 0;
  for (size_t i = 0; i < list.n; i++) {
    const char *run = list.metas[i].place.run;

    /* Runs are called after their session. */
    if (strncmp(run, session->id, n_id) == 0 && run[n_id] == ':') {
      n++;
      *n_bytes += list.metas[i].n_bytes;
    }
  }
  list_free(&list);
  return n;
}

/* ---- Storage ---- */

/* One row: all is in one project of one owner, as far as the disk tells. */
static void put_storage(tnk__json_writer_t *w, const list_t *list) {
  int64_t n_bytes = 0;

  for (size_t i = 0; i < list->n; i++)
    n_bytes += list->metas[i].n_bytes;
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "project_id", NULL);
  tnk__json_put_text(w, "org_user_urn", "local");
  tnk__json_put_text(w, "user_email", NULL);
  tnk__json_put_text(w, "user_name", NULL);
  tnk__json_put_int(w, "checkpoint_count", (int64_t)list->n);
  tnk__json_put_int(w, "size_bytes", n_bytes);
  tnk__json_put_double(w, "size_gigabytes", (double)n_bytes / 1e9);
  tnk__json_put_double(w, "estimated_monthly_cost_usd", 0);
  tnk__json_end(w);
}

void local_storage(local_call_t *call) {
  list_t list = list_read(call->server, NULL);
  char project[LOCAL_MAX_TEXT];
  local_out_t out;

  local_out_init(&out, call->server->alloc);
  tnk__json_begin_object(&out.w);
  tnk__json_put_double(&out.w, "effective_rate_usd_per_gigabyte_month", 0);
  tnk__json_key(&out.w, "data");
  tnk__json_begin_array(&out.w);
  if (list.n > 0 &&
      !local_req_query(call->req, "project_id", project, sizeof(project)))
    put_storage(&out.w, &list);
  tnk__json_end(&out.w);
  tnk__json_end(&out.w);
  list_free(&list);
  local_out_reply(&out, call->req, 200);
}
