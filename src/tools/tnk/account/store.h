#ifndef TNK_TOOLS_TNK_ACCOUNT_STORE_H
#define TNK_TOOLS_TNK_ACCOUNT_STORE_H

#include <jansson.h>

#include "tools/common/frame/cli.h"

/* Read ~/.tinker/credentials.json, to be closed with tnk__credentials_close().
 * Where there is no file it is an empty store. Returns the exit status, and has
 * told what is wrong; *out is NULL then. */
int cli_store_read(const cli_t *cli, json_t **out);
/*
 * Change it: read it once more, call `change`, and write it whole or not at
 * all. Meanwhile no other command changes it. `change` returns the exit status,
 * and has told what is wrong; but for CLI_EXIT_OK nothing is written then.
 */
int cli_store_change(const cli_t *cli, int (*change)(json_t *store, void *user),
                     void *user);

#endif
