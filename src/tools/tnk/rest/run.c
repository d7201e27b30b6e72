/* SPDX-License-Identifier: MIT */
/* tnk run list, tnk run info. */
#include <string.h>

#include "tools/common/frame/commands.h"
#include "tools/tnk/rest/list.h"
#include "tools/tnk/rest/record.h"

/* ---- Common ---- */

static const char *const scopes[] = {
    [TNK_SCOPE_OWNED] = "owned", [TNK_SCOPE_ACCESSIBLE] = "accessible", NULL};
static int scope;

/* ---- tnk run list ---- */

typedef enum {
  ID = 0,
  MODEL,
  OWNER,
  LORA,
  UPDATED,
  STATUS,
  CHECKPOINT,
  CHECKPOINT_TIME,
  N_COLUMNS
} column_t;

typedef struct {
  const char *name;
  const char *header;
} column_name_t;

static const column_name_t column_names[N_COLUMNS] = {
    [ID] = {"id", "Run ID"},
    [MODEL] = {"model", "Base Model"},
    [OWNER] = {"owner", "Owner"},
    [LORA] = {"lora", "LoRA"},
    [UPDATED] = {"updated", "Last Update"},
    [STATUS] = {"status", "Status"},
    [CHECKPOINT] = {"checkpoint", "Last Checkpoint"},
    [CHECKPOINT_TIME] = {"checkpoint_time", "Checkpoint Time"}};

enum { MAX_COLUMNS = 16 };

static struct {
  int64_t limit;
  int64_t offset;
  const char *project;
  column_t columns[MAX_COLUMNS];
  size_t n_columns;
} list_args = {
    .limit = 20, .columns = {ID, MODEL, LORA, UPDATED, STATUS}, .n_columns = 5};

static int add_column(const char *name, size_t n) {
  for (int i = 0; i < N_COLUMNS; i++)
    if (strlen(column_names[i].name) == n &&
        memcmp(column_names[i].name, name, n) == 0) {
      list_args.columns[list_args.n_columns++] = (column_t)i;
      return 0;
    }
  return -1;
}

static int set_columns(const cli_option_t *option, const char *value, char *why,
                       size_t n_why) {
  (void)option;
  list_args.n_columns = 0;
  while (*value != '\0') {
    size_t n = strcspn(value += strspn(value, " ,"), " ,");

    if (n > 0 &&
        (list_args.n_columns == MAX_COLUMNS || add_column(value, n) != 0)) {
      snprintf(why, n_why, "\"%.*s\" is not a column", (int)(n < 60 ? n : 60),
               value);
      return -1;
    }
    value += n;
  }
  if (list_args.n_columns > 0)
    return 0;
  snprintf(why, n_why, "has no column");
  return -1;
}

static const cli_option_t list_options[] = {
    {.name = "limit",
     .value = "N",
     .number = &list_args.limit,
     .min = INT64_MIN,
     .max = INT64_MAX,
     .help = "Maximum number, newest first. 0 means all (20)."},
    {.name = "offset",
     .value = "N",
     .number = &list_args.offset,
     .max = INT64_MAX,
     .help = "Number of runs to skip (0)."},
    {.name = "columns",
     .letter = 'c',
     .value = "NAMES",
     .set = set_columns,
     .help = "Columns of the table, separated by commas: id, model, owner, "
             "lora, updated, status, checkpoint, checkpoint_time "
             "(id,model,lora,updated,status)."},
    {.name = "project-id",
     .value = "ID",
     .text = &list_args.project,
     .help = "Only runs of this project."},
    {.name = "access-scope",
     .value = "WHOSE",
     .choice = &scope,
     .choices = scopes,
     .help =
         "owned (default): your own; accessible: everything that you may see."},
    {.name = NULL}};

static void show_cell(cli_table_t *table, const tnk_run_t *run,
                      column_t column) {
  const tnk_checkpoint_t *last = run->last_checkpoint;

  switch (column) {
  case ID:
    cli_table_add(table, "%s", run->id);
    break;
  case MODEL:
    cli_table_add(table, "%s", run->base_model);
    break;
  case OWNER:
    cli_table_add(table, "%s", run->owner);
    break;
  case LORA:
    cli_table_add_lora(table, run);
    break;
  case UPDATED:
    cli_table_add_age(table, run->last_request_us);
    break;
  case STATUS:
    cli_table_add(table, "%s", run->is_corrupted ? "Failed" : "OK");
    break;
  case CHECKPOINT:
    cli_table_add_or(table, last != NULL ? last->id : NULL, "None");
    break;
  default:
    if (last != NULL)
      cli_table_add_age(table, last->time_us);
    else
      cli_table_add(table, "N/A");
  }
}

static void show_run(const cli_list_t *list, const tnk_page_t *page, size_t i) {
  const tnk_run_t *run = tnk_page_run(page, i);

  if (list->json != NULL) {
    cli_put_record(list->json, &tnk__shape_run, run);
    return;
  }
  for (size_t c = 0; c < list_args.n_columns; c++)
    show_cell(list->table, run, list_args.columns[c]);
}

static int list_runs(cli_ask_t *ask) {
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  const char *headers[MAX_COLUMNS];
  cli_list_t list = {.ask = ask,
                     .what = "training runs",
                     .key = "runs",
                     .limit = list_args.limit,
                     .show = show_run};

  options.limit = cli_list_page(list_args.limit, 100);
  options.offset = (uint64_t)list_args.offset;
  options.project_id = list_args.project;
  options.scope = (tnk_scope_t)scope;
  for (size_t c = 0; c < list_args.n_columns; c++)
    headers[c] = column_names[list_args.columns[c]].header;
  return cli_list_run(&list, tnk_rest_list_runs(ask->service, &options),
                      headers, list_args.n_columns);
}

/* ---- tnk run info ---- */

static void put_checkpoint_rows(cli_table_t *table, const char *name,
                                const tnk_checkpoint_t *checkpoint) {
  if (checkpoint == NULL)
    return;
  cli_table_add_row(table, name, checkpoint->id);
  cli_table_add(table, "  - Time");
  cli_table_add_age(table, checkpoint->time_us);
  cli_table_add_row(table, "  - Path", checkpoint->path);
}

static int print_table(const cli_t *cli, const tnk_run_t *run) {
  cli_table_t *table = cli_table_new(NULL, 2);

  cli_table_add_row(table, "Run ID", run->id);
  cli_table_add_row(table, "Base Model", run->base_model);
  cli_table_add_row(table, "Owner", run->owner);
  cli_table_add(table, "LoRA");
  cli_table_add_lora(table, run);
  cli_table_add(table, "Last Update");
  cli_table_add_age(table, run->last_request_us);
  cli_table_add_row(table, "Status", run->is_corrupted ? "Failed" : "OK");
  put_checkpoint_rows(table, "Last Training Checkpoint", run->last_checkpoint);
  put_checkpoint_rows(table, "Last Sampler Checkpoint",
                      run->last_sampler_checkpoint);
  cli_table_add_metadata(table, run->user_metadata, run->n_user_metadata);
  return cli_table_end(table, cli);
}

static tnk_promise_t *ask_run(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_get_run(service, cli->words[0], (tnk_scope_t)scope);
}

static int print_run(const cli_t *cli, const tnk_promise_t *promise) {
  const tnk_run_t *run = tnk_page_run(tnk_promise_page(promise), 0);

  return cli->json ? cli_print_record(cli, &tnk__shape_run, run)
                   : print_table(cli, run);
}

/* ---- The tables ---- */

static const cli_command_t list = {
    .name = "list",
    .brief = "list training runs",
    .options = list_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_run,
    .work = list_runs,
};

static const cli_option_t info_options[] = {
    {.name = "access-scope",
     .value = "WHOSE",
     .choice = &scope,
     .choices = scopes,
     .help = "owned (default), or accessible: also those of other users."},
    {.name = NULL}};

static const cli_command_t info = {
    .name = "info",
    .brief = "show a training run",
    .words = "RUN_ID",
    .options = info_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_once,
    .begin = ask_run,
    .show = print_run,
};

static const cli_command_t *const commands[] = {&list, &info, NULL};

const cli_command_t cli_run = {
    .name = "run",
    .brief = "training runs",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = commands,
};
