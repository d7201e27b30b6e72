#ifndef TNK_CLI_CONFORM_COMMANDS_H
#define TNK_CLI_CONFORM_COMMANDS_H

#include "cli/frame/command.h"

extern const cli_command_t cli_conform;

#endif
