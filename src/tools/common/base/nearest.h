#ifndef TNK_TOOLS_COMMON_BASE_NEAREST_H
#define TNK_TOOLS_COMMON_BASE_NEAREST_H

#include <stddef.h>

/* Find the name that a misspelled word is closest to. `name_of` returns the
 * i-th of n names, valid until its next call. NULL: no name is close. */
const char *cli_nearest(const char *word, const char *(*name_of)(size_t i),
                        size_t n);

#endif
