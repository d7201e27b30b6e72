/* SPDX-License-Identifier: MIT */
/*
 * tnk checkpoint delete. Everything is checked and confirmed before the first
 * deletion. A failed deletion does not stop the others. The exit status reports
 * a failure, with its reason if nothing was deleted.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/format/time_text.h"
#include "tools/tnk/ask/prompt.h"
#include "tools/tnk/out/progress.h"
#include "tools/tnk/out/table.h"
#include "tools/tnk/rest/checkpoint.h"
#include "tools/tnk/rest/list.h"

enum { AT_ONCE = 32 };

static struct {
  const char *run_id;
  const char *type;
  const char *before;
  const char *after;
  int64_t before_us; /* 0: not given */
  int64_t after_us;
  int yes;
} args;

/* A checkpoint to delete. */
typedef struct {
  char *path;
  int64_t size_bytes; /* -1: unknown */
  int64_t time_us;    /* 0: unknown */
  char *failure;      /* why it was not deleted; NULL: it was deleted */
  int status;         /* exit status of the failure */
} target_t;

typedef struct {
  cli_ask_t *ask;
  target_t *targets;
  size_t n;
  size_t n_deleted;
  size_t n_failed;
} work_t;

/* ---- Targets ---- */

static char *copy_text(const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = malloc(n);

  if (copy != NULL)
    memcpy(copy, text, n);
  return copy;
}

/* Returns 0, or -1 without memory. A duplicate path is skipped. */
static int add(work_t *work, const char *path, int64_t size, int64_t time_us) {
  target_t *more;

  for (size_t i = 0; i < work->n; i++)
    if (strcmp(work->targets[i].path, path) == 0)
      return 0;
  more = realloc(work->targets, (work->n + 1) * sizeof(*more));
  if (more == NULL)
    return -1;
  work->targets = more;
  more[work->n] = (target_t){copy_text(path), size, time_us, NULL, CLI_EXIT_OK};
  return more[work->n].path != NULL ? (work->n++, 0) : -1;
}

/* The official command's name of each kind, and the kind in a path. */
static const char *const types[][2] = {{"training", "weights"},
                                       {"sampler", "sampler_weights"},
                                       {"external", "external_weights"}};

static int is_wanted(const tnk_checkpoint_t *checkpoint) {
  int is_type = args.type == NULL || strcmp(args.type, checkpoint->type) == 0;

  for (size_t i = 0; !is_type && i < sizeof(types) / sizeof(*types); i++)
    is_type = strcmp(args.type, types[i][1]) == 0 &&
              strcmp(checkpoint->type, types[i][0]) == 0;
  return is_type &&
         (args.before_us == 0 || checkpoint->time_us < args.before_us) &&
         (args.after_us == 0 || checkpoint->time_us > args.after_us);
}

/* Returns the exit status. */
static int find_targets(work_t *work) {
  tnk_promise_t *promise =
      tnk_rest_list_run_checkpoints(work->ask->service, args.run_id);
  const tnk_page_t *page;
  int status = CLI_EXIT_OK;

  if (cli_ask_wait(work->ask, promise) != TNK_OK)
    status = cli_ask_failed(work->ask, promise);
  page = tnk_promise_page(promise);
  for (size_t i = 0; status == CLI_EXIT_OK && i < tnk_page_count(page); i++) {
    const tnk_checkpoint_t *checkpoint = tnk_page_checkpoint(page, i);

    if (is_wanted(checkpoint) &&
        add(work, checkpoint->path, checkpoint->size_bytes,
            checkpoint->time_us) != 0)
      status = cli_fail(work->ask->cli, CLI_EXIT_FAILED, "out of memory");
  }
  tnk_promise_unref(promise);
  return status;
}

static int take_words(work_t *work) {
  const cli_t *cli = work->ask->cli;

  for (size_t i = 0; i < cli->n_words; i++)
    if (add(work, cli->words[i], -1, 0) != 0)
      return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  return CLI_EXIT_OK;
}

/* ---- Confirmation ---- */

static void show_targets(const work_t *work) {
  char size[CLI_HUMAN_TEXT], age[CLI_HUMAN_TEXT];
  int64_t total = 0;

  cli_tell("%zu checkpoint%s:", work->n, work->n == 1 ? "" : "s");
  for (size_t i = 0; i < work->n; i++) {
    const target_t *target = &work->targets[i];

    total += target->size_bytes > 0 ? target->size_bytes : 0;
    cli_human_size(size, target->size_bytes);
    cli_human_age(age, target->time_us, cli_now_us());
    if (target->time_us != 0)
      cli_tell("  - %s  %s  %s", target->path, size, age);
    else
      cli_tell("  - %s", target->path);
  }
  cli_human_size(size, total);
  if (total > 0)
    cli_tell("Total: %s.", size);
}

/* Returns 1 if the deletion may start. Otherwise *status is the exit status. */
static int is_confirmed(const work_t *work, int *status) {
  int answer;

  if (args.yes)
    return 1;
  show_targets(work);
  answer = cli_ask_yes(work->ask, "Delete for good? This cannot be undone.");
  *status = answer < 0 ? CLI_EXIT_FAILED : CLI_EXIT_OK;
  if (answer <= 0)
    cli_note(work->ask->cli, "Nothing was deleted.");
  return answer > 0;
}

/* ---- Deleting ---- */

static void take_outcome(work_t *work, size_t i, tnk_promise_t *promise) {
  int err = cli_ask_wait(work->ask, promise);

  if (err == TNK_OK) {
    work->n_deleted++;
  } else {
    work->n_failed++;
    work->targets[i].status = cli_exit_of(err);
    work->targets[i].failure = copy_text(tnk_promise_text(promise));
  }
  tnk_promise_unref(promise);
}

/* Up to AT_ONCE deletions are in flight; results are taken in order. */
static void delete_all(work_t *work) {
  tnk_promise_t *window[AT_ONCE] = {NULL};
  cli_progress_t progress;
  size_t n_begun = 0;

  cli_progress_begin(&progress, work->ask->cli, "Deleting", (int64_t)work->n,
                     0);
  for (size_t i = 0; i < work->n; i++) {
    for (; n_begun < work->n && n_begun < i + AT_ONCE; n_begun++)
      window[n_begun % AT_ONCE] = tnk_rest_delete_checkpoint(
          work->ask->service, work->targets[n_begun].path);
    take_outcome(work, i, window[i % AT_ONCE]);
    cli_progress_at(&progress, (int64_t)i + 1);
  }
  cli_progress_end(&progress);
}

static int put_json(const work_t *work) {
  cli_json_t json;

  cli_json_begin(&json);
  tnk__json_put_int(&json.w, "deleted_count", (int64_t)work->n_deleted);
  tnk__json_put_array(&json.w, "failed");
  for (size_t i = 0; i < work->n; i++) {
    const target_t *target = &work->targets[i];

    if (target->failure == NULL)
      continue;
    tnk__json_begin_object(&json.w);
    cli_json_put_odd_text(&json, "tinker_path", target->path);
    cli_json_put_odd_text(&json, "error", target->failure);
    tnk__json_end(&json.w);
  }
  tnk__json_end(&json.w);
  return cli_json_end(&json, work->ask->cli);
}

/* The status for failed deletions: their common status, if all are equal. */
static int status_of_failures(const work_t *work) {
  for (size_t i = 0; i < work->n; i++)
    if (work->targets[i].status != work->targets[0].status)
      return CLI_EXIT_FAILED;
  return work->targets[0].status;
}

static int report(const work_t *work) {
  const cli_t *cli = work->ask->cli;
  int status = CLI_EXIT_OK;

  if (cli->json)
    status = put_json(work);
  else
    printf("Deleted %zu checkpoint%s.\n", work->n_deleted,
           work->n_deleted == 1 ? "" : "s");
  for (size_t i = 0; i < work->n; i++)
    if (work->targets[i].failure != NULL)
      cli_warn(cli, "not deleted: %s: %s", work->targets[i].path,
               work->targets[i].failure);
  return work->n_failed > 0 ? status_of_failures(work) : status;
}

static int run_all(work_t *work) {
  int status = args.run_id != NULL ? find_targets(work) : take_words(work);

  if (status != CLI_EXIT_OK)
    return status;
  if (work->n > 0 && !is_confirmed(work, &status))
    return status;
  delete_all(work);
  return report(work);
}

static int run_delete(cli_t *cli) {
  work_t work = {.n = 0};
  cli_ask_t ask;
  int status;

  if (!args.yes && !cli_may_ask(cli))
    return cli_fail(cli, CLI_EXIT_USAGE,
                    "cannot ask for confirmation here: use --yes");
  status = cli_ask_open(&ask, cli, NULL);
  work.ask = &ask;
  if (status == CLI_EXIT_OK)
    status = run_all(&work);
  for (size_t i = 0; i < work.n; i++) {
    free(work.targets[i].path);
    free(work.targets[i].failure);
  }
  free(work.targets);
  return cli_ask_close(&ask, status);
}

/* ---- The command ---- */

static const char *check_filters(void) {
  if (args.before != NULL &&
      !tnk__time_read(&args.before_us, args.before, strlen(args.before)))
    return "--before needs a date, such as 2026-01-31 or "
           "2026-01-31T12:00:00Z";
  if (args.after != NULL &&
      !tnk__time_read(&args.after_us, args.after, strlen(args.after)))
    return "--after needs a date, such as 2026-01-31 or 2026-01-31T12:00:00Z";
  if (args.type == NULL)
    return NULL;
  for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
    if (strcmp(args.type, types[i][0]) == 0 ||
        strcmp(args.type, types[i][1]) == 0)
      return NULL;
  return "--type must be training, sampler, external, weights, "
         "sampler_weights or external_weights";
}

static const char *check(const cli_t *cli) {
  static char why[512];

  if ((cli->n_words > 0) == (args.run_id != NULL))
    return "either paths or --run-id";
  if (args.run_id == NULL &&
      (args.type != NULL || args.before != NULL || args.after != NULL))
    return "--type, --before and --after need --run-id";
  for (size_t i = 0; i < cli->n_words; i++)
    if (cli_check_path(cli->words[i], why, sizeof(why)) != 0)
      return why;
  return check_filters();
}

static const cli_option_t options[] = {
    {.name = "run-id",
     .value = "ID",
     .text = &args.run_id,
     .help = "All checkpoints of this training run, limited by the next three "
             "options."},
    {.name = "type",
     .value = "TYPE",
     .text = &args.type,
     .help = "training, sampler or external (weights, sampler_weights, "
             "external_weights)."},
    {.name = "before",
     .value = "DATE",
     .text = &args.before,
     .help = "Created before this date, with an optional time; UTC unless it "
             "has a time zone."},
    {.name = "after",
     .value = "DATE",
     .text = &args.after,
     .help = "Created after this date."},
    {.name = "yes",
     .letter = 'y',
     .flag = &args.yes,
     .help = "Do not ask. Required with --json, and without a terminal."},
    {.name = NULL}};

const cli_command_t cli_checkpoint_delete = {
    .name = "delete",
    .brief = "delete checkpoints permanently",
    .about = "Delete checkpoints permanently. Shows the checkpoints and asks "
             "first. If a path is wrong, nothing is deleted.",
    .words = "[PATH]...",
    .options = options,
    .failed = "Some checkpoints were not deleted, or all failed for different "
              "reasons. The output names them. A common reason has its own "
              "status.",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = run_delete,
};
