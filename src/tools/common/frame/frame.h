#ifndef TNK_TOOLS_COMMON_FRAME_FRAME_H
#define TNK_TOOLS_COMMON_FRAME_FRAME_H

#include "tools/common/frame/cli.h"

/* Run the command that a command line names. Returns the exit status. */
int cli_main(const cli_command_t *root, int argc, char **argv);

/* Print the help as an answer to a line that asks for nothing. Returns the exit
 * status. */
int cli_ask_for_more(const cli_t *cli);

/* The commands for this, to stand in the table of all. */
extern const cli_command_t cli_help;
extern const cli_command_t cli_completion;

#endif
