/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_MANUAL_H
#define TNK_TOOLS_COMMON_FRAME_MANUAL_H

#include "tools/common/frame/cli.h"

/* Write man pages to a folder: one for the command itself, and one for each
 * command directly below it (tnk.1, tnk-run.1 ...). Returns the exit status. */
int cli_write_manual(const cli_t *cli, const char *folder);

#endif
