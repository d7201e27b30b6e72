#ifndef TNK_CLI_TEXT_COMMANDS_H
#define TNK_CLI_TEXT_COMMANDS_H

#include "cli/frame/command.h"

extern const cli_command_t cli_lint;
extern const cli_command_t cli_top;
#ifdef CLI_TOKENIZERS
extern const cli_command_t cli_chat_data;
extern const cli_command_t cli_tokenize;
extern const cli_command_t cli_detokenize;
#endif

#endif
