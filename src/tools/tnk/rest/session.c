/* SPDX-License-Identifier: MIT */
/* tnk session list, info, move, search, export-trace, and their group. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tnk/hub.h"
#include "tnk/rest.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/progress.h"
#include "tools/tnk/out/table.h"
#include "tools/tnk/rest/list.h"
#include "tools/tnk/rest/record.h"

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

static void show_id(const cli_list_t *list, const tnk_page_t *page, size_t i) {
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
                     .show = show_id};

  options.limit = cli_list_page(args.limit, 100);
  options.offset = (uint64_t)args.offset;
  options.scope = (tnk_scope_t)args.scope;
  return cli_list_run(&list, tnk_rest_list_sessions(ask->service, &options),
                      headers, 1);
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

static const cli_command_t list_command = {
    .name = "list",
    .brief = "list the ids of sessions",
    .about =
        "List the ids of sessions. tnk session search shows more about each.",
    .options = list_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_run,
    .work = list_sessions,
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

static const cli_option_t info_options[] = {
    {.name = "access-scope",
     .value = "WHOSE",
     .choice = &args.scope,
     .choices = scopes,
     .help = "owned (default), or accessible: also those of other users."},
    {.name = NULL}};

static const cli_command_t info_command = {
    .name = "info",
    .brief = "show the runs and samplers of a session",
    .words = "SESSION_ID",
    .options = info_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_once,
    .begin = ask_session,
    .show = print_session,
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

static const cli_option_t move_options[] = {
    {.name = "project-id",
     .value = "ID",
     .text = &args.project_id,
     .help = "The project that it moves to."},
    {.name = NULL}};

static const cli_command_t move_command = {
    .name = "move",
    .brief = "move a session to a project",
    .about = "Move a session, with its runs and samplers, to a project. It can "
             "be moved to another project later, but not out of all projects.",
    .words = "SESSION_ID",
    .options = move_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check_move,
    .run = cli_ask_once,
    .begin = ask_move,
    .show = print_moved,
};

/* ---- Search ---- */

enum { MAX_PAIRS = 32 };

static struct {
  int64_t limit;
  const char *name;
  const char *session_id;
  cli_texts_t project_ids;
  cli_texts_t owners;
  int owner;
  uint32_t states;
  tnk_pair_t metadata[MAX_PAIRS];
  char names[MAX_PAIRS][256];
  size_t n_metadata;
} search_args = {.limit = 20};

/* ---- Search: options ---- */

static const char *const states[] = {"active",  "cancelled", "failed",
                                     "success", "errored",   "interrupted"};

/* The words are in the order of the bits. */
static int set_status(const cli_option_t *option, const char *value, char *why,
                      size_t n_why) {
  (void)option;
  for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
    if (strcmp(states[i], value) == 0) {
      search_args.states |= 1u << i;
      return 0;
    }
  snprintf(why, n_why,
           "must be active, cancelled, failed, success, errored "
           "or interrupted");
  return -1;
}

static int set_metadata(const cli_option_t *option, const char *value,
                        char *why, size_t n_why) {
  size_t i = search_args.n_metadata;
  size_t n = strcspn(value, "=");

  (void)option;
  if (value[n] == '\0' || n >= sizeof(search_args.names[0]) || i == MAX_PAIRS) {
    snprintf(why, n_why, "must be KEY=VALUE, at most 32 times");
    return -1;
  }
  memcpy(search_args.names[i], value, n);
  search_args.names[i][n] = '\0';
  search_args.metadata[i] = (tnk_pair_t){search_args.names[i], value + n + 1};
  search_args.n_metadata++;
  return 0;
}

static const char *const owners[] = {
    [TNK_OWNER_SELF] = "own", [TNK_OWNER_ANY] = "accessible", NULL};

static const cli_option_t search_options[] = {
    {.name = "name",
     .value = "WORDS",
     .text = &search_args.name,
     .help = "The name contains each of these words, in upper or lower case."},
    {.name = "session-id",
     .value = "ID",
     .text = &search_args.session_id,
     .help = "The session with this id. With --name, either may match."},
    {.name = "project-id",
     .value = "ID",
     .texts = &search_args.project_ids,
     .help = "Sessions in this project; may be repeated."},
    {.name = "metadata",
     .value = "KEY=VALUE",
     .set = set_metadata,
     .help = "It was created with this metadata; may be repeated, and then all "
             "must match."},
    {.name = "status",
     .value = "STATUS",
     .set = set_status,
     .help = "active, cancelled, failed, success, errored or interrupted; may "
             "be repeated, and then one must match."},
    {.name = "owner",
     .value = "WHOSE",
     .choice = &search_args.owner,
     .choices = owners,
     .help = "own (default), or accessible: everything that you may see."},
    {.name = "owner-urn",
     .value = "URN",
     .texts = &search_args.owners,
     .help = "Sessions of this user; may be repeated up to ten times."},
    {.name = "limit",
     .value = "N",
     .number = &search_args.limit,
     .max = INT64_MAX,
     .help = "Maximum number, newest first. 0 means all (20)."},
    {.name = NULL}};

/* ---- Search: the list ---- */

static const char *const search_headers[] = {"Session ID",  "Name", "Status",
                                             "Checkpoints", "Size", "Project",
                                             "Created"};
enum { N_HEADERS = sizeof(search_headers) / sizeof(*search_headers) };

static void show_session(const cli_list_t *list, const tnk_page_t *page,
                         size_t i) {
  const tnk_session_t *session = tnk_page_session(page, i);
  cli_table_t *table = list->table;

  if (list->json != NULL) {
    cli_put_record(list->json, &tnk__shape_session_summary, session);
    return;
  }
  cli_table_add(table, "%s", session->id);
  cli_table_add_or(table, session->display_name, "");
  cli_table_add_or(
      table, session->status != NULL ? session->status->type : NULL, "N/A");
  if (session->n_checkpoints >= 0)
    cli_table_add(table, "%" PRId64, session->n_checkpoints);
  else
    cli_table_add(table, "N/A");
  cli_table_add_size(table, session->checkpoint_bytes);
  cli_table_add_or(table, session->project_id, "N/A");
  if (session->created_us != 0)
    cli_table_add_age(table, session->created_us);
  else
    cli_table_add(table, "N/A");
}

static int search(cli_ask_t *ask) {
  tnk_search_options_t wanted = TNK_SEARCH_OPTIONS_INIT;
  cli_list_t list = {.ask = ask,
                     .what = "such sessions",
                     .key = "sessions",
                     .limit = search_args.limit,
                     .show = show_session};

  wanted.session_id = search_args.session_id;
  wanted.display_name = search_args.name;
  wanted.project_ids = search_args.project_ids.items;
  wanted.n_project_ids = search_args.project_ids.n;
  wanted.user_metadata = search_args.metadata;
  wanted.n_user_metadata = search_args.n_metadata;
  wanted.owner_urns = search_args.owners.items;
  wanted.n_owner_urns = search_args.owners.n;
  wanted.owner = search_args.owners.n > 0 ? TNK_OWNER_USERS
                                          : (tnk_owner_t)search_args.owner;
  wanted.states = search_args.states;
  wanted.limit = cli_list_page(search_args.limit, 200);
  return cli_list_run(&list, tnk_rest_search_sessions(ask->service, &wanted),
                      search_headers, N_HEADERS);
}

static const cli_command_t search_command = {
    .name = "search",
    .brief = "search sessions",
    .about = "Search sessions, newest first. The service marks this as "
             "experimental: it may change without notice.",
    .options = search_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_run,
    .work = search,
};

/* ---- Export of traces ---- */

static struct {
  const char *output;
  int url_only;
} trace_args;

/* ---- Export of traces: the file ---- */

static void on_progress(const char *file, uint64_t n_bytes, uint64_t n_total,
                        void *user) {
  cli_progress_t *progress = user;

  (void)file;
  progress->total = (int64_t)n_total;
  cli_progress_at(progress, (int64_t)n_bytes);
}

/* Returns the exit status; errors have been reported. */
static int fetch_trace(cli_ask_t *ask, tnk_hub_t *hub, const char *url,
                       const char *file) {
  tnk_download_options_t options = TNK_DOWNLOAD_OPTIONS_INIT;
  cli_progress_t progress;
  tnk_promise_t *promise;
  int status = CLI_EXIT_OK;

  cli_progress_begin(&progress, ask->cli, file, 0, 1);
  options.on_progress = on_progress;
  options.progress_user = &progress;
  promise = tnk_hub_download(hub, url, file, &options);
  if (cli_ask_wait(ask, promise) != TNK_OK)
    status = cli_ask_failed(ask, promise);
  tnk_promise_unref(promise);
  cli_progress_end(&progress);
  return status;
}

static int print_file(const cli_t *cli, const char *file) {
  struct stat about;
  cli_table_t *table;
  cli_json_t json;

  if (stat(file, &about) != 0)
    return cli_fail(cli, CLI_EXIT_FILE, "%s has disappeared", file);
  if (cli->json) {
    cli_json_begin(&json);
    cli_json_put_odd_text(&json, "session_id", cli->words[0]);
    cli_json_put_odd_text(&json, "destination", file);
    tnk__json_put_int(&json.w, "file_size_bytes", (int64_t)about.st_size);
    return cli_json_end(&json, cli);
  }
  table = cli_table_new(NULL, 2);
  cli_table_add_row(table, "Session ID", cli->words[0]);
  cli_table_add_row(table, "Saved to", file);
  cli_table_add(table, "Size");
  cli_table_add_size(table, (int64_t)about.st_size);
  return cli_table_end(table, cli);
}

static int save_trace(cli_ask_t *ask, const char *url) {
  const cli_t *cli = ask->cli;
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  char why[512], own[300];
  const char *file = trace_args.output;
  tnk_hub_t *hub;
  int status;
  int err;

  if (file == NULL) {
    snprintf(own, sizeof(own), "%.280s.pftrace", cli->words[0]);
    file = own;
  }
  /* Nothing is cached, and the hub's token must not be sent to this URL. */
  options.token = "";
  options.cache_dir = ".";
  err = tnk_hub_open(&hub, &ask->loop, &options, why, sizeof(why));
  if (err != TNK_OK)
    return cli_failure(cli, err, why, NULL);
  status = fetch_trace(ask, hub, url, file);
  tnk_hub_close(hub, NULL, NULL);
  return status == CLI_EXIT_OK ? print_file(cli, file) : status;
}

/* ---- Export of traces: the command ---- */

static int print_url(const cli_t *cli, const char *url) {
  cli_json_t json;

  if (!cli->json)
    return cli_put_line(cli, url);
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, "session_id", cli->words[0]);
  tnk__json_put_text(&json.w, "url", url);
  return cli_json_end(&json, cli);
}

static int export(cli_ask_t *ask) {
  tnk_promise_t *promise =
      tnk_rest_export_trace(ask->service, ask->cli->words[0]);
  int status;

  if (cli_ask_wait(ask, promise) != TNK_OK)
    status = cli_ask_failed(ask, promise);
  else if (trace_args.url_only)
    status = print_url(ask->cli, tnk_promise_path(promise));
  else
    status = save_trace(ask, tnk_promise_path(promise));
  tnk_promise_unref(promise);
  return status;
}

static const char *check_export(const cli_t *cli) {
  (void)cli;
  return trace_args.url_only && trace_args.output != NULL
             ? "either --output or --url-only"
             : NULL;
}

static const cli_option_t export_options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .text = &trace_args.output,
     .offer = CLI_OFFER_FILES,
     .help =
         "Save it here (SESSION_ID.pftrace). Missing folders are created; an "
         "existing file is replaced when the download is complete."},
    {.name = "url-only",
     .flag = &trace_args.url_only,
     .help = "Print a URL that is valid for about an hour. Everybody with this "
             "URL can read the trace."},
    {.name = NULL}};

static const cli_command_t export_command = {
    .name = "export-trace",
    .brief = "save the trace of a session",
    .about = "Request the trace of a session, wait for it without limit, and "
             "save it. Perfetto (ui.perfetto.dev) displays it.",
    .words = "SESSION_ID",
    .options = export_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check_export,
    .run = cli_ask_run,
    .work = export,
};

/* ---- The group ---- */

static const cli_command_t *const commands[] = {
    &list_command, &search_command, &info_command,
    &move_command, &export_command, NULL};

const cli_command_t cli_session = {
    .name = "session",
    .brief = "sessions: list, search, info, move, export-trace",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = commands,
};
