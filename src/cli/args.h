#ifndef TNK_CLI_ARGS_H
#define TNK_CLI_ARGS_H

#include "local/server.h"

enum { CLI_MAX_FLAGS = 64 };

/* What the command line of `tnk local` asks for. */
typedef struct {
  local_options_t server;
  tnk_pair_t flags[CLI_MAX_FLAGS];
  char values[CLI_MAX_FLAGS][256]; /* names of flags, cut off before '=' */
  const char *faults;              /* what goes wrong; NULL: nothing */
  const char *fault_log;           /* file; NULL: none */
  int fault_control;               /* an endpoint sets and lists them */
  size_t stub_max_connections;     /* 0: those that the stub itself has */
  int stub;                        /* canned answers and no model, */
  uint64_t stub_spread_ms;         /* so much later at most, */
  uint64_t stub_cut_ms;            /* polls are cut after this; 0: never */
  int exit_with_stdin;
  int verbose;
  int help;
} cli_local_args_t;

/* Read the switches. 0, or -1 with one sentence in `why`. Texts point into
 * argv. */
int cli_parse_local(cli_local_args_t *args, int argc, char *const *argv,
                    char *why, size_t n_why);
void cli_print_local_help(void);

#endif
