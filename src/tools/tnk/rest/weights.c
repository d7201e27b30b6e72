/* SPDX-License-Identifier: MIT */
/* tnk checkpoint download, tnk checkpoint save-external. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/data/check.h"
#include "tnk/data.h"
#include "tnk/training.h"
#include "tools/common/base/input.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/progress.h"
#include "tools/tnk/out/table.h"
#include "tools/tnk/rest/checkpoint.h"

static struct {
  const char *output;
  const char *identity_file;
  int force;
  int archive;
  int64_t parallel;
  const char *name;
  int64_t ttl;
  cli_texts_t recipients;
} args = {.output = ".", .parallel = 4};

/* Stored with the session at the service, to identify its creator. */
static const tnk_pair_t metadata[] = {{"created_by", "tnk checkpoint"}};

int cli_weights_open(cli_ask_t *ask, const cli_t *cli) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.user_metadata = metadata;
  options.n_user_metadata = 1;
  return cli_ask_open(ask, cli, &options);
}

/* ---- Download ---- */

/* Use the official command's name: "tinker://run/weights/name" becomes
 * "run_weights_name". */
static int write_target(char *out, size_t n, const char *path) {
  size_t begin;

  if ((size_t)snprintf(out, n, "%s/", args.output) >= n)
    return -1;
  begin = strlen(out);
  if ((size_t)snprintf(out + begin, n - begin, "%s",
                       path + strlen("tinker://")) >= n - begin)
    return -1;
  for (char *at = out + begin; *at != '\0'; at++)
    if (*at == '/')
      *at = '_';
  return 0;
}

static void on_progress(const tnk_weights_progress_t *now, void *user) {
  cli_progress_t *progress = user;

  progress->total = (int64_t)now->n_total;
  progress->rate = (int64_t)now->bytes_per_s;
  cli_progress_at(progress, (int64_t)now->n_bytes);
}

static int print_weights(const cli_t *cli, const tnk_weights_t *weights) {
  cli_table_t *table;
  cli_json_t json;

  if (cli->json) {
    cli_json_begin(&json);
    cli_json_put_odd_text(&json, "checkpoint_path", cli->words[0]);
    cli_json_put_odd_text(&json, "destination", weights->directory);
    tnk__json_put_int(&json.w, "file_size_bytes", (int64_t)weights->n_bytes);
    return cli_json_end(&json, cli);
  }
  table = cli_table_new(NULL, 2);
  cli_table_add_row(table, "Checkpoint Path", cli->words[0]);
  cli_table_add(table, "Total Size");
  cli_table_add_size(table, (int64_t)weights->n_bytes);
  cli_table_add_row(table, "Downloaded to", weights->directory);
  return cli_table_end(table, cli);
}

/* Read an identity file: ignore its comments, expect one key. Returns the exit
 * status. */
static int read_identity(const cli_t *cli, char **identity) {
  char why[512];
  char *text, *at;
  size_t n;

  *identity = NULL;
  if (args.identity_file == NULL)
    return CLI_EXIT_OK;
  text = cli_read_file(args.identity_file, &n, why, sizeof(why));
  if (text == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  for (at = text; *at == '#' || *at == '\n' || *at == '\r';)
    at += *at == '#' ? strcspn(at, "\n") : 1;
  at[strcspn(at, "\r\n")] = '\0';
  memmove(text, at, strlen(at) + 1);
  *identity = text;
  return CLI_EXIT_OK;
}

tnk_promise_t *cli_weights_fetch(cli_ask_t *ask, const char *folder,
                                 tnk_weights_options_t *options,
                                 int64_t *n_come) {
  const cli_t *cli = ask->cli;
  cli_progress_t progress;
  tnk_promise_t *promise;

  cli_progress_begin(&progress, cli, "Downloading", 0, 1);
  options->on_progress = on_progress;
  options->progress_user = &progress;
  options->max_retries = cli_max_retries(cli);
  promise = tnk_weights_download(ask->service, cli->words[0], folder, options);
  (void)cli_ask_wait(ask, promise);
  cli_progress_end(&progress);
  *n_come = progress.last;
  return promise;
}

static const char *hint_of(const tnk_promise_t *promise) {
  const tnk_error_t *error = tnk_promise_error(promise);

  return error != NULL && error->cause == UV_EEXIST
             ? "--force replaces it, when the new files are complete."
             : NULL;
}

static int download(cli_ask_t *ask, const char *target, const char *identity) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  tnk_promise_t *promise;
  int64_t n_come;
  int status;

  options.force = args.force ? TNK_YES : TNK_NO;
  options.max_parallel = (uint32_t)args.parallel;
  options.identity = identity;
  options.archive = args.archive ? TNK_YES : TNK_DEFAULT;
  promise = cli_weights_fetch(ask, target, &options, &n_come);
  if (tnk_promise_status(promise) == TNK_OK) {
    status = print_weights(ask->cli, tnk_promise_weights(promise));
  } else {
    status = cli_ask_failed_with_hint(ask, promise, hint_of(promise));
    if (n_come > 0)
      cli_note(ask->cli,
               "Received data is kept in %s.incomplete; run the same command "
               "again to resume.",
               target);
  }
  tnk_promise_unref(promise);
  return status;
}

static int run_download(cli_t *cli) {
  char target[4096];
  char *identity;
  cli_ask_t ask;
  int status;

  if (write_target(target, sizeof(target), cli->words[0]) != 0)
    return cli_fail(cli, CLI_EXIT_USAGE, "the name of the folder is too long");
  status = read_identity(cli, &identity);
  if (status != CLI_EXIT_OK)
    return status;
  status = cli_weights_open(&ask, cli);
  if (status == CLI_EXIT_OK)
    status = download(&ask, target, identity);
  status = cli_ask_close(&ask, status);
  if (identity != NULL)
    tnk__free_secret(tnk__allocator_default(), identity);
  return status;
}

static tnk_path_kind_t kind_of(const char *text) {
  tnk_path_t path = TNK_PATH_INIT;

  return tnk_path_parse(&path, text) == TNK_OK ? path.kind : 0;
}

const char *cli_check_files(const cli_t *cli) {
  const char *wrong = cli_check_first_path(cli);

  if (wrong == NULL && !args.archive &&
      kind_of(cli->words[0]) == TNK_PATH_SAMPLER_WEIGHTS)
    return "weights for sampling cannot be downloaded, only paths of kind "
           "external_weights or weights";
  if (wrong == NULL && args.archive && args.identity_file != NULL)
    return "either --identity or --archive: archives are not encrypted";
  return wrong;
}

static const cli_option_t download_options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "DIR",
     .text = &args.output,
     .offer = CLI_OFFER_FOLDERS,
     .help = "Create the folder of the checkpoint in DIR (.)."},
    {.name = "force",
     .flag = &args.force,
     .help = "Replace an existing folder. It is removed when the new one is "
             "complete."},
    {.name = "identity",
     .letter = 'i',
     .value = "FILE",
     .text = &args.identity_file,
     .offer = CLI_OFFER_FILES,
     .help = "Decrypt files that were encrypted for the age key in this file "
             "(AGE-SECRET-KEY-1...); - is standard input."},
    {.name = "archive",
     .flag = &args.archive,
     .help =
         "Download the archive that older services have, for weights of any "
         "kind. Without this option it is used only if there are no files."},
    {.name = "parallel",
     .value = "N",
     .number = &args.parallel,
     .min = 1,
     .max = 64,
     .help = "Number of parallel downloads (4)."},
    {.name = NULL}};

const cli_command_t cli_checkpoint_download = {
    .name = "download",
    .brief = "download the files of a checkpoint",
    .about = "Download the files of a checkpoint to a folder named after it. A "
             "training state has no files: the service loads it and saves it "
             "as files for an hour. An interrupted download is resumed.",
    .words = "PATH",
    .options = download_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_files,
    .run = run_download,
};

/* ---- Save for other programs ---- */

static tnk_promise_t *restore(cli_ask_t *ask) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;

  options.path = ask->cli->words[0];
  options.user_metadata = metadata;
  options.n_user_metadata = 1;
  return tnk_service_restore(ask->service, &options);
}

static tnk_promise_t *save(tnk_training_t *training) {
  tnk_save_options_t options = TNK_SAVE_OPTIONS_INIT;

  options.ttl_seconds = (uint64_t)args.ttl;
  options.recipients = args.recipients.items;
  options.n_recipients = args.recipients.n;
  return tnk_training_save_weights_external(training, args.name, &options);
}

static int save_external(cli_ask_t *ask) {
  tnk_promise_t *made = restore(ask);
  tnk_promise_t *saved = NULL;
  int status;

  if (cli_ask_wait(ask, made) != TNK_OK) {
    status = cli_ask_failed(ask, made);
  } else {
    saved = save(tnk_promise_training(made));
    status = cli_ask_wait(ask, saved) == TNK_OK
                 ? cli_put_made(ask->cli, tnk_promise_path(saved))
                 : cli_ask_failed(ask, saved);
  }
  tnk_promise_unref(saved);
  tnk_promise_unref(made);
  return status;
}

static int run_save(cli_t *cli) {
  cli_ask_t ask;
  int status = cli_weights_open(&ask, cli);

  if (status == CLI_EXIT_OK)
    status = save_external(&ask);
  return cli_ask_close(&ask, status);
}

static int set_ttl(const cli_option_t *option, const char *value, char *why,
                   size_t n_why) {
  (void)option;
  return cli_read_ttl(&args.ttl, value, why, n_why);
}

static const char *check_save(const cli_t *cli) {
  const char *wrong = cli_check_first_path(cli);

  for (size_t i = 0; i < args.recipients.n; i++)
    if (tnk__is_secret_key(args.recipients.items[i]))
      return "--recipient: this is a secret key; use its public key "
             "(age-keygen -y prints it)";

  if (wrong == NULL && kind_of(cli->words[0]) != TNK_PATH_WEIGHTS)
    return "only training states (paths of kind weights) can be saved so";
  return wrong != NULL || args.name != NULL ? wrong : "--name is missing";
}

static const cli_option_t save_options[] = {
    {.name = "name",
     .value = "NAME",
     .text = &args.name,
     .help = "Name of the saved files; required."},
    {.name = "ttl",
     .value = "SECONDS",
     .set = set_ttl,
     .help = "Time until they expire: one hour to ten years; also as 12h, 30d "
             "or 4w. Default: they do not expire."},
    {.name = "recipient",
     .value = "KEY",
     .texts = &args.recipients,
     .help = "Encrypt them for this age or SSH key; may be repeated."},
    {.name = NULL}};

const cli_command_t cli_checkpoint_save_external = {
    .name = "save-external",
    .brief = "save weights as files for other programs",
    .about = "Let the service save a training state as files for other "
             "programs. They are kept until they are deleted. Prints their "
             "path, for tnk checkpoint download.",
    .words = "PATH",
    .options = save_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check_save,
    .run = run_save,
};
