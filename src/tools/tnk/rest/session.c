/* SPDX-License-Identifier: MIT */
/* tnk session list, search, info, move, and their group. */
#include <inttypes.h>
#include <string.h>

#include "tools/tnk/rest/commands.h"
#include "tools/tnk/rest/list.h"
#include "tools/tnk/rest/record.h"
#include "tools/tnk/rest/session.h"

static struct {
  int64_t limit;
  int64_t offset;
  int scope;
  const char *project_id; /* target of a move */
} args = {.limit = 20};

static const char *const scopes[] = {
    [TNK_SCOPE_OWNED] = "owned", [TNK_SCOPE_ACCESSIBLE] = "accessible", NULL};

/* ---- List ---- */

/* A list has no other members of a session. */
static void put_id(cli_json_t *json, const tnk_session_t *session) {
  tnk__json_begin_object(&json->w);
  tnk__json_put_text(&json->w, "session_id", session->id);
  tnk__json_end(&json->w);
}

static void show_id(void *user, const tnk_page_t *page, size_t i) {
  const cli_list_t *list = user;
  const tnk_session_t *session = tnk_page_session(page, i);

  if (list->json == NULL)
    cli_table_add(list->table, "%s", session->id);
  else
    put_id(list->json, session);
}

static int list_sessions(cli_ask_t *ask) {
  static const char *const headers[] = {"Session ID"};
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
  cli_list_t list = {.ask = ask,
                     .what = "sessions",
                     .key = "sessions",
                     .limit = args.limit,
                     .show = show_id,
                     .user = &list};

  options.limit = cli_list_page(args.limit, 100);
  options.offset = (uint64_t)args.offset;
  options.scope = (tnk_scope_t)args.scope;
  return cli_list_run(&list, tnk_rest_list_sessions(ask->service, &options),
                      headers, 1);
}

static int run_list(cli_t *cli) {
  cli_ask_t ask;
  int status = cli_ask_open(&ask, cli, NULL);

  if (status == CLI_EXIT_OK)
    status = list_sessions(&ask);
  return cli_ask_close(&ask, status);
}

static const cli_option_t list_options[] = {
    {.name = "limit",
     .value = "N",
     .number = &args.limit,
     .max = INT64_MAX,
     .help = "Maximum number, newest first. 0 means all (20)."},
    {.name = "offset",
     .value = "N",
     .number = &args.offset,
     .max = INT64_MAX,
     .help = "Number of sessions to skip (0)."},
    {.name = "access-scope",
     .value = "WHOSE",
     .choice = &args.scope,
     .choices = scopes,
     .help =
         "owned (default): your own; accessible: everything that you may see."},
    {.name = NULL}};

static const cli_command_t list = {
    .name = "list",
    .brief = "list the ids of sessions",
    .about =
        "List the ids of sessions. tnk session search shows more about each.",
    .options = list_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = run_list,
};

/* ---- Info ---- */

static tnk_promise_t *ask_session(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_get_session(service, cli->words[0], (tnk_scope_t)args.scope);
}

static int print_session(const cli_t *cli, const tnk_promise_t *promise) {
  const tnk_session_t *session = tnk_page_session(tnk_promise_page(promise), 0);
  cli_table_t *table;
  cli_json_t json;

  if (cli->json) {
    cli_json_begin(&json);
    /* The answer about one session may lack its id. */
    cli_json_put_odd_text(&json, "session_id", cli->words[0]);
    cli_put_members(&json, &tnk__shape_session, session);
    return cli_json_end(&json, cli);
  }
  table = cli_table_new(NULL, 2);
  cli_table_add_row(table, "Session ID", cli->words[0]);
  if (session->display_name != NULL)
    cli_table_add_row(table, "Name", session->display_name);
  for (size_t i = 0; i < session->n_run_ids; i++)
    cli_table_add_row(table, "Training Run", session->run_ids[i]);
  for (size_t i = 0; i < session->n_sampler_ids; i++)
    cli_table_add_row(table, "Sampler", session->sampler_ids[i]);
  cli_table_add_metadata(table, session->user_metadata,
                         session->n_user_metadata);
  return cli_table_end(table, cli);
}

static int run_info(cli_t *cli) {
  return cli_ask_once(cli, ask_session, print_session);
}

static const cli_option_t info_options[] = {
    {.name = "access-scope",
     .value = "WHOSE",
     .choice = &args.scope,
     .choices = scopes,
     .help = "owned (default), or accessible: also those of other users."},
    {.name = NULL}};

static const cli_command_t info = {
    .name = "info",
    .brief = "show the runs and samplers of a session",
    .words = "SESSION_ID",
    .min_words = 1,
    .max_words = 1,
    .options = info_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = run_info,
};

/* ---- Move ---- */

static tnk_promise_t *ask_move(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_move_session(service, cli->words[0], args.project_id);
}

static int print_moved(const cli_t *cli, const tnk_promise_t *promise) {
  cli_json_t json;

  (void)promise;
  if (!cli->json) {
    cli_note(cli, "Moved %s to %s.", cli->words[0], args.project_id);
    return CLI_EXIT_OK;
  }
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, "session_id", cli->words[0]);
  cli_json_put_odd_text(&json, "project_id", args.project_id);
  return cli_json_end(&json, cli);
}

static const char *check_move(const cli_t *cli) {
  (void)cli;
  return args.project_id == NULL ? "--project-id is missing" : NULL;
}

static int run_move(cli_t *cli) {
  return cli_ask_once(cli, ask_move, print_moved);
}

static const cli_option_t move_options[] = {
    {.name = "project-id",
     .value = "ID",
     .text = &args.project_id,
     .help = "The project that it moves to."},
    {.name = NULL}};

static const cli_command_t move = {
    .name = "move",
    .brief = "move a session to a project",
    .about = "Move a session, with its runs and samplers, to a project. It can "
             "be moved to another project later, but not out of all projects.",
    .words = "SESSION_ID",
    .min_words = 1,
    .max_words = 1,
    .options = move_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check_move,
    .run = run_move,
};

/* ---- The group ---- */

static const cli_command_t *const commands[] = {
    &list, &cli_session_search, &info, &move, &cli_session_export_trace, NULL};

const cli_command_t cli_session = {
    .name = "session",
    .brief = "sessions: list, search, info, move, export-trace",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = commands,
};
