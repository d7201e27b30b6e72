/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_INPUT_H
#define TNK_TOOLS_TNK_TRAIN_INPUT_H

#include <stddef.h>
#include <stdio.h>

/* The data files of a command line. A folder stands for its files .jsonl,
 * .jsonl.gz and .jsonl.zst by name, and a pattern for the files that match
 * it. */
typedef struct {
  char **names;
  size_t n, room;
} train_input_t;

/* Add a file, a folder or a pattern. Returns 0, or -1 with the reason in `why`.
 * Free the input in any case. */
int train_input_add(train_input_t *input, const char *word, char *why,
                    size_t n_why);
void train_input_free(train_input_t *input);
/* Open a file; "-" is the standard input. Contents that gzip or zstd has
 * compressed are written to a temporary file. Returns NULL with the reason in
 * `why`. */
FILE *train_input_open(const char *name, char *why, size_t n_why);

#endif
