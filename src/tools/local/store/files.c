/* SPDX-License-Identifier: MIT */
#include "tools/local/store/files.h"

#include <stdio.h>
#include <sys/stat.h>

#include <uv.h>

/* The name exists, but it may be a file. */
static int check_dir(const char *path) {
  uv_fs_t req;
  int err = uv_fs_stat(NULL, &req, path, NULL);

  if (err == 0 && (req.statbuf.st_mode & S_IFMT) != S_IFDIR)
    err = UV_ENOTDIR;
  uv_fs_req_cleanup(&req);
  return err;
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
  return err == UV_EEXIST ? check_dir(path) : err;
}

/* A checkpoint has two levels, a server six. */
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

int local_file_exists(const char *path) {
  uv_fs_t req;
  int err = uv_fs_stat(NULL, &req, path, NULL);

  uv_fs_req_cleanup(&req);
  return err == 0;
}

int64_t local_file_size(const char *path) {
  uv_fs_t req;
  int64_t size = 0;

  if (uv_fs_stat(NULL, &req, path, NULL) == 0)
    size = (int64_t)req.statbuf.st_size;
  uv_fs_req_cleanup(&req);
  return size;
}
