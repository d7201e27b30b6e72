/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_TREE_H
#define TNK_TEST_SUPPORT_TREE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/test.h"

/* How many entries a folder has; each is removed with all below it. */
static inline int remove_below(const char *path) {
  char below[512];
  struct dirent *entry;
  struct stat about;
  DIR *dir = opendir(path);
  int n = 0;

  if (dir == NULL)
    return 0;
  while ((entry = readdir(dir)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    CHECK(snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
          (int)sizeof(below));
    if (lstat(below, &about) == 0 && S_ISDIR(about.st_mode)) {
      remove_below(below);
      rmdir(below);
    } else {
      unlink(below);
    }
    n++;
  }
  closedir(dir);
  return n;
}

/* Remove a folder with all that is below it. */
static inline void remove_all(const char *dir) {
  remove_below(dir);
  rmdir(dir);
}

/* Write a file below a folder, and the folders on the way to it. */
static inline void write_below(const char *dir, const char *name,
                               const void *data, size_t n) {
  char path[512];
  FILE *file;

  snprintf(path, sizeof(path), "%s/%s", dir, name);
  for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    mkdir(path, 0777);
    *slash = '/';
  }
  file = fopen(path, "wb");
  CHECK(file != NULL);
  CHECK_INT(fwrite(data, 1, n, file), n);
  CHECK_INT(fclose(file), 0);
}

/* The contents of such a file, NUL-terminated and valid until the next call, or
 * NULL. */
static inline const char *read_below(const char *dir, const char *name,
                                     size_t *n) {
  static char text[8 * 1024 * 1024 + 1];
  char path[512];
  FILE *file;

  snprintf(path, sizeof(path), "%s/%s", dir, name);
  file = fopen(path, "rb");
  if (file == NULL)
    return NULL;
  *n = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[*n] = '\0';
  return text;
}

/* That it has these contents. */
static inline void check_below(const char *dir, const char *name,
                               const void *data, size_t n) {
  size_t length = 0;
  const char *text = read_below(dir, name, &length);

  if (text == NULL)
    test_fail(__FILE__, __LINE__, "%s is missing", name);
  CHECK_MEM(text, length, data, n);
}

#endif
