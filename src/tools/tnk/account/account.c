#include "tools/tnk/account/account.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tools/common/base/clean.h"
#include "tools/tnk/account/store.h"
#include "tnk/error.h"

enum { MAX_TEXTS = 65536 };

static const char *variable(const char *name) {
  const char *value = getenv(name);

  return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *find_override(void) {
  static const char *const names[] = {"TINKER_API_KEY",
                                      "TINKER_CREDENTIAL_CMD"};

  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    if (variable(names[i]) != NULL)
      return names[i];
  return NULL;
}

static int read_url(cli_account_t *account) {
  const cli_t *cli = account->cli;
  const char *text = cli->base_url;
  const char *why = "";
  int err;

  if (text == NULL || text[0] == '\0')
    text = variable("TINKER_BASE_URL");
  if (text == NULL)
    text = TNK__HOSTED_URL;
  err = tnk__url_parse(&account->url, &account->arena, text, &why);
  if (err == TNK_OK)
    return CLI_EXIT_OK;
  /* The URL may contain a password, so it is not shown. */
  return err == TNK_EINVAL ? cli_fail(cli, CLI_EXIT_USAGE, "%s", why)
                           : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

int cli_account_open(cli_account_t *account, const cli_t *cli) {
  int status;

  memset(account, 0, sizeof(*account));
  account->cli = cli;
  account->override = find_override();
  tnk__arena_init(&account->arena, tnk__allocator_default(), MAX_TEXTS);
  status = read_url(account);
  if (status != CLI_EXIT_OK)
    return status;
  /* For example in a container: with a variable set, no stored keys are
   * needed. */
  if (account->override != NULL && variable("HOME") == NULL)
    return CLI_EXIT_OK;
  return cli_store_read(cli, &account->store);
}

void cli_account_close(cli_account_t *account) {
  tnk__credentials_close(account->store);
  tnk__arena_deinit(&account->arena);
}

tnk__stored_t cli_account_key(const cli_account_t *account,
                              tnk__stored_key_t *out) {
  return tnk__credentials_find(out, account->store, &account->url);
}

int cli_account_is_hosted(const cli_account_t *account) {
  return strcmp(account->url.text, TNK__HOSTED_URL) == 0;
}

void cli_account_tell_override(const cli_account_t *account) {
  if (account->override != NULL)
    cli_note(account->cli, "%s is set: it is used, and the stored key is not.",
             account->override);
}

void cli_account_say(const char *format, ...) {
  char line[1024];
  va_list args;

  va_start(args, format);
  (void)vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  cli_clean(line);
  printf("%s\n", line);
}
