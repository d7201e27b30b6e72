/* SPDX-License-Identifier: MIT */
/* The command around cli_lint_stream(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/data/check.h"
#include "tools/common/frame/cli.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/text/lint.h"

static cli_lint_options_t args;

/* Print a note for an unknown loss, because a misspelled loss would pass every
 * check. */
static void note_loss(const cli_t *cli) {
  if (args.loss != NULL && !tnk__loss_is_known(args.loss))
    cli_note(cli, "%s: loss \"%.64s\" is unknown: only the form was checked",
             cli->name, args.loss);
}

/* With --json nothing is printed before all input is read, so that a failure
 * leaves no partial document. */
static int check(FILE *in, char *why, size_t n_why) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = args.json ? open_memstream(&text, &n) : stdout;
  int found;

  if (out == NULL) {
    snprintf(why, n_why, "%s", strerror(errno));
    return -1;
  }
  found = cli_lint_stream(&args, in, out, why, n_why);
  if (!args.json)
    return found;
  if (fclose(out) != 0 && found >= 0) {
    snprintf(why, n_why, "out of memory");
    found = -1;
  }
  if (found >= 0)
    fwrite(text, 1, n, stdout);
  free(text);
  return found;
}

static int run_lint(cli_t *cli) {
  int is_stdin = strcmp(cli->words[0], "-") == 0;
  FILE *in = is_stdin ? stdin : fopen(cli->words[0], "r");
  char why[512];
  int found;

  args.file = cli->words[0];
  args.json = cli->json;
  if (in == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", args.file, strerror(errno));
  note_loss(cli);
  found = check(in, why, sizeof(why));
  if (!is_stdin)
    fclose(in);
  if (found < 0)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  return found == 0 ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

static const cli_option_t options[] = {
    {.name = "loss",
     .value = "NAME",
     .text = &args.loss,
     .help = "Loss for the data, such as cross_entropy. Without it only the "
             "form is checked."},
    {.name = NULL}};

const cli_command_t cli_lint = {
    .name = "lint",
    .brief = "check training data, without sending it",
    .about = "Check training data without sending it: one example a line, as\n"
             "  {\"model_input\": {\"chunks\": [{\"type\": \"encoded_text\", "
             "\"tokens\": [1, 2]}]},\n"
             "   \"loss_fn_inputs\": {\"target_tokens\": {\"data\": [2, 3], "
             "\"dtype\": \"int64\"}}}\n"
             "FILE - is the standard input; empty lines are skipped.",
    .words = "FILE",
    .offer = CLI_OFFER_FILES,
    .options = options,
    .failed = "Something is wrong with the data.",
    .has = CLI_HAS_JSON,
    .run = run_lint,
};
