/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/data/data.h"
#include "tnk/error.h"
#include "tools/tnk/text/lint.h"
#include "tools/tnk/train/args.h"
#include "tools/tnk/text/row.h"
#include "tools/tnk/learn/digest.h"
#include "tools/tnk/train/plan.h"
#include "tools/tnk/learn/rewards.h"

/* ---- Reading ---- */

typedef struct {
  train_data_t *data;
  train_file_t *file;
  /* The chosen part of a pair, until the rejected one comes; n is 0 if it
   * would train nothing. */
  int32_t *ids;
  float *weights;
  size_t n, room;
  learn_rewards_t rewards;
} reader_t;

/* With --reduction mean the weights of an example have the sum 1. */
static float scale_of(const float *weights, size_t n) {
  float sum = 0;

  if (train_args.reduction != TRAIN_MEAN)
    return 1;
  for (size_t i = 1; i < n; i++)
    sum += weights[i];
  return sum > 0 ? 1 / sum : 1;
}

static int keep(const reader_t *reader, const int32_t *ids,
                const float *weights, size_t n) {
  train_file_t *file = reader->file;

  file->digest = learn_digest(file->digest, &n, sizeof(n));
  file->digest = learn_digest(file->digest, ids, n * sizeof(*ids));
  file->digest = learn_digest(file->digest, weights, n * sizeof(*weights));
  return learn_store_add_tokens(&reader->data->store, ids, weights, n,
                                scale_of(weights, n));
}

/* The length up to the last trained token. Nothing depends on later ones. */
static size_t trained_length(const float *weights, size_t n) {
  while (n > 1 && !(weights[n - 1] != 0.0f))
    n--;
  return n > 1 ? n : 0;
}

/* Returns the length after the cut; 0 if nothing is then trained. */
static size_t cut(const reader_t *reader, const cli_example_t *example) {
  const size_t max = (size_t)train_args.max_length;
  const size_t n = trained_length(example->weights, example->n);

  if (max == 0 || n <= max)
    return n;
  reader->data->n_cut++;
  return trained_length(example->weights, max);
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

/* An example in the form that tnk lint reads. */
static int take_example(void *user, const char *line, size_t n, char *why,
                        size_t n_why) {
  reader_t *reader = user;
  learn_store_t *store = &reader->data->store;
  const int is_rl = train_args.method == TRAIN_RL;
  tnk__arena_t arena;
  tnk_datum_t datum;
  json_t *json = NULL;
  int err;

  tnk__arena_init(&arena, tnk__allocator_default(), SIZE_MAX / 2);
  err = cli_lint_line(&datum, &arena, &json, line, n,
                      is_rl ? train_losses[train_args.loss] : "cross_entropy",
                      why, n_why);
  /* The line is not in this form: the error of the other forms is reported. */
  if (err == TNK_EINVAL && !is_rl &&
      json_object_get(json, "model_input") == NULL)
    err = TNK_EPROTO;
  if (err == TNK_OK)
    err = learn_store_add(store, &datum);
  if (err == TNK_OK && is_rl)
    err =
        learn_rewards_add(&reader->rewards, &store->arena, json,
                          &store->data[store->n - 1], store->n - 1, why, n_why);
  if (err == TNK_OK) {
    reader->file->n_examples++;
    reader->file->digest = learn_store_digest(reader->file->digest, &datum);
  }
  json_decref(json);
  tnk__arena_deinit(&arena);
  return err;
}

static int read_file(cli_chats_t *chats, train_file_t *file) {
  char why[512] = "";
  FILE *in = train_input_open(file->name, why, sizeof(why));
  const size_t n_good = chats->n_good;
  int err;

  file->digest = LEARN_DIGEST_INIT;
  if (in == NULL)
    return cli_fail(chats->cli, CLI_EXIT_FILE, "%s", why);
  errno = 0;
  err = cli_chats_read(chats, in, file->name);
  if (err != TNK_OK)
    err = cli_fail(chats->cli, CLI_EXIT_FILE, "%s: %s", file->name,
                   errno != 0 ? strerror(errno) : tnk_strerror(err));
  else if (chats->n_bad == 0 && chats->n_good == n_good)
    err = cli_fail(chats->cli, CLI_EXIT_FILE, "%s: there is no %s", file->name,
                   chats->has_others  ? "example"
                   : chats->has_pairs ? "preference pair"
                                      : "conversation");
  if (in != stdin)
    fclose(in);
  return err;
}

/* All bad lines of all files are reported, not only the first. */
static int read_files(train_data_t *data, const cli_t *cli, int64_t now_s) {
  const int has_pairs = train_args.method == TRAIN_DPO;
  const int is_rl = train_args.method == TRAIN_RL;
  reader_t reader = {.data = data};
  cli_chats_t chats = {.cli = cli,
                       .args = &train_args.chats,
                       .give = has_pairs ? take_part : take,
                       .has_pairs = has_pairs,
                       .has_others = is_rl,
                       .other = take_example,
                       .user = &reader,
                       .now_s = now_s};
  int status = is_rl ? CLI_EXIT_OK : cli_chats_open(&chats);

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
                      is_rl       ? "examples"
                      : has_pairs ? "pairs"
                                  : "conversations");
  if (status == CLI_EXIT_OK && is_rl) {
    data->rewards = learn_rewards_list(&reader.rewards);
    status = data->rewards != NULL
                 ? learn_rewards_apply(&reader.rewards, cli, data->store.data,
                                       &train_args.advantages)
                 : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  }
  learn_rewards_free(&reader.rewards);
  free(reader.ids);
  free(reader.weights);
  cli_chats_close(&chats);
  return status;
}

/* ---- Training and evaluation ---- */

static double tensor_weight(const tnk_tensor_t *tensor, int is_count) {
  double sum = 0;

  for (size_t i = 0; i < tensor->n_values; i++) {
    const double value = tnk__tensor_float(tensor, i);

    sum += is_count ? value != 0 : value;
  }
  return sum;
}

/* A sampled token has a logprob, and a token of its prompt has 0. */
double train_weight(const tnk_datum_t *data, size_t n) {
  double sum = 0;

  for (size_t i = 0; i < n; i++) {
    const size_t logprobs = tnk__datum_find(&data[i], "logprobs");
    const size_t at =
        logprobs != SIZE_MAX ? logprobs : tnk__datum_find(&data[i], "weights");
    const tnk_loss_input_t input = at != SIZE_MAX
                                       ? tnk__datum_input_at(&data[i], at)
                                       : (tnk_loss_input_t){0};

    sum += at != SIZE_MAX ? tensor_weight(&input.tensor, at == logprobs)
                          : (double)tnk__input_length(&data[i].input);
  }
  return sum;
}

uint64_t train_tokens(const train_set_t *set, uint64_t i) {
  uint64_t n = 0;
  int is_whole;

  for (size_t part = 0; part < set->per; part++)
    n += tnk__input_tokens(&set->data[i * set->per + part].input, &is_whole);
  return n;
}

/* Add an example, which is `per` data. */
static void add(train_set_t *set, const tnk_datum_t *data) {
  int is_whole;

  for (size_t i = 0; i < set->per; i++) {
    const uint64_t n = tnk__input_tokens(&data[i].input, &is_whole);

    set->data[set->n * set->per + i] = data[i];
    if (n > set->longest)
      set->longest = (size_t)n;
  }
  set->weight += train_weight(data, set->per);
  set->n_tokens += train_tokens(set, set->n++);
}

/* The split uses the order of an epoch that no run reaches. */
static void split(train_data_t *data, const tnk_datum_t *all, size_t n,
                  size_t n_eval) {
  const uint64_t seed = (uint64_t)train_args.seed;

  for (size_t i = 0; i < n; i++) {
    const uint64_t at = train_shuffle(seed, UINT64_MAX, n, i);

    if (data->rewards != NULL)
      data->train.rewards[i] = data->rewards[at];
    add(i < n_eval ? &data->eval : &data->train, &all[at * data->train.per]);
  }
}

static int divide(train_data_t *data, const cli_t *cli) {
  const size_t per = train_args.method == TRAIN_DPO ? CLI_ROW_PARTS : 1;
  const tnk_datum_t *all = data->store.data;
  size_t n = data->store.n;
  size_t n_eval = 0;

  data->train.data = calloc(n + 1, sizeof(*all));
  data->eval.data = calloc(n + 1, sizeof(*all));
  data->train.rewards = calloc(n + 1, sizeof(float));
  if (data->train.data == NULL || data->eval.data == NULL ||
      data->train.rewards == NULL)
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
  char why[512] = "";
  int status;

  memset(data, 0, sizeof(*data));
  learn_store_init(&data->store);
  for (size_t i = 0; i < cli->n_words; i++)
    if (train_input_add(&data->input, cli->words[i], why, sizeof(why)) != 0)
      return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  data->files = calloc(data->input.n + 1, sizeof(*data->files));
  if (data->files == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  for (; data->n_files < data->input.n; data->n_files++)
    data->files[data->n_files].name = data->input.names[data->n_files];
  if (train_args.eval != NULL)
    data->files[data->n_files++].name = train_args.eval;
  status = read_files(data, cli, now_s);
  return status == CLI_EXIT_OK ? divide(data, cli) : status;
}

void train_data_free(train_data_t *data) {
  train_input_free(&data->input);
  free(data->files);
  free(data->rewards);
  free(data->train.rewards);
  free(data->train.data);
  free(data->eval.data);
  learn_store_free(&data->store);
}
