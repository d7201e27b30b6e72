/* SPDX-License-Identifier: MIT */
#include "tools/tnk/serve/position.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/number.h"
#include "tnk/error.h"

static int failed(const char *path, int number, char *why, size_t n_why) {
  (void)snprintf(why, n_why, "%s: %s", path, strerror(number));
  return -1;
}

/* Read a line without its line feed. Returns 1, 0 at the end of the file or if
 * the line is incomplete, or -1 if it is too long. */
static int read_line(FILE *file, char *out, size_t n) {
  size_t len = 0;
  int c;

  while ((c = fgetc(file)) != EOF && c != '\n') {
    if (len + 1 == n)
      return -1;
    out[len++] = (char)c;
  }
  out[len] = '\0';
  return c == '\n';
}

static int skip_all(FILE *file, const char *path, tnk__gw_record_t *record,
                    char *why, size_t n_why) {
  char line[24];
  long end = 0;
  int has;

  for (size_t n = 1; (has = read_line(file, line, sizeof(line))) != 0; n++) {
    uint64_t number;

    if (has < 0 || tnk__text_u64(line, INT64_MAX, &number) != TNK_OK ||
        number == 0) {
      (void)snprintf(why, n_why,
                     "%s: line %zu is not the number of a turn, so this is no "
                     "file of --state",
                     path, n);
      return -1;
    }
    tnk__gw_skip(record, number);
    end = ftell(file);
  }
  if (line[strspn(line, "0123456789")] != '\0') {
    (void)snprintf(why, n_why,
                   "%s: its last line is not the number of a turn, so this is "
                   "no file of --state",
                   path);
    return -1;
  }
  if (ferror(file) || ftruncate(fileno(file), end) != 0 ||
      fseek(file, 0, SEEK_END) != 0)
    return failed(path, errno, why, n_why);
  return 0;
}

int cli_position_open(FILE **out, const char *path, tnk__gw_record_t *record,
                      char *why, size_t n_why) {
  *out = fopen(path, "a+");
  if (*out == NULL)
    return failed(path, errno, why, n_why);
  /* Where "a+" begins to read is not defined. */
  rewind(*out);
  if (skip_all(*out, path, record, why, n_why) == 0)
    return 0;
  (void)fclose(*out);
  *out = NULL;
  return -1;
}

int cli_position_add(FILE *file, const char *path,
                     const tnk__gw_branch_t *branches, size_t n, char *why,
                     size_t n_why) {
  for (size_t i = 0; i < n; i++)
    (void)fprintf(file, "%" PRIu64 "\n", branches[i].leaf);
  return fflush(file) == 0 && !ferror(file) ? 0
                                            : failed(path, errno, why, n_why);
}
