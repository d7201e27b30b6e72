/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tools/common/frame/commands.h"
#include "tools/tnk/account/account.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"

/* ---- Status ---- */

/* tnk auth status. */

/* The status of the login. */
typedef struct {
  cli_account_t account;
  char source[200];      /* source of the credential */
  tnk__stored_key_t key; /* a stored key */
  int is_stored;
  int has_credential;
  int is_accessible;
  int err; /* why the login is not valid; TNK_OK: it is */
  char why[400];
} status_t;

static void find_source(status_t *s) {
  tnk__stored_t found = cli_account_key(&s->account, &s->key);

  if (s->account.override != NULL) {
    snprintf(s->source, sizeof(s->source), "%s", s->account.override);
  } else if (found == TNK__STORED_FOUND) {
    s->is_stored = 1;
    snprintf(s->source, sizeof(s->source), "the stored key \"%.100s\" (%.40s)",
             s->key.name, s->key.id);
  } else {
    snprintf(s->source, sizeof(s->source), "none");
  }
}

static void put_why(cli_json_t *json, const status_t *s) {
  if (s->err == TNK_OK)
    return;
  tnk__json_put_object(&json->w, "error");
  tnk__json_put_text(&json->w, "code", tnk_err_name(s->err));
  cli_json_put_odd_text(json, "message", s->why);
  tnk__json_end(&json->w);
}

static int print_json(const status_t *s) {
  cli_json_t json;

  cli_json_begin(&json);
  tnk__json_put_text(&json.w, "base_url", s->account.url.text);
  tnk__json_put_bool(&json.w, "credentials_available", s->has_credential);
  tnk__json_put_text(&json.w, "source",
                     s->account.override != NULL ? s->account.override
                     : s->is_stored              ? "stored"
                                                 : NULL);
  tnk__json_put_text(&json.w, "key_id", s->is_stored ? s->key.id : NULL);
  tnk__json_put_text(&json.w, "key_name", s->is_stored ? s->key.name : NULL);
  tnk__json_put_bool(&json.w, "accessible", s->is_accessible);
  put_why(&json, s);
  return cli_json_end(&json, s->account.cli);
}

static int print_table(const status_t *s) {
  const char *const rows[][2] = {
      {"Service", s->account.url.text},
      {"Credential", s->source},
      {"Credentials available", s->has_credential ? "yes" : "no"},
      {"Tinker accessible", s->is_accessible ? "yes" : "no"},
  };
  cli_table_t *table = cli_table_new(NULL, 2);

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    cli_table_add(table, "%s", rows[i][0]);
    cli_table_add(table, "%s", rows[i][1]);
  }
  return cli_table_end(table, s->account.cli);
}

/* The JSON document contains the error, so no second document may be
 * printed. */
static int print(const status_t *s) {
  cli_t quiet = *s->account.cli;
  int status = quiet.json ? print_json(s) : print_table(s);

  if (status != CLI_EXIT_OK || s->err == TNK_OK)
    return status;
  quiet.json = 0;
  fflush(stdout);
  return cli_failure(&quiet, s->err, s->why, NULL);
}

/* Check whether a service could be opened, without sending a request. Returns
 * the exit status. */
static int look_here(status_t *s) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;
  uv_loop_t loop;

  if (uv_loop_init(&loop) != 0)
    return cli_fail(s->account.cli, CLI_EXIT_FAILED,
                    "cannot create an event loop");
  options.base_url = s->account.url.text;
  s->err = tnk_service_open(&service, &loop, &options, s->why, sizeof(s->why));
  s->has_credential = s->err == TNK_OK;
  if (s->has_credential)
    tnk_service_close(service, NULL, NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  uv_loop_close(&loop);
  return s->err == TNK_OK || s->err == TNK_ECREDENTIAL
             ? CLI_EXIT_OK
             : cli_failure(s->account.cli, s->err, s->why, NULL);
}

static int look_there(status_t *s) {
  tnk_promise_t *promise;
  cli_ask_t ask;
  int status = cli_ask_open(&ask, s->account.cli, NULL);

  if (status == CLI_EXIT_OK) {
    promise = tnk_service_capabilities(ask.service);
    s->err = cli_ask_wait(&ask, promise);
    s->is_accessible = s->err == TNK_OK;
    if (cli_ask_is_over(&ask))
      status = cli_ask_failed(&ask, promise);
    else if (s->err != TNK_OK)
      snprintf(s->why, sizeof(s->why), "%s", tnk_promise_text(promise));
    tnk_promise_unref(promise);
  }
  return cli_ask_close(&ask, status);
}

static int show(status_t *s) {
  int status = look_here(s);

  if (status == CLI_EXIT_OK && s->has_credential)
    status = look_there(s);
  return status == CLI_EXIT_OK ? print(s) : status;
}

static int run(cli_t *cli) {
  status_t s = {0};
  int status = cli_account_open(&s.account, cli);

  if (status == CLI_EXIT_OK) {
    find_source(&s);
    status = show(&s);
  }
  cli_account_close(&s.account);
  return status;
}

static const cli_command_t auth_status = {
    .name = "status",
    .brief = "show which credential is used, and whether it works",
    .about = "Show where the credential comes from, without showing the "
             "credential, and test it with a request for the list of models.",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = run,
};

/* ---- The table of commands ---- */

static const cli_command_t *const commands[] = {
    &cli_auth_login, &cli_auth_logout, &auth_status, &cli_whoami, NULL};

const cli_command_t cli_auth = {
    .name = "auth",
    .brief = "keys that are stored on this machine",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = commands,
};
