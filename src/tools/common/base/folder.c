#include "tools/common/base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_folder_make(char *out, size_t n, char *why, size_t n_why) {
  const char *parent = getenv("TMPDIR");
  int length;

  if (parent == NULL || parent[0] == '\0')
    parent = "/tmp";
  length = snprintf(out, n, "%s/tnk-XXXXXX", parent);
  if (length > 0 && (size_t)length < n && mkdtemp(out) != NULL)
    return 0;
  snprintf(why, n_why, "no folder can be made in %.300s: %s", parent,
           (size_t)length < n ? strerror(errno) : "its name is too long");
  out[0] = '\0';
  return -1;
}

static int is_entry(const char *name) {
  return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int cli_folder_clear(const char *path) {
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
      is_left |= cli_folder_remove(below) != 0;
    else
      is_left |= unlink(below) != 0;
  }
  if (folder != NULL)
    closedir(folder);
  return is_left ? -1 : 0;
}

int cli_folder_remove(const char *path) {
  const int err = cli_folder_clear(path);

  return rmdir(path) != 0 ? -1 : err;
}
