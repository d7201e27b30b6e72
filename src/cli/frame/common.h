#ifndef TNK_CLI_FRAME_COMMON_H
#define TNK_CLI_FRAME_COMMON_H

#include "cli/frame/cli.h"

/* The one command of the process, which the common options write to. */
cli_t *cli_common(void);
/* Common option i, with what a command must have for it (0: nothing) in *needs.
 * NULL behind the last one. */
const cli_option_t *cli_common_at(size_t i, unsigned *needs);

#endif
