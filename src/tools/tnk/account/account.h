/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_ACCOUNT_ACCOUNT_H
#define TNK_TOOLS_TNK_ACCOUNT_ACCOUNT_H

#include <jansson.h>

#include "lib/wire/data/credentials.h"
#include "tools/common/frame/cli.h"

/*
 * Change the file: read it again, call `change`, and replace it atomically. A
 * lock keeps other commands from changing it in the meantime. `change` returns
 * an exit status and reports its errors. Nothing is written unless it returns
 * CLI_EXIT_OK.
 */
int cli_store_change(const cli_t *cli, int (*change)(json_t *store, void *user),
                     void *user);

/* The web page for the keys of the hosted service. */
#define CLI_CONSOLE "https://tinker.thinkingmachines.ai/keys"

/* The server of a command, and the locally stored keys. */
typedef struct {
  const cli_t *cli;
  tnk__arena_t arena;
  tnk__url_t url;
  json_t *store;
  /* The variable that overrides a stored key, or NULL. */
  const char *override;
} cli_account_t;

/* Determine the server and read the keys. Returns the exit status; errors have
 * been reported. Close it in both cases. */
int cli_account_open(cli_account_t *account, const cli_t *cli);
/* Wipe the keys and free the rest. */
void cli_account_close(cli_account_t *account);
/* Find the stored key for the server. */
tnk__stored_t cli_account_key(const cli_account_t *account,
                              tnk__stored_key_t *out);
/* Returns whether it is the hosted service. */
int cli_account_is_hosted(const cli_account_t *account);
/* Print a note if a variable overrides the stored key. */
void cli_account_tell_override(const cli_account_t *account);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
/* Print a result line that may contain strings from other sources. */
void cli_account_say(const char *format, ...);

/* The commands of tnk auth. */
extern const cli_command_t cli_auth_login;
extern const cli_command_t cli_auth_logout;

#endif
