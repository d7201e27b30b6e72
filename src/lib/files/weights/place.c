/* SPDX-License-Identifier: MIT */
#include "lib/files/weights/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/number.h"
#include "lib/base/system.h"
#include "lib/files/fetch/files.h"
#include "tnk/error.h"

/* ---- The journal ---- */

/*
 * The journal of an incomplete download. Each line is added by one write; a
 * last line without a newline is ignored. Members are separated by tabs.
 *
 *   tnk-download 1 <run of the system> <source>
 *   export <path>           the export, if the source itself has no files
 *   names <sum>             checksum of the names of all files
 *   file <bytes> <validator> <name>
 *                           precedes the first bytes of an answer; the last
 *                           line with a name counts
 *   ready <directory> <files> <bytes>
 *                           right before the directory gets its final name
 *
 * It never contains an address.
 */
#define TNK__JOURNAL_MAX (16 * TNK__MIB)

/* The first member of each line. */
static const char *const words[] = {
    [TNK__JOURNAL_BEGIN] = "tnk-download 1", [TNK__JOURNAL_EXPORT] = "export",
    [TNK__JOURNAL_NAMES] = "names",          [TNK__JOURNAL_FILE] = "file",
    [TNK__JOURNAL_READY] = "ready",
};

enum { N_WORDS = TNK__JOURNAL_READY + 1, MAX_MEMBERS = 4 };

/* ---- The journal: reading ---- */

/* Split a line into members; returns their number. */
static size_t cut(char *line, const char *members[MAX_MEMBERS]) {
  size_t n = 0;

  for (; line != NULL && n < MAX_MEMBERS; n++) {
    char *tab = strchr(line, '\t');
    members[n] = line;
    if (tab != NULL)
      *tab++ = '\0';
    line = tab;
  }
  return n;
}

static tnk__journal_kind_t kind_of(const char *word) {
  for (size_t i = TNK__JOURNAL_BEGIN; i < N_WORDS; i++)
    if (strcmp(word, words[i]) == 0)
      return (tnk__journal_kind_t)i;
  return TNK__JOURNAL_OTHER;
}

static int read_file(const char *const *members, tnk__journal_file_t *out) {
  out->n_total = UINT64_MAX;
  out->validator = members[2][0] != '\0' ? members[2] : NULL;
  out->name = members[3];
  return members[1][0] == '\0' ||
         tnk__text_u64(members[1], UINT64_MAX - 1, &out->n_total) == TNK_OK;
}

static int read_ready(const char *const *members, tnk__journal_ready_t *out) {
  out->directory = members[1];
  return tnk__text_u64(members[2], SIZE_MAX, &out->n_files) == TNK_OK &&
         tnk__text_u64(members[3], UINT64_MAX, &out->n_bytes) == TNK_OK;
}

static tnk__journal_kind_t read_line(char *text, tnk__journal_line_t *out) {
  const char *members[MAX_MEMBERS] = {0};
  const size_t n = cut(text, members);
  const tnk__journal_kind_t kind = kind_of(members[0]);

  switch (kind) {
  case TNK__JOURNAL_BEGIN:
    out->run = members[1];
    out->source = members[2];
    return n == 3 ? kind : TNK__JOURNAL_OTHER;
  case TNK__JOURNAL_FILE:
    return n == 4 && read_file(members, &out->file) ? kind : TNK__JOURNAL_OTHER;
  case TNK__JOURNAL_READY:
    return n == 4 && read_ready(members, &out->ready) ? kind
                                                      : TNK__JOURNAL_OTHER;
  case TNK__JOURNAL_EXPORT:
    out->address = members[1];
    return n == 2 ? kind : TNK__JOURNAL_OTHER;
  case TNK__JOURNAL_NAMES:
    out->names = members[1];
    return n == 2 ? kind : TNK__JOURNAL_OTHER;
  default:
    return TNK__JOURNAL_OTHER;
  }
}

tnk__journal_kind_t tnk__journal_next(tnk__journal_t *journal,
                                      tnk__journal_line_t *out) {
  char *line = journal->at;
  char *end = memchr(line, '\n', (size_t)(journal->end - line));

  memset(out, 0, sizeof(*out));
  if (end == NULL)
    return TNK__JOURNAL_END;
  *end = '\0';
  journal->at = end + 1;
  out->kind = read_line(line, out);
  return out->kind;
}

/* ---- The journal: writing ---- */

static int is_member(const char *text) {
  return text[strcspn(text, "\t\r\n")] == '\0';
}

static void put(tnk__buf_t *out, const char *text) {
  if (!is_member(text) && out->err == TNK_OK)
    out->err = TNK_EINVAL;
  tnk__buf_text(out, text);
}

/* Write lines. Strings with a tab or a newline fail with TNK_EINVAL. A
 * validator with one is omitted instead. */
static void journal_begin(tnk__buf_t *out, const char *run,
                          const char *source) {
  tnk__buf_printf(out, "%s\t", words[TNK__JOURNAL_BEGIN]);
  put(out, run);
  tnk__buf_byte(out, '\t');
  put(out, source);
  tnk__buf_byte(out, '\n');
}

static void put_line(tnk__buf_t *out, tnk__journal_kind_t kind,
                     const char *text) {
  tnk__buf_printf(out, "%s\t", words[kind]);
  put(out, text);
  tnk__buf_byte(out, '\n');
}

void tnk__journal_put_export(tnk__buf_t *out, const char *address) {
  put_line(out, TNK__JOURNAL_EXPORT, address);
}

void tnk__journal_put_names(tnk__buf_t *out, const char *names) {
  put_line(out, TNK__JOURNAL_NAMES, names);
}

static void journal_put_ready(tnk__buf_t *out,
                              const tnk__journal_ready_t *ready) {
  tnk__buf_printf(out, "%s\t", words[TNK__JOURNAL_READY]);
  put(out, ready->directory);
  tnk__buf_printf(out, "\t%" PRIu64 "\t%" PRIu64 "\n", ready->n_files,
                  ready->n_bytes);
}

void tnk__journal_put_file(tnk__buf_t *out, const tnk__journal_file_t *file) {
  tnk__buf_printf(out, "%s\t", words[TNK__JOURNAL_FILE]);
  if (file->n_total != UINT64_MAX)
    tnk__buf_printf(out, "%" PRIu64, file->n_total);
  tnk__buf_byte(out, '\t');
  if (file->validator != NULL && is_member(file->validator))
    tnk__buf_text(out, file->validator);
  tnk__buf_byte(out, '\t');
  put(out, file->name);
  tnk__buf_byte(out, '\n');
}

/* ---- The place ---- */

enum { MARK_SIZE = 64 };

/* ---- The place: on the loop ---- */

static char *join(const tnk_allocator_t *alloc, const char *a, const char *b) {
  const size_t n = strlen(a) + strlen(b) + 1;
  char *out = tnk__malloc(alloc, n);

  if (out != NULL)
    snprintf(out, n, "%s%s", a, b);
  return out;
}

/* Remove the journal and the folders that were created for it. A folder with
 * other contents remains. */
static void remove_made(const tnk__place_t *place) {
  struct stat about;
  char *end;

  if (lstat(place->files, &about) == 0 || lstat(place->open, &about) == 0 ||
      lstat(place->old, &about) == 0 || unlink(place->journal) != 0)
    return;
  while (strlen(place->partial) > place->n_kept && rmdir(place->partial) == 0) {
    end = strrchr(place->partial, '/');
    if (end == NULL)
      return;
    *end = '\0';
  }
}

static void release(tnk__place_t *place) {
  char *texts[] = {place->target, place->partial, place->journal,
                   place->files,  place->old,     place->open};

  if (place->lock >= 0 && !place->is_kept)
    remove_made(place);
  if (place->lock >= 0)
    (void)close(place->lock);
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
    tnk__free(place->alloc, texts[i]);
  tnk__free(place->alloc, place);
}

tnk__place_t *tnk__place_new(const tnk_allocator_t *alloc, const char *target) {
  tnk__place_t *place = tnk__calloc(alloc, 1, sizeof(*place));

  if (place == NULL)
    return NULL;
  place->alloc = alloc;
  place->refs = 1;
  place->lock = -1;
  place->target = tnk__strdup(alloc, target);
  place->partial = join(alloc, target, ".incomplete");
  place->journal = join(alloc, target, ".incomplete/journal");
  place->files = join(alloc, target, ".incomplete/files");
  place->old = join(alloc, target, ".incomplete/old");
  place->open = join(alloc, target, ".incomplete/open");
  if (place->target != NULL && place->partial != NULL &&
      place->journal != NULL && place->files != NULL && place->old != NULL &&
      place->open != NULL)
    return place;
  release(place);
  return NULL;
}

void tnk__place_ref(tnk__place_t *place) {
  place->refs++;
}

void tnk__place_unref(void *arg) {
  tnk__place_t *place = arg;

  if (place != NULL && --place->refs == 0)
    release(place);
}

static char *path_in(const char *folder, tnk__arena_t *arena,
                     const char *name) {
  const size_t n = strlen(folder) + strlen(name) + 2;
  char *out = tnk__arena_alloc(arena, n);

  if (out != NULL)
    snprintf(out, n, "%s/%s", folder, name);
  return out;
}

char *tnk__place_path(const tnk__place_t *place, tnk__arena_t *arena,
                      const char *name) {
  return path_in(place->files, arena, name);
}

char *tnk__place_open_path(const tnk__place_t *place, tnk__arena_t *arena,
                           const char *name) {
  return path_in(place->open, arena, name);
}

/* ---- The place: trees ---- */

enum { MAX_DEPTH = 64 };

static int is_dots(const char *name) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Call fn for each entry of a directory until one call fails; links are not
 * followed. A missing directory counts as empty. */
static int each(int at, const char *name,
                int (*fn)(int dir, const char *name, int depth), int depth) {
  const int fd =
      openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct dirent *entry;
  int err = 0;
  DIR *dir;

  if (fd < 0)
    return errno == ENOENT ? 0 : -errno;
  dir = fdopendir(fd);
  if (dir == NULL) {
    err = -errno;
    (void)close(fd);
    return err;
  }
  if (depth >= MAX_DEPTH)
    err = UV_ELOOP;
  while (err == 0 && (entry = readdir(dir)) != NULL)
    if (!is_dots(entry->d_name))
      err = fn(dirfd(dir), entry->d_name, depth);
  (void)closedir(dir);
  return err;
}

static int remove_one(int dir, const char *name, int depth) {
  int err;

  if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
    return 0;
  err = each(dir, name, remove_one, depth + 1);
  if (err == 0 && unlinkat(dir, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
    err = -errno;
  return err;
}

/* Remove a file, or a directory with its contents. */
static int remove_tree(const char *path) {
  return remove_one(AT_FDCWD, path, 0);
}

static int sync_one(int dir, const char *name, int depth) {
  struct stat about;
  int err;
  int fd;

  if (fstatat(dir, name, &about, AT_SYMLINK_NOFOLLOW) != 0)
    return -errno;
  if (!S_ISDIR(about.st_mode))
    return 0;
  err = each(dir, name, sync_one, depth + 1);
  fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) {
    (void)fsync(fd); /* not every file system supports this */
    (void)close(fd);
  }
  return err;
}

/* An entry exists. */
static int has_one(int dir, const char *name, int depth) {
  (void)dir;
  (void)name;
  (void)depth;
  return UV_EEXIST;
}

/* ---- The place: opening ---- */

static int look_at_target(const tnk__place_t *place, int force,
                          tnk__place_found_t *found) {
  struct stat about;

  found->why = place->target;
  if (lstat(place->target, &about) != 0)
    return errno == ENOENT ? 0 : -errno;
  if (!S_ISDIR(about.st_mode))
    return UV_ENOTDIR;
  return force ? 0 : each(AT_FDCWD, place->target, has_one, 0);
}

/* Length of the longest existing folder in the path of `partial`; 0 if none
 * exists. */
static size_t length_there(const tnk__place_t *place) {
  char *path = place->partial;
  size_t n = strlen(path);
  struct stat about;
  char was;
  int is_there;

  for (; n > 0; n--) {
    was = path[n];
    if (was != '\0' && was != '/')
      continue;
    path[n] = '\0';
    is_there = lstat(path, &about) == 0;
    path[n] = was;
    if (is_there)
      return n;
  }
  return 0;
}

/* The folder must belong to this user, or its contents cannot be trusted. */
static int make_partial(tnk__place_t *place) {
  struct stat about;
  int err;

  place->n_kept = length_there(place);
  err = tnk__files_make_way(place->journal);

  if (err == 0 && lstat(place->partial, &about) != 0)
    err = -errno;
  if (err == 0 && !S_ISDIR(about.st_mode))
    err = UV_ENOTDIR;
  if (err == 0 && about.st_uid != geteuid())
    err = UV_EPERM;
  return err;
}

static int same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Lock the journal. The previous owner of the lock may have removed the
 * file. */
static int take_lock(tnk__place_t *place) {
  struct stat ours;
  struct stat there;

  place->lock =
      open(place->journal, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
           0666);
  if (place->lock < 0)
    return -errno;
  if (flock(place->lock, LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? UV_EBUSY : 0; /* 0: no locks here */
  if (fstat(place->lock, &ours) != 0 || stat(place->journal, &there) != 0 ||
      !same_file(&ours, &there))
    return UV_EBUSY;
  return 0;
}

static void give_lock(tnk__place_t *place) {
  if (place->lock >= 0)
    (void)close(place->lock);
  place->lock = -1;
}

static int read_journal(const tnk__place_t *place, tnk__place_found_t *found) {
  struct stat about;
  size_t n = 0;

  if (fstat(place->lock, &about) != 0)
    return -errno;
  if (about.st_size <= 0 || (uint64_t)about.st_size > TNK__JOURNAL_MAX)
    return 0;
  found->text = tnk__malloc(place->alloc, (size_t)about.st_size + 1);
  if (found->text == NULL)
    return UV_ENOMEM;
  while (n < (size_t)about.st_size) {
    const ssize_t got = pread(place->lock, found->text + n,
                              (size_t)about.st_size - n, (off_t)n);
    if (got < 0 && errno != EINTR)
      return -errno;
    if (got == 0)
      break;
    n += got > 0 ? (size_t)got : 0;
  }
  found->text[n] = '\0';
  found->n_text = n;
  return 0;
}

/* Write a string that identifies a directory. */
static int write_mark(char out[MARK_SIZE], const char *path) {
  struct stat about;

  if (lstat(path, &about) != 0)
    return -errno;
  snprintf(out, MARK_SIZE, "%llu:%llu", (unsigned long long)about.st_dev,
           (unsigned long long)about.st_ino);
  return 0;
}

static int take_line(const tnk__place_t *place, const tnk__journal_line_t *line,
                     tnk__place_found_t *found) {
  char target[MARK_SIZE];

  if (line->kind == TNK__JOURNAL_READY &&
      write_mark(target, place->target) == 0) {
    found->is_done = strcmp(target, line->ready.directory) == 0;
    found->ready = line->ready;
  }
  if (line->kind != TNK__JOURNAL_EXPORT)
    return 0;
  tnk__free(place->alloc, found->address);
  found->address = tnk__strdup(place->alloc, line->address);
  return found->address != NULL ? 0 : UV_ENOMEM;
}

/* Returns whether the journal belongs to this download, and its progress. The
 * caller parses the text again, so this function parses a copy. */
static int judge(const tnk__place_t *place, const char *source,
                 tnk__place_found_t *found) {
  tnk__journal_line_t line;
  tnk__journal_t journal;
  char run[TNK__SYSTEM_START];
  char *copy;
  int err = 0;

  if (found->n_text == 0)
    return 0;
  copy = tnk__strndup(place->alloc, found->text, found->n_text);
  if (copy == NULL)
    return UV_ENOMEM;
  tnk__system_start(run);
  journal = (tnk__journal_t){copy, copy + strlen(copy)};
  /* After a crash, data that was not synchronized must not be trusted. */
  found->is_used = tnk__journal_next(&journal, &line) == TNK__JOURNAL_BEGIN &&
                   run[0] != '\0' && strcmp(line.run, run) == 0 &&
                   strcmp(line.source, source) == 0;
  while (found->is_used && err == 0 &&
         tnk__journal_next(&journal, &line) != TNK__JOURNAL_END)
    err = take_line(place, &line, found);
  found->ready.directory = NULL;
  tnk__free(place->alloc, copy);
  return err;
}

/* If a process was killed between two renames, restore the old directory. */
static int mend(const tnk__place_t *place) {
  struct stat about;

  if (lstat(place->old, &about) != 0)
    return errno == ENOENT ? 0 : -errno;
  if (lstat(place->target, &about) == 0)
    return remove_tree(place->old);
  return rename(place->old, place->target) == 0 ? 0 : -errno;
}

static void remove_partial(const tnk__place_t *place, int *left) {
  int err = remove_tree(place->files);

  if (err == 0)
    err = remove_tree(place->open);
  if (err == 0)
    err = remove_tree(place->old);
  /* The journal is removed last, because it identifies the rest. */
  if (err == 0)
    err = remove_tree(place->partial);
  *left = err != 0;
}

static int open_locked(tnk__place_t *place, const char *source, int force,
                       tnk__place_found_t *found) {
  int left;
  int err = read_journal(place, found);

  found->why = place->partial;
  if (err == 0)
    err = mend(place);
  if (err == 0)
    err = judge(place, source, found);
  if (err == 0 && found->is_done) {
    remove_partial(place, &left);
    return 0;
  }
  /* Check again under the lock. */
  if (err == 0)
    err = look_at_target(place, force, found);
  place->is_kept = found->is_used;
  if (err == 0 && !found->is_used)
    err = tnk__place_clear(place, source);
  return err;
}

int tnk__place_open(tnk__place_t *place, const char *source, int force,
                    tnk__place_found_t *found) {
  struct stat about;
  int err = 0;

  memset(found, 0, sizeof(*found));
  /* If a journal exists, the target may be its result. */
  if (lstat(place->journal, &about) != 0)
    err = look_at_target(place, force, found);
  if (err != 0)
    return err;
  found->why = place->partial;
  err = make_partial(place);
  if (err == 0)
    err = take_lock(place);
  if (err == 0)
    err = open_locked(place, source, force, found);
  if (err != 0)
    give_lock(place);
  return err;
}

/* ---- The journal ---- */

static int append(const tnk__place_t *place, const tnk__buf_t *lines) {
  const ssize_t n = write(place->lock, lines->data, lines->len);

  if (lines->err != TNK_OK)
    return lines->err == TNK_ENOMEM ? UV_ENOMEM : UV_EINVAL;
  if (n == (ssize_t)lines->len)
    return 0;
  return n < 0 ? -errno : UV_ENOSPC;
}

int tnk__place_note(tnk__place_t *place, const tnk__buf_t *lines) {
  place->is_kept = 1;
  return append(place, lines);
}

int tnk__place_clear(tnk__place_t *place, const char *source) {
  char run[TNK__SYSTEM_START];
  tnk__buf_t line;
  int err = remove_tree(place->files);

  if (err != 0)
    return err;
  if (ftruncate(place->lock, 0) != 0)
    return -errno;
  tnk__system_start(run);
  tnk__buf_init(&line, place->alloc, TNK__MIB);
  journal_begin(&line, run, source);
  err = append(place, &line);
  tnk__buf_deinit(&line);
  return err;
}

uint64_t tnk__place_size(const tnk__place_t *place, const char *name) {
  const int dir =
      open(place->files, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat about;
  uint64_t size = 0;

  if (dir < 0)
    return 0;
  if (fstatat(dir, name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(about.st_mode) && about.st_size > 0)
    size = (uint64_t)about.st_size;
  (void)close(dir);
  return size;
}

/* ---- The journal: the end ---- */

int tnk__place_begin_opening(tnk__place_t *place) {
  const int err = remove_tree(place->open);

  place->is_opened = 1;
  if (err != 0)
    return err;
  return mkdir(place->open, 0777) == 0 ? 0 : -errno;
}

/* The directory that becomes the target. */
static const char *source_of(const tnk__place_t *place) {
  return place->is_opened ? place->open : place->files;
}

/* Exchange two names. If the system cannot do that, rename one after the other;
 * mend() repairs an interruption. */
static int exchange(const tnk__place_t *place) {
  int err = tnk__system_exchange(source_of(place), place->target);

  if (err != -EINVAL && err != -ENOSYS && err != -ENOTSUP)
    return err;
  if (rename(place->target, place->old) != 0)
    return -errno;
  if (rename(source_of(place), place->target) == 0)
    return 0;
  err = -errno;
  (void)rename(place->old, place->target);
  return err;
}

static int is_there(const char *path) {
  struct stat about;

  return lstat(path, &about) == 0;
}

int tnk__place_commit(tnk__place_t *place, int force,
                      const tnk__journal_ready_t *ready, int *left) {
  tnk__journal_ready_t own = *ready;
  char mark[MARK_SIZE] = "";
  tnk__place_found_t found;
  tnk__buf_t line;
  int err = sync_one(AT_FDCWD, source_of(place), 0);

  *left = 0;
  if (err == 0)
    err = write_mark(mark, source_of(place));
  if (err == 0)
    err = look_at_target(place, force, &found);
  if (err != 0)
    return err;
  tnk__buf_init(&line, place->alloc, 256);
  own.directory = mark;
  journal_put_ready(&line, &own);
  err = append(place, &line);
  tnk__buf_deinit(&line);
  if (err == 0 && force && is_there(place->target))
    err = exchange(place);
  else if (err == 0)
    err = rename(source_of(place), place->target) == 0 ? 0 : -errno;
  if (err != 0)
    return err;
  tnk__files_sync_folder_of(place->target);
  remove_partial(place, left);
  return 0;
}
