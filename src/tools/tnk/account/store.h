#ifndef TNK_TOOLS_TNK_ACCOUNT_STORE_H
#define TNK_TOOLS_TNK_ACCOUNT_STORE_H

#include <jansson.h>

#include "tools/common/frame/cli.h"

/* Read ~/.tinker/credentials.json. The caller closes it with
 * tnk__credentials_close(). A missing file counts as an empty store. Returns
 * the exit status; errors have been reported, and then *out is NULL. */
int cli_store_read(const cli_t *cli, json_t **out);
/*
 * Change the file: read it again, call `change`, and replace it atomically. A
 * lock keeps other commands from changing it in the meantime. `change` returns
 * an exit status and reports its errors. Nothing is written unless it returns
 * CLI_EXIT_OK.
 */
int cli_store_change(const cli_t *cli, int (*change)(json_t *store, void *user),
                     void *user);

#endif
