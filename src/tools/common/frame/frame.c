#include "tools/common/frame/frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/frame/common.h"
#include "tools/common/frame/complete.h"
#include "tools/common/frame/help.h"
#include "tools/common/frame/manual.h"
#include "tools/common/frame/parse.h"

static int fail_usage(const cli_t *cli, const char *why) {
  char hint[128];

  snprintf(hint, sizeof(hint), "Try %s --help.", cli->name);
  return cli_report(
      cli,
      &(cli_problem_t){.status = CLI_EXIT_USAGE, .message = why, .hint = hint});
}

int cli_ask_for_more(const cli_t *cli) {
  if (cli->json)
    return fail_usage(cli, "a command is missing");
  cli_print_help(stderr, cli);
  return CLI_EXIT_USAGE;
}

/* ---- tnk help ---- */

static const char *man_folder; /* argument of --man-pages */

static int help_of_words(cli_t *cli) {
  char why[256];

  if (man_folder != NULL)
    return cli_write_manual(cli, man_folder);
  if (cli_enter_all(cli, why, sizeof(why)) != 0)
    return fail_usage(cli, why);
  cli_print_help(stdout, cli);
  return CLI_EXIT_OK;
}

static const cli_option_t help_options[] = {
    {.name = "man-pages",
     .value = "DIR",
     .text = &man_folder,
     .offer = CLI_OFFER_FOLDERS,
     .help = "Write the man pages of all commands to this folder instead."},
    {.name = NULL}};

const cli_command_t cli_help = {
    .name = "help",
    .brief = "show the help of a command",
    .words = "[COMMAND]...",
    .max_words = SIZE_MAX,
    .options = help_options,
    .run = help_of_words,
};

/* ---- tnk completion ---- */

static const char *const shells[] = {
    [CLI_BASH] = "bash", [CLI_ZSH] = "zsh", [CLI_FISH] = "fish"};
enum { N_SHELLS = sizeof(shells) / sizeof(*shells) };

static int find_shell(const char *name) {
  for (int i = 0; i < N_SHELLS; i++)
    if (strcmp(shells[i], name) == 0)
      return i;
  return -1;
}

static int run_completion(cli_t *cli) {
  cli_print_completion(cli->root, (cli_shell_t)find_shell(cli->words[0]));
  return CLI_EXIT_OK;
}

static const char *check_shell(const cli_t *cli) {
  return find_shell(cli->words[0]) < 0 ? "SHELL is bash, zsh or fish" : NULL;
}

static const cli_item_t completion_examples[] = {
    {"source <(tnk completion bash)", "In a running bash."},
    {"tnk completion zsh >~/.zfunc/_tnk",
     "For zsh, where ~/.zfunc is in fpath."},
    {"tnk completion fish | source", "In a running fish."},
    {NULL, NULL}};

const cli_command_t cli_completion = {
    .name = "completion",
    .brief = "print a completion script for a shell",
    .about = "Print what completes commands and options in bash, zsh or fish. "
             "Where tnk is installed the shells find it by themselves.",
    .words = "SHELL",
    .min_words = 1,
    .max_words = 1,
    .examples = completion_examples,
    .check = check_shell,
    .run = run_completion,
};

/* ---- All ---- */

static int run(cli_t *cli, int argc, char **argv) {
  char why[1024];

  if (cli_parse(cli, argc, argv, why, sizeof(why)) != 0)
    return fail_usage(cli, why);
  if (cli->help) {
    cli_print_help(stdout, cli);
    return CLI_EXIT_OK;
  }
  return cli->command->run != NULL ? cli->command->run(cli)
                                   : cli_ask_for_more(cli);
}

int cli_main(const cli_command_t *root, int argc, char **argv) {
  cli_t *cli = cli_common();
  int status;

  cli->root = root;
  errno = 0;
  status = run(cli, argc, argv);
  /* If the disk is full, the truncated output must not look complete. */
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  /* A closed pipe, for example to head(1), is not reported. */
  if (errno == EPIPE)
    return CLI_EXIT_PIPE;
  fprintf(stderr, "%s: cannot write the output\n", cli->name);
  return status != CLI_EXIT_OK ? status : CLI_EXIT_FILE;
}
