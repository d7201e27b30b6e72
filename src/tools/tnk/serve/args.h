/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_SERVE_ARGS_H
#define TNK_TOOLS_TNK_SERVE_ARGS_H

#include "tools/common/frame/command.h"
#include "tools/local/server.h"

/* The parsed options of `tnk local`. */
typedef struct {
  local_options_t server;
  const char *faults;          /* fault specification; NULL: none */
  const char *fault_log;       /* file name; NULL: none */
  const char *sample_log;      /* file name; NULL: none */
  const char *stub_answers;    /* file name; NULL: none */
  const char *tokenizer;       /* file or directory; NULL: the model's own */
  int fault_control;           /* enable the faults endpoint */
  size_t stub_max_connections; /* 0: the stub's default */
  int stub;                    /* serve canned answers without a model */
  uint64_t stub_spread_ms;     /* maximum random delay of an answer */
  uint64_t stub_cut_ms;        /* time after which polls are cut; 0: never */
  uint64_t drain_s;            /* limit for finishing pending requests */
  int exit_with_stdin;
  int verbose;
} cli_local_args_t;

extern const cli_option_t cli_local_options[];
/* The parts of the help about modes and faults. */
extern const cli_section_t cli_local_sections[];

/* Returns the error in the combination of options, or NULL. */
const char *cli_local_check(const cli_t *cli);
/* Get the parsed options. Strings point into argv. */
void cli_local_args(cli_local_args_t *args);

#endif
