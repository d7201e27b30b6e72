/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_KEYS_ADMIN_H
#define TNK_TOOLS_TNK_KEYS_ADMIN_H
#include "tools/common/frame/cli.h"

/* The options from which the admin key of a gateway comes. */
typedef struct {
  const char *key;  /* --admin-key, or NULL */
  const char *file; /* --admin-key-file, or NULL */
} cli_admin_t;

/* Read the key: the option, else the first line of the file, else the
 * environment. *out receives it, or NULL for none; free it with
 * cli_admin_free(). Returns the exit status; errors have been reported. */
int cli_admin_read(const cli_t *cli, const cli_admin_t *from, char **out);
/* Wipe and free it. NULL does nothing. */
void cli_admin_free(char *key);

#endif
