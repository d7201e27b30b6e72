/* SPDX-License-Identifier: MIT */
#include "gateway/record/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/system.h"
#include "tnk/error.h"

/* There are two buffers: `ready` takes lines, and `busy` is being written.
 * Closing syncs the last write and all earlier ones to the disk. */
enum {
  MAX_READY = 256 << 20,
  MAX_LINE = 128 << 20,
  READ_SIZE = 256 * 1024,
  KEEP_CAPACITY = 1 << 20
};

struct tnk__gw_journal {
  const tnk_allocator_t *alloc;
  uv_loop_t *loop;
  int fd;           /* -1: nothing is kept */
  int syncs;        /* sync each write to the disk */
  int is_unsynced;  /* some written bytes may not be on the disk yet */
  int with_sync;    /* the write in progress also syncs */
  uint64_t n_safe;  /* bytes written */
  uint64_t n_added; /* bytes added, written or not */
  tnk__buf_t ready;
  tnk__buf_t busy;
  uv_work_t work;
  int is_writing;
  int err;       /* TNK_OK; once set, nothing is written any more */
  int write_err; /* errno of the thread; read when it is done */
  tnk__list_t waiters;
  int is_closing;
  void (*closed)(void *user);
  void *closed_user;
};

/* ---- Writing ---- */

static void write_ready(tnk__gw_journal_t *journal);

/* Runs on a thread of the pool. */
static void on_work(uv_work_t *work) {
  tnk__gw_journal_t *journal = tnk__container_of(work, tnk__gw_journal_t, work);
  size_t at = 0;

  journal->write_err = 0;
  while (at < journal->busy.len) {
    ssize_t n = pwrite(journal->fd, journal->busy.data + at,
                       journal->busy.len - at, (off_t)(journal->n_safe + at));

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      journal->write_err = n < 0 ? errno : EIO;
      return;
    }
    at += (size_t)n;
  }
  if (journal->with_sync)
    journal->write_err = -tnk__system_sync(journal->fd);
}

static void wake(tnk__gw_journal_t *journal, int all_err) {
  tnk__gw_wake(&journal->waiters, journal->n_safe, 0, all_err);
}

static void free_journal(tnk__gw_journal_t *journal) {
  void (*closed)(void *) = journal->closed;
  void *user = journal->closed_user;

  wake(journal, TNK_ECLOSED);
  if (journal->fd >= 0)
    close(journal->fd);
  tnk__buf_deinit(&journal->ready);
  tnk__buf_deinit(&journal->busy);
  tnk__free(journal->alloc, journal);
  if (closed != NULL)
    closed(user);
}

static void on_written(uv_work_t *work, int status) {
  tnk__gw_journal_t *journal = tnk__container_of(work, tnk__gw_journal_t, work);

  journal->is_writing = 0;
  if (status != 0 || journal->write_err != 0)
    journal->err = TNK_EFILE;
  else
    journal->n_safe += journal->busy.len;
  journal->is_unsynced = !journal->with_sync;
  if (journal->busy.cap > KEEP_CAPACITY)
    tnk__buf_deinit(&journal->busy);
  else
    tnk__buf_clear(&journal->busy);
  write_ready(journal);
  wake(journal, journal->err);
  if (journal->is_closing && !journal->is_writing)
    free_journal(journal);
}

static void write_ready(tnk__gw_journal_t *journal) {
  tnk__buf_t ready = journal->ready;

  if (journal->is_writing || journal->err != TNK_OK ||
      (ready.len == 0 && !(journal->is_closing && journal->is_unsynced)))
    return;
  journal->ready = journal->busy;
  journal->busy = ready;
  journal->is_writing = 1;
  journal->with_sync = journal->syncs || journal->is_closing;
  if (uv_queue_work(journal->loop, &journal->work, on_work, on_written) == 0)
    return;
  journal->is_writing = 0;
  journal->err = TNK_EFILE;
}

int tnk__gw_journal_add(tnk__gw_journal_t *journal, const void *line, size_t n,
                        uint64_t *offset) {
  size_t had = journal->ready.len;

  *offset = journal->n_added;
  if (journal->err != TNK_OK || journal->is_closing)
    return journal->err != TNK_OK ? journal->err : TNK_ECLOSED;
  if (journal->fd < 0)
    return TNK_OK;
  /* A longer line could not be read again. */
  if (n > MAX_LINE - READ_SIZE)
    return TNK_ETOOBIG;
  tnk__buf_append(&journal->ready, line, n);
  if (tnk__buf_byte(&journal->ready, '\n') != TNK_OK) {
    int err = journal->ready.err;

    /* Remove the part of the line that was added. */
    journal->ready.len = had;
    journal->ready.err = TNK_OK;
    return err;
  }
  journal->n_added += n + 1;
  /* It may take long until a caller waits for them, so start writing. */
  if (journal->ready.len >= KEEP_CAPACITY)
    write_ready(journal);
  return TNK_OK;
}

int tnk__gw_journal_wait(tnk__gw_journal_t *journal, tnk__gw_waiter_t *waiter) {
  tnk__list_init(&waiter->link);
  waiter->upto = journal->n_added;
  if (journal->n_safe >= waiter->upto)
    return 1;
  if (journal->err != TNK_OK)
    return journal->err;
  tnk__list_append(&journal->waiters, &waiter->link);
  write_ready(journal);
  return 0;
}

uint64_t tnk__gw_journal_size(const tnk__gw_journal_t *journal) {
  return journal->fd >= 0 ? journal->n_added : 0;
}

int tnk__gw_journal_error(const tnk__gw_journal_t *journal) {
  return journal->err;
}

void tnk__gw_journal_leave(tnk__gw_waiter_t *waiter) {
  tnk__list_remove(&waiter->link);
}

/* The bytes from `offset` on that are still in memory. NULL: they are in the
 * file. */
static const uint8_t *in_memory(const tnk__gw_journal_t *journal,
                                uint64_t offset) {
  size_t at = (size_t)(offset - journal->n_safe);

  if (offset < journal->n_safe)
    return NULL;
  if (!journal->is_writing)
    return journal->ready.data + at;
  return at < journal->busy.len ? journal->busy.data + at
                                : journal->ready.data + at - journal->busy.len;
}

int tnk__gw_journal_read(const tnk__gw_journal_t *journal, uint64_t offset,
                         size_t n, tnk__buf_t *out) {
  uint8_t *to = tnk__buf_reserve(out, n);
  size_t at = 0;

  if (to == NULL)
    return out->err;
  /* Lines that could not be written are lost. */
  if (offset + n >
      (journal->err == TNK_OK ? journal->n_added : journal->n_safe))
    return TNK_EFILE;
  if (in_memory(journal, offset) != NULL) {
    memcpy(to, in_memory(journal, offset), n);
    at = n;
  }
  while (at < n) {
    ssize_t got = pread(journal->fd, to + at, n - at, (off_t)(offset + at));

    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return TNK_EFILE;
    at += (size_t)got;
  }
  out->len += n;
  return TNK_OK;
}

/* ---- Reading an existing file ---- */

typedef struct {
  tnk__gw_journal_t *journal;
  tnk__gw_line_cb on_line;
  void *user;
  tnk__buf_t rest; /* the start of a line that continues */
  uint64_t offset; /* offset of `rest` in the file */
} reader_t;

static int take_lines(reader_t *reader) {
  const char *data = (const char *)reader->rest.data;
  size_t at = 0;
  int err = TNK_OK;

  while (err == TNK_OK && at < reader->rest.len) {
    const char *end = memchr(data + at, '\n', reader->rest.len - at);
    size_t n;

    if (end == NULL)
      break;
    n = (size_t)(end - data) - at;
    err = reader->on_line(reader->user, data + at, n, reader->offset);
    reader->offset += n + 1;
    at += n + 1;
  }
  tnk__buf_consume(&reader->rest, at);
  return err;
}

/* A line is read at once, and not in pieces: a gateway that starts may cut off
 * the piece that a killed one has left, and write another line there. */
static int read_lines(reader_t *reader) {
  tnk__buf_t *rest = &reader->rest;
  size_t n_wanted = READ_SIZE, n_known = 0;
  int err = TNK_OK;

  while (err == TNK_OK) {
    const uint64_t offset = reader->offset;
    uint8_t *to;
    ssize_t n;

    tnk__buf_clear(rest);
    to = tnk__buf_reserve(rest, n_wanted);
    if (to == NULL)
      return rest->err;
    n = pread(reader->journal->fd, to, n_wanted, (off_t)offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return TNK_EFILE;
    rest->len = (size_t)n;
    if (rest->len == n_known)
      return n_known < MAX_LINE ? TNK_OK : TNK_ETOOBIG;
    err = take_lines(reader);
    n_known = rest->len;
    n_wanted = reader->offset > offset ? READ_SIZE : n_wanted * 2;
    if (n_wanted > MAX_LINE)
      n_wanted = MAX_LINE;
  }
  return err;
}

/* An incomplete line is cut off only if this program wrote it. Either there are
 * other lines before it, or it has the usual beginning. */
static int is_ours(const reader_t *reader) {
  static const char begin[] = "{\"type\":\"";
  size_t n = sizeof(begin) - 1;

  if (n > reader->rest.len)
    n = reader->rest.len;
  return reader->offset > 0 || memcmp(reader->rest.data, begin, n) == 0;
}

static int replay(tnk__gw_journal_t *journal, const char *path,
                  tnk__gw_line_cb on_line, void *user, char *why,
                  size_t n_why) {
  reader_t reader = {.journal = journal, .on_line = on_line, .user = user};
  int err;

  tnk__buf_init(&reader.rest, journal->alloc, MAX_LINE);
  err = read_lines(&reader);
  if (err == TNK_OK && reader.rest.len > 0 && !is_ours(&reader)) {
    (void)snprintf(why, n_why, "%s: line 1: is not JSON", path);
    err = TNK_EFILE;
  }
  journal->n_safe = journal->n_added = reader.offset;
  /* An incomplete line belongs to a turn whose response was never sent, because
   * the process ended during the write. */
  if (err == TNK_OK && reader.rest.len > 0 && journal->loop != NULL &&
      ftruncate(journal->fd, (off_t)reader.offset) != 0)
    err = TNK_EFILE;
  tnk__buf_deinit(&reader.rest);
  return err;
}

/* Sync the folder, because a new file survives a power failure only if its name
 * is on the disk too. Returns TNK_OK or TNK_ENOMEM. */
static int sync_folder_of(const tnk__gw_journal_t *journal, const char *path) {
  const char *slash = strrchr(path, '/');
  char *folder = slash != NULL ? tnk__strndup(journal->alloc, path,
                                              (size_t)(slash - path) + 1)
                               : tnk__strdup(journal->alloc, ".");
  int fd;

  if (folder == NULL)
    return TNK_ENOMEM;
  fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  tnk__free(journal->alloc, folder);
  if (fd < 0)
    return TNK_OK;
  (void)fsync(fd); /* not every file system supports it */
  (void)close(fd);
  return TNK_OK;
}

/* Other kinds of files cannot be continued, or never end. */
static int is_regular(int fd) {
  struct stat file;

  return fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
}

static int open_file(tnk__gw_journal_t *journal, const char *path, char *why,
                     size_t n_why) {
  int flags = journal->loop != NULL ? O_RDWR | O_CREAT : O_RDONLY;

  /* O_NONBLOCK: do not wait for the other end of a pipe. */
  journal->fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
  if (journal->fd < 0) {
    (void)snprintf(why, n_why, "%s: %s", path, strerror(errno));
    return TNK_EFILE;
  }
  if (!is_regular(journal->fd)) {
    (void)snprintf(why, n_why, "%s: is no regular file", path);
    return TNK_EFILE;
  }
  if (journal->loop != NULL && flock(journal->fd, LOCK_EX | LOCK_NB) != 0) {
    (void)snprintf(why, n_why, "%s: another process writes to it", path);
    return TNK_EFILE;
  }
  return journal->loop != NULL ? sync_folder_of(journal, path) : TNK_OK;
}

int tnk__gw_journal_open(tnk__gw_journal_t **out, uv_loop_t *loop,
                         const tnk_allocator_t *alloc, const char *path,
                         int syncs, tnk__gw_line_cb on_line, void *user,
                         char *why, size_t n_why) {
  tnk__gw_journal_t *journal = tnk__calloc(alloc, 1, sizeof(*journal));
  int err;

  *out = NULL;
  if (n_why > 0)
    why[0] = '\0';
  if (journal == NULL)
    return TNK_ENOMEM;
  journal->alloc = alloc;
  journal->loop = loop;
  journal->syncs = syncs;
  journal->fd = -1;
  tnk__list_init(&journal->waiters);
  tnk__buf_init(&journal->ready, alloc, MAX_READY);
  tnk__buf_init(&journal->busy, alloc, MAX_READY);
  err = path != NULL ? open_file(journal, path, why, n_why) : TNK_OK;
  if (err == TNK_OK && path != NULL)
    err = replay(journal, path, on_line, user, why, n_why);
  if (err == TNK_OK) {
    *out = journal;
    return TNK_OK;
  }
  if (n_why > 0 && why[0] == '\0')
    (void)snprintf(why, n_why, "%s: %s", path,
                   err == TNK_EFILE ? strerror(errno) : tnk_strerror(err));
  free_journal(journal);
  return err;
}

/* ---- Reading on ---- */

/* Returns NULL, or what is wrong with the file. */
static const char *read_on(tnk__gw_journal_t *journal, reader_t *reader,
                           const char *path, int *err) {
  struct stat ours, named;

  *err = TNK_EFILE;
  if (fstat(journal->fd, &ours) != 0)
    return strerror(errno);
  if (ours.st_size < (off_t)journal->n_safe)
    return "the file has become shorter than what was read";
  if (ours.st_size > (off_t)journal->n_safe) {
    *err = read_lines(reader);
    journal->n_safe = journal->n_added = reader->offset;
    if (*err != TNK_OK)
      return *err == TNK_EFILE ? strerror(errno) : tnk_strerror(*err);
  }
  *err = TNK_EFILE;
  if (stat(path, &named) != 0 || named.st_ino != ours.st_ino ||
      named.st_dev != ours.st_dev)
    return "the file was removed or replaced";
  *err = TNK_OK;
  return NULL;
}

int tnk__gw_journal_more(tnk__gw_journal_t *journal, const char *path,
                         tnk__gw_line_cb on_line, void *user, char *why,
                         size_t n_why) {
  reader_t reader = {.journal = journal,
                     .on_line = on_line,
                     .user = user,
                     .offset = journal->n_safe};
  const char *wrong;
  int err;

  if (n_why > 0)
    why[0] = '\0';
  tnk__buf_init(&reader.rest, journal->alloc, MAX_LINE);
  wrong = read_on(journal, &reader, path, &err);
  tnk__buf_deinit(&reader.rest);
  /* `on_line` may have written its own. */
  if (wrong != NULL && n_why > 0 && why[0] == '\0')
    (void)snprintf(why, n_why, "%s: %s", path, wrong);
  return err;
}

void tnk__gw_journal_close(tnk__gw_journal_t *journal,
                           void (*closed)(void *user), void *user) {
  journal->closed = closed;
  journal->closed_user = user;
  journal->is_closing = 1;
  write_ready(journal);
  if (!journal->is_writing)
    free_journal(journal);
}
