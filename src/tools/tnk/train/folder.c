/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/wire/format/json_read.h"
#include "tools/tnk/train/args.h"

int train_folder_open(train_folder_t *folder, const cli_t *cli,
                      const char *path) {
  const int status = learn_folder_open(&folder->base, cli, "tnk train", path);

  folder->samples = folder->reference = NULL;
  if (status != CLI_EXIT_OK || path == NULL)
    return status;
  folder->samples = learn_folder_file(&folder->base, "samples.jsonl");
  folder->reference = learn_folder_file(&folder->base, "reference.bin");
  return folder->samples != NULL && folder->reference != NULL
             ? CLI_EXIT_OK
             : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

/* ---- Configuration ---- */

/* NULL for the default. */
static json_t *number(int64_t n) {
  return n > 0 ? json_integer((json_int_t)n) : json_null();
}

static json_t *real(double x) {
  return x > 0 ? json_real(x) : json_null();
}

/* The options that determine the result, by their names. The number of steps
 * does not determine the last one: --steps makes it full, and --epochs leaves
 * what is left of the examples. */
static json_t *options_of(const tnk_plan_t *plan,
                          const tnk_schedule_t *schedule) {
  const cli_chats_args_t *chats = &train_args.chats;
  const int is_rl = train_args.method == TRAIN_RL;
  const int64_t n_epochs = train_args.n_epochs > 0  ? train_args.n_epochs
                           : train_args.n_steps > 0 ? 0
                                                    : 1;
  const int has_loss = is_rl || train_args.method == TRAIN_DISTILL;

  return json_pack(
      "{s:s, s:s, s:o, s:s?, s:s?, s:I, s:I, s:o, s:o, s:o, s:o, s:f, s:s, "
      "s:I, s:I, s:f, s:I, s:s, s:s, s:s, s:o, s:o, s:s?, s:b, s:b}",
      "model", train_args.model, "method", train_methods[train_args.method],
      "beta", real(train_args.beta), "loss",
      has_loss ? learn_losses[train_args.loss.name] : NULL, "advantages",
      is_rl ? train_advantages[train_args.advantages] : NULL, "rank",
      (json_int_t)train_args.rank, "seed", (json_int_t)train_args.seed, "steps",
      number(train_args.n_steps), "epochs", number(n_epochs), "batch",
      number(train_args.n_batch_tokens > 0 ? 0
                                           : (int64_t)tnk_plan_max_count(plan)),
      "batch-tokens", number(train_args.n_batch_tokens), "learning-rate",
      schedule->peak, "schedule", train_schedules[schedule->decay], "warm-up",
      (json_int_t)schedule->n_warm_up, "max-length",
      (json_int_t)train_args.max_length, "eval-split", train_args.eval_split,
      "eval-every", (json_int_t)train_args.eval_every, "reduction",
      train_reductions[train_args.reduction], "train-on",
      cli_chats_trains[chats->train_on], "shape",
      cli_chats_shapes[chats->shape], "role", learn_folder_texts(&chats->roles),
      "set", learn_folder_texts(&chats->variables), "renderer", chats->renderer,
      "each-answer", chats->each_answer, "by-parts", chats->by_parts);
}

/* And those of distillation. Returns its argument. */
static json_t *add_distill(json_t *options) {
  json_t *own;

  if (options == NULL || train_args.method != TRAIN_DISTILL)
    return options;
  own = json_pack("{s:s, s:I, s:I, s:f, s:f}", "teacher", train_args.teacher,
                  "group-size", (json_int_t)train_args.group_size,
                  "answer-tokens", (json_int_t)train_args.answer_tokens,
                  "kl-coefficient", train_args.kl_coefficient, "discount",
                  train_args.discount);
  if (own == NULL || json_object_update(options, own) != 0) {
    json_decref(options);
    options = NULL;
  }
  json_decref(own);
  return options;
}

/* And those that the folders of earlier versions do not have: null is the
 * default. Returns its argument. */
static json_t *add_given(json_t *options) {
  options = learn_optimizer_add(options, &train_args.optimizer);
  options = learn_loss_add(options, &train_args.loss);
  if (options == NULL ||
      json_object_set_new(
          options, "passes",
          number(train_args.n_passes > 1 ? train_args.n_passes : 0)) == 0)
    return options;
  json_decref(options);
  return NULL;
}

/* The other options, so that the file can be given as --config. */
static json_t *settings_of(const train_data_t *data) {
  const size_t n = data->n_files - (train_args.eval != NULL);
  json_t *names = json_array();

  for (size_t i = 0; i < n; i++)
    json_array_append_new(names, json_string(data->files[i].name));
  return json_pack(
      "{s:o, s:b, s:s?, s:s?, s:s?, s:s?, s:I, s:o, s:o, s:o, s:I, s:o}",
      "data", names, "local", train_args.is_local, "tokenizer",
      train_args.chats.which.path, "template", train_args.chats.template_,
      "eval", train_args.eval, "prices", train_args.prices, "save-every",
      (json_int_t)train_args.save_every, "max-tokens",
      number(train_args.max_tokens), "max-usd", real(train_args.max_usd),
      "sample", learn_folder_texts(&train_args.samples), "sample-every",
      (json_int_t)train_args.sample_every, "log-to",
      learn_folder_texts(&train_args.log_to));
}

static json_t *files_of(const train_data_t *data) {
  json_t *array = json_array();

  for (size_t i = 0; i < data->n_files; i++) {
    const train_file_t *file = &data->files[i];
    const int is_eval = train_args.eval != NULL && i + 1 == data->n_files;
    json_t *name = json_string(file->name);
    char digest[32];

    if (name == NULL)
      name = json_string("(no UTF-8)");
    snprintf(digest, sizeof(digest), "%016" PRIx64, file->digest);
    json_array_append_new(array, json_pack("{s:o, s:b, s:I, s:s}", "name", name,
                                           "is_eval", is_eval, "examples",
                                           (json_int_t)file->n_examples,
                                           "digest", digest));
  }
  return array;
}

/* Files may be moved and renamed. Their examples decide. */
static int compare_files(const learn_folder_t *folder, const json_t *files) {
  const json_t *old = tnk__json_arr(folder->found, "files");

  if (json_array_size(old) != json_array_size(files))
    return cli_fail(folder->cli, CLI_EXIT_FILE,
                    "%s is the folder of another run: it has %zu data files, "
                    "not %zu",
                    train_args.run, json_array_size(old),
                    json_array_size(files));
  for (size_t i = 0; i < json_array_size(files); i++) {
    const json_t *here = json_array_get(files, i);
    const json_t *there = json_array_get(old, i);

    if (!json_equal(json_object_get(here, "digest"),
                    json_object_get(there, "digest")) ||
        !json_equal(json_object_get(here, "is_eval"),
                    json_object_get(there, "is_eval")))
      return cli_fail(folder->cli, CLI_EXIT_FILE,
                      "%s is the folder of another run: the examples of %s "
                      "are not those of %s there",
                      train_args.run, tnk__json_str(here, "name"),
                      tnk__json_str(there, "name"));
  }
  return CLI_EXIT_OK;
}

int train_folder_keep(train_folder_t *folder, const train_data_t *data,
                      const tnk_plan_t *plan, const tnk_schedule_t *schedule) {
  json_t *files = files_of(data);
  int status = learn_folder_keep(
      &folder->base, add_given(add_distill(options_of(plan, schedule))),
      settings_of(data), json_incref(files));

  if (status == CLI_EXIT_OK)
    status = compare_files(&folder->base, files);
  json_decref(files);
  return status;
}

void train_folder_free(train_folder_t *folder) {
  learn_folder_free(&folder->base);
  free(folder->samples);
  free(folder->reference);
}
