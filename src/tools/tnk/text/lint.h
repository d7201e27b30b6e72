/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TEXT_LINT_H
#define TNK_TOOLS_TNK_TEXT_LINT_H

#include <stdio.h>

#include <jansson.h>

#include "lib/base/arena.h"
#include "tnk/data.h"

typedef struct {
  const char *file; /* its name, for messages */
  const char *loss; /* NULL: no check of the loss */
  int json;         /* one JSON document */
} cli_lint_options_t;

/* Read and check one line with an example, as a training call with this loss
 * would; NULL checks the form only. Returns TNK_OK; TNK_EINVAL with the reason;
 * TNK_ENOMEM. The example is in the arena; its strings belong to *json, which
 * the caller frees in any case. */
int cli_lint_line(tnk_datum_t *out, tnk__arena_t *arena, json_t **json,
                  const char *line, size_t n, const char *loss, char *reason,
                  size_t n_reason);
/* Check an open file; findings and their number are written to `out`. Returns
 * 0, 1 if the data has errors, or -1 with the reason in `why`. */
int cli_lint_stream(const cli_lint_options_t *options, FILE *in, FILE *out,
                    char *why, size_t n_why);

#endif
