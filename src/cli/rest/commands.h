#ifndef TNK_CLI_REST_COMMANDS_H
#define TNK_CLI_REST_COMMANDS_H

#include "cli/frame/command.h"

/* tnk run. */
extern const cli_command_t cli_run;

#endif
