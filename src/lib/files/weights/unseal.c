/*
 * Decrypts files that were encrypted with age, on the pool, into a separate
 * directory. That directory then gets the final name. The downloaded files are
 * kept until then, so a wrong key costs no new download.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/files/age/age.h"
#include "lib/files/fetch/files.h"
#include "lib/files/weights/job.h"

enum { PIECE = 64 * 1024 };

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
      n = read(from, piece, PIECE);
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
  uint8_t *piece = tnk__malloc(alloc, PIECE);
  tnk__age_open_t open;
  tnk__buf_t out;

  tnk__buf_init(&out, alloc, 4 * PIECE);
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

/* Whether the name is free; two files may differ only in ".age". */
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
