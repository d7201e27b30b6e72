/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_CLI_H
#define TNK_TOOLS_COMMON_FRAME_CLI_H
#include "tools/common/base/terminal.h"
#include "tools/common/frame/command.h"

/* Exit statuses of the command. Scripts depend on the numbers, so they must not
 * change. */
typedef enum {
  CLI_EXIT_OK = 0,
  CLI_EXIT_FAILED = 1,
  CLI_EXIT_USAGE = 2,
  CLI_EXIT_AUTH = 3,
  CLI_EXIT_NOT_FOUND = 4,
  CLI_EXIT_NETWORK = 5,
  CLI_EXIT_FILE = 6,
  CLI_EXIT_PIPE = 141, /* as if killed by SIGPIPE */
  CLI_EXIT_INTERRUPT = 130,
  CLI_EXIT_TERMINATE = 143
} cli_exit_t;

/* Row i of the list in the help: a status and its meaning; NULL after the last
 * one. */
const char *cli_exit_text(unsigned i, int *status);
/* The exit status for an error code of the library. */
int cli_exit_of(int err);

/* A copy of an error that has not been reported. */
typedef struct {
  int status; /* 0: none */
  int http_status;
  char message[512];
  char code[64];
  char hint[512];
} cli_held_t;

/* The parsed command line. */
struct cli {
  const cli_command_t *root;
  const cli_command_t *command;
  char name[80]; /* "tnk run list" */
  const char *const *words;
  size_t n_words;
  int json; /* results, errors and progress in a format for programs */
  int quiet;
  int verbose;
  int help;
  int color;        /* cli_color_t */
  cli_held_t *held; /* cli_report() only copies errors to it; NULL: none */
  /* For commands that use a service. */
  const char *base_url; /* NULL: from the environment */
  int64_t timeout_s;    /* for the whole command; 0: none */
  int64_t retries;      /* for a request; -1: the library's default */
};

/* --retries as the library's options take it; 0, their default, without it. */
uint32_t cli_max_retries(const cli_t *cli);

/* ---- Messages ---- */

/* An error. All members except the first two are optional (0). */
typedef struct {
  int status;          /* the exit status */
  const char *message; /* a sentence */
  const char *code;    /* a word for programs; NULL: derived from the status */
  const char *hint;    /* how to solve it */
  int http_status;
  unsigned n_attempts;
} cli_problem_t;

/* Report it on standard error, and with --json also as the document on standard
 * output. Returns the exit status. */
int cli_report(const cli_t *cli, const cli_problem_t *problem);
/* Report an error that was held back. Returns the exit status. */
int cli_report_held(const cli_t *cli, const cli_held_t *held);
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
/* As above, with only a message. */
int cli_fail(const cli_t *cli, int status, const char *format, ...);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
/* Print additional information to standard error, unless --quiet. */
void cli_note(const cli_t *cli, const char *format, ...);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
/* Print a warning about a partial failure to standard error. */
void cli_warn(const cli_t *cli, const char *format, ...);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
/* Write a line to standard error; control characters become spaces. */
void cli_tell(const char *format, ...);

#endif
