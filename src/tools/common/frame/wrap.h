#ifndef TNK_TOOLS_COMMON_FRAME_WRAP_H
#define TNK_TOOLS_COMMON_FRAME_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Write text in lines of at most 79 columns, with `indent` spaces before each.
 * The first line begins at column `at`, after existing output. Newlines in the
 * text are kept. The output ends with a newline. */
void cli_wrap(FILE *to, const char *text, size_t indent, size_t at);

#endif
