#ifndef TNK_CLI_LINT_H
#define TNK_CLI_LINT_H

#include <stdio.h>

/* Run `tnk lint`; argv begins behind the word. Returns the exit status. */
int cli_lint(int argc, char *const *argv);

typedef struct {
  const char *file; /* its name, for findings */
  const char *loss; /* NULL: only forms are checked */
  int json;         /* findings in JSON */
} cli_lint_options_t;

/* Check an open file; findings and their number go to `out`. */
int cli_lint_stream(const cli_lint_options_t *options, FILE *in, FILE *out);

#endif
