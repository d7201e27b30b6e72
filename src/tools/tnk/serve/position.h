/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_SERVE_POSITION_H
#define TNK_TOOLS_TNK_SERVE_POSITION_H

#include <stdio.h>

#include "gateway/record/follow.h"

/* The file of --state: the numbers of the last turns of the examples that were
 * printed, one a line. */

/* Open or create the file, and skip the examples that it names. An incomplete
 * line at its end, left by a killed process, is cut off. Returns 0, or -1 with
 * a sentence in `why`. */
int cli_position_open(FILE **out, const char *path, tnk__gw_record_t *record,
                      char *why, size_t n_why);
/* Append the examples. The same results. */
int cli_position_add(FILE *file, const char *path,
                     const tnk__gw_branch_t *branches, size_t n, char *why,
                     size_t n_why);

#endif
