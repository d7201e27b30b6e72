#ifndef TNK_TOOLS_COMMON_FRAME_MANUAL_H
#define TNK_TOOLS_COMMON_FRAME_MANUAL_H

#include "tools/common/frame/cli.h"

/* Write a man page for the command itself and one for each command right below
 * it to a folder: tnk.1, tnk-run.1 ... Returns the exit status. */
int cli_write_manual(const cli_t *cli, const char *folder);

#endif
