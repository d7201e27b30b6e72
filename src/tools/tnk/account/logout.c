/* SPDX-License-Identifier: MIT */
/* tnk auth logout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/rest.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/account/account.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"

enum { REVOKE_MS = 30000 };

/* ---- Revocation ---- */

/* The result of a revocation. */
typedef struct {
  int status; /* the exit status */
  int err;    /* not TNK_OK: not reported yet, with this message */
  char text[400];
} revoked_t;

/* Only a key that an older client created for this machine has no other use and
 * is revoked. An error is reported at the end, because the key is removed
 * locally anyway. */
static revoked_t revoke(const cli_account_t *account,
                        const tnk__stored_key_t *key) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  revoked_t done = {CLI_EXIT_OK, TNK_OK, ""};
  tnk_promise_t *promise;
  cli_ask_t ask;

  unsetenv("TINKER_CREDENTIAL_CMD");
  options.api_key = key->key;
  options.base_url = account->url.text;
  options.timeout_ms = REVOKE_MS;
  options.max_retries = UINT32_MAX;
  done.status = cli_ask_open(&ask, account->cli, &options);
  if (done.status == CLI_EXIT_OK) {
    promise = tnk_rest_revoke_api_key(ask.service);
    done.err = cli_ask_wait(&ask, promise);
    snprintf(done.text, sizeof(done.text), "%s", tnk_promise_text(promise));
    tnk_promise_unref(promise);
  }
  done.status = cli_ask_close(&ask, done.status);
  return done;
}

/* ---- Local removal ---- */

static int drop(json_t *store, void *user) {
  /* Another command may have removed it already. */
  (void)tnk__credentials_remove(store, user);
  return CLI_EXIT_OK;
}

static int print(const cli_account_t *account, const tnk__stored_key_t *key,
                 int is_revoked) {
  cli_json_t json;

  if (account->cli->json) {
    cli_json_begin(&json);
    tnk__json_put_text(&json.w, "base_url", account->url.text);
    tnk__json_put_text(&json.w, "key_id", key->id);
    tnk__json_put_text(&json.w, "key_name", key->name);
    tnk__json_put_bool(&json.w, "revoked", is_revoked);
    return cli_json_end(&json, account->cli);
  }
  cli_account_say("The key \"%s\" is removed from this machine.", key->name);
  if (is_revoked)
    cli_account_say("It is revoked and can no longer be used.");
  return CLI_EXIT_OK;
}

static void tell_rest(const cli_account_t *account,
                      const tnk__stored_key_t *key, int is_revoked) {
  if (!is_revoked && (key->base_url != NULL ? cli_account_is_hosted(account)
                                            : account->url.is_tls))
    cli_note(account->cli,
             "The key can still be used. Delete it at " CLI_CONSOLE "/%s",
             key->id);
  else if (!is_revoked)
    cli_note(account->cli, "The service still accepts it.");
  cli_account_tell_override(account);
}

/* The key is removed locally even if the service does not answer: a user who
 * logs out must not leave a key behind. */
static int remove_key(const cli_account_t *account,
                      const tnk__stored_key_t *key) {
  revoked_t done = {CLI_EXIT_FAILED, TNK_OK, ""};
  int is_revoked;
  int status;

  if (key->is_generated)
    done = revoke(account, key);
  is_revoked = done.status == CLI_EXIT_OK && done.err == TNK_OK;
  status = cli_store_change(account->cli, drop, (void *)(uintptr_t)key->id);
  if (status != CLI_EXIT_OK)
    return status;
  tell_rest(account, key, is_revoked);
  if (!key->is_generated || is_revoked)
    return print(account, key, is_revoked);
  cli_note(account->cli, "The key \"%s\" is removed from this machine alone.",
           key->name);
  return done.err != TNK_OK
             ? cli_failure(account->cli, done.err, done.text, NULL)
             : done.status;
}

static int refuse(const cli_account_t *account, tnk__stored_t found,
                  const tnk__stored_key_t *key) {
  char message[300];
  char hint[300];

  snprintf(message, sizeof(message), "no key for %.200s is stored",
           account->url.text);
  if (found == TNK__STORED_ELSEWHERE)
    snprintf(hint, sizeof(hint),
             "A key for %.150s is stored. Select it with --base-url.",
             key->base_url);
  return cli_report(
      account->cli,
      &(cli_problem_t){.status = CLI_EXIT_AUTH,
                       .message = message,
                       .hint = found == TNK__STORED_ELSEWHERE ? hint : NULL});
}

static int run(cli_t *cli) {
  cli_account_t account;
  tnk__stored_key_t key;
  int status = cli_account_open(&account, cli);

  if (status == CLI_EXIT_OK) {
    tnk__stored_t found = cli_account_key(&account, &key);

    status = found == TNK__STORED_FOUND ? remove_key(&account, &key)
                                        : refuse(&account, found, &key);
  }
  cli_account_close(&account);
  return status;
}

const cli_command_t cli_auth_logout = {
    .name = "logout",
    .brief = "remove the stored key",
    .about = "Remove the key of the service from ~/.tinker/credentials.json. A "
             "key that an older client created for this machine is also "
             "revoked on the service.",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = run,
};
