#ifndef TNK_TOOLS_TNK_ASK_PROMPT_H
#define TNK_TOOLS_TNK_ASK_PROMPT_H

#include "tools/tnk/ask/ask.h"

/* Whether there is a person to ask: never with --json, nor where the input or
 * standard error is no terminal. */
int cli_may_ask(const cli_t *cli);
/* Put a question to the person, on standard error, and read a line. Signals are
 * heard meanwhile. 1: yes; 0: no, which everything else is; -1: the command is
 * to end, or the input has ended. */
int cli_ask_yes(cli_ask_t *ask, const char *question);

/* What has been read of the input beyond the lines that were given out. Begins
 * zeroed. */
typedef struct {
  char *text;
  size_t at; /* of the next line */
  size_t n;
  size_t cap;
  int is_over;
} cli_lines_t;

/* Read a line of the standard input, after `question` on standard error if that
 * is not NULL. Signals are heard meanwhile. 1: *line, without its end, which
 * lives until the next call; 0: there is none; -1: the command is to end, or a
 * line has more than 1 MiB, or there is no memory. */
int cli_ask_line(cli_ask_t *ask, cli_lines_t *lines, const char *question,
                 const char **line, size_t *n);
void cli_lines_free(cli_lines_t *lines);

#endif
