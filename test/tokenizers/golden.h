/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TOKENIZERS_GOLDEN_H
#define TNK_TEST_TOKENIZERS_GOLDEN_H

#include <stdlib.h>

#include "tokenizers/small.h"

/* Lines of data/NAME.golden: flags, text, and the reference's ids. */
typedef struct {
  char *line; /* the next one */
  unsigned flags;
  size_t n;
  uint8_t text[8192];
  size_t n_ids;
  int32_t ids[8192];
} golden_t;

static inline void golden_read(golden_t *golden, char *line) {
  static const unsigned modes[] = {0, TNK_ENCODE_ADD_SPECIAL,
                                   TNK_ENCODE_SPLIT_SPECIAL};
  char *hex = strchr(line, ' ') + 1, *ids = strchr(hex, ' ');

  golden->flags = modes[line[0] - '0'];
  *ids++ = '\0';
  golden->n =
      *hex == '-' ? 0 : test_unhex(golden->text, sizeof(golden->text), hex);
  golden->n_ids = 0;
  while (*ids != '\0' && *ids != '-') {
    golden->ids[golden->n_ids++] = (int32_t)strtol(ids, &ids, 10);
    if (*ids == ',')
      ids++;
  }
}

static inline void golden_open(golden_t *golden, const char *name) {
  char file[128];
  size_t n;

  (void)snprintf(file, sizeof(file), "%s.golden", name);
  golden->line = small_read(file, &n);
}

/* 0 at the end. */
static inline int golden_next(golden_t *golden) {
  for (;;) {
    char *line = golden->line, *end = strchr(line, '\n');

    if (end == NULL)
      return 0;
    *end = '\0';
    golden->line = end + 1;
    if (*line != '#') {
      golden_read(golden, line);
      return 1;
    }
  }
}

#endif
