#include "local/store/store.h"

#include <stdio.h>
#include <string.h>

#include "local/base/clock.h"
#include "local/lm/check.h"
#include "local/store/files.h"

/* Saving and removing checkpoints. */

static const char *const files[] = {
    TNK__LM_FILE_ADAPTER, TNK__LM_FILE_OPTIMIZER, TNK__LM_FILE_CONFIG};

static int64_t total_size(const char *dir) {
  char path[LOCAL_FILE + 64];
  int64_t n = 0;

  for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
    snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
    n += local_file_size(path);
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
    err = local_meta_write_to(server->alloc, temporary, meta, why);
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

/* What is saved is never written again, so two names may share it. */
static int share(const char *from, const char *to) {
  char source[LOCAL_FILE + 64];
  char target[LOCAL_FILE + 64];
  uv_fs_t req;
  int err = 0;

  for (size_t i = 0; err == 0 && i < sizeof(files) / sizeof(*files); i++) {
    snprintf(source, sizeof(source), "%s/%s", from, files[i]);
    snprintf(target, sizeof(target), "%s/%s", to, files[i]);
    if (!local_file_exists(source))
      continue;
    err = uv_fs_link(NULL, &req, source, target, NULL);
    uv_fs_req_cleanup(&req);
  }
  return err == 0 ? TNK_OK : TNK_EFAILED;
}

int local_store_copy(const local_server_t *server, const local_place_t *from,
                     local_meta_t *meta) {
  char source[LOCAL_FILE];
  char dir[LOCAL_FILE];
  int err;

  if (!local_place_dir(server, from, source) ||
      !local_place_dir(server, &meta->place, dir) || local_make_dirs(dir) != 0)
    return TNK_EFAILED;
  meta->time_ms = local_wall_ms();
  err = local_meta_write_to(server->alloc, dir, meta, NULL);
  if (err == TNK_OK)
    err = share(source, dir); /* the file that makes it one comes last */
  if (err != TNK_OK)
    local_remove_tree(dir);
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
