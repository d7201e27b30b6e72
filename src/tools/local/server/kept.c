#include "tools/local/server/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* The directory is read for each request: it is small, and the result is
 * correct after a restart too. */

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

const char *local_meta_project(const local_meta_t *meta) {
  return meta->project != NULL ? meta->project : "default";
}

/* The names of runs begin with their session's id. */
int local_kept_is_of(const local_meta_t *meta, const local_session_t *session) {
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

    if (!local_kept_is_of(meta, session))
      continue;
    tnk__free(server->alloc, meta->project);
    meta->project = tnk__strdup(server->alloc, project);
    err = meta->project != NULL ? local_meta_write(server, meta) : TNK_ENOMEM;
  }
  local_kept_free(&list);
  return err;
}
