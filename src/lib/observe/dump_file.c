/* SPDX-License-Identifier: MIT */
#include "lib/observe/dump_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "tnk/error.h"

/* ---- Replacing a file ---- */

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

/* ---- The dump ---- */

enum { EVERY_MS = 1000 };

static void on_due(tnk__timer_t *timer);

static void wait_for_next(tnk__dump_file_t *file) {
  if (!file->is_closed)
    tnk__timer_start_background(file->context, &file->timer, EVERY_MS, on_due);
}

/* Runs on the thread pool. */
static void run(tnk__work_t *work) {
  tnk__dump_file_t *file = tnk__container_of(work, tnk__dump_file_t, work);

  file->err = tnk__file_replace(file->text.alloc, file->path, file->text.data,
                                file->text.len);
}

/* Logged only when it begins to fail. */
static void note(tnk__dump_file_t *file, int before) {
  if (file->err != TNK_OK && before == TNK_OK)
    tnk__log(&file->context->logger, TNK_LOG_WARN, "service",
             "%s: the dump cannot be written: %s", file->path,
             tnk_strerror(file->err));
}

static void on_written(tnk__work_t *work);

/* Write `text`, unless making it has failed. */
static void write_text(tnk__dump_file_t *file, int err) {
  file->was_err = file->err;
  /* From here on `err` belongs to the pool until the write is done. */
  if (err == TNK_OK)
    err = tnk__work_start(file->context, &file->work, run, on_written);
  file->is_writing = err == TNK_OK;
  if (err == TNK_OK)
    return;
  file->err = err;
  tnk__buf_deinit(&file->text);
  note(file, file->was_err);
  wait_for_next(file);
}

static void on_written(tnk__work_t *work) {
  tnk__dump_file_t *file = tnk__container_of(work, tnk__dump_file_t, work);

  file->is_writing = 0;
  tnk__buf_deinit(&file->text);
  note(file, file->was_err);
  if (!file->has_last) {
    wait_for_next(file);
    return;
  }
  file->has_last = 0;
  file->text = file->last;
  write_text(file, TNK_OK);
}

static void begin_writing(tnk__dump_file_t *file) {
  write_text(file, file->write(file->service, &file->text));
}

static void keep_last(tnk__dump_file_t *file) {
  file->has_last = file->write(file->service, &file->last) == TNK_OK;
  if (!file->has_last)
    tnk__buf_deinit(&file->last);
}

static void on_due(tnk__timer_t *timer) {
  begin_writing(tnk__container_of(timer, tnk__dump_file_t, timer));
}

static void on_first(tnk__deferred_t *first) {
  begin_writing(tnk__container_of(first, tnk__dump_file_t, first));
}

void tnk__dump_file_open(tnk__dump_file_t *file, tnk__context_t *context,
                         const char *path, tnk__dump_write_cb write,
                         const struct tnk_service *service) {
  file->context = context;
  file->path = path;
  file->write = write;
  file->service = service;
  tnk__deferred_init(&file->first, on_first);
  if (file->path != NULL)
    tnk__defer(file->context, &file->first);
}

void tnk__dump_file_close(tnk__dump_file_t *file) {
  if (file->is_closed)
    return;
  file->is_closed = 1;
  tnk__timer_stop(&file->timer);
  tnk__defer_cancel(&file->first);
  if (file->path == NULL)
    return;
  if (file->is_writing)
    keep_last(file);
  else
    begin_writing(file);
}
