/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/data/data.h"
#include "tnk/error.h"
#include "tnk/train.h"
#include "tools/tnk/text/lint.h"
#include "tools/tnk/train/args.h"
#include "tools/tnk/text/row.h"
#include "tools/common/base/digest.h"
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

static int keep(const reader_t *reader, const int32_t *ids,
                const float *weights, size_t n) {
  train_file_t *file = reader->file;

  file->digest = cli_digest(file->digest, &n, sizeof(n));
  file->digest = cli_digest(file->digest, ids, n * sizeof(*ids));
  file->digest = cli_digest(file->digest, weights, n * sizeof(*weights));
  return learn_store_add_tokens(&reader->data->store, ids, weights, n,
                                train_scale_of(weights, n));
}

/* Returns the length after the cut; 0 if nothing is then trained. */
static size_t cut(const reader_t *reader, const cli_example_t *example) {
  return cli_chats_cut(example, (size_t)train_args.max_length,
                       &reader->data->n_cut);
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

/* A prompt is not cut, because it ends with the beginning of the answer. */
static int take_prompt(void *user, const cli_example_t *example) {
  reader_t *reader = user;
  train_file_t *file = reader->file;
  const tnk_datum_t datum = {
      .input = {.tokens = example->ids, .n_tokens = example->n}};

  if (example->n == 0 || (train_args.max_length > 0 &&
                          example->n > (size_t)train_args.max_length)) {
    reader->data->n_left_out++;
    return TNK_OK;
  }
  file->n_examples++;
  file->digest = learn_store_digest(file->digest, &datum);
  return learn_store_add_prompt(&reader->data->store, example->ids, example->n);
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
  err = cli_lint_line(
      &datum, &arena, &json, line, n,
      is_rl ? learn_losses[train_args.loss.name] : "cross_entropy", why, n_why);
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

  file->digest = CLI_DIGEST_INIT;
  if (in == NULL)
    return cli_fail(chats->cli, CLI_EXIT_FILE, "%s", why);
  errno = 0;
  err = cli_chats_read(chats, in, file->name);
  if (err != TNK_OK)
    err = cli_fail(chats->cli, CLI_EXIT_FILE, "%s: %s", file->name,
                   errno != 0 ? strerror(errno) : tnk_strerror(err));
  else if (chats->n_bad == 0 && chats->n_good == n_good)
    err = cli_fail(chats->cli, CLI_EXIT_FILE, "%s: there is no %s", file->name,
                   chats->has_others    ? "example"
                   : chats->has_pairs   ? "preference pair"
                   : chats->has_prompts ? "prompt"
                                        : "conversation");
  if (in != stdin)
    fclose(in);
  return err;
}

/* ---- Packed data ---- */

/* Open the file and count its examples. Those for the evaluation are copied to
 * memory, as others are. */
static int open_packed(train_data_t *data, const cli_t *cli, train_file_t *file,
                       int is_eval) {
  train_packed_t eval = {0};
  train_packed_t *packed = is_eval ? &eval : &data->packed;
  const cli_pack_head_t *head;
  char why[512] = "";
  int err = TNK_OK;
  int status =
      train_packed_add(packed, cli, file->name, &train_args.chats.which,
                       strcmp(train_args.model, LEARN_BYTE_MODEL) == 0);

  if (status == CLI_EXIT_OK) {
    head = &packed->packs[packed->n - 1].head;
    file->digest = head->digest;
    file->n_examples = (size_t)head->n_examples;
    data->n_vocab = (size_t)head->n_vocab;
    data->n_cut += (size_t)head->n_cut;
    data->n_left_out += (size_t)head->n_left_out;
    for (uint64_t i = 0; is_eval && i < head->n_examples && err == TNK_OK; i++)
      err = train_packed_keep(packed, i, &data->store, why, sizeof(why));
    if (err != TNK_OK)
      status = cli_fail(cli, CLI_EXIT_FILE, "%s",
                        err == TNK_ENOMEM ? "out of memory" : why);
  }
  train_packed_free(&eval);
  return status;
}

static int is_eval_file(const train_data_t *data, size_t i) {
  return train_args.eval != NULL && i + 1 == data->n_files;
}

/* Packed data are for one method, and not mixed with other files. Sets
 * *n_others to the number of files that are not packed. */
static int check_packed(const train_data_t *data, const cli_t *cli,
                        size_t *n_others) {
  const char *packed = NULL;
  const char *other = NULL;

  *n_others = 0;
  for (size_t i = 0; i < data->n_files; i++) {
    const char *name = data->files[i].name;
    const int is_packed = cli_pack_is(name);

    *n_others += !is_packed;
    if (is_packed &&
        (train_args.method != TRAIN_SFT || train_args.max_length > 0))
      return cli_fail(cli, CLI_EXIT_USAGE, "%s has packed data, %s", name,
                      train_args.method != TRAIN_SFT
                          ? "which need --method sft"
                          : "which tnk chat-data --max-length cuts");
    if (is_packed && !is_eval_file(data, i))
      packed = name;
    else if (!is_packed && !is_eval_file(data, i))
      other = name;
  }
  if (packed == NULL || other == NULL)
    return CLI_EXIT_OK;
  return cli_fail(cli, CLI_EXIT_USAGE,
                  "%s has packed data, and %s has not: they cannot be mixed",
                  packed, other);
}

static int apply_rewards(train_data_t *data, const cli_t *cli,
                         learn_rewards_t *rewards) {
  data->rewards = learn_rewards_list(rewards);
  return data->rewards != NULL
             ? learn_rewards_apply(rewards, cli, data->store.data,
                                   &train_args.advantages)
             : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

/* All bad lines of all files are reported, not only the first. */
static int read_files(train_data_t *data, const cli_t *cli, int64_t now_s) {
  const int has_pairs = train_args.method == TRAIN_DPO;
  const int is_rl = train_args.method == TRAIN_RL;
  const int has_prompts = train_args.method == TRAIN_DISTILL;
  reader_t reader = {.data = data};
  cli_chats_t chats = {.cli = cli,
                       .args = &train_args.chats,
                       .give = has_pairs     ? take_part
                               : has_prompts ? take_prompt
                                             : take,
                       .has_pairs = has_pairs,
                       .has_prompts = has_prompts,
                       .has_others = is_rl,
                       .other = take_example,
                       .user = &reader,
                       .now_s = now_s};
  size_t n_others;
  int status = check_packed(data, cli, &n_others);

  if (status == CLI_EXIT_OK && !is_rl && n_others > 0)
    status = cli_chats_open(&chats);
  if (chats.tok != NULL)
    data->n_vocab = tnk_tokenizer_vocab_size(chats.tok);
  for (size_t i = 0; i < data->n_files && status == CLI_EXIT_OK; i++) {
    reader.file = &data->files[i];
    status = cli_pack_is(reader.file->name)
                 ? open_packed(data, cli, reader.file, is_eval_file(data, i))
                 : read_file(&chats, reader.file);
  }
  if (status == CLI_EXIT_OK && chats.n_bad > 0)
    status = cli_fail(cli, CLI_EXIT_FAILED,
                      "%zu of %zu %s cannot be used for training", chats.n_bad,
                      chats.n_bad + chats.n_good,
                      is_rl         ? "examples"
                      : has_pairs   ? "pairs"
                      : has_prompts ? "prompts"
                                    : "conversations");
  if (status == CLI_EXIT_OK && is_rl)
    status = apply_rewards(data, cli, &reader.rewards);
  learn_rewards_free(&reader.rewards);
  free(reader.ids);
  free(reader.weights);
  cli_chats_close(&chats);
  return status;
}

/* ---- Training and evaluation ---- */

uint64_t train_tokens(const train_set_t *set, uint64_t i) {
  uint64_t n = 0;
  int is_whole;

  if (set->packed != NULL) {
    n = train_packed_length(set->packed, i);
    return n > 0 ? n - 1 : 0;
  }
  for (size_t part = 0; part < set->per; part++)
    n += tnk__input_tokens(&set->data[i * set->per + part].input, &is_whole);
  return n;
}

int train_all_tokens(const train_set_t *set, uint64_t *out) {
  if (set->packed != NULL)
    return train_packed_tokens(set->packed, out, set->n);
  for (size_t i = 0; i < set->n; i++)
    out[i] = train_tokens(set, i);
  return TNK_OK;
}

/* Add an example, which is `per` data. */
static void add(train_set_t *set, const tnk_datum_t *data) {
  const double weight = tnk_data_weight(data, set->per);
  int is_whole;

  for (size_t i = 0; i < set->per; i++) {
    const uint64_t n = tnk__input_tokens(&data[i].input, &is_whole);

    set->data[set->n * set->per + i] = data[i];
    if (n > set->longest)
      set->longest = (size_t)n;
  }
  if (set->weights != NULL)
    set->weights[set->n] = weight;
  set->weight += weight;
  set->n_tokens += train_tokens(set, set->n++);
}

/* The split uses the order of an epoch that no run reaches. */
static void split(train_data_t *data, const tnk_datum_t *all, size_t n,
                  size_t n_eval) {
  const uint64_t seed = (uint64_t)train_args.seed;

  for (size_t i = 0; i < n; i++) {
    const uint64_t at = tnk_shuffle(seed, UINT64_MAX, n, i);

    if (data->rewards != NULL)
      data->train.rewards[i] = data->rewards[at];
    add(i < n_eval ? &data->eval : &data->train, &all[at * data->train.per]);
  }
}

/* What the training set has: all of the files except the evaluation. */
static void total_packed(train_data_t *data) {
  train_set_t *set = &data->train;
  const train_packed_t *packed = &data->packed;

  set->packed = packed;
  set->n = (size_t)(packed->n_examples - packed->n_skipped);
  for (size_t i = 0; i < packed->n; i++) {
    const cli_pack_head_t *head = &packed->packs[i].head;

    set->n_tokens += head->n_tokens - head->n_examples;
    set->weight += head->weight;
    if (head->longest - 1 > set->longest)
      set->longest = (size_t)head->longest - 1;
  }
  if (train_args.reduction == TRAIN_MEAN)
    set->weight = (double)packed->n_examples;
  if (packed->n_skipped == 0)
    return;
  set->n_tokens -= data->eval.n_tokens;
  set->weight -= data->eval.weight;
  /* The longest one may be for the evaluation. To know takes a while. */
  if (data->eval.longest == set->longest)
    set->longest = 0;
}

size_t train_longest(const train_set_t *set) {
  uint64_t longest = set->longest;

  for (uint64_t i = 0; set->longest == 0 && i < set->n; i++) {
    const uint64_t n = train_tokens(set, i);

    longest = n > longest ? n : longest;
  }
  return (size_t)longest;
}

/* The evaluation has the first examples in the order of the split, and the
 * training the others. Those of --eval are in the store already. */
static int divide_packed(train_data_t *data, const cli_t *cli) {
  train_packed_t *packed = &data->packed;
  const uint64_t n = packed->n_examples;
  char why[512] = "";
  int err = TNK_OK;

  packed->seed = (uint64_t)train_args.seed;
  packed->is_split = train_args.eval == NULL;
  if (train_args.eval == NULL && train_args.eval_split > 0)
    packed->n_skipped = (uint64_t)ceil(train_args.eval_split * (double)n);
  for (uint64_t i = 0; i < packed->n_skipped && err == TNK_OK; i++)
    err = train_packed_keep(packed, tnk_shuffle(packed->seed, UINT64_MAX, n, i),
                            &data->store, why, sizeof(why));
  data->eval.data = calloc(data->store.n + 1, sizeof(*data->eval.data));
  if (err == TNK_ENOMEM || data->eval.data == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  if (err != TNK_OK)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  data->train.per = data->eval.per = 1;
  for (size_t i = 0; i < data->store.n; i++)
    add(&data->eval, &data->store.data[i]);
  total_packed(data);
  return CLI_EXIT_OK;
}

static int divide(train_data_t *data, const cli_t *cli) {
  const size_t per = train_args.method == TRAIN_DPO ? CLI_ROW_PARTS : 1;
  const tnk_datum_t *all = data->store.data;
  size_t n = data->store.n;
  size_t n_eval = 0;

  data->train.data = calloc(n + 1, sizeof(*all));
  data->eval.data = calloc(n + 1, sizeof(*all));
  data->train.rewards = calloc(n + 1, sizeof(float));
  data->train.weights = calloc(n + 1, sizeof(double));
  if (data->train.data == NULL || data->eval.data == NULL ||
      data->train.rewards == NULL || data->train.weights == NULL)
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
  return CLI_EXIT_OK;
}

static int check_sets(const train_data_t *data, const cli_t *cli) {
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
  if (status == CLI_EXIT_OK)
    status = data->packed.n > 0 ? divide_packed(data, cli) : divide(data, cli);
  return status != CLI_EXIT_OK ? status : check_sets(data, cli);
}

void train_data_free(train_data_t *data) {
  train_input_free(&data->input);
  free(data->files);
  train_packed_free(&data->packed);
  free(data->rewards);
  free(data->train.rewards);
  free(data->train.weights);
  free(data->train.data);
  free(data->eval.data);
  learn_store_free(&data->store);
}
