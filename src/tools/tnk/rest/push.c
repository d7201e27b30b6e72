/* SPDX-License-Identifier: MIT */
/*
 * tnk checkpoint push-hf. The hub is asked for permission before the download,
 * which may take long and uses the service's resources.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tnk/push.h"
#include "tnk/record.h"
#include "tnk/rest.h"
#include "tools/common/base/kept.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/progress.h"
#include "tools/tnk/out/table.h"
#include "tools/tnk/rest/checkpoint.h"

static struct {
  const char *repo;
  const char *revision;
  const char *message;
  int is_public;
  int opens_pull_request;
  int has_no_card;
  cli_texts_t allow;
  cli_texts_t ignore;
} args;

typedef struct {
  cli_ask_t ask;
  tnk_hub_t *hub;
  tnk_promise_t *info; /* `options` points to its strings */
  tnk_push_options_t options;
  cli_progress_t progress;
  char label[300];
} work_t;

/* ---- Errors ---- */

/* Hints about the hub; the hints of other commands are about the service. */
static const char *hint_of(int err, int http_status) {
  if (http_status == 403)
    return "This token has no permission to write there. Create another one.";
  switch (err) {
  case TNK_ECREDENTIAL:
    return "Set HF_TOKEN to a token with write permission, or run hf auth "
           "login.";
  case TNK_EAUTH:
    return "The token comes from HF_TOKEN, or from the file that hf auth login "
           "writes.";
  case TNK_ECONFLICT:
    return "Select another repository with --repo.";
  case TNK_EDNS:
  case TNK_ECONN:
    return "Check the address of the hub: HF_ENDPOINT, else the hosted hub.";
  default:
    return NULL;
  }
}

static int hub_failed(const work_t *work, const tnk_promise_t *promise) {
  const tnk_error_t *error = tnk_promise_error(promise);
  const int err = tnk_promise_status(promise);
  const int http_status = error != NULL ? error->http_status : 0;

  if (cli_ask_is_over(&work->ask))
    return cli_ask_failed(&work->ask, promise);
  return cli_report(
      work->ask.cli,
      &(cli_problem_t){.status = cli_exit_of(err),
                       .message = tnk_promise_text(promise),
                       .code = tnk_err_name(err),
                       .hint = hint_of(err, http_status),
                       .http_status = http_status,
                       .n_attempts = error != NULL ? error->n_attempts : 0});
}

/* ---- Before the download ---- */

static int open_hub(work_t *work) {
  const cli_t *cli = work->ask.cli;
  const tnk_logger_t logger = cli_ask_logger(&work->ask);
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  char why[512];
  int err;

  options.logger = &logger;
  options.max_retries = cli_max_retries(cli);
  err = tnk_hub_open(&work->hub, &work->ask.loop, &options, why, sizeof(why));
  return err == TNK_OK
             ? CLI_EXIT_OK
             : cli_report(cli, &(cli_problem_t){.status = cli_exit_of(err),
                                                .message = why,
                                                .code = tnk_err_name(err)});
}

static void fill_options(tnk_push_options_t *options, const cli_t *cli) {
  options->checkpoint = cli->words[0];
  options->repo = args.repo;
  options->revision = args.revision;
  options->message = args.message;
  options->is_public = args.is_public ? TNK_YES : TNK_NO;
  options->opens_pull_request = args.opens_pull_request ? TNK_YES : TNK_NO;
  options->model_card = args.has_no_card ? TNK_NO : TNK_YES;
  options->allow = args.allow.items;
  options->n_allow = args.allow.n;
  options->ignore = args.ignore.items;
  options->n_ignore = args.ignore.n;
}

/* Request the base model of the weights, for the card and the names. Some
 * servers do not return it; then the card omits it. */
static int ask_info(work_t *work) {
  const cli_t *cli = work->ask.cli;
  tnk_push_options_t *options = &work->options;
  const tnk_weights_info_t *info;
  int err;

  work->info = tnk_rest_get_weights_info(work->ask.service, cli->words[0]);
  err = cli_ask_wait(&work->ask, work->info);
  if (err == TNK_ENOTFOUND || err == TNK_EREQUEST || err == TNK_EUNSUPPORTED) {
    cli_note(cli, "The service does not report the base model of the weights.");
    return CLI_EXIT_OK;
  }
  if (err != TNK_OK)
    return cli_ask_failed(&work->ask, work->info);
  info = tnk_page_weights_info(tnk_promise_page(work->info), 0);
  options->base_model = info->base_model[0] != '\0' ? info->base_model : NULL;
  options->trained_attn = info->train_attn;
  options->trained_mlp = info->train_mlp;
  options->trained_unembed = info->train_unembed;
  if (info->lora_rank > 0 && info->lora_rank <= INT32_MAX)
    options->lora_rank = (uint32_t)info->lora_rank;
  return CLI_EXIT_OK;
}

static int check_hub(work_t *work) {
  tnk_push_options_t options = work->options;
  tnk_promise_t *promise;
  int status = CLI_EXIT_OK;

  options.only_checks = TNK_YES;
  promise = tnk_hub_push(work->hub, NULL, &options);
  if (cli_ask_wait(&work->ask, promise) != TNK_OK) {
    status = hub_failed(work, promise);
  } else {
    const tnk_pushed_t *to = tnk_promise_pushed(promise);
    cli_note(work->ask.cli, "Pushing to %s, branch %s.", to->repo,
             to->revision);
  }
  tnk_promise_unref(promise);
  return status;
}

/* ---- The push ---- */

/* One bar for each large file. */
static void on_progress(const char *file, uint64_t n_bytes, uint64_t n_total,
                        void *user) {
  work_t *work = user;
  char label[sizeof(work->label)];

  snprintf(label, sizeof(label), "Uploading %.280s", file);
  if (strcmp(label, work->label) != 0) {
    cli_progress_end(&work->progress);
    memcpy(work->label, label, sizeof(label));
    cli_progress_begin(&work->progress, work->ask.cli, work->label,
                       (int64_t)n_total, 1);
  }
  cli_progress_at(&work->progress, (int64_t)n_bytes);
}

static int print_pushed(const cli_t *cli, const tnk_pushed_t *pushed) {
  cli_table_t *table;
  cli_json_t json;

  if (cli->json) {
    cli_json_begin(&json);
    cli_json_put_odd_text(&json, "checkpoint_path", cli->words[0]);
    cli_json_put_odd_text(&json, "repo_id", pushed->repo);
    cli_json_put_odd_text(&json, "revision", pushed->revision);
    tnk__json_put_bool(&json.w, "public", args.is_public);
    cli_json_put_odd_text(&json, "commit", pushed->commit);
    cli_json_put_odd_text(&json, "url", pushed->url);
    return cli_json_end(&json, cli);
  }
  table = cli_table_new(NULL, 2);
  cli_table_add_row(table, "Checkpoint Path", cli->words[0]);
  cli_table_add_row(table, "Repo ID", pushed->repo);
  cli_table_add_row(table, "Revision", pushed->revision);
  cli_table_add_row(table, "Public", args.is_public ? "Yes" : "No");
  cli_table_add_row(table, "URL", pushed->url);
  return cli_table_end(table, cli);
}

static int upload(work_t *work, const char *folder) {
  tnk_promise_t *promise;
  int status;
  int err;

  work->options.on_progress = on_progress;
  work->options.progress_user = work;
  promise = tnk_hub_push(work->hub, folder, &work->options);
  err = cli_ask_wait(&work->ask, promise);
  cli_progress_end(&work->progress);
  status = err == TNK_OK
               ? print_pushed(work->ask.cli, tnk_promise_pushed(promise))
               : hub_failed(work, promise);
  tnk_promise_unref(promise);
  return status;
}

/* ---- The files ---- */

/* Describe the source of the files; "" if it may have changed unnoticed. */
static void describe(work_t *work, char *out, size_t n) {
  const cli_t *cli = work->ask.cli;
  const char *url = cli->base_url;
  char stamp[64];

  if (url == NULL)
    url = getenv("TINKER_BASE_URL");
  cli_write_stamp(&work->ask, cli->words[0], stamp, sizeof(stamp));
  if (stamp[0] == '\0' || (size_t)snprintf(out, n, "%s %s\n%s\n", cli->words[0],
                                           url != NULL ? url : "", stamp) >= n)
    out[0] = '\0';
}

/* Download the files, unless an earlier push has downloaded them all. A partial
 * download is resumed. *has_come: some data is there. */
static int fetch(work_t *work, const cli_kept_t *kept, const char *folder,
                 int *has_come) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  const cli_t *cli = work->ask.cli;
  tnk_promise_t *promise;
  struct stat about;
  int64_t n_come;
  int status;

  *has_come = kept->is_found && lstat(folder, &about) == 0;
  if (kept->is_found)
    cli_note(cli, "Resuming with the files of an earlier push in %s.",
             kept->path);
  if (*has_come)
    return CLI_EXIT_OK;
  promise = cli_weights_fetch(&work->ask, folder, &options, &n_come);
  *has_come = kept->is_found || n_come > 0;
  status = tnk_promise_status(promise) == TNK_OK
               ? CLI_EXIT_OK
               : cli_ask_failed(&work->ask, promise);
  tnk_promise_unref(promise);
  return status;
}

/* After a signal nothing is left. */
static int download_and_upload(work_t *work) {
  const cli_t *cli = work->ask.cli;
  char folder[1040], about[1200], why[512];
  cli_kept_t kept;
  int has_come;
  int stays;
  int status;

  describe(work, about, sizeof(about));
  if (cli_kept_open(&kept, about, why, sizeof(why)) != 0)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  snprintf(folder, sizeof(folder), "%s/adapter", kept.path);
  status = fetch(work, &kept, folder, &has_come);
  if (status == CLI_EXIT_OK)
    status = upload(work, folder);
  stays = status != CLI_EXIT_OK && has_come && work->ask.signal_number == 0 &&
          cli_kept_may_stay(&kept);
  if (stays)
    cli_note(cli,
             "The downloaded files are kept in %s; run the same command again "
             "to resume.",
             kept.path);
  if (cli_kept_close(&kept, stays) != 0)
    cli_warn(cli, "%s cannot be removed", kept.path);
  return status;
}

static int push(work_t *work) {
  int status = open_hub(work);

  if (status == CLI_EXIT_OK)
    status = ask_info(work);
  if (status == CLI_EXIT_OK)
    status = check_hub(work);
  if (status == CLI_EXIT_OK)
    status = download_and_upload(work);
  tnk_promise_unref(work->info);
  tnk_hub_close(work->hub, NULL, NULL);
  return status;
}

static int run_push(cli_t *cli) {
  work_t work = {.options = TNK_PUSH_OPTIONS_INIT};
  int status = cli_weights_open(&work.ask, cli);

  fill_options(&work.options, cli);
  if (status == CLI_EXIT_OK)
    status = push(&work);
  return cli_ask_close(&work.ask, status);
}

static const cli_option_t options[] = {
    {.name = "repo",
     .letter = 'r',
     .value = "ID",
     .text = &args.repo,
     .help = "Repository: OWNER/NAME, or NAME of the token's owner. Default: "
             "tinker-MODEL-RUN."},
    {.name = "public",
     .flag = &args.is_public,
     .help = "Create a public repository. An existing one is not changed."},
    {.name = "revision",
     .value = "BRANCH",
     .text = &args.revision,
     .help =
         "Push to this branch; it is created if it does not exist. Default: "
         "main, or without --repo a branch named after the checkpoint."},
    {.name = "commit-message",
     .value = "TEXT",
     .text = &args.message,
     .help = "Commit message, one line."},
    {.name = "create-pr",
     .flag = &args.opens_pull_request,
     .help = "Open a pull request instead of committing to the branch."},
    {.name = "allow-pattern",
     .value = "PATTERN",
     .texts = &args.allow,
     .help =
         "Push only files that match, such as *.safetensors; may be repeated."},
    {.name = "ignore-pattern",
     .value = "PATTERN",
     .texts = &args.ignore,
     .help = "Skip files that match; may be repeated."},
    {.name = "no-model-card",
     .flag = &args.has_no_card,
     .help = "Do not write a README.md."},
    {.name = NULL}};

static const cli_item_t variables[] = {
    {"HF_TOKEN",
     "Token of the hub; it is sent only to the hub. Default: the file that "
     "HF_TOKEN_PATH names, else token in HF_HOME, which hf auth login writes."},
    {"HF_ENDPOINT", "The address of the hub."},
    {"TMPDIR", "Folder for the downloaded files (/tmp). If a push fails, they "
               "are kept there, and the same push resumes with them."},
    {NULL, NULL}};

static const cli_section_t sections[] = {
    {.title = "Environment", .items = variables}, {.title = NULL}};

const cli_command_t cli_checkpoint_push_hf = {
    .name = "push-hf",
    .brief = "push weights to a model hub",
    .about = "Download the files of a checkpoint, as tnk checkpoint download "
             "does, and push them to a repository of a model hub (Hugging "
             "Face), with a model card that names their origin. A repository "
             "that does not exist is created as private. A repository with "
             "another checkpoint is rejected. Token, names and repository are "
             "checked before anything is downloaded.",
    .words = "PATH",
    .options = options,
    .sections = sections,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_files,
    .run = run_push,
};
