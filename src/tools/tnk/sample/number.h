#ifndef TNK_TOOLS_TNK_SAMPLE_NUMBER_H
#define TNK_TOOLS_TNK_SAMPLE_NUMBER_H

#include <stddef.h>

/* Read a number from 0 to `max` as JSON has them, whatever the locale. 0, or -1
 * with a sentence in `why`. */
int cli_set_number(const char *value, double max, double *out, char *why,
                   size_t n_why);

#endif
