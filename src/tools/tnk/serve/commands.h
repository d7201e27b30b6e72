/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_SERVE_COMMANDS_H
#define TNK_TOOLS_TNK_SERVE_COMMANDS_H

#include "tools/common/frame/command.h"

extern const cli_command_t cli_gateway;
extern const cli_command_t cli_local;

#endif
