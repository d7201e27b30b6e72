/* SPDX-License-Identifier: MIT */
#include "tools/common/frame/cli.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"
#include "tools/common/base/terminal.h"

/* ---- Exit codes ---- */

typedef struct {
  int status;
  const char *text;
} row_t;

static const row_t rows[] = {
    {CLI_EXIT_OK, "Done."},
    {CLI_EXIT_FAILED, "Failed, or partly failed."},
    {CLI_EXIT_USAGE, "The command line is wrong. Nothing was done."},
    {CLI_EXIT_AUTH,
     "No credential, or it was rejected or is not permitted to do this."},
    {CLI_EXIT_NOT_FOUND, "Not found on the service or the model hub."},
    {CLI_EXIT_NETWORK,
     "The service or the model hub could not be reached in time."},
    {CLI_EXIT_FILE, "A file, the input or the output could not be read or "
                    "written."},
    {CLI_EXIT_INTERRUPT, "Ended by Ctrl-C (SIGINT)."},
    {CLI_EXIT_PIPE, "The reader of the output has closed the pipe."},
    {CLI_EXIT_TERMINATE, "Ended by SIGTERM."},
};

const char *cli_exit_text(unsigned i, int *status) {
  if (i >= sizeof(rows) / sizeof(*rows))
    return NULL;
  *status = rows[i].status;
  return rows[i].text;
}

uint32_t cli_max_retries(const cli_t *cli) {
  return cli->retries > 0   ? (uint32_t)cli->retries
         : cli->retries < 0 ? 0
                            : UINT32_MAX;
}

int cli_exit_of(int err) {
  switch (err) {
  case TNK_OK:
    return CLI_EXIT_OK;
  case TNK_EINVAL: /* invalid command-line arguments */
    return CLI_EXIT_USAGE;
  case TNK_ECREDENTIAL:
  case TNK_EAUTH:
    return CLI_EXIT_AUTH;
  case TNK_ENOTFOUND:
    return CLI_EXIT_NOT_FOUND;
  case TNK_EDNS:
  case TNK_ECONN:
  case TNK_EPROXY:
  case TNK_ETLS:
  case TNK_ECERT:
  case TNK_ETIMEDOUT:
    return CLI_EXIT_NETWORK;
  case TNK_EFILE:
    return CLI_EXIT_FILE;
  default:
    return CLI_EXIT_FAILED;
  }
}

/* ---- The context ---- */

enum { MAX_TEXT = 4096 };

static const char *word_of(int status) {
  switch (status) {
  case CLI_EXIT_USAGE:
    return "usage";
  case CLI_EXIT_AUTH:
    return "auth";
  case CLI_EXIT_NOT_FOUND:
    return "not_found";
  case CLI_EXIT_NETWORK:
    return "network";
  case CLI_EXIT_FILE:
    return "file";
  case CLI_EXIT_INTERRUPT:
  case CLI_EXIT_TERMINATE:
    return "interrupted";
  default:
    return "failed";
  }
}

static void put_json(const cli_problem_t *problem, const char *message) {
  tnk__json_writer_t w;
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), TNK__MIB);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  tnk__json_put_object(&w, "error");
  tnk__json_put_text(&w, "code",
                     problem->code != NULL ? problem->code
                                           : word_of(problem->status));
  tnk__json_put_text(&w, "message", message);
  if (problem->http_status != 0)
    tnk__json_put_int(&w, "http_status", problem->http_status);
  if (problem->n_attempts != 0)
    tnk__json_put_int(&w, "attempts", problem->n_attempts);
  if (problem->hint != NULL)
    tnk__json_put_text(&w, "hint", problem->hint);
  tnk__json_put_int(&w, "exit_status", problem->status);
  tnk__json_end(&w);
  tnk__json_end(&w);
  if (tnk__json_finish(&w) == TNK_OK)
    printf("%.*s\n", (int)buf.len, (const char *)buf.data);
  else
    printf("{\"error\":{\"code\":\"%s\",\"message\":\"out of memory\","
           "\"exit_status\":%d}}\n",
           word_of(problem->status), problem->status);
  tnk__buf_deinit(&buf);
}

static void hold(cli_held_t *held, const cli_problem_t *problem) {
  held->status = problem->status;
  held->http_status = problem->http_status;
  snprintf(held->message, sizeof(held->message), "%s", problem->message);
  snprintf(held->code, sizeof(held->code), "%s",
           problem->code != NULL ? problem->code : "");
  snprintf(held->hint, sizeof(held->hint), "%s",
           problem->hint != NULL ? problem->hint : "");
}

int cli_report(const cli_t *cli, const cli_problem_t *problem) {
  char text[MAX_TEXT];

  if (cli->held != NULL) {
    hold(cli->held, problem);
    return problem->status;
  }
  snprintf(text, sizeof(text), "%s", problem->message);
  cli_clean(text);
  fprintf(stderr, "%s: %s\n", cli->name, text);
  if (problem->hint != NULL)
    fprintf(stderr, "%s\n", problem->hint);
  if (cli->json)
    put_json(problem, text);
  return problem->status;
}

int cli_report_held(const cli_t *cli, const cli_held_t *held) {
  return cli_report(
      cli, &(cli_problem_t){.status = held->status,
                            .message = held->message,
                            .code = held->code[0] != '\0' ? held->code : NULL,
                            .hint = held->hint[0] != '\0' ? held->hint : NULL,
                            .http_status = held->http_status});
}

int cli_fail(const cli_t *cli, int status, const char *format, ...) {
  char text[MAX_TEXT];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return cli_report(cli, &(cli_problem_t){.status = status, .message = text});
}

void cli_note(const cli_t *cli, const char *format, ...) {
  char text[MAX_TEXT];
  va_list args;

  if (cli->quiet)
    return;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  cli_clean(text);
  fprintf(stderr, "%s\n", text);
}

void cli_warn(const cli_t *cli, const char *format, ...) {
  char text[MAX_TEXT];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  cli_clean(text);
  fprintf(stderr, "%s: %s\n", cli->name, text);
}

void cli_tell(const char *format, ...) {
  char text[MAX_TEXT];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  cli_clean(text);
  fprintf(stderr, "%s\n", text);
}
