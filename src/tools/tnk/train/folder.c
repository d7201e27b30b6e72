/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/common/base/input.h"
#include "tools/tnk/train/args.h"

/* ---- Paths ---- */

static char *join(const char *folder, const char *name) {
  const size_t n = strlen(folder) + strlen(name) + 2;
  char *path = malloc(n);

  if (path != NULL)
    snprintf(path, n, "%s/%s", folder, name);
  return path;
}

/* Make a folder and its missing parents. */
static int make_folders(const char *path) {
  char *copy = strdup(path);
  int is_made;

  for (char *at = copy; copy != NULL && *at != '\0'; at++)
    if (*at == '/' && at > copy) {
      *at = '\0';
      (void)mkdir(copy, 0777);
      *at = '/';
    }
  is_made = copy != NULL && (mkdir(copy, 0777) == 0 || errno == EEXIST);
  free(copy);
  return is_made;
}

#define NEW ".new-"

/* Whether the folder has files of others. A process that was killed may have
 * left its own new configuration. */
static int has_others(const char *path) {
  static const char own[] = "config.json" NEW;
  DIR *dir = opendir(path);
  struct dirent *entry;
  int has = 0;

  while (dir != NULL && !has && (entry = readdir(dir)) != NULL)
    has = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
          strncmp(entry->d_name, own, sizeof(own) - 1) != 0;
  if (dir != NULL)
    closedir(dir);
  return has;
}

/* ---- Reading ---- */

static int read_config(train_folder_t *folder) {
  json_t *json = NULL;
  char why[512];
  size_t n;
  char *text = cli_read_file(folder->config, &n, why, sizeof(why));
  int err;

  if (text == NULL)
    return cli_fail(folder->cli, CLI_EXIT_FILE, "%s", why);
  err = tnk__json_parse_object(&json, text, n);
  free(text);
  if (err != TNK_OK ||
      tnk__json_get_int(json, "began_s", 1, INT64_MAX, &folder->now_s) !=
          TNK__JSON_FOUND ||
      tnk__json_obj(json, "options") == NULL ||
      tnk__json_arr(json, "files") == NULL) {
    json_decref(json);
    return cli_fail(folder->cli, CLI_EXIT_FILE,
                    "%s: this is not a configuration of tnk train",
                    folder->config);
  }
  folder->found = json;
  return CLI_EXIT_OK;
}

int train_folder_open(train_folder_t *folder, const cli_t *cli,
                      const char *path) {
  *folder = (train_folder_t){.cli = cli, .now_s = (int64_t)time(NULL)};
  if (path == NULL)
    return CLI_EXIT_OK;
  folder->config = join(path, "config.json");
  folder->metrics = join(path, "metrics.jsonl");
  folder->samples = join(path, "samples.jsonl");
  folder->served = join(path, "served");
  folder->reference = join(path, "reference.bin");
  if (folder->config == NULL || folder->metrics == NULL ||
      folder->samples == NULL || folder->served == NULL ||
      folder->reference == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  if (access(folder->config, F_OK) == 0)
    return read_config(folder);
  if (errno != ENOENT)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
  if (has_others(path))
    return cli_fail(cli, CLI_EXIT_FILE,
                    "%s is not the folder of a run: it has files, but no "
                    "config.json",
                    path);
  return CLI_EXIT_OK;
}

/* ---- Configuration ---- */

static json_t *texts(const cli_texts_t *list) {
  json_t *array = json_array();

  for (size_t i = 0; i < list->n; i++)
    json_array_append_new(array, json_string(list->items[i]));
  return array;
}

/* NULL for the default. */
static json_t *number(int64_t n) {
  return n > 0 ? json_integer((json_int_t)n) : json_null();
}

/* The options that determine the result, by their names. */
static json_t *options_of(const train_plan_t *plan,
                          const train_schedule_t *schedule) {
  const cli_chats_args_t *chats = &train_args.chats;
  const int is_rl = train_args.method == TRAIN_RL;

  return json_pack(
      "{s:s, s:s, s:f, s:s?, s:s?, s:I, s:I, s:I, s:o, s:o, s:f, s:s, s:I, "
      "s:I, "
      "s:f, s:I,"
      " s:s, s:s, s:s, s:o, s:o, s:s?, s:b, s:b}",
      "model", train_args.model, "method", train_methods[train_args.method],
      "beta", train_args.beta, "loss",
      is_rl ? train_losses[train_args.loss] : NULL, "advantages",
      is_rl ? train_advantages[train_args.advantages] : NULL, "rank",
      (json_int_t)train_args.rank, "seed", (json_int_t)train_args.seed, "steps",
      (json_int_t)plan->n_steps, "batch",
      number(plan->starts != NULL ? 0 : (int64_t)plan->n_batch), "batch-tokens",
      number(train_args.n_batch_tokens), "learning-rate", schedule->peak,
      "schedule", train_schedules[schedule->decay], "warm-up",
      (json_int_t)schedule->n_warm_up, "max-length",
      (json_int_t)train_args.max_length, "eval-split", train_args.eval_split,
      "eval-every", (json_int_t)train_args.eval_every, "reduction",
      train_reductions[train_args.reduction], "train-on",
      cli_chats_trains[chats->train_on], "shape",
      cli_chats_shapes[chats->shape], "role", texts(&chats->roles), "set",
      texts(&chats->variables), "renderer", chats->renderer, "each-answer",
      chats->each_answer, "by-parts", chats->by_parts);
}

/* The other options, so that the file can be given as --config. */
static json_t *settings_of(const train_data_t *data) {
  const size_t n = data->n_files - (train_args.eval != NULL);
  json_t *names = json_array();

  for (size_t i = 0; i < n; i++)
    json_array_append_new(names, json_string(data->files[i].name));
  return json_pack(
      "{s:o, s:b, s:s?, s:s?, s:s?, s:s?, s:I, s:o, s:f, s:o, s:I}", "data",
      names, "local", train_args.is_local, "tokenizer",
      train_args.chats.which.path, "template", train_args.chats.template_,
      "eval", train_args.eval, "prices", train_args.prices, "save-every",
      (json_int_t)train_args.save_every, "max-tokens",
      number(train_args.max_tokens), "max-usd", train_args.max_usd, "sample",
      texts(&train_args.samples), "sample-every",
      (json_int_t)train_args.sample_every);
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

/* ---- Comparing ---- */

/* Write a value for people; NULL is an option that was not given. */
static void put_value(char *out, size_t n, const json_t *value) {
  char *text = value == NULL || json_is_null(value)
                   ? NULL
                   : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
                                           JSON_REAL_PRECISION(6));

  snprintf(out, n, "%s", text != NULL ? text : "not set");
  tnk__json_free_string(text);
}

static int compare_options(const train_folder_t *folder, json_t *options) {
  const json_t *old = tnk__json_obj(folder->found, "options");
  char here[200], there[200];
  const char *name;
  json_t *value;

  json_object_foreach(options, name, value) {
    const json_t *before = json_object_get(old, name);

    if (json_equal(before, value))
      continue;
    put_value(there, sizeof(there), before);
    put_value(here, sizeof(here), value);
    return cli_fail(folder->cli, CLI_EXIT_FILE,
                    "%s is the folder of another run: --%s is %s there and %s "
                    "here",
                    train_args.run, name, there, here);
  }
  return CLI_EXIT_OK;
}

/* Files may be moved and renamed. Their examples decide. */
static int compare_files(const train_folder_t *folder, const json_t *files) {
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

static int compare(const train_folder_t *folder, const json_t *config) {
  const int status =
      compare_options(folder, json_object_get(config, "options"));

  return status == CLI_EXIT_OK
             ? compare_files(folder, json_object_get(config, "files"))
             : status;
}

/* ---- Writing ---- */

/* Write a file completely, to the disk. */
static int write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  int is_ok;

  if (file == NULL)
    return 0;
  is_ok = fputs(text, file) >= 0 && fputc('\n', file) != EOF &&
          fflush(file) == 0 && fsync(fileno(file)) == 0;
  return (fclose(file) == 0) && is_ok;
}

/* The name appears only with the whole file. It does not replace the
 * configuration of a command that was started at the same time, except on a
 * file system without links. */
static int write_config(train_folder_t *folder, const char *text) {
  char suffix[64];
  char *path;
  int is_ok;

  snprintf(suffix, sizeof(suffix), "config.json" NEW "%ld", (long)getpid());
  if (!make_folders(train_args.run))
    return 0;
  path = join(train_args.run, suffix);
  is_ok = path != NULL && write_file(path, text);
  if (is_ok && link(path, folder->config) != 0 && errno != EEXIST)
    is_ok = rename(path, folder->config) == 0;
  if (path != NULL)
    unlink(path);
  free(path);
  return is_ok;
}

static int keep(train_folder_t *folder, json_t *config) {
  char *text;
  int is_written;
  int status = CLI_EXIT_OK;

  if (folder->found == NULL) {
    text = json_dumps(config, JSON_INDENT(2));
    is_written = text != NULL && write_config(folder, text);
    tnk__json_free_string(text);
    if (!is_written)
      return cli_fail(folder->cli, CLI_EXIT_FILE, "%s: %s", folder->config,
                      strerror(errno));
    status = read_config(folder);
  }
  return status == CLI_EXIT_OK ? compare(folder, config) : status;
}

int train_folder_keep(train_folder_t *folder, const train_data_t *data,
                      const train_plan_t *plan,
                      const train_schedule_t *schedule) {
  json_t *config = json_pack("{s:s, s:I, s:o, s:o, s:o}", "command",
                             "tnk train", "began_s", (json_int_t)folder->now_s,
                             "options", options_of(plan, schedule), "settings",
                             settings_of(data), "files", files_of(data));
  int status;

  if (config == NULL)
    return cli_fail(folder->cli, CLI_EXIT_FAILED,
                    "the configuration cannot be written as JSON");
  status = keep(folder, config);
  json_decref(config);
  return status;
}

void train_folder_free(train_folder_t *folder) {
  json_decref(folder->found);
  free(folder->config);
  free(folder->metrics);
  free(folder->samples);
  free(folder->served);
  free(folder->reference);
}
