#ifndef TNK_TOOLS_COMMON_FRAME_WRAP_H
#define TNK_TOOLS_COMMON_FRAME_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Write text in lines of at most 79 columns that begin behind `indent` blanks.
 * The first one begins at column `at`, where something stands already. Line
 * breaks of the text stay. Ends with a line break. */
void cli_wrap(FILE *to, const char *text, size_t indent, size_t at);

#endif
