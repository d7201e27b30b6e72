/* SPDX-License-Identifier: MIT */
/* tnk session search. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tnk/rest/list.h"
#include "tools/tnk/rest/record.h"
#include "tools/tnk/rest/session.h"

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
} args = {.limit = 20};

/* ---- Options ---- */

static const char *const states[] = {"active",  "cancelled", "failed",
                                     "success", "errored",   "interrupted"};

/* The words are in the order of the bits. */
static int set_status(const cli_option_t *option, const char *value, char *why,
                      size_t n_why) {
  (void)option;
  for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
    if (strcmp(states[i], value) == 0) {
      args.states |= 1u << i;
      return 0;
    }
  snprintf(why, n_why,
           "must be active, cancelled, failed, success, errored "
           "or interrupted");
  return -1;
}

static int set_metadata(const cli_option_t *option, const char *value,
                        char *why, size_t n_why) {
  size_t i = args.n_metadata;
  size_t n = strcspn(value, "=");

  (void)option;
  if (value[n] == '\0' || n >= sizeof(args.names[0]) || i == MAX_PAIRS) {
    snprintf(why, n_why, "must be KEY=VALUE, at most 32 times");
    return -1;
  }
  memcpy(args.names[i], value, n);
  args.names[i][n] = '\0';
  args.metadata[i] = (tnk_pair_t){args.names[i], value + n + 1};
  args.n_metadata++;
  return 0;
}

static const char *const owners[] = {
    [TNK_OWNER_SELF] = "own", [TNK_OWNER_ANY] = "accessible", NULL};

static const cli_option_t options[] = {
    {.name = "name",
     .value = "WORDS",
     .text = &args.name,
     .help = "The name contains each of these words, in upper or lower case."},
    {.name = "session-id",
     .value = "ID",
     .text = &args.session_id,
     .help = "The session with this id. With --name, either may match."},
    {.name = "project-id",
     .value = "ID",
     .texts = &args.project_ids,
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
     .choice = &args.owner,
     .choices = owners,
     .help = "own (default), or accessible: everything that you may see."},
    {.name = "owner-urn",
     .value = "URN",
     .texts = &args.owners,
     .help = "Sessions of this user; may be repeated up to ten times."},
    {.name = "limit",
     .value = "N",
     .number = &args.limit,
     .max = INT64_MAX,
     .help = "Maximum number, newest first. 0 means all (20)."},
    {.name = NULL}};

/* ---- The list ---- */

static const char *const headers[] = {"Session ID",  "Name", "Status",
                                      "Checkpoints", "Size", "Project",
                                      "Created"};
enum { N_HEADERS = sizeof(headers) / sizeof(*headers) };

static void show_session(void *user, const tnk_page_t *page, size_t i) {
  const cli_list_t *list = user;
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
                     .limit = args.limit,
                     .show = show_session,
                     .user = &list};

  wanted.session_id = args.session_id;
  wanted.display_name = args.name;
  wanted.project_ids = args.project_ids.items;
  wanted.n_project_ids = args.project_ids.n;
  wanted.user_metadata = args.metadata;
  wanted.n_user_metadata = args.n_metadata;
  wanted.owner_urns = args.owners.items;
  wanted.n_owner_urns = args.owners.n;
  wanted.owner = args.owners.n > 0 ? TNK_OWNER_USERS : (tnk_owner_t)args.owner;
  wanted.states = args.states;
  wanted.limit = cli_list_page(args.limit, 200);
  return cli_list_run(&list, tnk_rest_search_sessions(ask->service, &wanted),
                      headers, N_HEADERS);
}

static int run_search(cli_t *cli) {
  cli_ask_t ask;
  int status = cli_ask_open(&ask, cli, NULL);

  if (status == CLI_EXIT_OK)
    status = search(&ask);
  return cli_ask_close(&ask, status);
}

const cli_command_t cli_session_search = {
    .name = "search",
    .brief = "search sessions",
    .about = "Search sessions, newest first. The service marks this as "
             "experimental: it may change without notice.",
    .options = options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = run_search,
};
