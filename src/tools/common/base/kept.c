/* SPDX-License-Identifier: MIT */
#include "tools/common/base/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Folders ---- */

/* Create a temporary folder, accessible to this user only, in TMPDIR or /tmp,
 * and write its path. Returns 0, or -1 with the reason in `why`. */
static int folder_make(char *out, size_t n, char *why, size_t n_why) {
  const char *parent = getenv("TMPDIR");
  int length;

  if (parent == NULL || parent[0] == '\0')
    parent = "/tmp";
  length = snprintf(out, n, "%s/tnk-XXXXXX", parent);
  if (length > 0 && (size_t)length < n && mkdtemp(out) != NULL)
    return 0;
  snprintf(why, n_why, "cannot create a folder in %.300s: %s", parent,
           (size_t)length < n ? strerror(errno) : "its name is too long");
  out[0] = '\0';
  return -1;
}

static int is_entry(const char *name) {
  return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Remove it with its contents, without following links. Returns 0, or -1 if
 * something is left. */
static int folder_remove(const char *path);

/* Remove only its contents. */
static int folder_clear(const char *path) {
  char below[4096];
  struct dirent *entry;
  struct stat about;
  DIR *folder = opendir(path);
  int is_left = folder == NULL;

  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    int n = snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);

    if (!is_entry(entry->d_name))
      continue;
    if (n < 0 || (size_t)n >= sizeof(below) || lstat(below, &about) != 0)
      is_left = 1;
    else if (S_ISDIR(about.st_mode))
      is_left |= folder_remove(below) != 0;
    else
      is_left |= unlink(below) != 0;
  }
  if (folder != NULL)
    closedir(folder);
  return is_left ? -1 : 0;
}

static int folder_remove(const char *path) {
  const int err = folder_clear(path);

  return rmdir(path) != 0 ? -1 : err;
}

/* ---- Kept files ---- */

/* The file that describes the folder's purpose. */
static const char label[] = "about";

enum { MAX_ABOUT = 2048 };

/* The name of a folder is a hash of its purpose (FNV-1a, 64 bits). The label
 * detects collisions. */
static uint64_t hash(const char *text) {
  uint64_t h = 0xcbf29ce484222325u;

  for (; *text != '\0'; text++)
    h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  return h;
}

/* The first line of `about` determines the name; the rest may change. */
static int write_path(cli_kept_t *kept, const char *about) {
  const char *parent = getenv("TMPDIR");
  char first[MAX_ABOUT];
  int n;

  snprintf(first, sizeof(first), "%.*s", (int)strcspn(about, "\n"), about);
  n = snprintf(kept->path, sizeof(kept->path), "%s/tnk-%lu-%016" PRIx64,
               parent != NULL && parent[0] != '\0' ? parent : "/tmp",
               (unsigned long)geteuid(), hash(first));
  return n > 0 && (size_t)n < sizeof(kept->path);
}

/* No other user can have written to it. */
static int is_ours(const struct stat *about) {
  return S_ISDIR(about->st_mode) && about->st_uid == geteuid() &&
         (about->st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static int take_lock(cli_kept_t *kept) {
  struct stat ours;
  struct stat there;

  kept->lock =
      open(kept->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (kept->lock < 0)
    return 0;
  if (fstat(kept->lock, &ours) == 0 && is_ours(&ours) &&
      flock(kept->lock, LOCK_EX | LOCK_NB) == 0 &&
      lstat(kept->path, &there) == 0 && there.st_dev == ours.st_dev &&
      there.st_ino == ours.st_ino)
    return 1; /* it was not removed in the meantime */
  (void)close(kept->lock);
  kept->lock = -1;
  return 0;
}

static int open_label(const cli_kept_t *kept, int flags) {
  return openat(kept->lock, label, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int is_about(const cli_kept_t *kept, const char *about) {
  char text[MAX_ABOUT + 1];
  const int fd = open_label(kept, O_RDONLY);
  ssize_t n = -1;

  if (fd >= 0) {
    n = read(fd, text, sizeof(text));
    (void)close(fd);
  }
  return n >= 0 && (size_t)n == strlen(about) &&
         memcmp(text, about, (size_t)n) == 0;
}

static int put_label(const cli_kept_t *kept, const char *about) {
  const size_t n = strlen(about);
  const int fd = open_label(kept, O_WRONLY | O_CREAT | O_EXCL);
  int is_written;

  if (fd < 0)
    return 0;
  is_written = write(fd, about, n) == (ssize_t)n;
  return close(fd) == 0 && is_written;
}

static int open_kept(cli_kept_t *kept, const char *about) {
  if (strlen(about) > MAX_ABOUT || !write_path(kept, about) ||
      (mkdir(kept->path, 0700) != 0 && errno != EEXIST) || !take_lock(kept))
    return 0;
  kept->is_found = is_about(kept, about);
  if (kept->is_found ||
      (folder_clear(kept->path) == 0 && put_label(kept, about)))
    return 1;
  (void)cli_kept_close(kept, 0);
  return 0;
}

int cli_kept_open(cli_kept_t *kept, const char *about, char *why,
                  size_t n_why) {
  *kept = (cli_kept_t){.lock = -1};
  if (about[0] != '\0' && open_kept(kept, about))
    return 0;
  return folder_make(kept->path, sizeof(kept->path), why, n_why);
}

int cli_kept_may_stay(const cli_kept_t *kept) {
  return kept->lock >= 0;
}

int cli_kept_close(cli_kept_t *kept, int stays) {
  const int is_removed = !stays || kept->lock < 0;
  const int err = is_removed ? folder_remove(kept->path) : 0;

  if (kept->lock >= 0)
    (void)close(kept->lock);
  kept->lock = -1;
  return err;
}
