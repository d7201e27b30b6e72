/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_SAMPLE_NUMBER_H
#define TNK_TOOLS_TNK_SAMPLE_NUMBER_H

#include <stddef.h>

/* Parse a number from 0 to `max` in JSON's syntax, independently of the locale.
 * Returns 0, or -1 with the reason in `why`. */
int cli_set_number(const char *value, double max, double *out, char *why,
                   size_t n_why);

#endif
