/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REST_COMMANDS_H
#define TNK_TOOLS_TNK_REST_COMMANDS_H

#include "tools/common/frame/command.h"

extern const cli_command_t cli_run;
extern const cli_command_t cli_checkpoint;
extern const cli_command_t cli_session;
extern const cli_command_t cli_sampler;
extern const cli_command_t cli_model;
extern const cli_command_t cli_billing;
extern const cli_command_t cli_audit;

#endif
