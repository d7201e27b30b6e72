/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_COMMON_H
#define TNK_TOOLS_COMMON_FRAME_COMMON_H

#include "tools/common/frame/cli.h"

/* The command line of the process; the common options write to it. */
cli_t *cli_common(void);
/* Common option i. *needs receives the flags that a command needs for it; 0:
 * none. NULL after the last one. */
const cli_option_t *cli_common_at(size_t i, unsigned *needs);
/* The description of a command: its `about`, or sentences made from its brief
 * in `text`. */
const char *cli_about(const cli_command_t *command, char *text, size_t n);
/* The next exit status of a command, from *i on, and its meaning; *i is
 * advanced. NULL after the last one. */
const char *cli_exit_at(const cli_command_t *command, unsigned *i, int *status);

#endif
