/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TEXT_COMMANDS_H
#define TNK_TOOLS_TNK_TEXT_COMMANDS_H

#include "tools/common/frame/command.h"

extern const cli_command_t cli_lint;
extern const cli_command_t cli_top;
#ifdef CLI_TOKENIZERS
extern const cli_command_t cli_chat_data;
extern const cli_command_t cli_tokenize;
extern const cli_command_t cli_detokenize;
#endif

#endif
