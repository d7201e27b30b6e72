/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_ASK_PROMPT_H
#define TNK_TOOLS_TNK_ASK_PROMPT_H

#include "tools/tnk/ask/ask.h"

/* Returns whether a user can be asked: never with --json, and only if standard
 * input and standard error are terminals. */
int cli_may_ask(const cli_t *cli);
/* Ask a question on standard error and read a line. Signals are handled during
 * the wait. Returns 1 for yes, 0 for any other answer, -1 if the command must
 * end or the input has ended. */
int cli_ask_yes(cli_ask_t *ask, const char *question);

/* Input that was read but not returned yet. Initialize it with zeros. */
typedef struct {
  char *text;
  size_t at; /* start of the next line */
  size_t n;
  size_t cap;
  int is_over;
} cli_lines_t;

/* Read a line of the standard input, after printing `question` to standard
 * error if it is not NULL. Signals are handled during the wait. Returns 1 with
 * *line, without its newline and valid until the next call. Returns 0 at the
 * end of the input. Returns -1 if the command must end, if a line has more than
 * 1 MiB, or without memory. */
int cli_ask_line(cli_ask_t *ask, cli_lines_t *lines, const char *question,
                 const char **line, size_t *n);
void cli_lines_free(cli_lines_t *lines);

#endif
