/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TEXT_LINT_H
#define TNK_TOOLS_TNK_TEXT_LINT_H

#include <stdio.h>

typedef struct {
  const char *file; /* its name, for messages */
  const char *loss; /* NULL: no check of the loss */
  int json;         /* one JSON document */
} cli_lint_options_t;

/* Check an open file; findings and their number are written to `out`. Returns
 * 0, 1 if the data has errors, or -1 with the reason in `why`. */
int cli_lint_stream(const cli_lint_options_t *options, FILE *in, FILE *out,
                    char *why, size_t n_why);

#endif
