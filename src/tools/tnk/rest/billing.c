/* SPDX-License-Identifier: MIT */
/* tnk billing usage, checkpoint-storage, and their group. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/format/time_text.h"
#include "tnk/rest.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/rest/record.h"

static struct {
  const char *csv;
  const char *sessions_csv;
  int64_t start_us;
  int64_t end_us;
} args;

/* ---- Sessions ---- */

static int by_session(const void *a, const void *b) {
  const tnk_usage_t *const *x = a, *const *y = b;

  return strcmp((*x)->session_id, (*y)->session_id);
}

typedef struct {
  const tnk_usage_t **rows; /* one row for each session, sorted */
  size_t n;
} sessions_t;

/* Returns 0, or -1 without memory. */
static int find_sessions(sessions_t *sessions, const tnk_page_t *page) {
  size_t n = 0;

  sessions->n = 0;
  sessions->rows = calloc(tnk_page_count(page) + 1, sizeof(*sessions->rows));
  if (sessions->rows == NULL)
    return -1;
  for (size_t i = 0; i < tnk_page_count(page); i++)
    if (tnk_page_usage(page, i)->session_id != NULL)
      sessions->rows[n++] = tnk_page_usage(page, i);
  qsort(sessions->rows, n, sizeof(*sessions->rows), by_session);
  for (size_t i = 0; i < n; i++)
    if (i == 0 ||
        by_session(&sessions->rows[i], &sessions->rows[sessions->n - 1]) != 0)
      sessions->rows[sessions->n++] = sessions->rows[i];
  return 0;
}

static int print_json(const cli_t *cli, const tnk_page_t *page) {
  sessions_t sessions;
  cli_json_t json;

  if (find_sessions(&sessions, page) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  cli_json_begin(&json);
  tnk__json_put_array(&json.w, "data");
  for (size_t i = 0; i < tnk_page_count(page); i++)
    cli_put_record(&json, &tnk__shape_usage, tnk_page_usage(page, i));
  tnk__json_end(&json.w);
  tnk__json_put_object(&json.w, "sessions");
  for (size_t i = 0; i < sessions.n; i++) {
    tnk__json_put_object(&json.w, sessions.rows[i]->session_id);
    cli_put_metadata(&json, sessions.rows[i]->user_metadata,
                     sessions.rows[i]->n_user_metadata);
    tnk__json_end(&json.w);
  }
  tnk__json_end(&json.w);
  cli_json_put_time(&json, "cost_data_through", tnk_page_cost_through_us(page));
  free(sessions.rows);
  return cli_json_end(&json, cli);
}

/* ---- CSV ---- */

/* Optional members of an event. They become columns in the order of their first
 * occurrence. */
typedef enum { TOKENS = 0, CACHED, COUNT, FREE, HOURS, N_EXTRAS } extra_t;

static const char *const extra_names[N_EXTRAS] = {[TOKENS] = "token_count",
                                                  [CACHED] = "cached",
                                                  [COUNT] = "count",
                                                  [FREE] = "free",
                                                  [HOURS] = "gigabyte_hours"};

static const extra_t extras_of[][2] = {
    [TNK_USAGE_OTHER] = {N_EXTRAS, N_EXTRAS},
    [TNK_USAGE_TRAINING] = {TOKENS, N_EXTRAS},
    [TNK_USAGE_PREFILL] = {CACHED, TOKENS},
    [TNK_USAGE_SAMPLE] = {TOKENS, N_EXTRAS},
    [TNK_USAGE_CHECKPOINT] = {COUNT, N_EXTRAS},
    [TNK_USAGE_STORAGE] = {FREE, HOURS}};

static void add_extra(extra_t *extras, size_t *n, extra_t extra) {
  for (size_t i = 0; i < *n; i++)
    if (extras[i] == extra)
      return;
  if (extra != N_EXTRAS)
    extras[(*n)++] = extra;
}

static void put_extra(cli_csv_t *csv, const tnk_usage_event_t *event,
                      extra_t extra) {
  if (extras_of[event->kind][0] != extra && extras_of[event->kind][1] != extra)
    cli_csv_text(csv, NULL);
  else if (extra == CACHED)
    cli_csv_text(csv, event->is_cached ? "True" : "False");
  else if (extra == FREE)
    cli_csv_text(csv, event->is_free ? "True" : "False");
  else if (extra == HOURS)
    cli_csv_double(csv, event->gigabyte_hours);
  else
    cli_csv_int(csv, extra == COUNT ? event->n_checkpoints : event->n_tokens);
}

static void put_csv_row(cli_csv_t *csv, const tnk_usage_t *usage,
                        const extra_t *extras, size_t n_extras) {
  cli_csv_put_record(csv, &tnk__shape_usage, usage);
  cli_csv_text(csv, usage->event->type);
  for (size_t i = 0; i < n_extras; i++)
    put_extra(csv, usage->event, extras[i]);
  cli_csv_end_row(csv);
}

static int write_usage(const cli_t *cli, const tnk_page_t *page) {
  extra_t extras[N_EXTRAS];
  size_t n_extras = 0;
  cli_csv_t csv;
  int status = cli_csv_open(&csv, cli, args.csv);

  if (status != CLI_EXIT_OK)
    return status;
  for (size_t i = 0; i < tnk_page_count(page); i++)
    for (size_t k = 0; k < 2; k++)
      add_extra(extras, &n_extras,
                extras_of[tnk_page_usage(page, i)->event->kind][k]);
  /* The official command writes no header without rows. */
  if (tnk_page_count(page) > 0) {
    cli_csv_put_names(&csv, &tnk__shape_usage);
    cli_csv_text(&csv, "type");
  }
  for (size_t i = 0; i < n_extras; i++)
    cli_csv_text(&csv, extra_names[extras[i]]);
  cli_csv_end_row(&csv);
  for (size_t i = 0; i < tnk_page_count(page); i++)
    put_csv_row(&csv, tnk_page_usage(page, i), extras, n_extras);
  return cli_csv_close(&csv);
}

/* The metadata of a session as JSON; NULL if there is none, or without
 * memory. */
static char *metadata_text(const tnk_usage_t *usage) {
  cli_json_t json;
  char *text = NULL;

  if (usage->n_user_metadata == 0)
    return NULL;
  cli_json_begin(&json);
  for (size_t i = 0; i < usage->n_user_metadata; i++)
    tnk__json_put_text(&json.w, usage->user_metadata[i].name,
                       usage->user_metadata[i].value);
  text = cli_json_take(&json);
  return text;
}

static int write_sessions(const cli_t *cli, const tnk_page_t *page) {
  sessions_t sessions;
  cli_csv_t csv;
  int status;

  if (find_sessions(&sessions, page) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  status = cli_csv_open(&csv, cli, args.sessions_csv);
  if (status == CLI_EXIT_OK) {
    if (sessions.n > 0) {
      cli_csv_text(&csv, "session_id");
      cli_csv_text(&csv, "user_metadata");
    }
    cli_csv_end_row(&csv);
    for (size_t i = 0; i < sessions.n; i++) {
      char *text = metadata_text(sessions.rows[i]);

      cli_csv_text(&csv, sessions.rows[i]->session_id);
      cli_csv_text(&csv, text);
      cli_csv_end_row(&csv);
      free(text);
    }
    status = cli_csv_close(&csv);
  }
  free(sessions.rows);
  return status;
}

/* ---- The table ---- */

static void put_amount(cli_table_t *table, const tnk_usage_event_t *event) {
  switch (event->kind) {
  case TNK_USAGE_TRAINING:
  case TNK_USAGE_PREFILL:
  case TNK_USAGE_SAMPLE:
    cli_table_add(table, "%" PRId64 " tokens", event->n_tokens);
    break;
  case TNK_USAGE_CHECKPOINT:
    cli_table_add(table, "%" PRId64, event->n_checkpoints);
    break;
  case TNK_USAGE_STORAGE:
    cli_table_add(table, "%.3f GB hours", event->gigabyte_hours);
    break;
  default:
    cli_table_add(table, "%s", event->json);
  }
}

static int print_table(const cli_t *cli, const tnk_page_t *page) {
  static const char *const headers[] = {"Hour",  "What",    "Amount",  "USD",
                                        "Model", "Session", "Project", "User"};
  cli_table_t *table;
  double sum = 0;
  size_t n_unknown = 0;

  if (tnk_page_count(page) == 0) {
    cli_note(cli, "Nothing was used in this time.");
    return CLI_EXIT_OK;
  }
  table = cli_table_new(headers, 8);
  for (size_t i = 0; i < tnk_page_count(page); i++) {
    const tnk_usage_t *usage = tnk_page_usage(page, i);
    char time[TNK__TIME_TEXT];

    tnk__time_write(time, usage->start_us);
    cli_table_add(table, "%.13s", time);
    cli_table_add(table, "%s%s", usage->event->type,
                  usage->event->is_cached ? " (cached)"
                  : usage->event->is_free ? " (free)"
                                          : "");
    put_amount(table, usage->event);
    cli_table_add_usd(table, usage->cost_usd);
    cli_table_add_or(table, usage->base_model, "N/A");
    cli_table_add_or(table, usage->session_id, "N/A");
    cli_table_add_or(table, usage->project_id, "N/A");
    cli_table_add_or(table, usage->user_name, "N/A");
    n_unknown += isnan(usage->cost_usd) ? 1 : 0;
    sum += isnan(usage->cost_usd) ? 0 : usage->cost_usd;
  }
  cli_note(cli,
           "Together %.4f USD before credits, %zu of %zu rows without a "
           "price.",
           sum, n_unknown, tnk_page_count(page));
  return cli_table_end(table, cli);
}

/* ---- The command ---- */

static tnk_promise_t *ask_usage(tnk_service_t *service, const cli_t *cli) {
  (void)cli;
  return tnk_rest_get_usage(service, args.start_us, args.end_us);
}

static int show_usage(const cli_t *cli, const tnk_promise_t *promise) {
  const tnk_page_t *page = tnk_promise_page(promise);
  int status = CLI_EXIT_OK;

  if (args.sessions_csv != NULL)
    status = write_sessions(cli, page);
  if (args.csv != NULL && status == CLI_EXIT_OK)
    status = write_usage(cli, page);
  if (args.csv != NULL || args.sessions_csv != NULL)
    return status;
  return cli->json ? print_json(cli, page) : print_table(cli, page);
}

/* Times must be full hours. The service requires that, and the check avoids a
 * request. */
static const char *read_hour(int64_t *us, const char *text) {
  char *end;
  double number = strtod(text, &end);
  int is_time = text[0] != '\0' && *end == '\0'
                    ? tnk__time_of_number(us, number)
                    : tnk__time_read(us, text, strlen(text));

  if (!is_time)
    return "START and END are times such as 2026-01-31T12:00:00Z, dates, or "
           "Unix seconds";
  return *us % 3600000000 == 0 ? NULL : "START and END are full hours, UTC";
}

static const char *check(const cli_t *cli) {
  const char *wrong = read_hour(&args.start_us, cli->words[0]);

  if (wrong == NULL)
    wrong = read_hour(&args.end_us, cli->words[1]);
  if (wrong != NULL)
    return wrong;
  if (args.end_us <= args.start_us)
    return "END must be after START";
  if (args.end_us - args.start_us > (int64_t)14 * 86400 * 1000000)
    return "END must be at most 14 days after START";
  if (cli->json && (args.csv != NULL || args.sessions_csv != NULL))
    return "either --json or CSV";
  return NULL;
}

static const cli_option_t options[] = {
    {.name = "csv",
     .value = "PATH",
     .text = &args.csv,
     .offer = CLI_OFFER_FILES,
     .help = "Write the rows as CSV to this file; - is standard output."},
    {.name = "sessions-csv",
     .value = "PATH",
     .text = &args.sessions_csv,
     .offer = CLI_OFFER_FILES,
     .help = "Write the sessions of the rows and their metadata as CSV to this "
             "file."},
    {.name = NULL}};

static const cli_command_t usage = {
    .name = "usage",
    .brief = "show the usage by the hour",
    .about = "Show the usage by the hour from START to END, for "
             "administrators. END is excluded, and at most 14 days after "
             "START. Both are full hours, in UTC unless they have a time zone. "
             "Amounts are estimates before credits, not an invoice.",
    .words = "START END",
    .options = options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = cli_ask_once,
    .begin = ask_usage,
    .show = show_usage,
};

/* ---- Storage ---- */

static struct {
  const char *project_id;
  const char *csv;
} storage_args;

static tnk_promise_t *ask_storage(tnk_service_t *service, const cli_t *cli) {
  (void)cli;
  return tnk_rest_get_storage(service, storage_args.project_id);
}

static int print_storage_json(const cli_t *cli, const tnk_page_t *page) {
  cli_json_t json;

  cli_json_begin(&json);
  tnk__json_put_double(&json.w, "effective_rate_usd_per_gigabyte_month",
                       tnk_page_storage_rate(page));
  tnk__json_put_array(&json.w, "data");
  for (size_t i = 0; i < tnk_page_count(page); i++)
    cli_put_record(&json, &tnk__shape_storage, tnk_page_storage(page, i));
  tnk__json_end(&json.w);
  return cli_json_end(&json, cli);
}

static int write_storage(const cli_t *cli, const tnk_page_t *page) {
  cli_csv_t csv;
  int status = cli_csv_open(&csv, cli, storage_args.csv);

  if (status != CLI_EXIT_OK)
    return status;
  if (tnk_page_count(page) > 0) {
    cli_csv_text(&csv, "effective_rate_usd_per_gigabyte_month");
    cli_csv_put_names(&csv, &tnk__shape_storage);
  }
  cli_csv_end_row(&csv);
  for (size_t i = 0; i < tnk_page_count(page); i++) {
    cli_csv_double(&csv, tnk_page_storage_rate(page));
    cli_csv_put_record(&csv, &tnk__shape_storage, tnk_page_storage(page, i));
    cli_csv_end_row(&csv);
  }
  return cli_csv_close(&csv);
}

static int print_storage(const cli_t *cli, const tnk_page_t *page) {
  static const char *const headers[] = {"Project",     "User", "Email",
                                        "Checkpoints", "Size", "USD a Month"};
  cli_table_t *table;

  if (tnk_page_count(page) == 0) {
    cli_note(cli, "Nothing is stored.");
    return CLI_EXIT_OK;
  }
  table = cli_table_new(headers, 6);
  for (size_t i = 0; i < tnk_page_count(page); i++) {
    const tnk_storage_t *storage = tnk_page_storage(page, i);

    cli_table_add_or(table, storage->project_id, "N/A");
    cli_table_add_or(table, storage->user_name, "N/A");
    cli_table_add_or(table, storage->user_email, "N/A");
    cli_table_add(table, "%" PRId64, storage->n_checkpoints);
    cli_table_add_size(table, storage->size_bytes);
    cli_table_add_usd(table, storage->usd_per_month);
  }
  return cli_table_end(table, cli);
}

static int show_storage(const cli_t *cli, const tnk_promise_t *promise) {
  const tnk_page_t *page = tnk_promise_page(promise);

  if (storage_args.csv != NULL)
    return write_storage(cli, page);
  return cli->json ? print_storage_json(cli, page) : print_storage(cli, page);
}

static const char *check_storage(const cli_t *cli) {
  return cli->json && storage_args.csv != NULL ? "either --json or --csv"
                                               : NULL;
}

static const cli_option_t storage_options[] = {
    {.name = "project-id",
     .value = "ID",
     .text = &storage_args.project_id,
     .help = "Only checkpoints of this project."},
    {.name = "csv",
     .value = "PATH",
     .text = &storage_args.csv,
     .offer = CLI_OFFER_FILES,
     .help = "Write CSV to this file instead; - is standard output."},
    {.name = NULL}};

static const cli_command_t storage = {
    .name = "checkpoint-storage",
    .brief = "show the size of checkpoints, and its cost",
    .about = "Show the current size of checkpoints by project and owner, and "
             "its cost per month at list prices. For administrators.",
    .options = storage_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check_storage,
    .run = cli_ask_once,
    .begin = ask_storage,
    .show = show_storage,
};

static const cli_command_t *const commands[] = {&usage, &storage, NULL};

const cli_command_t cli_billing = {
    .name = "billing",
    .brief = "usage, storage, and their cost",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = commands,
};
