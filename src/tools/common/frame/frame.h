/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_FRAME_H
#define TNK_TOOLS_COMMON_FRAME_FRAME_H
#include "tools/common/frame/cli.h"

/* Run the command of a command line. Returns the exit status. */
int cli_main(const cli_command_t *root, int argc, char **argv);

/* Print the help for a line that names no action. Returns the exit status. */
int cli_ask_for_more(const cli_t *cli);

#endif
