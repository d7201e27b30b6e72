/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_PARSE_H
#define TNK_TOOLS_COMMON_FRAME_PARSE_H

#include "tools/common/frame/cli.h"

/* Parse a command line into `cli` and into the targets of its options. Returns
 * 0, or -1 with a message in `why`; then cli->name is the command in question.
 * Strings point into argv. */
int cli_parse(cli_t *cli, int argc, char **argv, char *why, size_t n_why);
/* Descend from the root to the command that the arguments name. Returns 0, or
 * -1 with a message in `why`. */
int cli_enter_all(cli_t *cli, char *why, size_t n_why);

#endif
