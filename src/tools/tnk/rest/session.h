/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REST_SESSION_H
#define TNK_TOOLS_TNK_REST_SESSION_H

#include "tools/common/frame/command.h"

extern const cli_command_t cli_session_search;
extern const cli_command_t cli_session_export_trace;

#endif
