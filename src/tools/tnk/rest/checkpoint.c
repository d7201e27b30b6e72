/* SPDX-License-Identifier: MIT */
/* tnk checkpoint list, info, publish, unpublish, set-ttl, copy, and their
 * group. */
#include "tools/tnk/rest/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"
#include "lib/store/ask.h"
#include "tnk/data.h"
#include "tnk/error.h"
#include "tnk/rest.h"
#include "tools/common/base/input.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"
#include "tools/tnk/rest/list.h"
#include "tools/tnk/rest/record.h"

/* ---- Paths ---- */

int cli_check_path(const char *path, char *why, size_t n_why) {
  char reason[256] = "";

  if (tnk__ask_check_path(path, 0, reason, sizeof(reason)) == TNK_OK)
    return 0;
  snprintf(why, n_why, "\"%.120s\": %s", path, reason);
  return -1;
}

const char *cli_check_first_path(const cli_t *cli) {
  static char why[512];

  return cli_check_path(cli->words[0], why, sizeof(why)) == 0 ? NULL : why;
}

/* ---- Times ---- */

enum { HOUR = 3600, DAY = 24 * HOUR, TEN_YEARS = 315360000 };

/* Parse a number with an optional unit, in seconds by default. The limits are
 * those of the service.
 */
int cli_read_ttl(int64_t *seconds, const char *value, char *why, size_t n_why) {
  static const char units[] = "smhdw";
  static const int64_t lengths[] = {1, 60, HOUR, DAY, 7 * DAY};
  const char *at = value;
  const char *unit = units;
  uint64_t n = 0;

  if (tnk__read_u64(&at, NULL, TEN_YEARS, &n) == TNK_OK && at[0] != '\0')
    unit = at[1] == '\0' ? strchr(units, at[0]) : NULL;
  *seconds =
      at > value && unit != NULL ? (int64_t)n * lengths[unit - units] : 0;
  if (*seconds >= HOUR && *seconds <= TEN_YEARS)
    return 0;
  snprintf(why, n_why,
           "must be from one hour to ten years: seconds, or as 12h, 30d, 4w");
  return -1;
}

/* ---- tnk checkpoint list ---- */

/* Without --limit: 20 checkpoints of the account, or all of one run. */
enum { NO_LIMIT = -1 };

static struct {
  int64_t limit;
  const char *run_id;
} list_args = {.limit = NO_LIMIT};

static const char *const headers[] = {
    "Checkpoint ID", "Type", "Size", "Public", "Created", "Expires", "Path"};
enum { N_HEADERS = sizeof(headers) / sizeof(*headers) };

static void put_expiry(cli_table_t *table, const tnk_checkpoint_t *checkpoint) {
  if (checkpoint->expires_us != 0)
    cli_table_add_age(table, checkpoint->expires_us);
  else
    cli_table_add(table, "Never");
}

static void show_checkpoint(const cli_list_t *list, const tnk_page_t *page,
                            size_t i) {
  const tnk_checkpoint_t *checkpoint = tnk_page_checkpoint(page, i);

  if (list->json != NULL) {
    cli_put_record(list->json, &tnk__shape_checkpoint, checkpoint);
    return;
  }
  cli_table_add(list->table, "%s", checkpoint->id);
  cli_table_add(list->table, "%s", checkpoint->type);
  cli_table_add_size(list->table, checkpoint->size_bytes);
  cli_table_add(list->table, "%s", checkpoint->is_public ? "Yes" : "No");
  cli_table_add_age(list->table, checkpoint->time_us);
  put_expiry(list->table, checkpoint);
  cli_table_add(list->table, "%s", checkpoint->path);
}

static int list_checkpoints(cli_ask_t *ask) {
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  const char *run_id = list_args.run_id;
  cli_list_t list = {.ask = ask,
                     .what = "checkpoints",
                     .key = "checkpoints",
                     .run_id = run_id,
                     .limit = list_args.limit,
                     .show = show_checkpoint};
  tnk_promise_t *first;

  if (list.limit == NO_LIMIT)
    list.limit = run_id != NULL ? 0 : 20;
  options.limit = cli_list_page(list.limit, 1000);
  first = run_id != NULL ? tnk_rest_list_run_checkpoints(ask->service, run_id)
                         : tnk_rest_list_checkpoints(ask->service, &options);
  return cli_list_run(&list, first, headers, N_HEADERS);
}

static const cli_option_t list_options[] = {
    {.name = "run-id",
     .value = "ID",
     .text = &list_args.run_id,
     .help = "Only checkpoints of this training run."},
    {.name = "limit",
     .value = "N",
     .number = &list_args.limit,
     .max = INT64_MAX,
     .help =
         "Maximum number, newest first. 0 means all (20; with --run-id all)."},
    {.name = NULL}};

static const cli_command_t list_command = {
    .name = "list",
    .brief = "list checkpoints",
    .options = list_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_run,
    .work = list_checkpoints,
};

/* ---- tnk checkpoint info ---- */

static int print_table(const cli_t *cli, const tnk_checkpoint_t *checkpoint,
                       const tnk_run_t *run) {
  cli_table_t *table = cli_table_new(NULL, 2);

  cli_table_add_row(table, "Checkpoint ID", checkpoint->id);
  cli_table_add_row(table, "Type", checkpoint->type);
  cli_table_add_row(table, "Tinker Path", checkpoint->path);
  if (checkpoint->size_bytes >= 0) {
    cli_table_add(table, "Size");
    cli_table_add_size(table, checkpoint->size_bytes);
  }
  cli_table_add_row(table, "Public", checkpoint->is_public ? "Yes" : "No");
  cli_table_add(table, "Created");
  cli_table_add_age(table, checkpoint->time_us);
  cli_table_add(table, "Expires");
  put_expiry(table, checkpoint);
  cli_table_add_row(table, "Training Run ID", run->id);
  cli_table_add_row(table, "Base Model", run->base_model);
  cli_table_add(table, "LoRA");
  cli_table_add_lora(table, run);
  cli_table_add_metadata(table, checkpoint->user_metadata,
                         checkpoint->n_user_metadata);
  return cli_table_end(table, cli);
}

static int print_info(const cli_t *cli, const tnk_checkpoint_t *checkpoint,
                      const tnk_run_t *run) {
  cli_json_t json;

  if (!cli->json)
    return print_table(cli, checkpoint, run);
  cli_json_begin(&json);
  cli_put_members(&json, &tnk__shape_checkpoint, checkpoint);
  tnk__json_put_bool(&json.w, "is_lora", run->is_lora);
  cli_json_put_number(&json, "lora_rank", run->lora_rank, run->lora_rank > 0);
  return cli_json_end(&json, cli);
}

static const tnk_checkpoint_t *find(const tnk_page_t *page, const char *path) {
  for (size_t i = 0; i < tnk_page_count(page); i++)
    if (strcmp(tnk_page_checkpoint(page, i)->path, path) == 0)
      return tnk_page_checkpoint(page, i);
  return NULL;
}

void cli_write_stamp(cli_ask_t *ask, const char *text, char *out, size_t n) {
  const tnk_checkpoint_t *checkpoint = NULL;
  tnk_path_t path = TNK_PATH_INIT;
  tnk_promise_t *list;
  char run_id[512];

  out[0] = '\0';
  if (tnk_path_parse(&path, text) != TNK_OK ||
      path.run_length >= sizeof(run_id))
    return;
  memcpy(run_id, path.run, path.run_length);
  run_id[path.run_length] = '\0';
  list = tnk_rest_list_run_checkpoints(ask->service, run_id);
  if (cli_ask_wait(ask, list) == TNK_OK)
    checkpoint = find(tnk_promise_page(list), text);
  if (checkpoint != NULL)
    snprintf(out, n, "%" PRId64 " %" PRId64, checkpoint->time_us,
             checkpoint->size_bytes);
  tnk_promise_unref(list);
}

/* The list and the run are requested in parallel. */
static int show_info(cli_ask_t *ask, const char *run_id, const char *path) {
  tnk_promise_t *list = tnk_rest_list_run_checkpoints(ask->service, run_id);
  tnk_promise_t *run =
      tnk_rest_get_run(ask->service, run_id, TNK_SCOPE_ACCESSIBLE);
  const tnk_checkpoint_t *checkpoint;
  int status;

  if (cli_ask_wait(ask, list) != TNK_OK) {
    status = cli_ask_failed(ask, list);
  } else if ((checkpoint = find(tnk_promise_page(list), path)) == NULL) {
    status = cli_fail(ask->cli, CLI_EXIT_NOT_FOUND,
                      "the run has no checkpoint %s", path);
  } else if (cli_ask_wait(ask, run) != TNK_OK) {
    status = cli_ask_failed(ask, run);
  } else {
    status = print_info(ask->cli, checkpoint,
                        tnk_page_run(tnk_promise_page(run), 0));
  }
  tnk_promise_cancel(run);
  tnk_then(run, NULL, NULL);
  tnk_promise_unref(list);
  return status;
}

int cli_put_made(const cli_t *cli, const char *path) {
  cli_json_t json;

  if (!cli->json)
    return cli_put_line(cli, path != NULL ? path : "");
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, "source_path", cli->words[0]);
  tnk__json_put_text(&json.w, "tinker_path", path);
  return cli_json_end(&json, cli);
}

static int run_info(cli_t *cli) {
  tnk_path_t path = TNK_PATH_INIT;
  char run_id[512];
  cli_ask_t ask;
  int status;

  if (tnk_path_parse(&path, cli->words[0]) != TNK_OK ||
      path.run_length >= sizeof(run_id))
    return cli_fail(cli, CLI_EXIT_USAGE,
                    "\"%s\" is not the path of a checkpoint", cli->words[0]);
  memcpy(run_id, path.run, path.run_length);
  run_id[path.run_length] = '\0';
  status = cli_ask_open(&ask, cli, NULL);
  if (status == CLI_EXIT_OK)
    status = show_info(&ask, run_id, cli->words[0]);
  return cli_ask_close(&ask, status);
}

static const cli_command_t info_command = {
    .name = "info",
    .brief = "show a checkpoint",
    .words = "PATH",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_first_path,
    .run = run_info,
};

/* ---- Publish ---- */

static int told(const cli_t *cli, const char *what, int is_public) {
  cli_json_t json;

  if (!cli->json) {
    cli_note(cli, "%s %s", what, cli->words[0]);
    return CLI_EXIT_OK;
  }
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, "tinker_path", cli->words[0]);
  tnk__json_put_bool(&json.w, "public", is_public);
  return cli_json_end(&json, cli);
}

static tnk_promise_t *publish(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_publish_checkpoint(service, cli->words[0]);
}

static int show_public(const cli_t *cli, const tnk_promise_t *promise) {
  (void)promise;
  return told(cli, "Published", 1);
}

static tnk_promise_t *unpublish(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_unpublish_checkpoint(service, cli->words[0]);
}

static int show_private(const cli_t *cli, const tnk_promise_t *promise) {
  (void)promise;
  return told(cli, "No longer public:", 0);
}

static const cli_command_t publish_command = {
    .name = "publish",
    .brief = "make a checkpoint public",
    .about = "Make a checkpoint public, so that everybody can use it. It is "
             "not an error if it is already public.",
    .words = "PATH",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_first_path,
    .run = cli_ask_once,
    .begin = publish,
    .show = show_public,
};

static const cli_command_t unpublish_command = {
    .name = "unpublish",
    .brief = "make a checkpoint private",
    .words = "PATH",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_first_path,
    .run = cli_ask_once,
    .begin = unpublish,
    .show = show_private,
};

/* ---- Time to live ---- */

static struct {
  int64_t ttl; /* seconds; 0: not given */
  int remove;
  const char *project_id;
  const char *token_file;
} args;

static int set_ttl(const cli_option_t *option, const char *value, char *why,
                   size_t n_why) {
  (void)option;
  return cli_read_ttl(&args.ttl, value, why, n_why);
}

static tnk_promise_t *ask_ttl(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_set_checkpoint_ttl(service, cli->words[0], args.ttl);
}

static int show_ttl(const cli_t *cli, const tnk_promise_t *promise) {
  cli_json_t json;

  (void)promise;
  if (!cli->json) {
    if (args.remove)
      cli_note(cli, "Never expires: %s", cli->words[0]);
    else
      cli_note(cli, "Expires in %lld seconds: %s", (long long)args.ttl,
               cli->words[0]);
    return CLI_EXIT_OK;
  }
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, "tinker_path", cli->words[0]);
  cli_json_put_number(&json, "ttl_seconds", args.ttl, args.ttl > 0);
  return cli_json_end(&json, cli);
}

static const char *check_ttl(const cli_t *cli) {
  if ((args.ttl > 0) == args.remove)
    return "either --ttl or --remove";
  return cli_check_first_path(cli);
}

static const cli_option_t ttl_options[] = {
    {.name = "ttl",
     .value = "SECONDS",
     .set = set_ttl,
     .help = "Time from now until it expires: one hour to ten years; also as "
             "12h, 30d or 4w."},
    {.name = "remove", .flag = &args.remove, .help = "It never expires."},
    {.name = NULL}};

static const cli_command_t set_ttl_command = {
    .name = "set-ttl",
    .brief = "set when a checkpoint expires",
    .about = "Set when a checkpoint expires. Needs --ttl or --remove.",
    .words = "PATH",
    .options = ttl_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check_ttl,
    .run = cli_ask_once,
    .begin = ask_ttl,
    .show = show_ttl,
};

/* ---- Copy ---- */

static char *token; /* from --token-file, without surrounding whitespace */

static int read_token(const cli_t *cli) {
  char why[512];
  size_t n;

  if (args.token_file == NULL)
    return CLI_EXIT_OK;
  token = cli_read_file(args.token_file, &n, why, sizeof(why));
  if (token == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  token[strcspn(token, "\r\n")] = '\0';
  return CLI_EXIT_OK;
}

static tnk_promise_t *ask_copy(tnk_service_t *service, const cli_t *cli) {
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;

  options.path = cli->words[0];
  options.project_id = args.project_id;
  options.ttl_seconds = args.ttl;
  options.weights_access_token = token;
  return tnk_rest_copy_weights(service, &options);
}

static int show_copy(const cli_t *cli, const tnk_promise_t *promise) {
  return cli_put_made(cli, tnk_promise_path(promise));
}

static int run_copy(cli_t *cli) {
  int status = read_token(cli);

  return status == CLI_EXIT_OK ? cli_ask_once(cli) : status;
}

static const cli_option_t copy_options[] = {
    {.name = "project-id",
     .value = "ID",
     .text = &args.project_id,
     .help = "Copy to this project (TINKER_PROJECT_ID)."},
    {.name = "ttl",
     .value = "SECONDS",
     .set = set_ttl,
     .help = "Time until the copy expires, as for set-ttl. Default: the copy "
             "does not expire, even if the original does."},
    {.name = "access-token-file",
     .value = "FILE",
     .text = &args.token_file,
     .offer = CLI_OFFER_FILES,
     .help = "File with the access token for another user's weights; - is "
             "standard input."},
    {.name = NULL}};

static const cli_command_t copy_command = {
    .name = "copy",
    .brief = "copy weights to a project",
    .about = "Copy weights to a project. The copy is in a new run that cannot "
             "be trained; no data is transferred. Prints the path of the copy.",
    .words = "PATH",
    .options = copy_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_first_path,
    .run = run_copy,
    .begin = ask_copy,
    .show = show_copy,
};

/* ---- The group ---- */

static const cli_command_t *const commands[] = {&list_command,
                                                &info_command,
                                                &publish_command,
                                                &unpublish_command,
                                                &set_ttl_command,
                                                &copy_command,
                                                &cli_checkpoint_delete,
                                                &cli_checkpoint_download,
                                                &cli_checkpoint_save_external,
                                                &cli_checkpoint_push_hf,
                                                NULL};

const cli_command_t cli_checkpoint = {
    .name = "checkpoint",
    .brief = "checkpoints: list, set-ttl, copy, delete, download ...",
    .about = "Checkpoints. A PATH is tinker://RUN/KIND/NAME, as tnk checkpoint "
             "list prints it.",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = commands,
};
