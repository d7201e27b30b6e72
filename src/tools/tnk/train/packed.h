/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_PACKED_H
#define TNK_TOOLS_TNK_TRAIN_PACKED_H

#include "lib/base/arena.h"
#include "tnk/data.h"
#include "tools/common/frame/cli.h"
#include "tools/tnk/learn/store.h"
#include "tools/tnk/text/pack.h"
#include "tools/tnk/text/tokenizer.h"

/* The examples of packed files, which stay in the files. */
typedef struct {
  cli_pack_t *packs; /* in the order of the command line */
  size_t n;
  uint64_t n_examples; /* of all files */
  /* The training set begins after `n_skipped` examples in the order of the
   * split; without a split it has the order of the files. */
  int is_split;
  uint64_t n_skipped;
  uint64_t seed;
} train_packed_t;

/* Open a file and append it. `which` is the tokenizer of the command, whose
 * vocabulary must be that of the file, unless there is none. Returns the exit
 * status; errors have been reported. Free the set in any case. */
int train_packed_add(train_packed_t *packed, const cli_t *cli, const char *path,
                     const cli_tokenizer_t *which, int is_bytes);
void train_packed_free(train_packed_t *packed);
/* With --reduction mean the weights of an example have the sum 1: what they are
 * multiplied by. */
float train_scale_of(const float *weights, size_t n);
/* The number of ids of example `i` of the training set. */
size_t train_packed_length(const train_packed_t *packed, uint64_t i);
/* The inputs' tokens of all its examples, [n]. Returns TNK_OK, TNK_ENOMEM or
 * TNK_EFILE. */
int train_packed_tokens(const train_packed_t *packed, uint64_t *out, size_t n);
/* Read it. Returns as cli_pack_read(). */
int train_packed_read(const train_packed_t *packed, uint64_t i,
                      tnk__arena_t *arena, tnk_datum_t *out, char *why,
                      size_t n_why);
/* Copy example `i`, counted in the order of the files, to the store. */
int train_packed_keep(const train_packed_t *packed, uint64_t i,
                      learn_store_t *store, char *why, size_t n_why);

#endif
