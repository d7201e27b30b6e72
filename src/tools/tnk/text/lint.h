#ifndef TNK_TOOLS_TNK_TEXT_LINT_H
#define TNK_TOOLS_TNK_TEXT_LINT_H

#include <stdio.h>

typedef struct {
  const char *file; /* its name, for findings */
  const char *loss; /* NULL: only forms are checked */
  int json;         /* one document */
} cli_lint_options_t;

/* Check an open file; findings and their number go to `out`. Returns 0, 1 when
 * something is wrong with the data, or -1 with a sentence in `why`. */
int cli_lint_stream(const cli_lint_options_t *options, FILE *in, FILE *out,
                    char *why, size_t n_why);

#endif
