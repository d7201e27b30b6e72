/* SPDX-License-Identifier: MIT */
/* tnk ping. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/result.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/account/account.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"

enum { MAX_COUNT = 10000, MAX_NAMED = 5 };

static int64_t count = 3;

static const cli_option_t options[] = {
    {.name = "count",
     .letter = 'n',
     .value = "N",
     .number = &count,
     .min = 1,
     .max = MAX_COUNT,
     .help = "Number of requests (3). The first one opens a connection."},
    {.name = NULL}};

typedef struct {
  cli_ask_t ask;
  double ms[MAX_COUNT]; /* round-trip times */
  size_t n;
  const char *call; /* the measured call */
  char url[200];
  char speaks[32];
  char tls[32]; /* "": no TLS */
} ping_t;

/* ---- Requests ---- */

static double ms_since(uint64_t begin) {
  return (double)(uv_hrtime() - begin) / 1e6;
}

/* One round trip: send the call, and drop its promise. */
static tnk_promise_t *ask_once(ping_t *ping) {
  const uint64_t begin = uv_hrtime();
  const int is_health = strcmp(ping->call, "healthz") == 0;
  tnk_promise_t *promise = is_health
                               ? tnk_service_health(ping->ask.service)
                               : tnk_service_capabilities(ping->ask.service);

  if (cli_ask_wait(&ping->ask, promise) == TNK_OK)
    ping->ms[ping->n++] = ms_since(begin);
  return promise;
}

static void show_one(const ping_t *ping) {
  if (ping->ask.cli->json)
    return;
  printf("%s: %.2f ms\n", ping->call, ping->ms[ping->n - 1]);
  fflush(stdout);
}

/* Not every server has healthz, but every server lists its models. */
static int ask_all(ping_t *ping) {
  ping->call = "healthz";
  while (ping->n < (size_t)count) {
    tnk_promise_t *promise = ask_once(ping);
    int err = tnk_promise_status(promise);
    int status = CLI_EXIT_OK;

    if (err == TNK_EUNSUPPORTED && strcmp(ping->call, "healthz") == 0)
      ping->call = "get_server_capabilities";
    else if (err != TNK_OK)
      status = cli_ask_failed(&ping->ask, promise);
    else
      show_one(ping);
    tnk_promise_unref(promise);
    if (status != CLI_EXIT_OK)
      return status;
  }
  return CLI_EXIT_OK;
}

/* ---- The connection ---- */

/* Read connection details from the dump. */
static void read_dump(const char *text, size_t length, void *user) {
  ping_t *ping = user;
  const json_t *pool;
  const char *word;
  json_t *root;

  if (tnk__json_parse_object(&root, text, length) != TNK_OK)
    return;
  pool = json_array_get(tnk__json_arr(tnk__json_obj(root, "http"), "pools"), 0);
  word = tnk__json_str(pool, "speaks");
  snprintf(ping->speaks, sizeof(ping->speaks), "%s",
           word != NULL ? word : "not known");
  word = tnk__json_str(pool, "tls_version");
  snprintf(ping->tls, sizeof(ping->tls), "%s", word != NULL ? word : "");
  json_decref(root);
}

/* ---- Output ---- */

static void spread(const ping_t *ping, double *least, double *mean,
                   double *most) {
  double sum = 0;

  *least = *most = ping->ms[0];
  for (size_t i = 0; i < ping->n; i++) {
    sum += ping->ms[i];
    if (ping->ms[i] < *least)
      *least = ping->ms[i];
    if (ping->ms[i] > *most)
      *most = ping->ms[i];
  }
  *mean = sum / (double)ping->n;
}

/* The name may be missing. */
static const char *model_name(const tnk_capabilities_t *offer, size_t i) {
  const char *name = tnk_capabilities_model(offer, i)->name;

  return name != NULL ? name : "?";
}

/* Write the names of the first models and the number of the others. */
static void name_models(char *out, size_t size,
                        const tnk_capabilities_t *offer) {
  const size_t n = tnk_capabilities_count(offer);
  size_t at = (size_t)snprintf(out, size, "%zu", n);

  for (size_t i = 0; i < n && i < MAX_NAMED && at < size; i++)
    at += (size_t)snprintf(out + at, size - at, "%s %.80s", i > 0 ? "," : ":",
                           model_name(offer, i));
  if (n > MAX_NAMED && at < size)
    (void)snprintf(out + at, size - at, ", ...");
}

static int print_table(const ping_t *ping, const tnk_capabilities_t *offer) {
  cli_table_t *table = cli_table_new(NULL, 2);
  char models[600];
  double least, mean, most;

  spread(ping, &least, &mean, &most);
  name_models(models, sizeof(models), offer);
  cli_table_add_row(table, "Service", ping->url);
  cli_table_add(table, "Round trip");
  cli_table_add(table, "%.2f ms (%.2f to %.2f)", mean, least, most);
  cli_table_add_row(table, "HTTP", ping->speaks);
  cli_table_add_row(table, "TLS", ping->tls[0] != '\0' ? ping->tls : "none");
  cli_table_add_row(table, "Models", models);
  return cli_table_end(table, ping->ask.cli);
}

static void put_ms(cli_json_t *json, double ms) {
  char text[64];
  int n = snprintf(text, sizeof(text), "%.3f", ms);

  tnk__json_raw(&json->w, text, (size_t)n);
}

static int print_json(const ping_t *ping, const tnk_capabilities_t *offer) {
  cli_json_t json;

  cli_json_begin(&json);
  tnk__json_put_text(&json.w, "base_url", ping->url);
  tnk__json_put_text(&json.w, "call", ping->call);
  tnk__json_put_array(&json.w, "round_trips_ms");
  for (size_t i = 0; i < ping->n; i++)
    put_ms(&json, ping->ms[i]);
  tnk__json_end(&json.w);
  tnk__json_put_text(&json.w, "http", ping->speaks);
  tnk__json_put_text(&json.w, "tls", ping->tls[0] != '\0' ? ping->tls : NULL);
  tnk__json_put_array(&json.w, "models");
  for (size_t i = 0; i < tnk_capabilities_count(offer); i++)
    tnk__json_text(&json.w, tnk_capabilities_model(offer, i)->name);
  tnk__json_end(&json.w);
  return cli_json_end(&json, ping->ask.cli);
}

/* ---- The command ---- */

static int ping_service(ping_t *ping) {
  tnk_promise_t *promise;
  int status = ask_all(ping);

  if (status != CLI_EXIT_OK)
    return status;
  (void)tnk_service_dump(ping->ask.service, TNK_DUMP_JSON, read_dump, ping);
  /* This call also verifies the credential. */
  promise = tnk_service_capabilities(ping->ask.service);
  if (cli_ask_wait(&ping->ask, promise) != TNK_OK)
    status = cli_ask_failed(&ping->ask, promise);
  else if (ping->ask.cli->json)
    status = print_json(ping, tnk_promise_capabilities(promise));
  else
    status = print_table(ping, tnk_promise_capabilities(promise));
  tnk_promise_unref(promise);
  return status;
}

static int run(cli_t *cli) {
  static ping_t ping; /* too large for the stack */
  tnk_service_options_t service = TNK_SERVICE_OPTIONS_INIT;
  cli_account_t account;
  int status = cli_account_open(&account, cli);

  if (status == CLI_EXIT_OK)
    snprintf(ping.url, sizeof(ping.url), "%s", account.url.text);
  cli_account_close(&account);
  if (status != CLI_EXIT_OK)
    return status;
  /* A retry would distort the measurement. */
  service.max_retries = UINT32_MAX;
  status = cli_ask_open(&ping.ask, cli, &service);
  if (status == CLI_EXIT_OK)
    status = ping_service(&ping);
  return cli_ask_close(&ping.ask, status);
}

const cli_command_t cli_ping = {
    .name = "ping",
    .brief = "check whether the service is up, and its latency",
    .about = "Request the health of the service and measure the time, then "
             "request its list of models, which needs a credential. Failed "
             "requests are not retried without --retries.",
    .options = options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = run,
};
