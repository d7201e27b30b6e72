/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_COMMANDS_H
#define TNK_TOOLS_TNK_TRAIN_COMMANDS_H

#include "tools/common/frame/command.h"

/* tnk train. */
extern const cli_command_t cli_train;

#endif
