/* SPDX-License-Identifier: MIT */
/* tnk checkpoint publish, unpublish, set-ttl, copy, and their group. */
#include <stdio.h>
#include <string.h>

#include "tnk/rest.h"
#include "tools/common/base/input.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"
#include "tools/tnk/rest/checkpoint.h"
#include "tools/tnk/rest/commands.h"

/* ---- Publish ---- */

static int told(const cli_t *cli, const char *what, int is_public) {
  cli_json_t json;

  if (!cli->json) {
    cli_note(cli, "%s %s", what, cli->words[0]);
    return CLI_EXIT_OK;
  }
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, "tinker_path", cli->words[0]);
  tnk__json_put_bool(&json.w, "public", is_public);
  return cli_json_end(&json, cli);
}

static tnk_promise_t *publish(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_publish_checkpoint(service, cli->words[0]);
}

static int show_public(const cli_t *cli, const tnk_promise_t *promise) {
  (void)promise;
  return told(cli, "Published", 1);
}

static int run_publish(cli_t *cli) {
  return cli_ask_once(cli, publish, show_public);
}

static tnk_promise_t *unpublish(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_unpublish_checkpoint(service, cli->words[0]);
}

static int show_private(const cli_t *cli, const tnk_promise_t *promise) {
  (void)promise;
  return told(cli, "No longer public:", 0);
}

static int run_unpublish(cli_t *cli) {
  return cli_ask_once(cli, unpublish, show_private);
}

static const cli_command_t publish_command = {
    .name = "publish",
    .brief = "make a checkpoint public",
    .about = "Make a checkpoint public, so that everybody can use it. It is "
             "not an error if it is already public.",
    .words = "PATH",
    .min_words = 1,
    .max_words = 1,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_first_path,
    .run = run_publish,
};

static const cli_command_t unpublish_command = {
    .name = "unpublish",
    .brief = "make a checkpoint private",
    .words = "PATH",
    .min_words = 1,
    .max_words = 1,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_first_path,
    .run = run_unpublish,
};

/* ---- Time to live ---- */

static struct {
  int64_t ttl; /* seconds; 0: not given */
  int remove;
  const char *project_id;
  const char *token_file;
} args;

static int set_ttl(const cli_option_t *option, const char *value, char *why,
                   size_t n_why) {
  (void)option;
  return cli_read_ttl(&args.ttl, value, why, n_why);
}

static tnk_promise_t *ask_ttl(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_set_checkpoint_ttl(service, cli->words[0], args.ttl);
}

static int show_ttl(const cli_t *cli, const tnk_promise_t *promise) {
  cli_json_t json;

  (void)promise;
  if (!cli->json) {
    if (args.remove)
      cli_note(cli, "Never expires: %s", cli->words[0]);
    else
      cli_note(cli, "Expires in %lld seconds: %s", (long long)args.ttl,
               cli->words[0]);
    return CLI_EXIT_OK;
  }
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, "tinker_path", cli->words[0]);
  cli_json_put_number(&json, "ttl_seconds", args.ttl, args.ttl > 0);
  return cli_json_end(&json, cli);
}

static const char *check_ttl(const cli_t *cli) {
  if ((args.ttl > 0) == args.remove)
    return "either --ttl or --remove";
  return cli_check_first_path(cli);
}

static int run_set_ttl(cli_t *cli) {
  return cli_ask_once(cli, ask_ttl, show_ttl);
}

static const cli_option_t ttl_options[] = {
    {.name = "ttl",
     .value = "SECONDS",
     .set = set_ttl,
     .help = "Time from now until it expires: one hour to ten years; also as "
             "12h, 30d or 4w."},
    {.name = "remove", .flag = &args.remove, .help = "It never expires."},
    {.name = NULL}};

static const cli_command_t set_ttl_command = {
    .name = "set-ttl",
    .brief = "set when a checkpoint expires",
    .about = "Set when a checkpoint expires. Needs --ttl or --remove.",
    .words = "PATH",
    .min_words = 1,
    .max_words = 1,
    .options = ttl_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check_ttl,
    .run = run_set_ttl,
};

/* ---- Copy ---- */

static char *token; /* from --token-file, without surrounding whitespace */

static int read_token(const cli_t *cli) {
  char why[512];
  size_t n;

  if (args.token_file == NULL)
    return CLI_EXIT_OK;
  token = cli_read_file(args.token_file, &n, why, sizeof(why));
  if (token == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  token[strcspn(token, "\r\n")] = '\0';
  return CLI_EXIT_OK;
}

static tnk_promise_t *ask_copy(tnk_service_t *service, const cli_t *cli) {
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;

  options.path = cli->words[0];
  options.project_id = args.project_id;
  options.ttl_seconds = args.ttl;
  options.weights_access_token = token;
  return tnk_rest_copy_weights(service, &options);
}

static int show_copy(const cli_t *cli, const tnk_promise_t *promise) {
  return cli_put_made(cli, tnk_promise_path(promise));
}

static int run_copy(cli_t *cli) {
  int status = read_token(cli);

  return status == CLI_EXIT_OK ? cli_ask_once(cli, ask_copy, show_copy)
                               : status;
}

static const cli_option_t copy_options[] = {
    {.name = "project-id",
     .value = "ID",
     .text = &args.project_id,
     .help = "Copy to this project (TINKER_PROJECT_ID)."},
    {.name = "ttl",
     .value = "SECONDS",
     .set = set_ttl,
     .help = "Time until the copy expires, as for set-ttl. Default: the copy "
             "does not expire, even if the original does."},
    {.name = "access-token-file",
     .value = "FILE",
     .text = &args.token_file,
     .offer = CLI_OFFER_FILES,
     .help = "File with the access token for another user's weights; - is "
             "standard input."},
    {.name = NULL}};

static const cli_command_t copy_command = {
    .name = "copy",
    .brief = "copy weights to a project",
    .about = "Copy weights to a project. The copy is in a new run that cannot "
             "be trained; no data is transferred. Prints the path of the copy.",
    .words = "PATH",
    .min_words = 1,
    .max_words = 1,
    .options = copy_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = cli_check_first_path,
    .run = run_copy,
};

/* ---- The group ---- */

static const cli_command_t *const commands[] = {&cli_checkpoint_list,
                                                &cli_checkpoint_info,
                                                &publish_command,
                                                &unpublish_command,
                                                &set_ttl_command,
                                                &copy_command,
                                                &cli_checkpoint_delete,
                                                &cli_checkpoint_download,
                                                &cli_checkpoint_save_external,
                                                &cli_checkpoint_push_hf,
                                                NULL};

const cli_command_t cli_checkpoint = {
    .name = "checkpoint",
    .brief = "checkpoints: list, set-ttl, copy, delete, download ...",
    .about = "Checkpoints. A PATH is tinker://RUN/KIND/NAME, as tnk checkpoint "
             "list prints it.",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = commands,
};
