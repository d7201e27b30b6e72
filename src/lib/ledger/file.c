/* SPDX-License-Identifier: MIT */
#include "lib/ledger/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/files/fetch/files.h"

/* A file that is replaced so often between opening and locking has another
 * user. */
enum { MAX_OPENS = 8 };

/* ---- The system's disk ---- */

static int64_t disk_write(int fd, const void *data, size_t n) {
  ssize_t done;

  do
    done = write(fd, data, n);
  while (done < 0 && errno == EINTR);
  return done < 0 ? -errno : done;
}

static int disk_sync(int fd) {
  return fsync(fd) == 0 ? 0 : -errno;
}

static int disk_cut(int fd, uint64_t size) {
  return ftruncate(fd, (off_t)size) == 0 ? 0 : -errno;
}

/* Errors are ignored, because not every file system can synchronize a
 * folder. */
static int disk_sync_folder(const char *path) {
  tnk__files_sync_folder_of(path);
  return 0;
}

static int disk_lock(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0)
    return 0;
  return errno == EWOULDBLOCK ? UV_EBUSY : 0; /* 0: no locks here */
}

const tnk__ledger_disk_t tnk__ledger_disk = {disk_write, disk_sync, disk_cut,
                                             disk_sync_folder, disk_lock};

/* ---- Opening ---- */

/* Returns whether the path still names the file that was opened and locked.
 * Another process may have replaced or removed it in between. */
static int is_at(int fd, const char *path) {
  struct stat ours;
  struct stat there;

  return fstat(fd, &ours) == 0 && stat(path, &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static int open_and_lock(tnk__ledger_file_t *file, const char *path) {
  int err;

  for (int i = 0; i < MAX_OPENS; i++) {
    struct stat ours;

    file->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file->fd < 0)
      return -errno;
    err = file->disk->lock(file->fd);
    if (err == 0 && is_at(file->fd, path))
      return fstat(file->fd, &ours) == 0 && S_ISREG(ours.st_mode) ? 0
                                                                  : UV_EINVAL;
    tnk__ledger_file_close(file);
    if (err != 0)
      return err;
  }
  return UV_EBUSY;
}

static int read_all(int fd, const tnk_allocator_t *alloc, uint8_t **data,
                    size_t *n) {
  struct stat about;

  *n = 0;
  if (fstat(fd, &about) != 0)
    return -errno;
  if ((uint64_t)about.st_size > TNK__LEDGER_MAX_FILE)
    return UV_EFBIG;
  *data = tnk__malloc(alloc, (size_t)about.st_size + 1);
  if (*data == NULL)
    return UV_ENOMEM;
  while (*n < (size_t)about.st_size) {
    const ssize_t got =
        pread(fd, *data + *n, (size_t)about.st_size - *n, (off_t)*n);
    if (got < 0 && errno != EINTR)
      return -errno;
    if (got == 0)
      break;
    *n += got > 0 ? (size_t)got : 0;
  }
  (*data)[*n] = '\0';
  return 0;
}

/* Repair the line that the last writer did not finish. A line that lacks only
 * its end may have been written by hand, so it is kept. Anything else cannot be
 * parsed. */
static int mend(tnk__ledger_file_t *file, const uint8_t *data, size_t *n) {
  size_t end = *n;

  while (end > 0 && data[end - 1] != '\n')
    end--;
  file->size = end;
  if (end == *n)
    return 0;
  file->was_mended = 1;
  file->is_torn = 1;
  if (data[*n - 1] == '}' && tnk__ledger_file_add(file, NULL, 0) == 0) {
    const int err = tnk__ledger_file_add(file, data + end, *n - end);

    return err != 0 ? err : tnk__ledger_file_add(file, "\n", 1);
  }
  *n = end;
  return tnk__ledger_file_add(file, NULL, 0);
}

int tnk__ledger_file_open(tnk__ledger_file_t *file, const char *path,
                          const tnk_allocator_t *alloc, uint8_t **data,
                          size_t *n) {
  int err = tnk__files_make_way(path);

  *data = NULL;
  *n = 0;
  if (err != 0)
    return err;
  file->path = path;
  err = open_and_lock(file, path);
  if (err == 0)
    err = read_all(file->fd, alloc, data, n);
  if (err == 0)
    err = mend(file, *data, n);
  if (err != 0)
    tnk__ledger_file_close(file);
  return err;
}

/* ---- Growing ---- */

static int write_all(const tnk__ledger_file_t *file, const uint8_t *data,
                     size_t n) {
  while (n > 0) {
    const int64_t done = file->disk->write(file->fd, data, n);

    if (done <= 0)
      return done < 0 ? (int)done : UV_ENOSPC;
    data += done;
    n -= (size_t)done;
  }
  return 0;
}

/* Check that the file was not removed and that no other process wrote to it.
 * Another machine with the same folder does not see our lock. Some file systems
 * report our own writes late. */
static int check_ours(const tnk__ledger_file_t *file) {
  struct stat about;

  if (fstat(file->fd, &about) != 0)
    return -errno;
  if (about.st_nlink == 0)
    return UV_ENOENT;
  return file->is_torn || (uint64_t)about.st_size <= file->size ? 0 : UV_EBUSY;
}

int tnk__ledger_file_add(tnk__ledger_file_t *file, const void *lines,
                         size_t n) {
  int err = check_ours(file);

  if (err == 0 && !file->is_in_folder)
    err = file->disk->sync_folder(file->path);
  if (err == 0)
    file->is_in_folder = 1;
  if (err == 0 && file->is_torn)
    err = file->disk->cut(file->fd, file->size);
  if (err != 0)
    return err;
  file->is_torn = n > 0;
  err = write_all(file, lines, n);
  if (err == 0)
    err = file->disk->sync(file->fd);
  if (err == 0) {
    file->size += n;
    file->is_torn = 0;
  } else if (file->disk->cut(file->fd, file->size) == 0) {
    file->is_torn = 0;
  }
  return err;
}

void tnk__ledger_file_close(tnk__ledger_file_t *file) {
  if (file->fd >= 0)
    (void)close(file->fd);
  file->fd = -1;
}
