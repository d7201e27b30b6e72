/* SPDX-License-Identifier: MIT */
/* tnk gateway keys: create, list, revoke, rotate. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/url.h"
#include "tnk/error.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/keys/call.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"

#define SESSIONS "/tnk/sessions"

enum { MAX_BODY = 64 << 10, MAX_PATH = 1024, MAX_USD = 1000000 };

static struct {
  cli_place_t place;
  const char *session, *certificate;
  int64_t expires_in_s, max_requests, max_tokens, max_turns, max_body;
  int64_t max_concurrent, max_per_minute;
  double max_usd;
  int may_reward;
} args;

static const char *check_place(const cli_t *cli) {
  (void)cli;
  return args.place.admin.key != NULL && args.place.admin.file != NULL
             ? "--admin-key and --admin-key-file exclude each other"
             : NULL;
}

/* The options of all of these commands. */
#define PLACE_OPTIONS                                                          \
  {.name = "url",                                                              \
   .value = "URL",                                                             \
   .text = &args.place.url,                                                    \
   .help = "Address of the gateway, as it prints it. Default: "                \
           "TNK_GATEWAY_URL."},                                                \
      {.name = "admin-key",                                                    \
       .value = "KEY",                                                         \
       .text = &args.place.admin.key,                                          \
       .help = "Its admin key. Default: TNK_GATEWAY_ADMIN_KEY."},              \
  {                                                                            \
    .name = "admin-key-file", .value = "FILE", .text = &args.place.admin.file, \
    .offer = CLI_OFFER_FILES,                                                  \
    .help = "Read that key from the first line of this file, so that it is "   \
            "in no list of processes."                                         \
  }

/* ---- JSON ---- */

/* Print the members of an object of the gateway. 15 digits are those that each
 * decimal number keeps in a double. */
static int print_json(const cli_t *cli, const json_t *object) {
  cli_json_t json;
  const char *name;
  json_t *value;

  cli_json_begin(&json);
  tnk__buf_keep_secret(&json.buf);
  json_object_foreach((json_t *)(uintptr_t)object, name, value) {
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY |
                                       JSON_REAL_PRECISION(15));

    if (text == NULL) {
      cli_json_drop(&json);
      return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
    }
    tnk__json_put_raw(&json.w, name, text);
    tnk__wipe(text, strlen(text));
    tnk__json_free_string(text);
  }
  return cli_json_end(&json, cli);
}

static int64_t whole(const json_t *object, const char *name) {
  int64_t value = 0;

  (void)tnk__json_get_int(object, name, INT64_MIN, INT64_MAX, &value);
  return value;
}

static double real(const json_t *object, const char *name) {
  double value = 0;

  (void)tnk__json_get_double(object, name, &value);
  return value;
}

static int is_set(const json_t *object, const char *name) {
  int value = 0;

  (void)tnk__json_get_bool(object, name, &value);
  return value;
}

/* ---- Tables ---- */

static const char *const limits[] = {
    "max_requests",   "max_tokens",     "max_turns", "max_usd",
    "max_concurrent", "max_per_minute", "max_body"};

static void add_limits(cli_table_t *table, const json_t *key) {
  const json_t *of = tnk__json_obj(key, "limits");

  for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
    const json_t *limit = json_object_get(of, limits[i]);

    if (limit == NULL)
      continue;
    cli_table_add(table, "%s", limits[i]);
    if (json_is_integer(limit))
      cli_table_add(table, "%" PRId64, (int64_t)json_integer_value(limit));
    else
      cli_table_add(table, "%g", json_number_value(limit));
  }
}

/* Print a key that was created or rotated, with its secret. */
static int print_key(const cli_t *cli, const json_t *key) {
  const int64_t expires_s = whole(key, "expires_at");
  const char *secret = tnk__json_str(key, "key");
  cli_table_t *table;

  if (secret == NULL || tnk__json_str(key, "id") == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "the answer has no key");
  if (cli->json)
    return print_json(cli, key);
  table = cli_table_new(NULL, 2);
  cli_table_add_row(table, "Key", secret);
  cli_table_add_row(table, "ID", tnk__json_str(key, "id"));
  cli_table_add_row(table, "Session", tnk__json_str(key, "session"));
  cli_table_add(table, "Expires");
  if (expires_s > 0)
    cli_table_add_age(table, expires_s * 1000000);
  else
    cli_table_add(table, "never");
  if (is_set(key, "may_reward"))
    cli_table_add_row(table, "May reward", "yes");
  if (tnk__json_str(key, "certificate") != NULL)
    cli_table_add_row(table, "Certificate", tnk__json_str(key, "certificate"));
  add_limits(table, key);
  cli_note(cli, "The key is shown once. The gateway has only its hash.");
  return cli_table_end(table, cli);
}

/* Add a cell: what was used, and of how much. */
static void add_use(cli_table_t *table, const json_t *key, const char *used,
                    const char *limit) {
  const int64_t n = whole(tnk__json_obj(key, "used"), used);
  const int64_t max = whole(tnk__json_obj(key, "limits"), limit);

  if (max > 0)
    cli_table_add(table, "%" PRId64 " of %" PRId64, n, max);
  else
    cli_table_add(table, "%" PRId64, n);
}

static void add_cost(cli_table_t *table, const json_t *key) {
  const double usd = real(tnk__json_obj(key, "used"), "usd");
  const double max = real(tnk__json_obj(key, "limits"), "max_usd");

  if (max > 0)
    cli_table_add(table, "%.4f of %g", usd, max);
  else
    cli_table_add(table, "%.4f", usd);
}

static void add_key(cli_table_t *table, const json_t *key) {
  const int64_t expires_s = whole(key, "expires_at");

  cli_table_add_or(table, tnk__json_str(key, "id"), "?");
  cli_table_add_or(table, tnk__json_str(key, "session"), "?");
  if (expires_s > 0)
    cli_table_add_age(table, expires_s * 1000000);
  else
    cli_table_add(table, "never");
  add_use(table, key, "requests", "max_requests");
  add_use(table, key, "tokens", "max_tokens");
  add_use(table, key, "turns", "max_turns");
  add_cost(table, key);
  cli_table_add(table, "%" PRId64, whole(key, "active"));
  cli_table_add(table, "%s", is_set(key, "may_reward") ? "yes" : "no");
}

/* ---- Create ---- */

static void put_limit(tnk__json_writer_t *w, const char *name, int64_t value) {
  if (value > 0)
    tnk__json_put_int(w, name, value);
}

static char *create_body(void) {
  cli_json_t json;

  cli_json_begin(&json);
  if (args.session != NULL)
    cli_json_put_odd_text(&json, "session", args.session);
  put_limit(&json.w, "expires_in_s", args.expires_in_s);
  put_limit(&json.w, "max_requests", args.max_requests);
  put_limit(&json.w, "max_tokens", args.max_tokens);
  put_limit(&json.w, "max_turns", args.max_turns);
  put_limit(&json.w, "max_body", args.max_body);
  put_limit(&json.w, "max_concurrent", args.max_concurrent);
  put_limit(&json.w, "max_per_minute", args.max_per_minute);
  if (args.max_usd > 0)
    tnk__json_put_double(&json.w, "max_usd", args.max_usd);
  if (args.certificate != NULL)
    cli_json_put_odd_text(&json, "certificate", args.certificate);
  if (args.may_reward)
    tnk__json_put_bool(&json.w, "may_reward", 1);
  return cli_json_take(&json);
}

static int create(cli_t *cli) {
  char *body = create_body();
  json_t *key = NULL;
  int status;

  if (body == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  status = cli_gateway_call(cli, &args.place, "POST", SESSIONS, body, &key);
  if (status == CLI_EXIT_OK)
    status = print_key(cli, key);
  json_decref(key);
  free(body);
  return status;
}

static const cli_option_t create_options[] = {
    {.name = "session",
     .value = "NAME",
     .text = &args.session,
     .help = "The session that the key is for. Without it the gateway makes a "
             "name."},
    {.name = "expires-in-s",
     .value = "N",
     .number = &args.expires_in_s,
     .max = INT64_MAX,
     .help = "Lifetime in seconds. For this and the following ones, 0 means no "
             "limit (0)."},
    {.name = "max-requests",
     .value = "N",
     .number = &args.max_requests,
     .max = INT64_MAX,
     .help = "Answered requests."},
    {.name = "max-tokens",
     .value = "N",
     .number = &args.max_tokens,
     .max = INT64_MAX,
     .help = "Tokens of prompts and answers together."},
    {.name = "max-turns",
     .value = "N",
     .number = &args.max_turns,
     .max = INT64_MAX,
     .help = "Answers."},
    {.name = "max-usd",
     .value = "USD",
     .real = &args.max_usd,
     .max_real = MAX_USD,
     .help = "Costs. The gateway needs --prices."},
    {.name = "max-concurrent",
     .value = "N",
     .number = &args.max_concurrent,
     .max = UINT32_MAX,
     .help = "Requests in progress."},
    {.name = "max-per-minute",
     .value = "N",
     .number = &args.max_per_minute,
     .max = 1000000,
     .help = "Requests in a minute."},
    {.name = "max-body",
     .value = "BYTES",
     .number = &args.max_body,
     .max = INT64_MAX,
     .help = "Size of a request."},
    {.name = "may-reward",
     .flag = &args.may_reward,
     .help = "Let the key set rewards of its own session."},
    {.name = "certificate",
     .value = "NAME",
     .text = &args.certificate,
     .help = "Bind the key to the certificate of a client: sha256:HEX, or a "
             "name in it, DNS:NAME, URI:TEXT or CN:TEXT. The gateway needs "
             "--client-ca."},
    PLACE_OPTIONS,
    {.name = NULL}};

static const cli_item_t create_examples[] = {
    {"tnk gateway keys create --session run-7 --expires-in-s 3600 --json",
     "a key for one run of an agent, with the address and the admin key from "
     "the environment"},
    {NULL, NULL}};

static const cli_command_t create_command = {
    .name = "create",
    .brief = "create a key for one session",
    .about = "Create a key that samples in one session alone. It is printed "
             "once: give it to the agent as its API key.",
    .options = create_options,
    .examples = create_examples,
    .has = CLI_HAS_JSON,
    .check = check_place,
    .run = create,
};

/* ---- List ---- */

static int print_list(const cli_t *cli, const json_t *keys) {
  static const char *const headers[] = {"ID",       "Session", "Expires",
                                        "Requests", "Tokens",  "Turns",
                                        "USD",      "Active",  "May reward"};
  cli_table_t *table;

  if (json_array_size(keys) == 0) {
    cli_note(cli, "There are no keys.");
    return CLI_EXIT_OK;
  }
  table = cli_table_new(headers, sizeof(headers) / sizeof(*headers));
  for (size_t i = 0; i < json_array_size(keys); i++)
    add_key(table, json_array_get(keys, i));
  return cli_table_end(table, cli);
}

static int list(cli_t *cli) {
  json_t *answer = NULL;
  json_t *keys, *out;
  int status =
      cli_gateway_call(cli, &args.place, "GET", SESSIONS, NULL, &answer);

  if (status != CLI_EXIT_OK)
    return status;
  keys = json_object_get(answer, "data");
  if (!json_is_array(keys)) {
    status = cli_fail(cli, CLI_EXIT_FAILED, "the answer has no list of keys");
  } else if (!cli->json) {
    status = print_list(cli, keys);
  } else {
    out = json_pack("{s:O}", "keys", keys);
    status = out != NULL ? print_json(cli, out)
                         : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
    json_decref(out);
  }
  json_decref(answer);
  return status;
}

static const cli_option_t list_options[] = {PLACE_OPTIONS, {.name = NULL}};

static const cli_command_t list_command = {
    .name = "list",
    .brief = "list the keys of sessions and what they have used",
    .about = "List the keys of sessions, with what they have used. That "
             "includes what is reserved for requests in progress.",
    .options = list_options,
    .has = CLI_HAS_JSON,
    .check = check_place,
    .run = list,
};

/* ---- Revoke and rotate ---- */

/* Write the path of a key. Returns the exit status. */
static int path_of(const cli_t *cli, const char *id, const char *end,
                   char path[MAX_PATH]) {
  int status = CLI_EXIT_OK;
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), MAX_PATH - 1);
  tnk__buf_text(&buf, SESSIONS "/");
  tnk__url_put_segment(&buf, id);
  tnk__buf_text(&buf, end);
  if (buf.err == TNK_OK) {
    memcpy(path, buf.data, buf.len);
    path[buf.len] = '\0';
  } else {
    status = cli_fail(cli, CLI_EXIT_USAGE, "\"%.80s\" is no id of a key", id);
  }
  tnk__buf_deinit(&buf);
  return status;
}

static int revoke_all(const cli_t *cli, size_t *n) {
  for (*n = 0; *n < cli->n_words; ++*n) {
    const char *id = cli->words[*n];
    json_t *answer = NULL;
    char path[MAX_PATH];
    int status = path_of(cli, id, "", path);

    if (status == CLI_EXIT_OK)
      status =
          cli_gateway_call(cli, &args.place, "DELETE", path, NULL, &answer);
    json_decref(answer);
    if (status != CLI_EXIT_OK)
      return status;
    if (!cli->json)
      cli_note(cli, "Revoked %s.", id);
  }
  return CLI_EXIT_OK;
}

static int revoke(cli_t *cli) {
  cli_json_t json;
  size_t n;
  int status = revoke_all(cli, &n);

  if (status != CLI_EXIT_OK && n > 0)
    cli_note(cli, "%zu of %zu keys were revoked before that.", n, cli->n_words);
  if (status != CLI_EXIT_OK || !cli->json)
    return status;
  cli_json_begin(&json);
  tnk__json_put_array(&json.w, "revoked");
  for (size_t i = 0; i < n; i++)
    tnk__json_text(&json.w, cli->words[i]);
  tnk__json_end(&json.w);
  return cli_json_end(&json, cli);
}

static const cli_command_t revoke_command = {
    .name = "revoke",
    .brief = "end keys of sessions",
    .about = "End keys at once. Requests in progress are answered. The first "
             "key that cannot be revoked ends the command.",
    .words = "ID...",
    .options = list_options,
    .has = CLI_HAS_JSON,
    .check = check_place,
    .run = revoke,
};

static int rotate(cli_t *cli) {
  json_t *key = NULL;
  char path[MAX_PATH];
  int status = path_of(cli, cli->words[0], "/rotate", path);

  if (status == CLI_EXIT_OK)
    status = cli_gateway_call(cli, &args.place, "POST", path, NULL, &key);
  if (status == CLI_EXIT_OK)
    status = print_key(cli, key);
  json_decref(key);
  return status;
}

static const cli_command_t rotate_command = {
    .name = "rotate",
    .brief = "replace the secret of a key",
    .about = "Replace the secret of a key, and print the new one. The old one "
             "ends at once. Id, limits and use stay.",
    .words = "ID",
    .options = list_options,
    .has = CLI_HAS_JSON,
    .check = check_place,
    .run = rotate,
};

/* ---- The group ---- */

static const cli_command_t *const commands[] = {
    &create_command, &list_command, &revoke_command, &rotate_command, NULL};

const cli_command_t cli_gateway_keys = {
    .name = "keys",
    .brief = "create, list, revoke and rotate keys of sessions",
    .about = "Keys of sessions of a running gateway. Such a key samples in one "
             "session alone, within its limits. These commands need the admin "
             "key of the gateway.",
    .has = CLI_HAS_JSON,
    .commands = commands,
};
