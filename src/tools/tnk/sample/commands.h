/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_SAMPLE_COMMANDS_H
#define TNK_TOOLS_TNK_SAMPLE_COMMANDS_H

#include "tools/common/frame/command.h"

/* tnk sample. */
extern const cli_command_t cli_sample;
/* tnk chat. */
extern const cli_command_t cli_chat;

#endif
