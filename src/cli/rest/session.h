#ifndef TNK_CLI_REST_SESSION_H
#define TNK_CLI_REST_SESSION_H

#include "cli/frame/command.h"

extern const cli_command_t cli_session_search;
extern const cli_command_t cli_session_export_trace;

#endif
