#ifndef TNK_TOOLS_TNK_SERVE_ARGS_H
#define TNK_TOOLS_TNK_SERVE_ARGS_H

#include "tools/common/frame/command.h"
#include "tools/local/server.h"

/* What the command line of `tnk local` asks for. */
typedef struct {
  local_options_t server;
  const char *faults;          /* what goes wrong; NULL: nothing */
  const char *fault_log;       /* file; NULL: none */
  const char *sample_log;      /* file; NULL: none */
  const char *stub_answers;    /* file; NULL: none */
  const char *tokenizer;       /* file or directory; NULL: the model's own */
  int fault_control;           /* an endpoint sets and lists them */
  size_t stub_max_connections; /* 0: those that the stub itself has */
  int stub;                    /* canned answers and no model, */
  uint64_t stub_spread_ms;     /* so much later at most, */
  uint64_t stub_cut_ms;        /* polls are cut after this; 0: never */
  uint64_t drain_s;            /* to finish the work under way */
  int exit_with_stdin;
  int verbose;
} cli_local_args_t;

extern const cli_option_t cli_local_options[];
/* The modes and the faults. */
extern const cli_section_t cli_local_sections[];

/* What is wrong with the options together, or NULL. */
const char *cli_local_check(const cli_t *cli);
/* What they ask for. Texts point into argv. */
void cli_local_args(cli_local_args_t *args);

#endif
