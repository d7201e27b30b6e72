#ifndef TNK_TOOLS_COMMON_FRAME_COMPLETE_H
#define TNK_TOOLS_COMMON_FRAME_COMPLETE_H

#include "tools/common/frame/cli.h"

typedef enum { CLI_BASH = 0, CLI_ZSH, CLI_FISH } cli_shell_t;

/* Print the completion script for all commands below `root`. */
void cli_print_completion(const cli_command_t *root, cli_shell_t shell);

#endif
