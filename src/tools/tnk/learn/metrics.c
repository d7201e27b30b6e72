/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "tnk/error.h"

/* The step of a line; 0 for a line of another program. */
static uint64_t step_of(const char *line) {
  static const char head[] = "{\"step\":";

  return strncmp(line, head, sizeof(head) - 1) == 0
             ? strtoull(line + sizeof(head) - 1, NULL, 10)
             : 0;
}

/* Returns whether a line ends the part to keep. Lines of other programs are
 * kept. */
static int is_end(const char *line, size_t n, uint64_t n_steps) {
  return line[n - 1] != '\n' || step_of(line) > n_steps;
}

int learn_metrics_rewind(const char *path, uint64_t n_steps) {
  FILE *file = fopen(path, "r+");
  char *line = NULL;
  size_t room = 0;
  off_t end = 0;
  ssize_t n;
  int err = TNK_OK;

  if (file == NULL)
    return errno == ENOENT ? TNK_OK : TNK_EFILE;
  while ((n = getline(&line, &room, file)) > 0 &&
         !is_end(line, (size_t)n, n_steps))
    end += n;
  if (ferror(file) || (n < 0 && !feof(file)))
    err = ferror(file) ? TNK_EFILE : TNK_ENOMEM;
  /* The steps are in order, so everything behind is of later steps too. */
  else if (ftruncate(fileno(file), end) != 0)
    err = TNK_EFILE;
  free(line);
  fclose(file);
  return err;
}

int learn_metrics_last(const char *path, uint64_t *n_steps) {
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  int err = TNK_OK;
  int cause;

  *n_steps = 0;
  if (file == NULL)
    return errno == ENOENT ? TNK_OK : TNK_EFILE;
  while ((n = getline(&line, &room, file)) > 0)
    if (line[n - 1] == '\n' && step_of(line) > 0)
      *n_steps = step_of(line);
  if (ferror(file) || !feof(file))
    err = ferror(file) ? TNK_EFILE : TNK_ENOMEM;
  cause = errno;
  free(line);
  fclose(file);
  errno = cause;
  return err;
}

int learn_metrics_sync(const char *path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  int is_synced;

  if (fd < 0)
    return errno == ENOENT ? TNK_OK : TNK_EFILE;
  is_synced = fsync(fd) == 0;
  close(fd);
  return is_synced ? TNK_OK : TNK_EFILE;
}
