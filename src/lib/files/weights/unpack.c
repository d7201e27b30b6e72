/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/files/age/age.h"
#include "lib/files/fetch/files.h"
#include "lib/files/tar/archive.h"
#include "lib/files/weights/job.h"

/* ---- Decryption ---- */

/*
 * Decrypts files that were encrypted with age, on the pool, into a separate
 * directory. That directory then gets the final name. The downloaded files are
 * kept until then, so a wrong key costs no new download.
 */

enum { SEALED_PIECE = 64 * 1024 };

#define SUFFIX ".age"

/* The result of decrypting a file: TNK_OK, or an error with libuv's `cause` or
 * a reason. */
typedef struct {
  int err;
  int cause;
  const char *why;
  uint64_t n_bytes;
} opened_t;

static int random_bytes(void *user, unsigned char *out, size_t n) {
  (void)user;
  return uv_random(NULL, NULL, out, n, 0, NULL);
}

/* Length of the name without ".age"; 0 if it has no such suffix. */
static size_t bare_length(const char *name) {
  const size_t n = strlen(name);
  const size_t k = strlen(SUFFIX);

  return n > k && strcmp(name + n - k, SUFFIX) == 0 && name[n - k - 1] != '/'
             ? n - k
             : 0;
}

/* Write the decrypted bytes of the last piece. */
static void flush(opened_t *opened, int to, tnk__buf_t *out) {
  if (opened->err == TNK_OK)
    opened->cause = tnk__files_write_all(to, out->data, out->len);
  if (opened->cause != 0)
    opened->err = TNK_EFILE;
  opened->n_bytes += out->len;
  tnk__buf_clear(out);
}

static void copy(opened_t *opened, tnk__age_open_t *open, int from, int to,
                 uint8_t *piece, tnk__buf_t *out) {
  ssize_t n = 1;

  while (opened->err == TNK_OK && n > 0) {
    do
      n = read(from, piece, SEALED_PIECE);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
      opened->err = TNK_EFILE;
      opened->cause = -errno;
      return;
    }
    opened->err = n > 0 ? tnk__age_open_feed(open, out, piece, (size_t)n)
                        : tnk__age_open_finish(open, out);
    flush(opened, to, out);
  }
  if (opened->err == TNK_OK && fsync(to) != 0) {
    opened->err = TNK_EFILE;
    opened->cause = -errno;
  }
}

static void open_file(const tnk__weights_job_t *job, opened_t *opened, int from,
                      int to) {
  const tnk_allocator_t *alloc = job->place->alloc;
  uint8_t *piece = tnk__malloc(alloc, SEALED_PIECE);
  tnk__age_open_t open;
  tnk__buf_t out;

  tnk__buf_init(&out, alloc, 4 * SEALED_PIECE);
  tnk__age_open_init(&open, alloc, random_bytes, NULL);
  opened->err =
      piece != NULL ? tnk__age_open_add(&open, job->identity) : TNK_ENOMEM;
  if (opened->err == TNK_OK)
    copy(opened, &open, from, to, piece, &out);
  opened->why = open.why;
  tnk__age_open_deinit(&open);
  tnk__buf_deinit(&out);
  tnk__free(alloc, piece);
}

/* Decrypt one file to another path. */
static void open_path(const tnk__weights_job_t *job, opened_t *opened,
                      const char *path, const char *target) {
  const int from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  const int to =
      open(target, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);

  if (from < 0 || to < 0) {
    opened->err = TNK_EFILE;
    opened->cause = -errno;
  } else {
    open_file(job, opened, from, to);
  }
  if (from >= 0)
    (void)close(from);
  if (to >= 0 && close(to) != 0 && opened->err == TNK_OK) {
    opened->err = TNK_EFILE;
    opened->cause = -errno;
  }
}

/* Returns whether the name is free; two files may differ only in ".age". */
static int is_free(const char *target) {
  return access(target, F_OK) != 0;
}

static void unseal(tnk__weights_job_t *job, opened_t *opened) {
  const tnk__weights_file_t *file = &job->files[job->n_opened];
  const size_t n = bare_length(file->name);
  tnk__arena_t arena;
  char *bare;
  char *target;
  char *path;
  int err;

  tnk__arena_init(&arena, job->place->alloc, TNK__WEIGHTS_PATHS);
  bare = tnk__arena_strndup(&arena, file->name, n > 0 ? n : strlen(file->name));
  path = tnk__place_path(job->place, &arena, file->name);
  target = bare != NULL ? tnk__place_open_path(job->place, &arena, bare) : NULL;
  if (path == NULL || target == NULL) {
    opened->err = TNK_ENOMEM;
  } else if ((err = tnk__files_make_way(target)) != 0) {
    opened->err = TNK_EFILE;
    opened->cause = err;
  } else if (!is_free(target)) {
    opened->err = TNK_EFILE;
    opened->cause = UV_EEXIST;
  } else if (n > 0) {
    open_path(job, opened, path, target);
  } else if (link(path, target) != 0) {
    opened->err = TNK_EFILE;
    opened->cause = -errno;
  } else {
    opened->n_bytes = file->n_bytes;
  }
  tnk__arena_deinit(&arena);
}

static void run_next(tnk__weights_job_t *job) {
  opened_t opened = {0};

  job->cause = 0;
  if (job->n_opened == 0)
    job->cause = tnk__place_begin_opening(job->place);
  if (job->cause != 0) {
    opened.err = TNK_EFILE;
    opened.cause = job->cause;
  } else {
    unseal(job, &opened);
  }
  job->opened_err = opened.err;
  job->cause = opened.cause;
  job->opened_why = opened.why;
  job->n_opened_bytes += opened.n_bytes;
}

static void on_opened(tnk__weights_job_t *job) {
  const char *name = job->files[job->n_opened].name;

  if (job->opened_err == TNK_EFILE) {
    tnk__weights_job_fail_place(job, job->cause, job->directory);
  } else if (job->opened_err == TNK_ENOMEM) {
    tnk__weights_job_fail(job, tnk__error_static(TNK_ENOMEM));
  } else if (job->opened_err != TNK_OK) {
    tnk__weights_job_fail_with(job, job->opened_err, "%.256s: %s", name,
                               job->opened_why != NULL ? job->opened_why
                                                       : "it cannot be opened");
  } else if (++job->n_opened < job->n_files) {
    tnk__weights_job_work(job, run_next, on_opened);
  } else {
    job->n_bytes = job->n_opened_bytes;
    job->commit(job);
  }
}

void tnk__weights_unseal(tnk__weights_job_t *job) {
  job->state = TNK__WEIGHTS_UNSEALING;
  tnk__weights_job_work(job, run_next, on_opened);
}

/* ---- Unpacking ---- */

/*
 * Unpacks an archive on the pool, into a separate directory, which then gets
 * the final name. It runs in rounds, so that a cancel does not wait for the
 * whole archive. The archive is kept until then. An archive that cannot be
 * unpacked is removed, so that the next download starts over.
 */

enum { PIECE = 256 * 1024, ROUND = 64 };
/* Limits on the unpacked size: a ratio and an additional number of bytes.
 * Weights hardly compress, but untrained ones are zeros. */
enum { MAX_RATIO = 100 };
#define MAX_MORE ((uint64_t)1024 * TNK__MIB)

typedef struct tnk__unpack {
  tnk__archive_t archive;
  tnk__arena_t arena; /* memory of paths */
  int from;           /* descriptors; -1: closed */
  int to;
  int is_over;
  size_t n_files;
  uint64_t n_bytes;
  int err; /* TNK_OK, TNK_EFILE with `cause`, or an error of archive.h */
  int cause;
  uint8_t piece[PIECE];
} unpack_t;

static void close_one(int *fd) {
  if (*fd >= 0)
    (void)close(*fd);
  *fd = -1;
}

static void forget(tnk__weights_job_t *job) {
  unpack_t *unpack = job->unpack;

  close_one(&unpack->from);
  close_one(&unpack->to);
  tnk__archive_deinit(&unpack->archive);
  tnk__arena_deinit(&unpack->arena);
  tnk__free(unpack->archive.alloc, unpack);
  job->unpack = NULL;
}

static uint64_t most_of(uint64_t n_archive) {
  return n_archive > (UINT64_MAX - MAX_MORE) / MAX_RATIO
             ? UINT64_MAX
             : n_archive * MAX_RATIO + MAX_MORE;
}

static unpack_t *new_unpack(const tnk__weights_job_t *job) {
  const tnk_allocator_t *alloc = job->place->alloc;
  unpack_t *unpack = tnk__calloc(alloc, 1, sizeof(*unpack));

  if (unpack == NULL)
    return NULL;
  unpack->from = unpack->to = -1;
  tnk__archive_init(&unpack->archive, alloc, most_of(job->files[0].n_bytes));
  tnk__arena_init(&unpack->arena, alloc, TNK__WEIGHTS_PATHS);
  return unpack;
}

/* ---- Unpacking: in the pool ---- */

static void fail_file(unpack_t *unpack, int cause) {
  if (unpack->err != TNK_OK)
    return;
  unpack->err = cause == UV_ENOMEM ? TNK_ENOMEM : TNK_EFILE;
  unpack->cause = cause;
}

static void begin(tnk__weights_job_t *job, unpack_t *unpack) {
  const int err = tnk__place_begin_opening(job->place);
  const char *path =
      tnk__place_path(job->place, &unpack->arena, job->files[0].name);

  if (path != NULL && err == 0)
    unpack->from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (path == NULL)
    fail_file(unpack, UV_ENOMEM);
  else if (unpack->from < 0)
    fail_file(unpack, err != 0 ? err : -errno);
}

static void begin_file(const tnk__weights_job_t *job, unpack_t *unpack,
                       const char *name) {
  const char *path;
  int err = UV_ENOMEM;

  tnk__arena_deinit(&unpack->arena);
  path = tnk__place_open_path(job->place, &unpack->arena, name);
  if (path != NULL)
    err = tnk__files_make_way(path);
  if (err == 0) {
    unpack->to =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    err = unpack->to < 0 ? -errno : 0;
  }
  if (err != 0)
    fail_file(unpack, err);
  unpack->n_files++;
}

static void end_file(unpack_t *unpack) {
  const int to = unpack->to;
  int err = fsync(to) == 0 ? 0 : -errno;

  unpack->to = -1;
  if (close(to) != 0 && err == 0)
    err = -errno;
  if (err != 0)
    fail_file(unpack, err);
}

static void take(const tnk__weights_job_t *job, unpack_t *unpack,
                 const tnk__tar_event_t *event) {
  int err;

  switch (event->kind) {
  case TNK__TAR_FILE:
    begin_file(job, unpack, event->name);
    return;
  case TNK__TAR_DATA:
    err = tnk__files_write_all(unpack->to, event->data, event->n);
    if (err != 0)
      fail_file(unpack, err);
    unpack->n_bytes += event->n;
    return;
  case TNK__TAR_END:
    end_file(unpack);
    return;
  case TNK__TAR_MORE:
    return;
  }
}

/* Unpack the next piece of the archive, or detect its end. */
static void unpack_piece(const tnk__weights_job_t *job, unpack_t *unpack) {
  tnk__tar_event_t event = {.kind = TNK__TAR_FILE};
  ssize_t n;

  do
    n = read(unpack->from, unpack->piece, PIECE);
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    fail_file(unpack, -errno);
    return;
  }
  tnk__archive_give(&unpack->archive, unpack->piece, (size_t)n);
  while (unpack->err == TNK_OK && event.kind != TNK__TAR_MORE) {
    unpack->err = tnk__archive_next(&unpack->archive, &event);
    if (unpack->err == TNK_OK)
      take(job, unpack, &event);
  }
  if (n > 0 || unpack->err != TNK_OK)
    return;
  unpack->err = tnk__archive_finish(&unpack->archive);
  unpack->is_over = 1;
}

/* Bytes that are not an archive are not kept for a retry. */
static void give_up(tnk__weights_job_t *job, const unpack_t *unpack) {
  if (unpack->err != TNK_EFILE && unpack->err != TNK_ENOMEM)
    (void)tnk__place_clear(job->place, job->source);
}

static void run_round(tnk__weights_job_t *job) {
  unpack_t *unpack = job->unpack;

  if (unpack == NULL)
    unpack = job->unpack = new_unpack(job);
  if (unpack == NULL)
    return;
  if (unpack->from < 0)
    begin(job, unpack);
  for (int i = 0; i < ROUND && unpack->err == TNK_OK && !unpack->is_over; i++)
    unpack_piece(job, unpack);
  if (unpack->err == TNK_OK && unpack->is_over && unpack->n_files == 0)
    unpack->err = TNK_EPROTO;
  if (unpack->err != TNK_OK)
    give_up(job, unpack);
}

/* ---- Unpacking: on the loop ---- */

static void fail(tnk__weights_job_t *job, const unpack_t *unpack) {
  char why[TNK__MAX_ERROR_TEXT];
  tnk__text_t text;

  if (unpack->err == TNK_EFILE) {
    tnk__weights_job_fail_place(job, unpack->cause, job->directory);
    return;
  }
  if (unpack->err == TNK_ENOMEM) {
    tnk__weights_job_fail(job, tnk__error_static(TNK_ENOMEM));
    return;
  }
  tnk__text_init(&text, why, sizeof(why));
  tnk__archive_explain(&unpack->archive, &text);
  tnk__weights_job_fail_with(job, unpack->err, "%s",
                             why[0] != '\0' ? why : "the archive is empty");
}

static void on_round(tnk__weights_job_t *job) {
  const unpack_t *unpack = job->unpack;

  if (unpack == NULL) {
    tnk__weights_job_fail(job, tnk__error_static(TNK_ENOMEM));
  } else if (unpack->err != TNK_OK) {
    fail(job, unpack);
  } else if (!unpack->is_over) {
    tnk__weights_job_work(job, run_round, on_round);
  } else {
    job->n_given = unpack->n_files;
    job->n_bytes = unpack->n_bytes;
    job->commit(job);
  }
}

void tnk__weights_unpack(tnk__weights_job_t *job) {
  job->state = TNK__WEIGHTS_UNPACKING;
  job->forget_unpack = forget;
  tnk__weights_job_work(job, run_round, on_round);
}
