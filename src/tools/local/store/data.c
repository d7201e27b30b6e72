/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tools/local/lm/lm.h"
#include "tools/local/store/files.h"
#include "tools/local/store/store.h"

/* The directory of all checkpoints. A permanent directory is locked while a
 * server uses it, because another server would remove the weights of its
 * samplers. */

static int refuse(const local_server_t *server, tnk__lm_why_t *why, int err,
                  const char *reason) {
  return tnk__lm_refuse(why, err, "the directory for checkpoints %.120s: %.80s",
                        server->options.data != NULL ? server->options.data
                                                     : "(a temporary one)",
                        reason);
}

/* Remove the unnamed weights of servers that have crashed. */
static void sweep(const char *data) {
  char path[LOCAL_FILE];
  uv_dirent_t entry;
  uv_fs_t scan;

  if (uv_fs_scandir(NULL, &scan, data, 0, NULL) < 0)
    return;
  while (uv_fs_scandir_next(&scan, &entry) == 0) {
    int n = snprintf(path, sizeof(path), "%s/%s/%s", data, entry.name,
                     local_kind_name(LOCAL_EPHEMERAL));

    if (n > 0 && (size_t)n < sizeof(path))
      local_remove_tree(path);
  }
  uv_fs_req_cleanup(&scan);
}

static int open_temporary(local_server_t *server) {
  char tmp[1024];
  char pattern[1100];
  size_t n = sizeof(tmp);
  uv_fs_t req;
  int err = uv_os_tmpdir(tmp, &n);

  if (err != 0)
    return err;
  snprintf(pattern, sizeof(pattern), "%s/tnk-local-XXXXXX", tmp);
  err = uv_fs_mkdtemp(NULL, &req, pattern, NULL);
  if (err == 0) {
    server->data = tnk__strdup(server->alloc, req.path);
    server->data_is_temporary = 1;
    err = server->data != NULL ? 0 : TNK_ENOMEM;
  }
  uv_fs_req_cleanup(&req);
  return err;
}

/* The lock belongs to the process and ends with it in every case. */
static int lock(local_server_t *server, tnk__lm_why_t *why) {
  struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  char path[LOCAL_FILE];
  int n = snprintf(path, sizeof(path), "%s/.lock", server->data);

  if (n < 0 || (size_t)n >= sizeof(path))
    return refuse(server, why, UV_ENAMETOOLONG, uv_strerror(UV_ENAMETOOLONG));
  server->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (server->lock < 0)
    return refuse(server, why, uv_translate_sys_error(errno),
                  uv_strerror(uv_translate_sys_error(errno)));
  if (fcntl(server->lock, F_SETLK, &all) == 0)
    return TNK_OK;
  if (errno == EACCES || errno == EAGAIN)
    return refuse(server, why, UV_EBUSY, "another server is using it");
  /* A file system without locks is accepted. */
  return TNK_OK;
}

int local_data_open(local_server_t *server, tnk__lm_why_t *why) {
  int err;

  if (server->options.data == NULL) {
    err = open_temporary(server);
    return err == 0
               ? TNK_OK
               : refuse(server, why, err,
                        err == TNK_ENOMEM ? "out of memory" : uv_strerror(err));
  }
  err = local_make_dirs(server->options.data);
  if (err != 0)
    return refuse(server, why, err, uv_strerror(err));
  server->data = tnk__strdup(server->alloc, server->options.data);
  if (server->data == NULL)
    return refuse(server, why, TNK_ENOMEM, "out of memory");
  err = lock(server, why);
  if (err == TNK_OK)
    sweep(server->data);
  return err;
}

void local_data_close(local_server_t *server) {
  if (server->data_is_temporary && server->data != NULL)
    local_remove_tree(server->data);
  if (server->lock >= 0)
    close(server->lock);
  tnk__free(server->alloc, server->data);
  tnk__free(server->alloc, server->model_dir);
}

/* ---- The model's own directory ---- */

static int refuse_model(const local_server_t *server, tnk__lm_why_t *why,
                        int err, const char *reason) {
  return tnk__lm_refuse(why, err, "the directory for the model %.120s: %.80s",
                        server->options.model_dir, reason);
}

int local_model_dir_open(local_server_t *server, tnk__lm_why_t *why) {
  const char *dir = server->options.model_dir;
  tnk__lm_why_t inner = {{0}};
  uv_fs_t req;
  int err;

  if (dir == NULL)
    return TNK_OK;
  if (!server->options.has_tokenizer) {
    err = local_make_dirs(dir);
    if (err != 0)
      return refuse_model(server, why, err, uv_strerror(err));
    err = tnk__lm_tokenizer_write(dir, server->alloc, &inner);
    if (err != TNK_OK)
      return refuse_model(server, why, err, inner.text);
  }
  err = uv_fs_realpath(NULL, &req, dir, NULL);
  if (err == 0)
    server->model_dir = tnk__strdup(server->alloc, req.ptr);
  uv_fs_req_cleanup(&req);
  if (err != 0)
    return refuse_model(server, why, err, uv_strerror(err));
  if (server->model_dir == NULL)
    return refuse_model(server, why, TNK_ENOMEM, "out of memory");
  /* Clients cut the name of a tokenizer at a colon and cannot send longer
   * names. */
  if (strchr(server->model_dir, ':') != NULL ||
      strlen(server->model_dir) > LOCAL_MAX_TEXT)
    return refuse_model(server, why, TNK_EINVAL,
                        "its path has a colon, or is too long");
  return TNK_OK;
}
