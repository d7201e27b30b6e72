#ifndef TNK_CLI_SERVE_COMMANDS_H
#define TNK_CLI_SERVE_COMMANDS_H

#include "cli/frame/command.h"

extern const cli_command_t cli_gateway;
extern const cli_command_t cli_local;

#endif
