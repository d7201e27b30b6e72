/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tools/tnk/train/args.h"
#include "tools/tnk/train/plan.h"

/* ---- Reading ---- */

typedef struct {
  train_data_t *data;
  train_file_t *file;
} reader_t;

/* FNV-1a, which detects changes, not attacks. */
static uint64_t digest(uint64_t sum, const void *bytes, size_t n) {
  const unsigned char *at = bytes;

  for (size_t i = 0; i < n; i++)
    sum = (sum ^ at[i]) * 0x100000001B3u;
  return sum;
}

static int trains(const float *weights, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (weights[i] != 0.0f)
      return 1;
  return 0;
}

static int take(void *user, const cli_example_t *example) {
  reader_t *reader = user;
  const size_t max = (size_t)train_args.max_length;
  const int is_cut = max > 0 && example->n > max;
  const size_t n = is_cut ? max : example->n;
  train_file_t *file = reader->file;

  reader->data->n_cut += (size_t)is_cut;
  if (is_cut && (n < 2 || !trains(example->weights, n))) {
    reader->data->n_left_out++;
    return TNK_OK;
  }
  file->n_examples++;
  file->digest = digest(file->digest, &n, sizeof(n));
  file->digest = digest(file->digest, example->ids, n * sizeof(*example->ids));
  file->digest =
      digest(file->digest, example->weights, n * sizeof(*example->weights));
  return tnk_batch_add_tokens(reader->data->all, example->ids, example->weights,
                              n);
}

static int read_file(cli_chats_t *chats, train_file_t *file) {
  const int is_stdin = strcmp(file->name, "-") == 0;
  FILE *in = is_stdin ? stdin : fopen(file->name, "r");
  const size_t n_good = chats->n_good;
  int err;

  file->digest = 0xCBF29CE484222325u;
  if (in == NULL)
    return cli_fail(chats->cli, CLI_EXIT_FILE, "%s: %s", file->name,
                    strerror(errno));
  errno = 0;
  err = cli_chats_read(chats, in, file->name);
  if (err != TNK_OK)
    err = cli_fail(chats->cli, CLI_EXIT_FILE, "%s: %s", file->name,
                   errno != 0 ? strerror(errno) : tnk_strerror(err));
  else if (chats->n_bad == 0 && chats->n_good == n_good)
    err = cli_fail(chats->cli, CLI_EXIT_FILE, "%s: there is no conversation",
                   file->name);
  if (!is_stdin)
    fclose(in);
  return err;
}

/* All bad lines of all files are reported, not only the first. */
static int read_files(train_data_t *data, const cli_t *cli, int64_t now_s) {
  reader_t reader = {.data = data};
  cli_chats_t chats = {.cli = cli,
                       .args = &train_args.chats,
                       .give = take,
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
                      "%zu of %zu conversations cannot be used for training",
                      chats.n_bad, chats.n_bad + chats.n_good);
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

static void add(train_set_t *set, const tnk_datum_t *datum) {
  set->data[set->n++] = *datum;
  set->n_tokens += datum->input.n_tokens;
  set->weight += train_weight(datum, 1);
  if (datum->input.n_tokens > set->longest)
    set->longest = datum->input.n_tokens;
}

/* The order of the split is that of an epoch that no run reaches. */
static void split(train_data_t *data, const tnk_datum_t *all, size_t n,
                  size_t n_eval) {
  const uint64_t seed = (uint64_t)train_args.seed;

  for (size_t i = 0; i < n; i++)
    add(i < n_eval ? &data->eval : &data->train,
        &all[train_shuffle(seed, UINT64_MAX, n, i)]);
}

static int divide(train_data_t *data, const cli_t *cli) {
  size_t n, n_eval = 0;
  const tnk_datum_t *all = tnk_batch_data(data->all, &n);

  data->train.data = calloc(n + 1, sizeof(*all));
  data->eval.data = calloc(n + 1, sizeof(*all));
  if (data->train.data == NULL || data->eval.data == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  if (train_args.eval != NULL) {
    n_eval = data->files[data->n_files - 1].n_examples;
    for (size_t i = 0; i < n; i++)
      add(i < n - n_eval ? &data->train : &data->eval, &all[i]);
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
