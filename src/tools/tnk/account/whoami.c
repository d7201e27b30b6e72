/* SPDX-License-Identifier: MIT */
/* tnk whoami, also available as tnk auth whoami. */
#include <inttypes.h>
#include <stdio.h>

#include "tnk/rest.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"

/* The identity from a token or, if the service issues none, from the key. */
typedef struct {
  const tnk_identity_t *identity; /* or NULL */
  const tnk_api_key_t *key;       /* or NULL */
} who_t;

static int print_json(const cli_t *cli, const who_t *who) {
  const tnk_identity_t *identity = who->identity;
  cli_json_t json;
  char id[32];

  cli_json_begin(&json);
  tnk__json_put_text(&json.w, "user_urn",
                     identity != NULL ? identity->user_urn : NULL);
  tnk__json_put_text(&json.w, "org_urn",
                     identity != NULL ? identity->org_urn : NULL);
  tnk__json_put_text(&json.w, "email",
                     identity != NULL ? identity->email : who->key->email);
  if (who->key != NULL) {
    tnk__json_put_text(&json.w, "organization", who->key->organization);
    snprintf(id, sizeof(id), "%" PRId64, who->key->id);
    tnk__json_put_text(&json.w, "key_id", id);
    tnk__json_put_text(&json.w, "key_name", who->key->name);
  }
  return cli_json_end(&json, cli);
}

static int print(const cli_t *cli, const who_t *who) {
  cli_table_t *table;

  if (cli->json)
    return print_json(cli, who);
  table = cli_table_new(NULL, 2);
  cli_table_add(table, "Email");
  cli_table_add_or(
      table, who->identity != NULL ? who->identity->email : who->key->email,
      "N/A");
  if (who->identity != NULL) {
    cli_table_add_row(table, "User", who->identity->user_urn);
  }
  cli_table_add(table, "Organization");
  cli_table_add_or(table,
                   who->identity != NULL ? who->identity->org_urn
                                         : who->key->organization,
                   "N/A");
  if (who->key != NULL) {
    cli_table_add(table, "Key");
    cli_table_add(table, "%s (%" PRId64 ")", who->key->name, who->key->id);
  }
  return cli_table_end(table, cli);
}

/* The token was requested first, so its error is reported if the key gives no
 * identity either. */
static int ask_by_key(cli_ask_t *ask, const tnk_promise_t *by_token) {
  tnk_promise_t *promise = tnk_rest_get_api_key(ask->service);
  int status;

  if (cli_ask_wait(ask, promise) == TNK_OK)
    status =
        print(ask->cli,
              &(who_t){.key = tnk_page_api_key(tnk_promise_page(promise), 0)});
  else if (tnk_promise_status(promise) == TNK_EUNSUPPORTED)
    status = cli_ask_failed(ask, by_token);
  else
    status = cli_ask_failed(ask, promise);
  tnk_promise_unref(promise);
  return status;
}

static int ask_identity(cli_ask_t *ask) {
  tnk_promise_t *promise = tnk_rest_whoami(ask->service);
  int err = cli_ask_wait(ask, promise);
  int status;

  if (err == TNK_OK)
    status = print(ask->cli, &(who_t){.identity = tnk_page_identity(
                                          tnk_promise_page(promise), 0)});
  else if (err == TNK_EUNSUPPORTED)
    status = ask_by_key(ask, promise);
  else
    status = cli_ask_failed(ask, promise);
  tnk_promise_unref(promise);
  return status;
}

const cli_command_t cli_whoami = {
    .name = "whoami",
    .brief = "show who you are signed in as",
    .about = "Show who the service thinks you are. This is read from the token "
             "that it issues for the key, or from its data about the key if it "
             "issues no tokens.",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_run,
    .work = ask_identity,
};
