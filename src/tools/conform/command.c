/* SPDX-License-Identifier: MIT */
/* The command line of tnk conform. */
#include <stdio.h>

#include "tools/common/frame/cli.h"
#include "tools/common/frame/commands.h"
#include "tools/conform/conform.h"

enum { MAX_S = 3600 };

static conform_options_t options;
static int64_t answer_s;
static int64_t result_s;

static int run(cli_t *cli) {
  char why[CONFORM_MAX_WHY] = "";
  int status;

  options.url = cli->n_words > 0 ? cli->words[0] : cli->base_url;
  options.json = cli->json;
  options.timeout_ms = (uint64_t)answer_s * 1000;
  options.patience_ms = (uint64_t)result_s * 1000;
  status = conform_run(&options, stdout, why, sizeof(why));
  return why[0] != '\0' ? cli_fail(cli, status, "%s", why) : status;
}

static const cli_option_t rows[] = {
    {.name = "spend",
     .flag = &options.spend,
     .help = "Also train, sample and save, with a few tokens each."},
    {.name = "model",
     .value = "NAME",
     .text = &options.model,
     .help = "Base model for --spend (the first that is offered)."},
    {.name = "rules",
     .value = "LIST",
     .text = &options.only,
     .help = "Check only these rules, such as http-2,seq-*. What they need is "
             "still created."},
    {.name = "answer-timeout",
     .value = "SECONDS",
     .number = &answer_s,
     .min = 1,
     .max = MAX_S,
     .help = "Time limit of a response (30; 45 for a long poll)."},
    {.name = "result-timeout",
     .value = "SECONDS",
     .number = &result_s,
     .min = 1,
     .max = MAX_S,
     .help = "Time limit of a result (120)."},
    {.name = "list",
     .flag = &options.list,
     .help = "List the rules. Sends nothing."},
    {.name = NULL}};

static const cli_item_t verdicts[] = {
    {"holds", "the server follows the rule"},
    {"allowed", "it differs like other servers, and clients tolerate it"},
    {"DIFFERS", "it differs in a way that clients do not expect"},
    {"absent", "it does not offer an optional feature"},
    {"skipped", "the rule was not tried, for the given reason"},
    {NULL, NULL}};

static const cli_section_t sections[] = {
    {"Verdicts", "The verdict on a server for each rule:", verdicts},
    {NULL, NULL, NULL}};

static const cli_item_t examples[] = {
    {"tnk conform http://127.0.0.1:8000",
     "check everything that costs nothing"},
    {"tnk conform --spend --rules 'seq-*,poll-*'",
     "check sequence numbers and polls of TINKER_BASE_URL"},
    {NULL, NULL}};

const cli_command_t cli_conform = {
    .name = "conform",
    .brief = "check a server against the protocol",
    .about = "Check a server against each rule of the protocol. Each request "
             "is sent once. URL defaults to TINKER_BASE_URL; the key is "
             "TINKER_API_KEY. Without --spend nothing is trained, sampled or "
             "stored. Everything that was created is removed at the end.",
    .words = "[URL]",
    .options = rows,
    .sections = sections,
    .examples = examples,
    .failed = "A rule differs, or could not be tried because what it "
              "needs is missing.",
    .has = CLI_HAS_JSON,
    .run = run,
};
