/* SPDX-License-Identifier: MIT */
/* tnk session export-trace. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tnk/hub.h"
#include "tnk/rest.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/ask/failure.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/progress.h"
#include "tools/tnk/out/table.h"
#include "tools/tnk/rest/session.h"

static struct {
  const char *output;
  int url_only;
} args;

/* ---- The file ---- */

static void on_progress(const char *file, uint64_t n_bytes, uint64_t n_total,
                        void *user) {
  cli_progress_t *progress = user;

  (void)file;
  progress->total = (int64_t)n_total;
  cli_progress_at(progress, (int64_t)n_bytes);
}

/* Returns the exit status; errors have been reported. */
static int fetch(cli_ask_t *ask, tnk_hub_t *hub, const char *url,
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

static int save(cli_ask_t *ask, const char *url) {
  const cli_t *cli = ask->cli;
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  char why[512], own[300];
  const char *file = args.output;
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
  status = fetch(ask, hub, url, file);
  tnk_hub_close(hub, NULL, NULL);
  return status == CLI_EXIT_OK ? print_file(cli, file) : status;
}

/* ---- The command ---- */

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
  else if (args.url_only)
    status = print_url(ask->cli, tnk_promise_path(promise));
  else
    status = save(ask, tnk_promise_path(promise));
  tnk_promise_unref(promise);
  return status;
}

static int run_export(cli_t *cli) {
  cli_ask_t ask;
  int status = cli_ask_open(&ask, cli, NULL);

  if (status == CLI_EXIT_OK)
    status = export(&ask);
  return cli_ask_close(&ask, status);
}

static const char *check(const cli_t *cli) {
  (void)cli;
  return args.url_only && args.output != NULL ? "either --output or --url-only"
                                              : NULL;
}

static const cli_option_t options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .text = &args.output,
     .offer = CLI_OFFER_FILES,
     .help =
         "Save it here (SESSION_ID.pftrace). Missing folders are created; an "
         "existing file is replaced when the download is complete."},
    {.name = "url-only",
     .flag = &args.url_only,
     .help = "Print a URL that is valid for about an hour. Everybody with this "
             "URL can read the trace."},
    {.name = NULL}};

const cli_command_t cli_session_export_trace = {
    .name = "export-trace",
    .brief = "save the trace of a session",
    .about = "Request the trace of a session, wait for it without limit, and "
             "save it. Perfetto (ui.perfetto.dev) displays it.",
    .words = "SESSION_ID",
    .min_words = 1,
    .max_words = 1,
    .options = options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = run_export,
};
