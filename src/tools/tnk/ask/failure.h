#ifndef TNK_TOOLS_TNK_ASK_FAILURE_H
#define TNK_TOOLS_TNK_ASK_FAILURE_H

#include "tnk/error.h"
#include "tools/common/frame/cli.h"

/* Tell an error of the library, with a hint where there is one. `error` may be
 * NULL, and then `err` and `message` say what is known. Returns the exit
 * status. */
int cli_failure(const cli_t *cli, int err, const char *message,
                const tnk_error_t *error);
/* The same with a hint of the command's own, which knows better what to do;
 * NULL for the usual one. */
int cli_failure_with_hint(const cli_t *cli, int err, const char *message,
                          const tnk_error_t *error, const char *hint);

#endif
