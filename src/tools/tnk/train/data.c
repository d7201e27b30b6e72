/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tools/tnk/train/args.h"
#include "tools/tnk/text/row.h"
#include "tools/tnk/train/digest.h"
#include "tools/tnk/train/plan.h"

/* ---- Reading ---- */

typedef struct {
  train_data_t *data;
  train_file_t *file;
  /* The chosen part of a pair, until the rejected one comes; n is 0 if it
   * would train nothing. */
  int32_t *ids;
  float *weights;
  size_t n, room;
} reader_t;

static int trains(const float *weights, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (weights[i] != 0.0f)
      return 1;
  return 0;
}

static int keep(const reader_t *reader, const int32_t *ids,
                const float *weights, size_t n) {
  train_file_t *file = reader->file;

  file->digest = train_digest(file->digest, &n, sizeof(n));
  file->digest = train_digest(file->digest, ids, n * sizeof(*ids));
  file->digest = train_digest(file->digest, weights, n * sizeof(*weights));
  return tnk_batch_add_tokens(reader->data->all, ids, weights, n);
}

/* Returns the length after the cut; 0 if nothing is then trained. */
static size_t cut(const reader_t *reader, const cli_example_t *example) {
  const size_t max = (size_t)train_args.max_length;

  if (max == 0 || example->n <= max)
    return example->n;
  reader->data->n_cut++;
  return max >= 2 && trains(example->weights, max) ? max : 0;
}

static int take(void *user, const cli_example_t *example) {
  reader_t *reader = user;
  const size_t n = cut(reader, example);

  if (n == 0) {
    reader->data->n_left_out++;
    return TNK_OK;
  }
  reader->file->n_examples++;
  return keep(reader, example->ids, example->weights, n);
}

/* Copy the chosen part. */
static int hold(reader_t *reader, const cli_example_t *example, size_t n) {
  if (n > reader->room) {
    int32_t *ids = realloc(reader->ids, n * sizeof(*ids));
    float *weights;

    if (ids == NULL)
      return TNK_ENOMEM;
    reader->ids = ids;
    weights = realloc(reader->weights, n * sizeof(*weights));
    if (weights == NULL)
      return TNK_ENOMEM;
    reader->weights = weights;
    reader->room = n;
  }
  if (n > 0) {
    memcpy(reader->ids, example->ids, n * sizeof(*reader->ids));
    memcpy(reader->weights, example->weights, n * sizeof(*reader->weights));
  }
  reader->n = n;
  return TNK_OK;
}

/* A pair is kept only as a whole. */
static int take_part(void *user, const cli_example_t *example) {
  reader_t *reader = user;
  const size_t n = cut(reader, example);
  int err;

  if (example->part == CLI_ROW_CHOSEN)
    return hold(reader, example, n);
  if (n == 0 || reader->n == 0) {
    reader->data->n_left_out++;
    return TNK_OK;
  }
  reader->file->n_examples++;
  err = keep(reader, reader->ids, reader->weights, reader->n);
  return err == TNK_OK ? keep(reader, example->ids, example->weights, n) : err;
}

static int read_file(cli_chats_t *chats, train_file_t *file) {
  const int is_stdin = strcmp(file->name, "-") == 0;
  FILE *in = is_stdin ? stdin : fopen(file->name, "r");
  const size_t n_good = chats->n_good;
  int err;

  file->digest = TRAIN_DIGEST_INIT;
  if (in == NULL)
    return cli_fail(chats->cli, CLI_EXIT_FILE, "%s: %s", file->name,
                    strerror(errno));
  errno = 0;
  err = cli_chats_read(chats, in, file->name);
  if (err != TNK_OK)
    err = cli_fail(chats->cli, CLI_EXIT_FILE, "%s: %s", file->name,
                   errno != 0 ? strerror(errno) : tnk_strerror(err));
  else if (chats->n_bad == 0 && chats->n_good == n_good)
    err = cli_fail(chats->cli, CLI_EXIT_FILE, "%s: there is no %s", file->name,
                   chats->has_pairs ? "preference pair" : "conversation");
  if (!is_stdin)
    fclose(in);
  return err;
}

/* All bad lines of all files are reported, not only the first. */
static int read_files(train_data_t *data, const cli_t *cli, int64_t now_s) {
  const int has_pairs = train_args.method == TRAIN_DPO;
  reader_t reader = {.data = data};
  cli_chats_t chats = {.cli = cli,
                       .args = &train_args.chats,
                       .give = has_pairs ? take_part : take,
                       .has_pairs = has_pairs,
                       .user = &reader,
                       .now_s = now_s};
  int status = cli_chats_open(&chats);

  if (chats.tok != NULL)
    data->n_vocab = tnk_tokenizer_vocab_size(chats.tok);
  for (size_t i = 0; i < data->n_files && status == CLI_EXIT_OK; i++) {
    reader.file = &data->files[i];
    status = read_file(&chats, reader.file);
  }
  if (status == CLI_EXIT_OK && chats.n_bad > 0)
    status = cli_fail(cli, CLI_EXIT_FAILED,
                      "%zu of %zu %s cannot be used for training", chats.n_bad,
                      chats.n_bad + chats.n_good,
                      has_pairs ? "pairs" : "conversations");
  free(reader.ids);
  free(reader.weights);
  cli_chats_close(&chats);
  return status;
}

/* ---- Training and evaluation ---- */

double train_weight(const tnk_datum_t *data, size_t n) {
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    for (size_t t = 0; t < data[i].input.n_tokens; t++)
      sum += data[i].weights != NULL ? (double)data[i].weights[t] : 1;
  return sum;
}

uint64_t train_tokens(const train_set_t *set, uint64_t i) {
  uint64_t n = 0;

  for (size_t part = 0; part < set->per; part++)
    n += set->data[i * set->per + part].input.n_tokens;
  return n;
}

/* Add an example, which is `per` data. */
static void add(train_set_t *set, const tnk_datum_t *data) {
  for (size_t i = 0; i < set->per; i++) {
    set->data[set->n * set->per + i] = data[i];
    if (data[i].input.n_tokens > set->longest)
      set->longest = data[i].input.n_tokens;
  }
  set->weight += train_weight(data, set->per);
  set->n_tokens += train_tokens(set, set->n++);
}

/* The order of the split is that of an epoch that no run reaches. */
static void split(train_data_t *data, const tnk_datum_t *all, size_t n,
                  size_t n_eval) {
  const uint64_t seed = (uint64_t)train_args.seed;

  for (size_t i = 0; i < n; i++)
    add(i < n_eval ? &data->eval : &data->train,
        &all[train_shuffle(seed, UINT64_MAX, n, i) * data->train.per]);
}

static int divide(train_data_t *data, const cli_t *cli) {
  const size_t per = train_args.method == TRAIN_DPO ? CLI_ROW_PARTS : 1;
  size_t n, n_eval = 0;
  const tnk_datum_t *all = tnk_batch_data(data->all, &n);

  data->train.data = calloc(n + 1, sizeof(*all));
  data->eval.data = calloc(n + 1, sizeof(*all));
  if (data->train.data == NULL || data->eval.data == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  data->train.per = data->eval.per = per;
  n /= per;
  if (train_args.eval != NULL) {
    n_eval = data->files[data->n_files - 1].n_examples;
    for (size_t i = 0; i < n; i++)
      add(i < n - n_eval ? &data->train : &data->eval, &all[i * per]);
  } else {
    if (train_args.eval_split > 0)
      n_eval = (size_t)ceil(train_args.eval_split * (double)n);
    split(data, all, n, n_eval);
  }
  if (data->train.n == 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "no example is left to train on");
  if (data->eval.n == 0 && train_args.eval != NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "%s: no example is left",
                    train_args.eval);
  return CLI_EXIT_OK;
}

int train_data_read(train_data_t *data, const cli_t *cli, int64_t now_s) {
  int status;

  memset(data, 0, sizeof(*data));
  data->all = tnk_batch_new(NULL);
  data->files = calloc(cli->n_words + 1, sizeof(*data->files));
  if (data->all == NULL || data->files == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  for (; data->n_files < cli->n_words; data->n_files++)
    data->files[data->n_files].name = cli->words[data->n_files];
  if (train_args.eval != NULL)
    data->files[data->n_files++].name = train_args.eval;
  status = read_files(data, cli, now_s);
  return status == CLI_EXIT_OK ? divide(data, cli) : status;
}

void train_data_free(train_data_t *data) {
  free(data->files);
  free(data->train.data);
  free(data->eval.data);
  tnk_batch_free(data->all);
}
