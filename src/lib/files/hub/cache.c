/* SPDX-License-Identifier: MIT */
#include "lib/files/hub/cache.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/files/fetch/files.h"
#include "lib/wire/format/relative.h"

/* ---- Names ---- */

static int is_name_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z') || (c != '\0' && strchr("-_.", c) != NULL);
}

/* Accepts parts of letters, digits, "-", "_" and ".", separated by slashes. No
 * part may be empty or begin with a dot, so the path stays in its folder and is
 * not hidden. */
static int is_safe(const char *text, size_t max, int max_slashes) {
  int begins = 1;
  int n_slashes = 0;

  if (strlen(text) > max)
    return 0;
  for (; *text != '\0'; text++) {
    if (*text == '/') {
      if (begins || ++n_slashes > max_slashes)
        return 0;
    } else if (!is_name_char(*text) || (begins && *text == '.')) {
      return 0;
    }
    begins = *text == '/';
  }
  return !begins;
}

/* Returns whether a file or branch name stays below its folder. */
static int stays_below(const char *text) {
  return tnk__relative_check(text, strlen(text)) == NULL;
}

const char *tnk__cache_check(const tnk__cache_key_t *key) {
  /* In the cache "--" replaces the slash, so "a--b" would collide with
   * "a/b". */
  if (!is_safe(key->model, 200, 1) || strstr(key->model, "--") != NULL)
    return "it is not a valid model name";
  if (!stays_below(key->revision))
    return "its revision is not valid";
  if (!stays_below(key->file))
    return "the file's name is not valid";
  return NULL;
}

int tnk__cache_is_commit(const char *text) {
  return strlen(text) == TNK__CACHE_COMMIT &&
         strspn(text, "0123456789abcdef") == TNK__CACHE_COMMIT;
}

int tnk__cache_read_etag(char out[TNK__CACHE_ETAG + 1], const char *header) {
  size_t n;

  if (strncmp(header, "W/", 2) == 0)
    header += 2;
  header += strspn(header, "\"");
  n = strcspn(header, "\"");
  if (n > TNK__CACHE_ETAG)
    return 0;
  memcpy(out, header, n);
  out[n] = '\0';
  return is_safe(out, TNK__CACHE_ETAG, 0);
}

/* ---- Paths ---- */

/* Write "<root>/models--<org>--<name>/<kind>/...". Returns 0 if it is too
 * long. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static int
put_path(char out[TNK__CACHE_PATH], const tnk__cache_key_t *key,
         const char *format, ...) {
  const char *slash = strchr(key->model, '/');
  const int n_org = slash != NULL ? (int)(slash - key->model) : 0;
  va_list args;
  int n;
  int m;

  n = snprintf(out, TNK__CACHE_PATH, "%s/models--%.*s%s%s/", key->root, n_org,
               key->model, slash != NULL ? "--" : "",
               slash != NULL ? slash + 1 : key->model);
  if (n < 0 || n >= TNK__CACHE_PATH)
    return 0;
  va_start(args, format);
  m = vsnprintf(out + n, (size_t)(TNK__CACHE_PATH - n), format, args);
  va_end(args);
  return m >= 0 && m < TNK__CACHE_PATH - n;
}

/* Links are followed, because blobs of Python's library may be links. */
static int is_there(const char *path) {
  struct stat about;

  return stat(path, &about) == 0 && S_ISREG(about.st_mode) &&
         access(path, R_OK) == 0;
}

/* ---- Lookup ---- */

static int read_ref(const tnk__cache_key_t *key,
                    char commit[TNK__CACHE_COMMIT + 1]) {
  char path[TNK__CACHE_PATH];
  char text[128];

  if (!put_path(path, key, "refs/%s", key->revision) ||
      tnk__files_read(path, text, sizeof(text)) != 0 ||
      !tnk__cache_is_commit(text))
    return 0;
  memcpy(commit, text, TNK__CACHE_COMMIT + 1);
  return 1;
}

tnk__cache_has_t tnk__cache_find(const tnk__cache_key_t *key,
                                 char commit[TNK__CACHE_COMMIT + 1],
                                 char path[TNK__CACHE_PATH]) {
  tnk__cache_has_t has = TNK__CACHE_UNKNOWN;

  if (tnk__cache_is_commit(key->revision))
    memcpy(commit, key->revision, TNK__CACHE_COMMIT + 1);
  else if (!read_ref(key, commit)) {
    commit[0] = path[0] = '\0';
    return TNK__CACHE_UNKNOWN;
  }
  if (put_path(path, key, ".no_exist/%s/%s", commit, key->file) &&
      is_there(path))
    has = TNK__CACHE_ABSENT;
  /* An existing file overrides a note that it is absent. */
  if (put_path(path, key, "snapshots/%s/%s", commit, key->file) &&
      is_there(path))
    has = TNK__CACHE_HAS;
  return has;
}

int tnk__cache_find_blob(const tnk__cache_key_t *key, const char *etag,
                         char path[TNK__CACHE_PATH]) {
  return put_path(path, key, "blobs/%s", etag) && is_there(path);
}

/* ---- Writing ---- */

int tnk__cache_put_ref(const tnk__cache_key_t *key, const char *commit,
                       const char *tag) {
  char path[TNK__CACHE_PATH];
  char old[TNK__CACHE_COMMIT + 1];

  if (tnk__cache_is_commit(key->revision) ||
      (read_ref(key, old) && strcmp(old, commit) == 0))
    return 0;
  if (!put_path(path, key, "refs/%s", key->revision))
    return -ENAMETOOLONG;
  return tnk__files_write(path, commit, tag);
}

/* A relative target, so that the cache can be moved. */
static int put_target(char out[TNK__CACHE_PATH], const char *file,
                      const char *etag) {
  size_t n = 0;
  int m;

  for (const char *at = file; at != NULL; at = strchr(at + 1, '/')) {
    memcpy(out + n, "../", 3);
    n += 3;
  }
  m = snprintf(out + n, TNK__CACHE_PATH - n, "../blobs/%s", etag);
  return m > 0 && (size_t)m < TNK__CACHE_PATH - n;
}

/* On file systems without links the file itself is stored, as Python's library
 * does. */
static int move_blob(const tnk__cache_key_t *key, const char *etag,
                     const char *path, int why) {
  char blob[TNK__CACHE_PATH];

  if ((why != -EPERM && why != -EOPNOTSUPP && why != -ENOSYS) ||
      !tnk__cache_find_blob(key, etag, blob))
    return why;
  return tnk__files_rename(blob, path);
}

int tnk__cache_put_link(const tnk__cache_key_t *key, const char *commit,
                        const char *etag, const char *tag) {
  char path[TNK__CACHE_PATH];
  char temporary[TNK__CACHE_PATH];
  char target[TNK__CACHE_PATH];
  int err;

  if (!put_path(path, key, "snapshots/%s/%s", commit, key->file) ||
      !put_path(temporary, key, "snapshots/%s/%s.%s", commit, key->file, tag) ||
      !put_target(target, key->file, etag))
    return -ENAMETOOLONG;
  err = tnk__files_make_way(path);
  if (err != 0)
    return err;
  if (symlink(target, temporary) != 0)
    return move_blob(key, etag, path, -errno);
  err = tnk__files_rename(temporary, path);
  if (err != 0)
    (void)unlink(temporary);
  return err;
}

int tnk__cache_put_absent(const tnk__cache_key_t *key, const char *commit,
                          const char *tag) {
  char path[TNK__CACHE_PATH];

  if (!put_path(path, key, ".no_exist/%s/%s", commit, key->file))
    return -ENAMETOOLONG;
  return is_there(path) ? 0 : tnk__files_write(path, "", tag);
}
