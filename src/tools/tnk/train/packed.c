/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/packed.h"

#include <stdlib.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tnk/train.h"
#include "tools/tnk/text/chats.h"
#include "tools/tnk/text/tokenizer.h"
#include "tools/tnk/train/args.h"

/* ---- Vocabulary ---- */

static int compare(const cli_t *cli, const cli_pack_t *pack,
                   const tnk_chat_tokenizer_t *tokenizer, size_t n_vocab,
                   const char *name) {
  const uint64_t there = pack->head.vocabulary;

  if (pack->head.n_vocab == n_vocab &&
      there == cli_pack_vocabulary(tokenizer, n_vocab))
    return CLI_EXIT_OK;
  return cli_fail(cli, CLI_EXIT_FILE,
                  "%s: its ids are of another vocabulary than that of %s. Pack "
                  "the data again with this tokenizer",
                  pack->name, name);
}

static int check_vocabulary(const cli_t *cli, const cli_pack_t *pack,
                            const cli_tokenizer_t *which, int is_bytes) {
  const tnk_chat_tokenizer_t bytes = {.plugin = tnk_chat_bytes_plugin()};
  tnk_chat_tokenizer_t tokenizer = {.plugin = tnk_tokenizer_plugin()};
  char why[512] = "";
  int status = CLI_EXIT_FAILED;
  tnk_tokenizer_t *tok;

  if (which->path == NULL && which->model == NULL)
    return is_bytes
               ? compare(cli, pack, &bytes, CLI_CHATS_BYTES, train_args.model)
               : CLI_EXIT_OK;
  tok = cli_tokenizer_open(cli, which, &status, why, sizeof(why));
  if (tok == NULL)
    return cli_tokenizer_failed(cli, which, status, why, NULL);
  tokenizer.tokenizer = tok;
  status = compare(cli, pack, &tokenizer, tnk_tokenizer_vocab_size(tok),
                   which->path != NULL ? which->path : which->model);
  tnk_tokenizer_unref(tok);
  return status;
}

/* ---- Files ---- */

/* Examples whose entries of the index are in memory: a mebibyte. */
enum { MAX_ENTRIES = 1 << 16 };

int train_packed_add(train_packed_t *packed, const cli_t *cli, const char *path,
                     const cli_tokenizer_t *which, int is_bytes) {
  cli_pack_t *packs =
      realloc(packed->packs, (packed->n + 1) * sizeof(*packed->packs));
  char why[512] = "";
  int err;

  if (packs == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  packed->packs = packs;
  err = cli_pack_open(&packs[packed->n++], path, why, sizeof(why));
  if (err != TNK_OK)
    return cli_fail(cli, CLI_EXIT_FILE, "%s",
                    err == TNK_ENOMEM ? "out of memory" : why);
  packed->n_examples += packs[packed->n - 1].head.n_examples;
  if (packed->n_examples <= MAX_ENTRIES)
    cli_pack_keep_index(&packs[packed->n - 1]);
  return check_vocabulary(cli, &packs[packed->n - 1], which, is_bytes);
}

void train_packed_free(train_packed_t *packed) {
  for (size_t i = 0; i < packed->n; i++)
    cli_pack_close(&packed->packs[i]);
  free(packed->packs);
}

/* ---- Examples ---- */

float train_scale_of(const float *weights, size_t n) {
  float sum = 0;

  if (train_args.reduction != TRAIN_MEAN)
    return 1;
  for (size_t i = 1; i < n; i++)
    sum += weights[i];
  return sum > 0 ? 1 / sum : 1;
}

/* The file of an example and its number there. */
static const cli_pack_t *find(const train_packed_t *packed, uint64_t *i) {
  const cli_pack_t *pack = packed->packs;

  for (; *i >= pack->head.n_examples; pack++)
    *i -= pack->head.n_examples;
  return pack;
}

/* The place of an example of the training set in the files. */
static uint64_t place(const train_packed_t *packed, uint64_t i) {
  return packed->is_split
             ? tnk_shuffle(packed->seed, UINT64_MAX, packed->n_examples,
                           packed->n_skipped + i)
             : i;
}

size_t train_packed_length(const train_packed_t *packed, uint64_t i) {
  uint64_t at = place(packed, i);
  const cli_pack_t *pack = find(packed, &at);

  return cli_pack_length(pack, at);
}

int train_packed_tokens(const train_packed_t *packed, uint64_t *out, size_t n) {
  uint32_t *lengths = calloc((size_t)packed->n_examples, sizeof(*lengths));
  uint64_t n_read = 0;
  int err = lengths != NULL ? TNK_OK : TNK_ENOMEM;

  for (size_t i = 0; i < packed->n && err == TNK_OK; i++) {
    err = cli_pack_lengths(&packed->packs[i], lengths + n_read) ? TNK_OK
                                                                : TNK_EFILE;
    n_read += packed->packs[i].head.n_examples;
  }
  /* An entry that has changed since the file was opened may be 0. */
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    out[i] = lengths[place(packed, i)];
    out[i] -= out[i] > 0;
  }
  free(lengths);
  return err;
}

int train_packed_read(const train_packed_t *packed, uint64_t i,
                      tnk__arena_t *arena, tnk_datum_t *out, char *why,
                      size_t n_why) {
  uint64_t at = place(packed, i);
  const cli_pack_t *pack = find(packed, &at);
  int32_t *ids;
  float *weights;
  float scale;
  size_t n;
  const int err =
      cli_pack_read(pack, at, arena, &ids, &weights, &n, why, n_why);

  if (err != TNK_OK)
    return err;
  scale = train_scale_of(weights, n);
  for (size_t k = 0; k < n && scale != 1; k++)
    weights[k] *= scale;
  return learn_datum(out, arena, ids, weights, n);
}

int train_packed_keep(const train_packed_t *packed, uint64_t i,
                      learn_store_t *store, char *why, size_t n_why) {
  const cli_pack_t *pack = find(packed, &i);
  int32_t *ids;
  float *weights;
  size_t n;
  tnk__arena_t arena;
  int err;

  tnk__arena_init(&arena, tnk__allocator_default(), SIZE_MAX / 2);
  err = cli_pack_read(pack, i, &arena, &ids, &weights, &n, why, n_why);
  if (err == TNK_OK)
    err = learn_store_add_tokens(store, ids, weights, n,
                                 train_scale_of(weights, n));
  tnk__arena_deinit(&arena);
  return err;
}
