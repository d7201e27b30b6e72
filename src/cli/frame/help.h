#ifndef TNK_CLI_FRAME_HELP_H
#define TNK_CLI_FRAME_HELP_H

#include <stdio.h>

#include "cli/frame/cli.h"

/* Write the help of the command of `cli`. */
void cli_print_help(FILE *to, const cli_t *cli);

#endif
