#include "tools/local/server/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/wire/format/json_read.h"
#include "tools/local/base/clock.h"
#include "tools/local/server/kept.h"
#include "tools/local/train/model.h"

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

static void put_run(tnk__json_writer_t *w, const local_kept_t *list,
                    const char *run) {
  const local_model_t *model = live(list->server, run);
  const local_meta_t *state = last_of(list, run, LOCAL_WEIGHTS);
  const local_meta_t *sampler = last_of(list, run, LOCAL_SAMPLER_WEIGHTS);
  int64_t ms = state != NULL ? state->time_ms : 0;
  int rank = state != NULL ? (int)state->config.rank : 0;
  char text[32];

  if (sampler != NULL && sampler->time_ms > ms)
    ms = sampler->time_ms;
  if (sampler != NULL && rank == 0)
    rank = (int)sampler->config.rank;
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

size_t local_query_number(const tnk__srv_req_t *req, const char *name,
                          size_t fallback) {
  char text[24];
  uint64_t value;

  if (!tnk__srv_req_query(req, name, text, sizeof(text)) ||
      tnk__text_u64(text, 1000000000, &value) != TNK_OK)
    return fallback;
  return (size_t)value;
}

/* Whether checkpoint i is the first of its run in the list. */
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
  if (page->total >= page->offset && page->total - page->offset < page->limit)
    put_run(&page->out.w, &page->list, run);
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
    if ((!has_project ||
         strcmp(local_meta_project(&page.list.metas[i]), project) == 0) &&
        live(server, page.list.metas[i].place.run) == NULL &&
        first_of_run(&page.list, i))
      page_run(&page, page.list.metas[i].place.run);
  tnk__json_end(&page.out.w);
  put_cursor(&page.out.w, page.offset, page.limit, page.total);
  tnk__json_end(&page.out.w);
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
  local_out_init(&out, call->server->alloc);
  put_run(&out.w, &list, run);
  local_kept_free(&list);
  local_out_reply(&out, call->req, 200);
}

static void reply_checkpoints(local_call_t *call, local_kept_t *list,
                              size_t offset, size_t limit) {
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

/* ---- Sessions ---- */

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
    if (local_kept_is_of(&list.metas[i], session)) {
      n++;
      *n_bytes += list.metas[i].n_bytes;
    }
  local_kept_free(&list);
  return n;
}

/* ---- Storage ---- */

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
    const char *project = local_meta_project(&list->metas[i]);
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
  local_out_init(&out, call->server->alloc);
  tnk__json_begin_object(&out.w);
  tnk__json_put_double(&out.w, "effective_rate_usd_per_gigabyte_month", 0);
  tnk__json_key(&out.w, "data");
  tnk__json_begin_array(&out.w);
  for (size_t i = 0; i < n; i++)
    if (!has_project || strcmp(rows[i].project, project) == 0)
      put_storage(&out.w, &rows[i]);
  tnk__json_end(&out.w);
  tnk__json_end(&out.w);
  tnk__free(call->server->alloc, rows);
  local_kept_free(&list);
  local_out_reply(&out, call->req, 200);
}
