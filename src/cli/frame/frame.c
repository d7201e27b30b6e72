#include "cli/frame/frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/frame/common.h"
#include "cli/frame/help.h"
#include "cli/frame/parse.h"

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

int cli_help_of_words(cli_t *cli) {
  char why[256];

  if (cli_enter_all(cli, why, sizeof(why)) != 0)
    return fail_usage(cli, why);
  cli_print_help(stdout, cli);
  return CLI_EXIT_OK;
}

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
  /* A disk may be full; nobody may take what is cut for the whole. */
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  /* A reader that has seen enough, as head(1), wants no words. */
  if (errno == EPIPE)
    return CLI_EXIT_PIPE;
  fprintf(stderr, "%s: cannot write the output\n", cli->name);
  return status != CLI_EXIT_OK ? status : CLI_EXIT_FILE;
}
