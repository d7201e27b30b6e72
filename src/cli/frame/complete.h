#ifndef TNK_CLI_FRAME_COMPLETE_H
#define TNK_CLI_FRAME_COMPLETE_H

#include "cli/frame/cli.h"

typedef enum { CLI_BASH = 0, CLI_ZSH, CLI_FISH } cli_shell_t;

/* Print the completion of all commands below `root` for a shell. */
void cli_print_completion(const cli_command_t *root, cli_shell_t shell);

#endif
