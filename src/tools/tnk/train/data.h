/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_DATA_H
#define TNK_TOOLS_TNK_TRAIN_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/data.h"
#include "tools/common/frame/cli.h"
#include "tools/tnk/train/input.h"
#include "tools/tnk/train/packed.h"
#include "tools/tnk/learn/store.h"

/* A file that was read. */
typedef struct {
  const char *name;
  size_t n_examples;
  uint64_t digest; /* of the ids and weights of its examples */
} train_file_t;

/* Examples, as views of the store. A preference pair counts as one. */
typedef struct {
  /* [n * per], the parts of an example one after another. NULL if the examples
   * are in packed files. */
  tnk_datum_t *data;
  const train_packed_t *packed; /* or NULL */
  size_t n;
  size_t per;        /* 1; 2 for pairs, with the chosen one first */
  uint64_t n_tokens; /* of the model inputs */
  float *rewards;    /* [n], of RL; NaN: none. NULL: none at all */
  double *weights;   /* [n], of tnk_data_weight(); NULL for packed files */
  double weight;     /* their sum */
  size_t longest;    /* tokens of the longest input; 0: see train_longest() */
} train_set_t;

/* The data of a run. */
typedef struct {
  train_file_t *files; /* the last one is the file of --eval, if it is given */
  size_t n_files;
  size_t n_cut;      /* examples that --max-length has cut */
  size_t n_left_out; /* and those that it has left out */
  size_t n_vocab;    /* token ids of the tokenizer; 0: bytes */
  train_set_t train;
  train_set_t eval;
  train_input_t input; /* owns the names of the files */
  train_packed_t packed;
  learn_store_t store;
  float *rewards; /* of each example in the store; or NULL */
} train_data_t;

/* Read the files of the command line. `now_s` is the time for templates.
 * Returns the exit status; errors have been reported. Free the data in any
 * case. */
int train_data_read(train_data_t *data, const cli_t *cli, int64_t now_s);
void train_data_free(train_data_t *data);
/* Tokens of the longest input. May read the index of packed files. */
size_t train_longest(const train_set_t *set);
/* Tokens of the inputs of one example. */
uint64_t train_tokens(const train_set_t *set, uint64_t i);
/* Those of all examples, [n]. Returns TNK_OK, TNK_ENOMEM or TNK_EFILE. */
int train_all_tokens(const train_set_t *set, uint64_t *out);

#endif
