/* SPDX-License-Identifier: MIT */
#include "lib/files/fetch/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tnk/error.h"

#define MAX_PATH 4096

int tnk__files_make_way(const char *path) {
  char way[MAX_PATH];
  const size_t n = strlen(path);

  if (n >= sizeof(way))
    return -ENAMETOOLONG;
  for (size_t i = 1; i < n; i++) {
    if (path[i] != '/')
      continue;
    memcpy(way, path, i);
    way[i] = '\0';
    if (mkdir(way, 0777) != 0 && errno != EEXIST) {
      const int why = errno;
      /* An existing folder may be in a place that is not writable. */
      if (access(way, F_OK) != 0)
        return -why;
    }
  }
  return 0;
}

void tnk__files_sync_folder_of(const char *path) {
  char folder[MAX_PATH];
  const char *slash = strrchr(path, '/');
  size_t n = slash == NULL ? 0 : (size_t)(slash - path);
  int fd;

  if (n >= sizeof(folder))
    return;
  memcpy(folder, path, n);
  folder[n] = '\0';
  fd = open(n > 0           ? folder
            : slash != NULL ? "/"
                            : ".",
            O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return;
  (void)fsync(fd);
  (void)close(fd);
}

int tnk__files_write_all(int fd, const void *data, size_t n) {
  const char *at = data;

  while (n > 0) {
    const ssize_t written = write(fd, at, n);
    if (written < 0 && errno != EINTR)
      return -errno;
    at += written > 0 ? written : 0;
    n -= written > 0 ? (size_t)written : 0;
  }
  return 0;
}

int tnk__files_rename(const char *from, const char *path) {
  if (rename(from, path) != 0)
    return -errno;
  tnk__files_sync_folder_of(path);
  return 0;
}

static int write_new(const char *path, const char *text, size_t n) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  int err = 0;
  ssize_t done;

  if (fd < 0)
    return -errno;
  done = write(fd, text, n);
  if (done != (ssize_t)n)
    err = done < 0 ? -errno : -ENOSPC;
  if (close(fd) != 0 && err == 0)
    err = -errno;
  return err;
}

int tnk__files_write(const char *path, const char *text, const char *tag) {
  char temporary[MAX_PATH];
  const int n = snprintf(temporary, sizeof(temporary), "%s.%s", path, tag);
  int err;

  if (n < 0 || (size_t)n >= sizeof(temporary))
    return -ENAMETOOLONG;
  err = tnk__files_make_way(path);
  if (err == 0)
    err = write_new(temporary, text, strlen(text));
  if (err == 0)
    err = tnk__files_rename(temporary, path);
  if (err != 0)
    (void)unlink(temporary);
  return err;
}

int tnk__files_read(const char *path, char *out, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n;

  if (fd < 0)
    return -errno;
  n = read(fd, out, size);
  if (n < 0 || (size_t)n >= size) {
    const int err = n < 0 ? -errno : -EFBIG;
    (void)close(fd);
    return err;
  }
  (void)close(fd);
  while (n > 0 && strchr(" \t\r\n", out[n - 1]) != NULL)
    n--;
  out[n] = '\0';
  return 0;
}
