#ifndef TNK_TOOLS_COMMON_BASE_NEAREST_H
#define TNK_TOOLS_COMMON_BASE_NEAREST_H

#include <stddef.h>

/* Find the name that a word may have been meant to be; `name_of` gives the i-th
 * one of n, good until it is asked again. NULL: none is near. */
const char *cli_nearest(const char *word, const char *(*name_of)(size_t i),
                        size_t n);

#endif
