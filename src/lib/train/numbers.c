/* SPDX-License-Identifier: MIT */
/*
 * The file metrics.jsonl of a run that continues: where its lines end, and when
 * they are on the disk. tnk_numbers_append() writes the lines.
 */
#include "lib/train/numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/system.h"
#include "lib/io/loop/work.h"
#include "tnk/error.h"
#include "tnk/train.h"

/* ---- Reading ---- */

/* A line may have any length, but its step is at its beginning. So the lines
 * are read in pieces, and reading needs no memory. */
enum { PIECE = 16 * 1024, HEAD = 64 };

typedef struct {
  uint64_t n_steps; /* lines of later steps end the part to keep */
  off_t end;        /* of the complete lines to keep */
  uint64_t last;    /* step of the last one that has a step; or 0 */
  off_t at;         /* bytes read */
  char head[HEAD];  /* the beginning of the current line */
  size_t n_head;
} scan_t;

/* The step of a line; 0 for a line of another program. */
static uint64_t step_of(const char *line) {
  static const char head[] = "{\"step\":";

  return strncmp(line, head, sizeof(head) - 1) == 0
             ? strtoull(line + sizeof(head) - 1, NULL, 10)
             : 0;
}

/* Take a piece of the file. Returns 0 at a line of a later step: the steps are
 * in order, so everything behind it is of later steps too. */
static int scan_piece(scan_t *scan, const char *piece, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint64_t step;

    scan->at++;
    if (piece[i] != '\n') {
      if (scan->n_head < HEAD - 1)
        scan->head[scan->n_head++] = piece[i];
      continue;
    }
    scan->head[scan->n_head] = '\0';
    scan->n_head = 0;
    step = step_of(scan->head);
    if (step > scan->n_steps)
      return 0;
    if (step > 0)
      scan->last = step;
    scan->end = scan->at;
  }
  return 1;
}

/* Returns TNK_OK, or TNK_EFILE with errno. A device may never end. */
static int scan_file(scan_t *scan, int fd) {
  struct stat file;
  char piece[PIECE];
  ssize_t n = 0;

  if (fstat(fd, &file) != 0)
    return TNK_EFILE;
  if (!S_ISREG(file.st_mode)) {
    errno = EINVAL;
    return TNK_EFILE;
  }
  do {
    n = read(fd, piece, sizeof(piece));
  } while (n > 0 ? scan_piece(scan, piece, (size_t)n)
                 : n < 0 && errno == EINTR);
  return n < 0 ? TNK_EFILE : TNK_OK;
}

static int close_with(int fd, int err) {
  const int cause = errno;

  (void)close(fd);
  errno = cause;
  return err;
}

int tnk_numbers_last(const char *path, uint64_t *n_steps) {
  scan_t scan = {.n_steps = UINT64_MAX};
  int err;
  int fd;

  if (n_steps == NULL)
    return TNK_EINVAL;
  *n_steps = 0;
  if (path == NULL)
    return TNK_EINVAL;
  fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return errno == ENOENT ? TNK_OK : TNK_EFILE;
  err = scan_file(&scan, fd);
  if (err == TNK_OK)
    *n_steps = scan.last;
  return close_with(fd, err);
}

int tnk_numbers_rewind(const char *path, uint64_t n_steps) {
  scan_t scan = {.n_steps = n_steps};
  int err;
  int fd;

  if (path == NULL)
    return TNK_EINVAL;
  fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return errno == ENOENT ? TNK_OK : TNK_EFILE;
  err = scan_file(&scan, fd);
  if (err == TNK_OK && ftruncate(fd, scan.end) != 0)
    err = TNK_EFILE;
  return close_with(fd, err);
}

/* ---- The disk ---- */

/*
 * Writes a file to the disk, on the pool. Its promise is pending until the pool
 * is done, or until it is canceled. A canceled job continues. A job frees
 * itself when the pool is done.
 */
typedef struct {
  tnk__work_t work;
  tnk_promise_t *promise; /* NULL: canceled */
  int cause;              /* 0, or libuv's code */
  char path[];
} sync_t;

/* Runs on the pool. A file that does not exist has no lines. */
static void sync_file(tnk__work_t *work) {
  sync_t *sync = tnk__container_of(work, sync_t, work);
  const int fd = open(sync->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

  if (fd < 0) {
    sync->cause = errno == ENOENT ? 0 : -errno;
    return;
  }
  sync->cause = tnk__system_sync(fd);
  (void)close(fd);
}

static void reject(tnk_promise_t *promise, const char *path, int cause) {
  tnk__error_t *error =
      tnk__error_new(&promise->home->alloc, TNK_EFILE, "%s: %.512s: %s",
                     promise->name, path, uv_strerror(cause));

  if (error->refs > 0)
    error->pub.cause = cause;
  tnk__promise_reject(promise, error);
}

static void on_synced(tnk__work_t *work) {
  sync_t *sync = tnk__container_of(work, sync_t, work);
  const tnk_allocator_t *alloc = &work->context->alloc;

  if (sync->promise != NULL && sync->cause == 0)
    tnk__promise_resolve(sync->promise, TNK__RESULT_NONE, NULL, NULL);
  else if (sync->promise != NULL)
    reject(sync->promise, sync->path, sync->cause);
  tnk__free(alloc, sync);
}

static void on_cancel(void *op) {
  sync_t *sync = op;
  tnk_promise_t *promise = sync->promise;

  sync->promise = NULL;
  tnk__promise_reject(promise, tnk__error_static(TNK_ECANCELED));
}

static void explain(const void *op, tnk__text_t *out) {
  const sync_t *sync = op;

  tnk__text_printf(out,
                   "numbers_sync: waits until %.256s is written to the disk",
                   sync->path);
}

tnk_promise_t *tnk__numbers_sync(tnk__context_t *context, const char *path) {
  const size_t n = strlen(path) + 1;
  sync_t *sync = tnk__calloc(&context->alloc, 1, sizeof(*sync) + n);
  tnk_promise_t *promise = tnk__promise_new(context, NULL, NULL);
  int err = TNK_ENOMEM;

  if (!tnk__promise_is_oom(promise))
    tnk__promise_name(promise, "numbers_sync");
  if (sync != NULL && !tnk__promise_is_oom(promise)) {
    memcpy(sync->path, path, n);
    sync->promise = promise;
    tnk__promise_bind(promise, on_cancel, explain, sync);
    err = tnk__work_start(context, &sync->work, sync_file, on_synced);
    if (err == TNK_OK)
      return promise;
  }
  if (!tnk__promise_is_oom(promise))
    tnk__promise_reject(promise, tnk__error_static(err));
  tnk__free(&context->alloc, sync);
  return promise;
}
