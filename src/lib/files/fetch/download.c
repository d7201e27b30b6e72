/* SPDX-License-Identifier: MIT */
#include "lib/files/fetch/download.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/files/fetch/files.h"
#include "tnk/error.h"

/* ---- The sink ---- */

/*
 *   IDLE --write, finish--> BUSY --done--> IDLE, or FINISHED
 *   any of them --free--> gone; from BUSY when the pool is done
 *
 * While BUSY, the members below "the pool's" belong to the pool. The bytes of a
 * piece belong to the sink from write to `done`.
 */

/* Receives the result of a job: TNK_OK, TNK_EFILE with libuv's `cause`,
 * TNK_ECORRUPT (the checksum differs) or TNK_ENOMEM. After an error the sink
 * can only be freed. */
typedef void (*sink_cb)(tnk__sink_t *sink, int err, int cause);

typedef enum { IDLE = 0, BUSY, FINISHED } state_t;

/* The pool's job. */
typedef enum { WRITE = 0, FINISH, DISCARD } job_t;

struct tnk__sink {
  tnk__context_t *context;
  tnk__work_t work;
  sink_cb done;
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

/* Create a sink. Returns TNK_OK or TNK_ENOMEM. Nothing is written yet; the
 * first write creates missing parent folders. */
static int sink_new(tnk__sink_t **out, tnk__context_t *context,
                    const char *path, sink_cb done, void *user) {
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

/* Keep the file, and keep its first `offset` bytes. Call it right after
 * sink_new(). The line from sink_note() is written to `journal`
 * before the bytes of an answer. Both strings are copied. `gone` may be NULL.
 * It is called once, when the pool no longer uses the file, also after
 * sink_free(). Returns TNK_OK or TNK_ENOMEM; after an error the sink can
 * only be freed. */
static int sink_keep(tnk__sink_t *sink, uint64_t offset, const char *journal,
                     void (*gone)(void *user), void *user) {
  sink->is_kept = 1;
  sink->offset = offset;
  sink->gone = gone;
  sink->gone_user = user;
  sink->temporary = sink->path;
  sink->journal = tnk__strdup(&sink->context->alloc, journal);
  return sink->journal != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Write a line to the journal with the next bytes, after the file was cut to
 * its offset. The sink takes the contents of `line`, which is empty
 * afterwards. */
static void sink_note(tnk__sink_t *sink, tnk__buf_t *line) {
  tnk__buf_deinit(&sink->note);
  sink->note = *line;
  tnk__buf_init(line, sink->note.alloc, sink->note.max);
}

static void *sink_user(const tnk__sink_t *sink) {
  return sink->user;
}

static int sink_is_busy(const tnk__sink_t *sink) {
  return sink->state == BUSY;
}

/* Start over: the next bytes are the first of the file. */
static void sink_rewind(tnk__sink_t *sink) {
  sink->is_rewound = 1;
}

/* ---- The sink: in the pool ---- */

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

/* ---- The sink: on the loop ---- */

/* Free the sink: only `gone` is called afterwards. An unfinished file is
 * removed on the pool, unless it is kept. `sink` may be NULL. Allocates
 * nothing. */
static void sink_free(tnk__sink_t *sink);

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
    sink_free(sink);
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

/* Append bytes; the sink takes the contents of the buffer, which is empty
 * afterwards. `done` is called later. */
static void sink_write(tnk__sink_t *sink, tnk__buf_t *piece) {
  sink->piece = *piece;
  tnk__buf_init(piece, sink->piece.alloc, sink->piece.max);
  start(sink, WRITE);
}

/* Compare the checksum (copied; NULL: any), synchronize the file and give it
 * its name. `done` is called later. */
static void sink_finish(tnk__sink_t *sink, const char *sum) {
  if (sum != NULL)
    memcpy(sink->sum, sum, sizeof(sink->sum));
  start(sink, FINISH);
}

static void sink_free(tnk__sink_t *sink) {
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

/* ---- The download ---- */

/*
 *   FETCHING --on_body, sink idle--> a piece goes to the sink
 *   FETCHING --done--> CLOSING UP: the last piece, then the sink finishes
 *   CLOSING UP --sink finished--> done
 *
 * A failure of one side stops the other side. Only end() calls the owner's
 * `done`.
 */

static void on_begin(tnk__fetch_t *fetch);
static void on_body(tnk__fetch_t *fetch);
static void on_fetched(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                       tnk__error_t *error);

void tnk__download_init(tnk__download_t *download, tnk__context_t *context,
                        tnk__http_t *http) {
  memset(download, 0, sizeof(*download));
  tnk__fetch_init(&download->fetch, context, http);
  download->fetch.on_begin = on_begin;
  download->fetch.on_body = on_body;
  download->fetch.done = on_fetched;
  tnk__buf_init(&download->last, &context->alloc, TNK__MAX_UNREAD_BODY);
}

static tnk__download_t *download_of(tnk__fetch_t *fetch) {
  return tnk__container_of(fetch, tnk__download_t, fetch);
}

void tnk__download_cancel(tnk__download_t *download) {
  const tnk__context_t *context = download->fetch.context;

  if (context == NULL)
    return; /* never initialized */
  tnk__fetch_cancel(&download->fetch);
  tnk__error_unref(download->failed);
  download->failed = NULL;
  sink_free(download->sink);
  download->sink = NULL;
  tnk__buf_deinit(&download->last);
  tnk__free(&context->alloc, download->path);
  download->path = NULL;
}

static void end(tnk__download_t *download, tnk__error_t *error) {
  tnk__download_cancel(download);
  download->done(download, error);
  tnk__error_unref(error);
}

/* ---- The download: the file ---- */

static void finish_or_wait(tnk__download_t *download) {
  if (sink_is_busy(download->sink) || !download->is_fetched)
    return;
  if (download->last.len > 0) {
    sink_write(download->sink, &download->last);
    return;
  }
  download->is_finishing = 1;
  sink_finish(download->sink, download->sum[0] != '\0' ? download->sum : NULL);
}

static tnk__error_t *sink_error(const tnk__download_t *download, int err,
                                int cause) {
  tnk__error_t *error;

  if (err == TNK_ECORRUPT)
    return tnk__fetch_error(&download->fetch, err, "%s: the checksum differs",
                            tnk_strerror(err));
  error = tnk__fetch_error(&download->fetch, err, "cannot write %.256s: %s",
                           download->path, uv_strerror(cause));
  if (error->refs > 0)
    error->pub.cause = cause;
  return error;
}

static void on_sunk(tnk__sink_t *sink, int err, int cause) {
  tnk__download_t *download = sink_user(sink);

  if (err != TNK_OK)
    end(download, sink_error(download, err, cause));
  else if (download->failed != NULL)
    end(download, tnk__error_ref(download->failed));
  else if (download->is_finishing)
    end(download, NULL);
  else if (download->is_fetched)
    finish_or_wait(download);
  else
    on_body(&download->fetch);
}

/* ---- The download: the answer ---- */

static int is_too_long(const tnk__download_t *download, uint64_t n) {
  return n > download->max_bytes || n > download->n_total ||
         (download->n_bytes != UINT64_MAX && n > download->n_bytes);
}

static tnk__error_t *length_error(const tnk__download_t *download, uint64_t n) {
  if (n > download->max_bytes)
    return tnk__fetch_error(&download->fetch, TNK_ETOOBIG,
                            "it is larger than %" PRIu64 " bytes",
                            download->max_bytes);
  return tnk__fetch_error(
      &download->fetch, TNK_ECORRUPT,
      "it has %" PRIu64 " bytes or more, and not %" PRIu64, n,
      download->n_bytes < download->n_total ? download->n_bytes
                                            : download->n_total);
}

static void on_begin(tnk__fetch_t *fetch) {
  tnk__download_t *download = download_of(fetch);

  if (!fetch->is_rest) {
    fetch->offset = 0;
    sink_rewind(download->sink);
  }
  download->n_total =
      fetch->n_total != UINT64_MAX ? fetch->n_total : download->n_bytes;
  if (download->on_begin != NULL)
    download->on_begin(download);
}

/* Count received bytes. Returns 0 if the limit is exceeded. */
static int count(tnk__download_t *download, size_t n) {
  download->fetch.offset += n;
  download->n_fetched += n;
  return !is_too_long(download, download->fetch.offset);
}

/* The owner may free the download in the callback, so this is the last
 * access. */
static void tell_progress(tnk__download_t *download) {
  if (download->on_progress != NULL)
    download->on_progress(download);
}

static void on_body(tnk__fetch_t *fetch) {
  tnk__download_t *download = download_of(fetch);
  tnk__buf_t piece;

  if (sink_is_busy(download->sink))
    return;
  tnk__buf_init(&piece, &fetch->context->alloc, 0);
  if (fetch->is_good)
    tnk__exchange_take_body(&fetch->exchange, &piece);
  if (piece.len == 0) {
    tnk__buf_deinit(&piece);
    return;
  }
  if (count(download, piece.len)) {
    sink_write(download->sink, &piece);
    tell_progress(download);
    return;
  }
  tnk__buf_deinit(&piece);
  end(download, length_error(download, fetch->offset));
}

static void on_fetched(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                       tnk__error_t *error) {
  tnk__download_t *download = download_of(fetch);
  size_t n;

  /* The received bytes of a kept file are written before `done` is called. */
  if (error != NULL && sink_is_busy(download->sink) && download->is_kept) {
    download->failed = tnk__error_ref(error);
    return;
  }
  if (error != NULL) {
    end(download, tnk__error_ref(error));
    return;
  }
  n = result->body->len;
  if (!count(download, n) ||
      (download->n_bytes != UINT64_MAX && fetch->offset != download->n_bytes)) {
    end(download, length_error(download, fetch->offset));
    return;
  }
  download->last = *result->body;
  tnk__buf_init(result->body, download->last.alloc, 0);
  download->is_fetched = 1;
  finish_or_wait(download);
  if (n > 0)
    tell_progress(download);
}

/* ---- The download: starting ---- */

int tnk__download_start(tnk__download_t *download,
                        const tnk__download_request_t *request) {
  const tnk__fetch_request_t fetch = {.url = request->url,
                                      .name = request->name,
                                      .token = request->token,
                                      .silence_ms = request->silence_ms,
                                      .max_retries = request->max_retries,
                                      .lane = request->lane,
                                      .is_signed = request->is_signed,
                                      .offset = request->offset,
                                      .n_total = request->n_total,
                                      .validator = request->validator};
  tnk__context_t *context = download->fetch.context;
  int err = TNK_OK;

  if (request->sum != NULL && !tnk__sha256_is_sum(request->sum))
    return TNK_EINVAL;
  if (request->sum != NULL)
    memcpy(download->sum, request->sum, sizeof(download->sum));
  download->n_bytes = download->n_total = request->n_bytes;
  download->max_bytes = request->max_bytes;
  download->path = tnk__strdup(&context->alloc, request->path);
  if (download->path == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_OK)
    err = sink_new(&download->sink, context, request->path, on_sunk, download);
  if (download->sink == NULL && request->gone != NULL)
    request->gone(request->user);
  if (err == TNK_OK && request->journal != NULL)
    err = sink_keep(download->sink, request->offset, request->journal,
                    request->gone, request->user);
  download->is_kept = request->journal != NULL;
  if (err == TNK_OK)
    err = tnk__fetch_start(&download->fetch, &fetch);
  if (err != TNK_OK)
    tnk__download_cancel(download);
  return err;
}

void tnk__download_note(tnk__download_t *download, tnk__buf_t *line) {
  sink_note(download->sink, line);
}

void tnk__download_explain(const tnk__download_t *download, tnk__text_t *out) {
  tnk__text_printf(out, "%" PRIu64 " bytes", download->fetch.offset);
  if (download->n_total != UINT64_MAX)
    tnk__text_printf(out, " of %" PRIu64, download->n_total);
  tnk__text_printf(out, " have come; ");
  if (download->is_fetched)
    tnk__text_printf(out, "is being written to the disk");
  else
    tnk__fetch_explain(&download->fetch, out);
}
