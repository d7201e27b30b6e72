#ifndef TNK_TOOLS_COMMON_FRAME_CLI_H
#define TNK_TOOLS_COMMON_FRAME_CLI_H

#include "tools/common/base/exit.h"
#include "tools/common/base/terminal.h"
#include "tools/common/frame/command.h"

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
  int color; /* cli_color_t */
  /* For commands that use a service. */
  const char *base_url; /* NULL: from the environment */
  int64_t timeout_s;    /* for the whole command; 0: none */
  int64_t retries;      /* for a request; -1: the library's default */
};

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
