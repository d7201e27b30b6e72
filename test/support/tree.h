#ifndef TNK_TEST_SUPPORT_TREE_H
#define TNK_TEST_SUPPORT_TREE_H

#include <dirent.h>
#include <stdio.h>
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

#endif
