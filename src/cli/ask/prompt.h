#ifndef TNK_CLI_ASK_PROMPT_H
#define TNK_CLI_ASK_PROMPT_H

#include "cli/ask/ask.h"

/* Whether there is a person to ask: never with --json, nor where the input or
 * standard error is no terminal. */
int cli_may_ask(const cli_t *cli);
/* Put a question to the person, on standard error, and read a line. Signals are
 * heard meanwhile. 1: yes; 0: no, which everything else is; -1: the command is
 * to end, or the input has ended. */
int cli_ask_yes(cli_ask_t *ask, const char *question);

#endif
