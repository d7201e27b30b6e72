#include "lib/observe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

static const char suffix[] = ".new";

int tnk__file_write(int fd, const uint8_t *data, size_t n) {
  while (n > 0) {
    ssize_t written = write(fd, data, n);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return TNK_EFILE;
    data += written;
    n -= (size_t)written;
  }
  return TNK_OK;
}

/* The name is predictable, so in a shared folder it must not be a link of
 * another user. A file that a killed process left is removed. */
static int write_new(const char *path, const uint8_t *data, size_t n) {
  int err;
  int fd;

  (void)unlink(path);
  fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0)
    return TNK_EFILE;
  err = tnk__file_write(fd, data, n);
  if (close(fd) != 0)
    err = TNK_EFILE;
  return err;
}

int tnk__file_replace(const tnk_allocator_t *alloc, const char *path,
                      const uint8_t *data, size_t n) {
  const size_t n_path = strlen(path);
  char *beside = tnk__malloc(alloc, n_path + sizeof(suffix));
  int err;

  if (beside == NULL)
    return TNK_ENOMEM;
  memcpy(beside, path, n_path);
  memcpy(beside + n_path, suffix, sizeof(suffix));
  err = write_new(beside, data, n);
  if (err == TNK_OK && rename(beside, path) != 0)
    err = TNK_EFILE;
  if (err != TNK_OK)
    unlink(beside);
  tnk__free(alloc, beside);
  return err;
}
