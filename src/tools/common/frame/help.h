#ifndef TNK_TOOLS_COMMON_FRAME_HELP_H
#define TNK_TOOLS_COMMON_FRAME_HELP_H

#include <stdio.h>

#include "tools/common/frame/cli.h"

/* Write the help of the command of `cli`. */
void cli_print_help(FILE *to, const cli_t *cli);
/* Write an option as it is given, such as "-o, --output DIR"; cut where `n`
 * bytes are too few. */
void cli_option_head(char *out, size_t n, const cli_option_t *option);

#endif
