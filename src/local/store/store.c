#include "local/store/store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "codec/format/json_read.h"
#include "local/lm/check.h"
#include "local/lm/file.h"

/* The largest meta.json of a checkpoint, most of which is the client's note. */
#define MAX_META ((size_t)32 << 20)

/* ---- Names and paths ---- */

static const char *const kinds[] = {"weights", "sampler_weights",
                                    "external_weights", "ephemeral"};

const char *local_kind_name(local_place_kind_t kind) {
  return kinds[kind];
}

static int is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

int local_name_ok(const char *name, int strict) {
  size_t n = strlen(name);

  if (n < 1 || n > 255 || name[0] == '.')
    return 0;
  for (size_t i = 0; i < n; i++)
    if (!is_name_char(name[i]) && (strict || name[i] != '.'))
      return 0;
  return 1;
}

/* Ids of runs are ours: no part of one leads out of the directory. */
static int run_ok(const char *run) {
  size_t n = strlen(run);

  if (n < 1 || n >= LOCAL_ID)
    return 0;
  for (size_t i = 0; i < n; i++)
    if (!is_name_char(run[i]) && run[i] != ':')
      return 0;
  return 1;
}

int local_place_make(local_place_t *place, const char *run, const char *kind,
                     const char *name) {
  *place = (local_place_t){0};
  if (!run_ok(run) || !local_name_ok(name, 0))
    return 0;
  for (int i = LOCAL_WEIGHTS; i <= LOCAL_EXTERNAL_WEIGHTS; i++)
    if (strcmp(kind, kinds[i]) == 0) {
      place->kind = (local_place_kind_t)i;
      snprintf(place->run, sizeof(place->run), "%s", run);
      snprintf(place->name, sizeof(place->name), "%s", name);
      return 1;
    }
  return 0;
}

int local_place_parse(local_place_t *place, const char *path) {
  static const char scheme[] = "tinker://";
  char copy[LOCAL_PATH];
  char *kind;
  char *name;

  if (strncmp(path, scheme, sizeof(scheme) - 1) != 0 ||
      strlen(path) >= sizeof(copy))
    return 0;
  snprintf(copy, sizeof(copy), "%s", path + sizeof(scheme) - 1);
  kind = strchr(copy, '/');
  if (kind == NULL)
    return 0;
  *kind++ = '\0';
  name = strchr(kind, '/');
  if (name == NULL)
    return local_place_make(place, copy, kinds[LOCAL_SAMPLER_WEIGHTS], kind);
  *name++ = '\0';
  return local_place_make(place, copy, kind, name);
}

void local_place_text(const local_place_t *place, char *out) {
  snprintf(out, LOCAL_PATH, "tinker://%s/%s/%s", place->run, kinds[place->kind],
           place->name);
}

int local_place_dir(const local_server_t *server, const local_place_t *place,
                    char *out) {
  int n = snprintf(out, LOCAL_FILE, "%s/%s/%s/%s", server->data, place->run,
                   kinds[place->kind], place->name);

  if (n < 0 || n >= LOCAL_FILE - 64) /* room for the files' names */
    return 0;
  /* Colons are no part of names on every file system, nor in archives. */
  for (char *p = out + strlen(server->data); *p != '\0'; p++)
    if (*p == ':')
      *p = '_';
  return 1;
}

/* ---- The file system ---- */

int64_t local_wall_ms(void) {
  uv_timeval64_t now;

  if (uv_gettimeofday(&now) != 0)
    return 0;
  return now.tv_sec * 1000 + now.tv_usec / 1000;
}

void local_time_text(int64_t ms, char *out) {
  time_t seconds = (time_t)(ms / 1000);
  struct tm tm;
  size_t n;

  if (gmtime_r(&seconds, &tm) == NULL)
    memset(&tm, 0, sizeof(tm));
  n = strftime(out, 24, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(out + n, 32 - n, ".%03uZ", (unsigned)(ms % 1000) % 1000u);
}

int local_make_dirs(const char *dir) {
  char path[LOCAL_FILE];
  uv_fs_t req;
  int err = 0;
  int n = snprintf(path, sizeof(path), "%s", dir);

  if (n < 0 || (size_t)n >= sizeof(path))
    return UV_ENAMETOOLONG;
  for (char *p = path + 1;; p++) {
    char c = *p;

    if (c != '/' && c != '\0')
      continue;
    *p = '\0';
    err = uv_fs_mkdir(NULL, &req, path, 0700, NULL);
    uv_fs_req_cleanup(&req);
    if (c == '\0')
      break;
    *p = c;
  }
  return err == UV_EEXIST ? 0 : err;
}

/* Two levels are all that a checkpoint has, six all that a server has. */
static void remove_level(const char *dir, int depth) {
  uv_fs_t scan;
  uv_fs_t req;
  uv_dirent_t entry;

  if (depth > 0 && uv_fs_scandir(NULL, &scan, dir, 0, NULL) >= 0) {
    while (uv_fs_scandir_next(&scan, &entry) == 0) {
      char path[LOCAL_FILE];
      int n = snprintf(path, sizeof(path), "%s/%s", dir, entry.name);

      if (n < 0 || (size_t)n >= sizeof(path))
        continue;
      uv_fs_unlink(NULL, &req, path, NULL);
      if (req.result < 0) {
        uv_fs_req_cleanup(&req);
        remove_level(path, depth - 1);
        continue;
      }
      uv_fs_req_cleanup(&req);
    }
    uv_fs_req_cleanup(&scan);
  }
  uv_fs_rmdir(NULL, &req, dir, NULL);
  uv_fs_req_cleanup(&req);
}

void local_remove_tree(const char *dir) {
  remove_level(dir, 6);
}

static int file_exists(const char *path) {
  uv_fs_t req;
  int err = uv_fs_stat(NULL, &req, path, NULL);

  uv_fs_req_cleanup(&req);
  return err == 0;
}

static int64_t file_size(const char *path) {
  uv_fs_t req;
  int64_t size = 0;

  if (uv_fs_stat(NULL, &req, path, NULL) == 0)
    size = (int64_t)req.statbuf.st_size;
  uv_fs_req_cleanup(&req);
  return size;
}

/* What was written beside the weights; NULL when there is nothing. */
static json_t *read_meta(const tnk_allocator_t *alloc, const char *dir) {
  json_t *json = NULL;
  tnk__buf_t buf;

  tnk__buf_init(&buf, alloc, MAX_META);
  if (tnk__lm_file_read(dir, "meta.json", &buf, NULL) != TNK_OK ||
      tnk__json_parse_object(&json, buf.data, buf.len) != TNK_OK)
    json = NULL;
  tnk__buf_deinit(&buf);
  return json;
}

static int is_expired(const tnk_allocator_t *alloc, const char *dir) {
  json_t *meta = read_meta(alloc, dir);
  int64_t expires_ms = 0;

  if (meta == NULL)
    return 0;
  tnk__json_get_int(meta, "expires_ms", 0, INT64_MAX, &expires_ms);
  json_decref(meta);
  return expires_ms > 0 && expires_ms <= local_wall_ms();
}

int local_place_exists(const local_server_t *server,
                       const local_place_t *place) {
  char dir[LOCAL_FILE];
  char path[LOCAL_FILE + 64];

  if (!local_place_dir(server, place, dir))
    return 0;
  snprintf(path, sizeof(path), "%s/%s", dir, TNK__LM_FILE_CONFIG);
  if (!file_exists(path))
    return 0;
  if (!is_expired(server->alloc, dir))
    return 1;
  local_remove_tree(dir);
  return 0;
}

/* ---- What is known about a checkpoint ---- */

void local_meta_free(const local_server_t *server, local_meta_t *meta) {
  tnk__free(server->alloc, meta->metadata);
  meta->metadata = NULL;
}

static int write_meta(const tnk_allocator_t *alloc, const char *dir,
                      const local_meta_t *meta) {
  char path[LOCAL_FILE + 64];
  char temporary[LOCAL_FILE + 64];
  tnk__json_writer_t w;
  tnk__buf_t buf;
  uv_fs_t req;
  uv_file file;
  uv_buf_t data;
  int err;

  /* What can be written can be read: reading asks for room in whole steps. */
  tnk__buf_init(&buf, alloc, MAX_META / 2);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  tnk__json_put_int(&w, "time_ms", meta->time_ms);
  tnk__json_put_int(&w, "expires_ms", meta->expires_ms);
  tnk__json_put_int(&w, "size_bytes", meta->n_bytes);
  tnk__json_put_int(&w, "rank", meta->rank);
  tnk__json_put_bool(&w, "public", meta->is_public);
  if (meta->metadata != NULL) {
    tnk__json_key(&w, "user_metadata");
    tnk__json_raw(&w, meta->metadata, strlen(meta->metadata));
  }
  tnk__json_put_text(&w, "run", meta->place.run);
  tnk__json_end(&w);
  err = tnk__json_finish(&w);
  snprintf(path, sizeof(path), "%s/meta.json", dir);
  /* Renamed when it is complete, so that whoever reads finds the old one or the
   * new one. */
  snprintf(temporary, sizeof(temporary), "%s/meta.json.tmp", dir);
  if (err == TNK_OK) {
    file =
        uv_fs_open(NULL, &req, temporary,
                   UV_FS_O_WRONLY | UV_FS_O_CREAT | UV_FS_O_TRUNC, 0600, NULL);
    uv_fs_req_cleanup(&req);
    err = file < 0 ? TNK_EFAILED : TNK_OK;
  }
  if (err == TNK_OK) {
    data = uv_buf_init((char *)buf.data, (unsigned)buf.len);
    if (uv_fs_write(NULL, &req, file, &data, 1, 0, NULL) != (int)buf.len)
      err = TNK_EFAILED;
    uv_fs_req_cleanup(&req);
    uv_fs_close(NULL, &req, file, NULL);
    uv_fs_req_cleanup(&req);
  }
  if (err == TNK_OK) {
    if (uv_fs_rename(NULL, &req, temporary, path, NULL) != 0)
      err = TNK_EFAILED;
    uv_fs_req_cleanup(&req);
  }
  tnk__buf_deinit(&buf);
  return err;
}

int local_meta_write(const local_server_t *server, const local_meta_t *meta) {
  char dir[LOCAL_FILE];

  if (!local_place_dir(server, &meta->place, dir))
    return TNK_ENOTFOUND;
  return write_meta(server->alloc, dir, meta);
}

static void read_members(const local_server_t *server, const json_t *from,
                         local_meta_t *out) {
  const json_t *metadata = tnk__json_obj(from, "user_metadata");
  const char *run = tnk__json_str(from, "run");
  int64_t rank = 0;

  tnk__json_get_int(from, "time_ms", 0, INT64_MAX, &out->time_ms);
  tnk__json_get_int(from, "expires_ms", 0, INT64_MAX, &out->expires_ms);
  tnk__json_get_int(from, "size_bytes", 0, INT64_MAX, &out->n_bytes);
  tnk__json_get_int(from, "rank", 0, INT32_MAX, &rank);
  tnk__json_get_bool(from, "public", &out->is_public);
  out->rank = (int)rank;
  /* The directory's name has lost the colons. */
  if (run != NULL && run_ok(run))
    snprintf(out->place.run, sizeof(out->place.run), "%s", run);
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
  if (!local_place_dir(server, place, dir) ||
      !local_place_exists(server, place))
    return TNK_ENOTFOUND;
  json = read_meta(server->alloc, dir);
  if (json != NULL) {
    read_members(server, json, out);
    json_decref(json);
  }
  return TNK_OK; /* the weights are there all the same */
}

/* ---- Saving ---- */

static int64_t total_size(const char *dir) {
  static const char *const files[] = {
      TNK__LM_FILE_ADAPTER, TNK__LM_FILE_OPTIMIZER, TNK__LM_FILE_CONFIG};
  char path[LOCAL_FILE + 64];
  int64_t n = 0;

  for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
    snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
    n += file_size(path);
  }
  return n;
}

int local_store_save(const local_server_t *server, const tnk__lm_t *lm,
                     int with_optimizer, int overwrite, local_meta_t *meta,
                     tnk__lm_why_t *why) {
  char dir[LOCAL_FILE];
  char temporary[LOCAL_FILE + 16];
  uv_fs_t req;
  int err;

  if (!local_place_dir(server, &meta->place, dir))
    return tnk__lm_refuse(why, TNK_EINVAL, "The path is too long");
  if (!overwrite && local_place_exists(server, &meta->place))
    return tnk__lm_refuse(why, TNK_ECONFLICT,
                          "Checkpoint '%.200s' already exists",
                          meta->place.name);
  /* No name begins with a dot, so this is nobody's. */
  snprintf(temporary, sizeof(temporary), "%s", dir);
  *strrchr(temporary, '/') = '\0';
  snprintf(temporary + strlen(temporary), sizeof(temporary) - strlen(temporary),
           "/.%s", meta->place.name);
  /* Left by a save that was cut off. */
  local_remove_tree(temporary);
  err = local_make_dirs(temporary);
  if (err != 0)
    return tnk__lm_refuse(why, TNK_EFAILED, "Cannot make the directory: %s",
                          uv_strerror(err));
  err = tnk__lm_save(lm, temporary, with_optimizer, why);
  meta->time_ms = local_wall_ms();
  meta->n_bytes = total_size(temporary);
  if (err == TNK_OK)
    err = write_meta(server->alloc, temporary, meta);
  if (err == TNK_OK) {
    local_remove_tree(dir);
    if (uv_fs_rename(NULL, &req, temporary, dir, NULL) != 0)
      err = tnk__lm_refuse(why, TNK_EFAILED, "Cannot rename the checkpoint");
    uv_fs_req_cleanup(&req);
  }
  if (err != TNK_OK)
    local_remove_tree(temporary);
  return err;
}

int local_store_remove(const local_server_t *server,
                       const local_place_t *place) {
  char dir[LOCAL_FILE];

  if (!local_place_dir(server, place, dir) ||
      !local_place_exists(server, place))
    return TNK_ENOTFOUND;
  local_remove_tree(dir);
  return TNK_OK;
}
