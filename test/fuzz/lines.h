/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_FUZZ_LINES_H
#define TNK_TEST_FUZZ_LINES_H

#include <string.h>

#include "fuzz.h"

/* An input that is cut into lines, each NUL-terminated, without the "\n". */
typedef struct {
  char *copy;
  char *next; /* NULL behind the last one */
} fuzz_lines_t;

static inline void fuzz_lines_open(fuzz_lines_t *lines, const uint8_t *data,
                                   size_t size) {
  lines->copy = malloc(size + 1);
  FUZZ_CHECK(lines->copy != NULL);
  if (size > 0)
    memcpy(lines->copy, data, size);
  lines->copy[size] = '\0';
  lines->next = lines->copy;
}

/* The next line, or NULL. A NUL in the input ends its line and all others. */
static inline char *fuzz_lines_next(fuzz_lines_t *lines) {
  char *line = lines->next;
  char *end = line != NULL ? strchr(line, '\n') : NULL;

  if (end != NULL)
    *end++ = '\0';
  lines->next = end;
  return line;
}

static inline void fuzz_lines_close(fuzz_lines_t *lines) {
  free(lines->copy);
}

#endif
