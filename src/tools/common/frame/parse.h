#ifndef TNK_TOOLS_COMMON_FRAME_PARSE_H
#define TNK_TOOLS_COMMON_FRAME_PARSE_H

#include "tools/common/frame/cli.h"

/* Read a command line into `cli` and to where its options write. 0, or -1 with
 * one sentence in `why`; then cli->name is that of the command that it is
 * about. Texts point into argv. */
int cli_parse(cli_t *cli, int argc, char **argv, char *why, size_t n_why);
/* Go from the root to the command that the arguments name. 0, or -1 with one
 * sentence in `why`. */
int cli_enter_all(cli_t *cli, char *why, size_t n_why);

#endif
