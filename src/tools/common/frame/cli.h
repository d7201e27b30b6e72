#ifndef TNK_TOOLS_COMMON_FRAME_CLI_H
#define TNK_TOOLS_COMMON_FRAME_CLI_H

#include "tools/common/base/exit.h"
#include "tools/common/base/terminal.h"
#include "tools/common/frame/command.h"

/* What a command has been told. */
struct cli {
  const cli_command_t *root;
  const cli_command_t *command;
  char name[80]; /* "tnk run list" */
  const char *const *words;
  size_t n_words;
  int json; /* results, errors and progress are for programs */
  int quiet;
  int verbose;
  int help;
  int color; /* cli_color_t */
  /* Of commands that ask a service. */
  const char *base_url; /* NULL: by the environment */
  int64_t timeout_s;    /* of the whole command; 0: none */
  int64_t retries;      /* of a request; -1: as the library has it */
};

/* ---- What people are told ---- */

/* Something that went wrong. Members but the first two may be absent (0). */
typedef struct {
  int status;          /* the exit status */
  const char *message; /* a sentence */
  const char *code;    /* a word for programs; NULL: by the status */
  const char *hint;    /* what to do about it */
  int http_status;
  unsigned n_attempts;
} cli_problem_t;

/* Tell it on standard error; with --json also as the document on standard
 * output. Returns the status. */
int cli_report(const cli_t *cli, const cli_problem_t *problem);
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
/* The same for a sentence alone. */
int cli_fail(const cli_t *cli, int status, const char *format, ...);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
/* Tell something beside the result, on standard error, unless --quiet. */
void cli_note(const cli_t *cli, const char *format, ...);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
/* Tell a failure that is only a part, on standard error. */
void cli_warn(const cli_t *cli, const char *format, ...);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
/* Write a line to standard error; a control character becomes a blank. */
void cli_tell(const char *format, ...);

#endif
