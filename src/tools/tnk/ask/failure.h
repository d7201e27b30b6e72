/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_ASK_FAILURE_H
#define TNK_TOOLS_TNK_ASK_FAILURE_H

#include "tnk/error.h"
#include "tools/common/frame/cli.h"

/* Report an error of the library, with a hint if there is one. `error` may be
 * NULL; then `err` and `message` describe the error. Returns the exit
 * status. */
int cli_failure(const cli_t *cli, int err, const char *message,
                const tnk_error_t *error);
/* As above, with the command's own, more specific hint; NULL for the usual
 * one. */
int cli_failure_with_hint(const cli_t *cli, int err, const char *message,
                          const tnk_error_t *error, const char *hint);

#endif
