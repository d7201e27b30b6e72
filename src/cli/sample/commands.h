#ifndef TNK_CLI_SAMPLE_COMMANDS_H
#define TNK_CLI_SAMPLE_COMMANDS_H

#include "cli/frame/command.h"

/* tnk sample. */
extern const cli_command_t cli_sample;
/* tnk chat. */
extern const cli_command_t cli_chat;

#endif
