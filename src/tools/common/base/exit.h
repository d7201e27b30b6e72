#ifndef TNK_TOOLS_COMMON_BASE_EXIT_H
#define TNK_TOOLS_COMMON_BASE_EXIT_H

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

#endif
