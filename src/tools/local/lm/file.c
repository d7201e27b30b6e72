/* SPDX-License-Identifier: MIT */
#include "tools/local/lm/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"

/* The system's reason; strerror() would use a shared buffer. */
static int failed(tnk__lm_why_t *why, int code, const char *name, int number) {
  char reason[100] = "";

  if (strerror_r(number, reason, sizeof(reason)) != 0)
    snprintf(reason, sizeof(reason), "error %d", number);
  return tnk__lm_refuse(why, code, "%s: %s", name, reason);
}

/* dir/name and a suffix; NULL without memory. */
static char *path_of(const tnk_allocator_t *alloc, const char *dir,
                     const char *name, const char *suffix) {
  size_t size = strlen(dir) + strlen(name) + strlen(suffix) + 2;
  char *path = tnk__malloc(alloc, size);

  if (path != NULL)
    snprintf(path, size, "%s/%s%s", dir, name, suffix);
  return path;
}

/* Returns 0 or an errno. */
static int write_all(int fd, const uint8_t *data, size_t n) {
  while (n > 0) {
    ssize_t got = write(fd, data, n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return errno;
    data += got;
    n -= (size_t)got;
  }
  /* Before the rename: after a crash the name must not refer to an empty
   * file. */
  return fsync(fd) == 0 ? 0 : errno;
}

/* Returns 0 or an errno; after a failure a part of the file may remain. */
static int write_to(const char *path, const tnk__buf_t *contents) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int number;

  if (fd < 0)
    return errno;
  number = write_all(fd, contents->data, contents->len);
  if (close(fd) != 0 && number == 0)
    number = errno;
  return number;
}

int tnk__lm_file_write(const char *dir, const char *name,
                       const tnk__buf_t *contents, tnk__lm_why_t *why) {
  char *path = path_of(contents->alloc, dir, name, "");
  char *temporary = path_of(contents->alloc, dir, name, ".tmp");
  int err = TNK_OK;
  int number;

  if (path == NULL || temporary == NULL) {
    err = tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  } else {
    number = write_to(temporary, contents);
    if (number == 0 && rename(temporary, path) != 0)
      number = errno;
    if (number != 0) {
      unlink(temporary);
      err = failed(why, TNK_EFAILED, name, number);
    }
  }
  tnk__free(contents->alloc, path);
  tnk__free(contents->alloc, temporary);
  return err;
}

/* Returns 0, an errno, or -1 if the buffer has failed. */
static int read_all(int fd, tnk__buf_t *contents) {
  for (;;) {
    uint8_t *to = tnk__buf_reserve(contents, 65536);
    ssize_t got;
    if (to == NULL)
      return -1;
    got = read(fd, to, 65536);
    if (got == 0)
      return 0;
    if (got < 0 && errno != EINTR)
      return errno;
    if (got > 0)
      contents->len += (size_t)got;
  }
}

int tnk__lm_file_read(const char *dir, const char *name, tnk__buf_t *contents,
                      tnk__lm_why_t *why) {
  char *path = path_of(contents->alloc, dir, name, "");
  int number;
  int fd;

  if (path == NULL)
    return tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  fd = open(path, O_RDONLY | O_CLOEXEC);
  number = errno;
  tnk__free(contents->alloc, path);
  if (fd < 0)
    return failed(why,
                  number == ENOENT || number == ENOTDIR ? TNK_ENOTFOUND
                                                        : TNK_EFAILED,
                  name, number);
  number = read_all(fd, contents);
  close(fd);
  if (number > 0)
    return failed(why, TNK_EFAILED, name, number);
  if (number == 0)
    return TNK_OK;
  if (contents->err == TNK_ETOOBIG)
    return tnk__lm_refuse(why, TNK_EPROTO, "%s: longer than %zu bytes", name,
                          contents->max);
  return tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
}

void tnk__lm_file_remove(const tnk_allocator_t *alloc, const char *dir,
                         const char *name) {
  char *path = path_of(alloc, dir, name, "");

  if (path != NULL)
    unlink(path);
  tnk__free(alloc, path);
}

void tnk__lm_dir_sync(const char *dir) {
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  /* Some file systems cannot synchronize a directory; the files are safe in
   * that case. */
  if (fd >= 0) {
    fsync(fd);
    close(fd);
  }
}

tnk__lm_sum_t tnk__lm_file_sum(const uint8_t *data, size_t n) {
  uint64_t hash = 0xcbf29ce484222325u;
  tnk__lm_sum_t sum;
  size_t i;

  for (i = 0; i < n; i++)
    hash = (hash ^ data[i]) * 0x100000001b3u;
  snprintf(sum.text, sizeof(sum.text), "%016" PRIx64, hash);
  return sum;
}
