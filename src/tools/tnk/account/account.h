#ifndef TNK_TOOLS_TNK_ACCOUNT_ACCOUNT_H
#define TNK_TOOLS_TNK_ACCOUNT_ACCOUNT_H

#include "lib/wire/data/credentials.h"
#include "tools/common/frame/cli.h"

/* Where keys of the hosted service are made and deleted by hand. */
#define CLI_CONSOLE "https://tinker.thinkingmachines.ai/keys"

/* The server that a command is about, and the keys that are stored here. */
typedef struct {
  const cli_t *cli;
  tnk__arena_t arena;
  tnk__url_t url;
  json_t *store;
  /* What is used instead of a stored key: the name of a variable, or NULL. */
  const char *override;
} cli_account_t;

/* Read both. Returns the exit status, and has told what is wrong; close it
 * either way. */
int cli_account_open(cli_account_t *account, const cli_t *cli);
/* Wipe the keys and free the rest. */
void cli_account_close(cli_account_t *account);
/* Find the key that is used for the server. */
tnk__stored_t cli_account_key(const cli_account_t *account,
                              tnk__stored_key_t *out);
/* Whether it is the hosted service. */
int cli_account_is_hosted(const cli_account_t *account);
/* Tell that a stored key is not what is used, where it is not. */
void cli_account_tell_override(const cli_account_t *account);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
/* Print a line with texts of others, as a result. */
void cli_account_say(const char *format, ...);

#endif
