/* SPDX-License-Identifier: MIT */
/* tnk billing checkpoint-storage. */
#include <inttypes.h>

#include "tnk/rest.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/rest/billing.h"
#include "tools/tnk/rest/record.h"

static struct {
  const char *project_id;
  const char *csv;
} args;

static tnk_promise_t *ask_storage(tnk_service_t *service, const cli_t *cli) {
  (void)cli;
  return tnk_rest_get_storage(service, args.project_id);
}

static int print_json(const cli_t *cli, const tnk_page_t *page) {
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

static int write_csv(const cli_t *cli, const tnk_page_t *page) {
  cli_csv_t csv;
  int status = cli_csv_open(&csv, cli, args.csv);

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

static int print_table(const cli_t *cli, const tnk_page_t *page) {
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

  if (args.csv != NULL)
    return write_csv(cli, page);
  return cli->json ? print_json(cli, page) : print_table(cli, page);
}

static int run_storage(cli_t *cli) {
  return cli_ask_once(cli, ask_storage, show_storage);
}

static const char *check(const cli_t *cli) {
  return cli->json && args.csv != NULL ? "either --json or --csv" : NULL;
}

static const cli_option_t options[] = {
    {.name = "project-id",
     .value = "ID",
     .text = &args.project_id,
     .help = "Only checkpoints of this project."},
    {.name = "csv",
     .value = "PATH",
     .text = &args.csv,
     .offer = CLI_OFFER_FILES,
     .help = "Write CSV to this file instead; - is standard output."},
    {.name = NULL}};

const cli_command_t cli_billing_storage = {
    .name = "checkpoint-storage",
    .brief = "show the size of checkpoints, and its cost",
    .about = "Show the current size of checkpoints by project and owner, and "
             "its cost per month at list prices. For administrators.",
    .options = options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = run_storage,
};
