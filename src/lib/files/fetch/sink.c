/*
 *   IDLE --write, finish--> BUSY --done--> IDLE, or FINISHED
 *   any of them --free--> gone; from BUSY when the pool is done
 *
 * While BUSY, the members below "the pool's" belong to the pool. The bytes of a
 * piece belong to the sink from write to `done`.
 */
#include "lib/files/fetch/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/files/fetch/files.h"
#include "tnk/error.h"

typedef enum { IDLE = 0, BUSY, FINISHED } state_t;

/* The pool's job. */
typedef enum { WRITE = 0, FINISH, DISCARD } job_t;

struct tnk__sink {
  tnk__context_t *context;
  tnk__work_t work;
  tnk__sink_cb done;
  void *user;
  state_t state;
  int is_free; /* freed by the owner; if BUSY, the pool ends first */
  int has_begun;
  int is_rewound;
  int is_kept;
  void (*gone)(void *user);
  void *gone_user;
  tnk__buf_t note; /* for the journal, written with the next bytes */
  /* Owned by the pool while BUSY. */
  job_t job;
  int starts_anew;
  tnk__buf_t piece;
  tnk__buf_t line;
  char *journal;
  uint64_t offset;                  /* where writing a kept file begins */
  char sum[TNK__SHA256_DIGITS + 1]; /* the expected checksum, or "" */
  tnk__sha256_t sha;
  int fd; /* -1: closed */
  int err;
  int cause;
  char *temporary;
  char path[]; /* followed by the memory of `temporary` */
};

int tnk__sink_new(tnk__sink_t **out, tnk__context_t *context, const char *path,
                  tnk__sink_cb done, void *user) {
  const size_t n = strlen(path) + 1;
  const size_t n_temporary = n + sizeof(".0123456789abcdef.incomplete");
  tnk__sink_t *sink =
      tnk__calloc(&context->alloc, 1, sizeof(*sink) + n + n_temporary);

  *out = NULL;
  if (sink == NULL)
    return TNK_ENOMEM;
  memcpy(sink->path, path, n);
  sink->temporary = sink->path + n;
  /* The name is unique: the file is created with O_EXCL. */
  snprintf(sink->temporary, n_temporary, "%s.%016llx.incomplete", path,
           (unsigned long long)tnk__context_random(context));
  sink->context = context;
  sink->done = done;
  sink->user = user;
  sink->fd = -1;
  tnk__buf_init(&sink->piece, &context->alloc, SIZE_MAX);
  tnk__buf_init(&sink->note, &context->alloc, SIZE_MAX);
  tnk__buf_init(&sink->line, &context->alloc, SIZE_MAX);
  *out = sink;
  return TNK_OK;
}

int tnk__sink_keep(tnk__sink_t *sink, uint64_t offset, const char *journal,
                   void (*gone)(void *user), void *user) {
  sink->is_kept = 1;
  sink->offset = offset;
  sink->gone = gone;
  sink->gone_user = user;
  sink->temporary = sink->path;
  sink->journal = tnk__strdup(&sink->context->alloc, journal);
  return sink->journal != NULL ? TNK_OK : TNK_ENOMEM;
}

void tnk__sink_note(tnk__sink_t *sink, tnk__buf_t *line) {
  tnk__buf_deinit(&sink->note);
  sink->note = *line;
  tnk__buf_init(line, sink->note.alloc, sink->note.max);
}

void *tnk__sink_user(const tnk__sink_t *sink) {
  return sink->user;
}

int tnk__sink_is_busy(const tnk__sink_t *sink) {
  return sink->state == BUSY;
}

void tnk__sink_rewind(tnk__sink_t *sink) {
  sink->is_rewound = 1;
}

/* ---- In the pool ---- */

static void fail(tnk__sink_t *sink, int err, int cause) {
  if (sink->err != TNK_OK)
    return;
  sink->err = err;
  sink->cause = cause;
}

/* Cut the file to this offset; later writes append. */
static void cut_to(tnk__sink_t *sink, uint64_t offset) {
  const off_t at = (off_t)offset;

  if (ftruncate(sink->fd, at) != 0 || lseek(sink->fd, at, SEEK_SET) != at)
    fail(sink, TNK_EFILE, -errno);
}

static void open_kept(tnk__sink_t *sink) {
  const int err = tnk__files_make_way(sink->path);

  if (err == 0)
    sink->fd =
        open(sink->path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (err != 0 || sink->fd < 0)
    fail(sink, TNK_EFILE, err != 0 ? err : -errno);
  else
    cut_to(sink, sink->offset);
}

static void open_file(tnk__sink_t *sink) {
  const int err = tnk__files_make_way(sink->path);

  if (err != 0) {
    fail(sink, TNK_EFILE, err);
    return;
  }
  sink->fd =
      open(sink->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (sink->fd < 0)
    fail(sink, TNK_EFILE, -errno);
  else
    tnk__sha256_init(&sink->sha);
}

static void start_anew(tnk__sink_t *sink) {
  char sum[TNK__SHA256_DIGITS + 1];

  sink->starts_anew = 0;
  if (!sink->is_kept) {
    tnk__sha256_end(&sink->sha, sum);
    tnk__sha256_init(&sink->sha);
  }
  cut_to(sink, 0);
}

static void write_buf(tnk__sink_t *sink, int fd, const tnk__buf_t *buf) {
  const int err = tnk__files_write_all(fd, buf->data, buf->len);

  if (err != 0)
    fail(sink, TNK_EFILE, err);
}

/* A line is written in one piece. An incomplete line is ignored when the
 * journal is read. */
static void write_note(tnk__sink_t *sink) {
  const int fd = open(sink->journal, O_WRONLY | O_APPEND | O_CLOEXEC);

  if (fd < 0) {
    fail(sink, TNK_EFILE, -errno);
    return;
  }
  write_buf(sink, fd, &sink->line);
  if (close(fd) != 0)
    fail(sink, TNK_EFILE, -errno);
}

static void write_all(tnk__sink_t *sink) {
  if (!sink->is_kept)
    tnk__sha256_add(&sink->sha, sink->piece.data, sink->piece.len);
  if (sink->line.len > 0)
    write_note(sink);
  if (sink->err == TNK_OK)
    write_buf(sink, sink->fd, &sink->piece);
}

static void close_file(tnk__sink_t *sink) {
  char sum[TNK__SHA256_DIGITS + 1];

  if (sink->fd < 0)
    return;
  sum[0] = '\0';
  if (!sink->is_kept)
    tnk__sha256_end(&sink->sha, sum);
  if (close(sink->fd) != 0)
    fail(sink, TNK_EFILE, -errno);
  sink->fd = -1;
  if (sink->sum[0] != '\0' && strcmp(sink->sum, sum) != 0)
    fail(sink, TNK_ECORRUPT, 0);
}

static void finish(tnk__sink_t *sink) {
  int err;

  if (fsync(sink->fd) != 0)
    fail(sink, TNK_EFILE, -errno);
  close_file(sink);
  if (sink->err != TNK_OK || sink->is_kept)
    return;
  err = tnk__files_rename(sink->temporary, sink->path);
  if (err != 0)
    fail(sink, TNK_EFILE, err);
}

static void discard(tnk__sink_t *sink) {
  close_file(sink);
  if (!sink->is_kept)
    (void)unlink(sink->temporary);
}

static void run(tnk__work_t *work) {
  tnk__sink_t *sink = tnk__container_of(work, tnk__sink_t, work);

  if (sink->job == DISCARD) {
    discard(sink);
    return;
  }
  if (sink->fd < 0 && sink->is_kept)
    open_kept(sink);
  else if (sink->fd < 0)
    open_file(sink);
  if (sink->err == TNK_OK && sink->starts_anew)
    start_anew(sink);
  if (sink->err == TNK_OK)
    write_all(sink);
  if (sink->err == TNK_OK && sink->job == FINISH)
    finish(sink);
}

/* ---- On the loop ---- */

static void release(tnk__sink_t *sink) {
  void (*gone)(void *user) = sink->gone;
  void *user = sink->gone_user;

  tnk__buf_deinit(&sink->piece);
  tnk__buf_deinit(&sink->note);
  tnk__buf_deinit(&sink->line);
  tnk__free(&sink->context->alloc, sink->journal);
  tnk__free(&sink->context->alloc, sink);
  if (gone != NULL)
    gone(user);
}

static void on_done(tnk__work_t *work) {
  tnk__sink_t *sink = tnk__container_of(work, tnk__sink_t, work);

  tnk__buf_deinit(&sink->piece);
  tnk__buf_deinit(&sink->line);
  sink->state = sink->job == FINISH && sink->err == TNK_OK ? FINISHED : IDLE;
  if (sink->job == DISCARD)
    release(sink);
  else if (sink->is_free)
    tnk__sink_free(sink);
  else
    sink->done(sink, sink->err, sink->cause);
}

static void start(tnk__sink_t *sink, job_t job) {
  sink->state = BUSY;
  sink->has_begun = 1;
  sink->job = job;
  sink->starts_anew = sink->is_rewound && sink->fd >= 0;
  if (sink->is_rewound)
    sink->offset = 0;
  sink->is_rewound = 0;
  sink->line = sink->note;
  tnk__buf_init(&sink->note, &sink->context->alloc, SIZE_MAX);
  /* Cannot fail: libuv rejects only a job without a function. */
  (void)tnk__work_start(sink->context, &sink->work, run, on_done);
}

void tnk__sink_write(tnk__sink_t *sink, tnk__buf_t *piece) {
  sink->piece = *piece;
  tnk__buf_init(piece, sink->piece.alloc, sink->piece.max);
  start(sink, WRITE);
}

void tnk__sink_finish(tnk__sink_t *sink, const char *sum) {
  if (sum != NULL)
    memcpy(sink->sum, sum, sizeof(sink->sum));
  start(sink, FINISH);
}

void tnk__sink_free(tnk__sink_t *sink) {
  if (sink == NULL)
    return;
  sink->is_free = 1;
  if (sink->state == BUSY)
    return;
  if (sink->state == FINISHED || !sink->has_begun)
    release(sink);
  else
    start(sink, DISCARD);
}
