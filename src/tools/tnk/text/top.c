/* SPDX-License-Identifier: MIT */
/* tnk top: shows the activity of a service from its dump file.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/common/base/input.h"
#include "tools/common/base/terminal.h"
#include "tools/common/frame/cli.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/out/table.h"

enum { MAX_LINE = 512, MAX_ID = 64, EVERY_MS = 1000, STALE_S = 3 };

static int once;

static const cli_option_t options[] = {
    {.name = "once", .flag = &once, .help = "Print once, and exit."},
    {.name = NULL}};

/* The values of a dump that are compared with the next one. */
typedef struct {
  int64_t clock_ms; /* 0: none */
  int64_t requests;
  int64_t sent;
  int64_t received;
} moment_t;

/* ---- Reading ---- */

static int64_t number(const json_t *object, const char *key) {
  int64_t value = 0;

  (void)tnk__json_get_int(object, key, 0, INT64_MAX, &value);
  return value;
}

static const char *word(const json_t *object, const char *key) {
  const char *text = tnk__json_str(object, key);

  return text != NULL ? text : "?";
}

static moment_t moment_of(const json_t *root) {
  const json_t *counters = tnk__json_obj(root, "counters");

  return (moment_t){.clock_ms =
                        number(tnk__json_obj(root, "process"), "clock_ms"),
                    .requests = number(counters, "requests"),
                    .sent = number(counters, "bytes_sent"),
                    .received = number(counters, "bytes_received")};
}

/* The rate per second since the previous dump; -1: unknown. */
static int64_t rate(const moment_t *now, const moment_t *before, int64_t count,
                    int64_t count_before) {
  const int64_t ms = now->clock_ms - before->clock_ms;

  if (before->clock_ms == 0 || ms <= 0 || count < count_before)
    return -1;
  return (int64_t)((double)(count - count_before) * 1000 / (double)ms);
}

/* ---- Showing ---- */

/* Print a line, cut to the terminal's width and sanitized. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static void
show(const char *format, ...) {
  char line[MAX_LINE];
  va_list args;

  va_start(args, format);
  vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  cli_clean(line);
  if (cli_is_terminal(stdout))
    cli_cut(line, cli_columns(stdout) - 1);
  puts(line);
}

static void show_head(const json_t *root) {
  const json_t *process = tnk__json_obj(root, "process");
  const json_t *session = tnk__json_obj(root, "session");
  const int64_t age = (int64_t)time(NULL) - number(process, "time_s");
  char stale[64] = "";

  if (age > STALE_S)
    snprintf(stale, sizeof(stale), "  (written %lld s ago, and not since)",
             (long long)age);
  show("%s:%lld  process %lld  session %s %s%s", word(root, "host"),
       (long long)number(root, "port"), (long long)number(process, "pid"),
       word(session, "state"),
       tnk__json_str(session, "id") != NULL ? word(session, "id") : "", stale);
}

static void show_counters(const json_t *root, const moment_t *now,
                          const moment_t *before) {
  const json_t *counters = tnk__json_obj(root, "counters");
  const json_t *http = tnk__json_obj(root, "http");
  const int64_t requests = rate(now, before, now->requests, before->requests);
  char sent[CLI_HUMAN_TEXT];
  char received[CLI_HUMAN_TEXT];
  char a_second[64] = "";

  if (requests >= 0)
    snprintf(a_second, sizeof(a_second), " (%lld/s)", (long long)requests);
  show("pending %lld  requests %lld%s  retries %lld  resubmits %lld  stalls "
       "%lld",
       (long long)number(counters, "pending"), (long long)now->requests,
       a_second, (long long)number(counters, "retries"),
       (long long)number(counters, "resubmits"),
       (long long)number(counters, "stalls"));
  cli_human_size(sent, now->sent);
  cli_human_size(received, now->received);
  show("sent %s  received %s  connections %lld  loop late by %lld ms (%lld ms "
       "at most)",
       sent, received, (long long)number(http, "connections"),
       (long long)number(counters, "loop_lag_ms"),
       (long long)number(counters, "max_loop_lag_ms"));
  if (before->clock_ms == 0)
    return;
  cli_human_size(sent, rate(now, before, now->sent, before->sent));
  cli_human_size(received, rate(now, before, now->received, before->received));
  show("a second: sent %s  received %s", sent, received);
}

static void show_used(const json_t *root) {
  const json_t *used = tnk__json_obj(root, "used");
  double usd = 0;

  if (used == NULL)
    return;
  (void)tnk__json_get_double(used, "usd", &usd);
  show("tokens: prompt %lld  cached %lld  sampled %lld  trained %lld  at the "
       "given prices %.2f USD",
       (long long)number(used, "prompt_tokens"),
       (long long)number(used, "cached_tokens"),
       (long long)number(used, "sampled_tokens"),
       (long long)number(used, "trained_tokens"), usd);
}

static void show_lanes(const json_t *root) {
  static const char *const names[] = {"control", "training", "samples",
                                      "training_polls", "polls"};
  const json_t *lanes = tnk__json_obj(tnk__json_obj(root, "http"), "lanes");

  show("%s", "");
  show("%-16s %9s %9s %9s", "LANE", "IN FLIGHT", "MAX", "QUEUED");
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const json_t *lane = tnk__json_obj(lanes, names[i]);
    show("%-16s %9lld %9lld %9lld", names[i],
         (long long)number(lane, "in_flight"), (long long)number(lane, "max"),
         (long long)number(lane, "queued"));
  }
}

/* The length of the longest id in a list, at least `width`. A service's ids are
 * ASCII. */
static int widest(const json_t *root, const char *list, const char *id,
                  int width) {
  const json_t *clients = tnk__json_arr(root, list);

  for (size_t i = 0; i < json_array_size(clients); i++) {
    const size_t n = strlen(word(json_array_get(clients, i), id));
    if (n > (size_t)width)
      width = n < MAX_ID ? (int)n : MAX_ID;
  }
  return width;
}

static void show_clients(const json_t *root, const char *list, const char *id,
                         int width) {
  const json_t *clients = tnk__json_arr(root, list);

  for (size_t i = 0; i < json_array_size(clients); i++) {
    const json_t *client = json_array_get(clients, i);
    const json_t *operations = tnk__json_arr(client, "operations");
    const char *first = json_string_value(json_array_get(operations, 0));
    show("%-*s %7lld  %s", width, word(client, id),
         (long long)number(client, "pending"), first != NULL ? first : "");
  }
}

static void show_requests(const json_t *root, int width) {
  const json_t *requests = tnk__json_arr(root, "requests");

  for (size_t i = 0; i < json_array_size(requests); i++) {
    const char *text = json_string_value(json_array_get(requests, i));
    show("%-*s %7s  %s", width, "-", "", text != NULL ? text : "?");
  }
}

static void show_all(const json_t *root, const moment_t *now,
                     const moment_t *before) {
  int width = widest(root, "trainings", "model_id", (int)strlen("CLIENT"));

  width = widest(root, "samplings", "id", width);
  if (!once && cli_can_rewrite(stdout))
    fputs("\033[H\033[J", stdout);
  show_head(root);
  show_counters(root, now, before);
  show_used(root);
  show_lanes(root);
  show("%s", "");
  show("%-*s %7s  %s", width, "CLIENT", "PENDING", "THE OLDEST");
  show_clients(root, "trainings", "model_id", width);
  show_clients(root, "samplings", "id", width);
  show_requests(root, width);
  fflush(stdout);
}

/* ---- The command ---- */

static int look(cli_t *cli, moment_t *before) {
  char why[MAX_LINE];
  size_t n;
  char *text = cli_read_file(cli->words[0], &n, why, sizeof(why));
  json_t *root = NULL;
  moment_t now;

  if (text == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  if (tnk__json_parse_object(&root, text, n) != TNK_OK ||
      tnk__json_obj(root, "process") == NULL) {
    json_decref(root);
    free(text);
    return cli_fail(cli, CLI_EXIT_FILE, "%s is not a service's dump",
                    cli->words[0]);
  }
  if (cli->json) {
    fwrite(text, 1, n, stdout);
  } else {
    now = moment_of(root);
    show_all(root, &now, before);
    *before = now;
  }
  json_decref(root);
  free(text);
  return CLI_EXIT_OK;
}

static int run(cli_t *cli) {
  const struct timespec pause = {.tv_sec = EVERY_MS / 1000};
  moment_t before = {0};
  int status;

  /* Output that is not a terminal is written only once. */
  once = once || cli->json || !cli_can_rewrite(stdout);
  for (;;) {
    status = look(cli, &before);
    if (status != CLI_EXIT_OK || once || ferror(stdout))
      return status;
    nanosleep(&pause, NULL);
  }
}

static const cli_item_t examples[] = {
    {"TNK_DUMP_FILE=run.dump ./train & tnk top run.dump",
     "watch a program at work"},
    {NULL, NULL}};

const cli_command_t cli_top = {
    .name = "top",
    .brief = "show what a running program is doing",
    .about =
        "Show what the service of a running program is doing: counters, "
        "requests in progress, and what the oldest operation of each client "
        "waits for. The program writes FILE every second if the option "
        "dump_file or the variable TNK_DUMP_FILE names it. On a terminal the "
        "display is updated every second until it is interrupted; otherwise it "
        "is printed once. --json prints the file unchanged.",
    .words = "FILE",
    .offer = CLI_OFFER_FILES,
    .options = options,
    .examples = examples,
    .has = CLI_HAS_JSON,
    .run = run,
};
