/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_HELP_H
#define TNK_TOOLS_COMMON_FRAME_HELP_H

#include <stdio.h>

#include "tools/common/frame/cli.h"

/* Write the help for the command in `cli`. */
void cli_print_help(FILE *to, const cli_t *cli);
/* Write the usage of an option, such as "-o, --output DIR"; cut if it does not
 * fit into `n` bytes. */
void cli_option_head(char *out, size_t n, const cli_option_t *option);

#endif
