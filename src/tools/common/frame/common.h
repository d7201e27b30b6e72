#ifndef TNK_TOOLS_COMMON_FRAME_COMMON_H
#define TNK_TOOLS_COMMON_FRAME_COMMON_H

#include "tools/common/frame/cli.h"

/* The one command of the process, which the common options write to. */
cli_t *cli_common(void);
/* Common option i, with what a command must have for it (0: nothing) in *needs.
 * NULL behind the last one. */
const cli_option_t *cli_common_at(size_t i, unsigned *needs);
/* What a command does, in sentences: its own, or `text` with those that its
 * brief makes. */
const char *cli_about(const cli_command_t *command, char *text, size_t n);
/* Exit status *i of a command or a later one, and what it means; *i goes behind
 * it. NULL behind the last one. */
const char *cli_exit_at(const cli_command_t *command, unsigned *i, int *status);

#endif
