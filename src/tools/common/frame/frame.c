/* SPDX-License-Identifier: MIT */
#include "tools/common/frame/frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/frame/parts.h"

/* ---- Completion ---- */

/*
 * Completion scripts. Each script determines the command of a line with a list
 * of all commands. It suggests values from the tables of that command.
 */

typedef enum { CLI_BASH = 0, CLI_ZSH, CLI_FISH } shell_t;

enum { MAX_NAME = 80 };

/* Visits all commands. */
typedef void (*visit_t)(const cli_command_t *command, const char *name);

static void visit_all(const cli_command_t *command, const char *name,
                      visit_t visit) {
  const cli_command_t *child;

  visit(command, name);
  for (size_t i = 0; (child = cli_command_at(command, i)) != NULL; i++) {
    char full[2 * MAX_NAME];

    snprintf(full, sizeof(full), "%.80s %.70s", name, child->name);
    visit_all(child, full, visit);
  }
}

/* Write the first sentence without its period, for use in single quotes. zsh
 * ends the name at the first colon, so a colon in the text is harmless. */
static void put_brief(const char *text) {
  enum { MOST = 70 };
  size_t n = strcspn(text, ".;\n");

  if (n > MOST)
    for (n = MOST; n > 0 && text[n] != ' ';)
      n--;
  for (size_t i = 0; i < n; i++)
    if (text[i] == '\'')
      printf("'\\''");
    else
      putchar(text[i]);
}

static void put_choices(const cli_option_t *option) {
  for (size_t i = 0; option->choices[i] != NULL; i++)
    printf("%s%s", i > 0 ? " " : "", option->choices[i]);
}

/* Alternatives of a pattern, all except the root. */
static int n_names;

static void put_name(const cli_command_t *command, const char *name) {
  if (strchr(name, ' ') != NULL)
    printf("%s'%s'", n_names++ > 0 ? " | " : "", name);
  (void)command;
}

static void put_names(const cli_command_t *root) {
  n_names = 0;
  visit_all(root, root->name, put_name);
}

/* ---- Completion: bash ---- */

/* Write the values of an option. */
static void put_bash_values(const cli_command_t *command, const char *name) {
  const cli_option_t *option;

  for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
    if (option->value == NULL)
      continue;
    printf("    '%s --%s'", name, option->name);
    if (option->letter != 0)
      printf(" | '%s -%c'", name, option->letter);
    printf(") ");
    if (option->choices != NULL) {
      printf("COMPREPLY=($(compgen -W '");
      put_choices(option);
      printf("' -- \"$cur\"))");
    } else if (option->offer == CLI_OFFER_FILES) {
      printf("COMPREPLY=($(compgen -f -- \"$cur\"))");
    } else if (option->offer == CLI_OFFER_FOLDERS) {
      printf("COMPREPLY=($(compgen -d -- \"$cur\"))");
    }
    if (option->choices != NULL || option->offer != CLI_OFFER_NOTHING)
      printf("; ");
    printf("return ;;\n");
  }
}

static void put_bash_words(const cli_command_t *command, const char *name) {
  const cli_command_t *child;
  const cli_option_t *option;

  printf("    '%s')\n      words='", name);
  for (size_t i = 0; (child = cli_command_at(command, i)) != NULL; i++)
    printf("%s ", child->name);
  for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++)
    printf("--%s ", option->name);
  printf("'\n      files=%d ;;\n", command->offer != CLI_OFFER_NOTHING);
}

static void print_bash(const cli_command_t *root) {
  printf(
      "# Completion of tnk for bash, made by: tnk completion bash\n"
      "_tnk() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" where=tnk words= files=0 i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$where ${COMP_WORDS[i]}\" in\n"
      "      ");
  put_names(root);
  printf(") where=\"$where ${COMP_WORDS[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$where ${COMP_WORDS[COMP_CWORD - 1]}\" in\n");
  visit_all(root, root->name, put_bash_values);
  printf("  esac\n"
         "  case \"$where\" in\n");
  visit_all(root, root->name, put_bash_words);
  printf("  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  if [ \"$files\" = 1 ]; then\n"
         "    COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _tnk tnk\n");
}

/* ---- Completion: zsh ---- */

static void put_zsh_values(const cli_command_t *command, const char *name) {
  const cli_option_t *option;

  for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
    if (option->value == NULL)
      continue;
    printf("    ('%s --%s'", name, option->name);
    if (option->letter != 0)
      printf(" | '%s -%c'", name, option->letter);
    printf(") ");
    if (option->choices != NULL) {
      printf("compadd -- ");
      put_choices(option);
    } else if (option->offer == CLI_OFFER_NOTHING) {
      printf("_message '%s'", option->value);
    } else {
      printf("_files%s", option->offer == CLI_OFFER_FOLDERS ? " -/" : "");
    }
    printf("; return ;;\n");
  }
}

static void put_zsh_words(const cli_command_t *command, const char *name) {
  const cli_command_t *child;
  const cli_option_t *option;

  printf("    ('%s')\n      list=(\n", name);
  for (size_t i = 0; (child = cli_command_at(command, i)) != NULL; i++) {
    printf("        '%s:", child->name);
    put_brief(child->brief);
    printf("'\n");
  }
  for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
    printf("        '--%s:", option->name);
    put_brief(option->help);
    printf("'\n");
  }
  printf("      )\n      files=%d ;;\n", command->offer != CLI_OFFER_NOTHING);
}

static void print_zsh(const cli_command_t *root) {
  printf("#compdef tnk\n"
         "# Completion of tnk for zsh, made by: tnk completion zsh\n"
         "_tnk() {\n"
         "  local where=tnk i files=0\n"
         "  local -a list\n"
         "  for ((i = 2; i < CURRENT; i++)); do\n"
         "    case \"$where $words[i]\" in\n"
         "      (");
  put_names(root);
  printf(") where=\"$where $words[i]\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$where $words[CURRENT-1]\" in\n");
  visit_all(root, root->name, put_zsh_values);
  printf("  esac\n"
         "  case \"$where\" in\n");
  visit_all(root, root->name, put_zsh_words);
  printf("  esac\n"
         "  _describe -t words tnk list\n"
         "  (( files )) && _files\n"
         "}\n"
         "_tnk \"$@\"\n");
}

/* ---- Completion: fish ---- */

static void put_fish(const cli_command_t *command, const char *name) {
  const cli_command_t *child;
  const cli_option_t *option;

  if (command->offer == CLI_OFFER_NOTHING)
    printf("complete -c tnk -n '__tnk_at %s' -f\n", name);
  for (size_t i = 0; (child = cli_command_at(command, i)) != NULL; i++) {
    printf("complete -c tnk -n '__tnk_at %s' -a %s -d '", name, child->name);
    put_brief(child->brief);
    printf("'\n");
  }
  for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
    printf("complete -c tnk -n '__tnk_at %s' -l %s", name, option->name);
    if (option->letter != 0)
      printf(" -s %c", option->letter);
    if (option->choices != NULL) {
      printf(" -x -a '");
      put_choices(option);
      printf("'");
    } else if (option->value != NULL) {
      printf("%s", option->offer == CLI_OFFER_NOTHING ? " -x" : " -r -F");
    }
    printf(" -d '");
    put_brief(option->help);
    printf("'\n");
  }
}

static void put_fish_name(const cli_command_t *command, const char *name) {
  (void)command;
  if (strchr(name, ' ') != NULL)
    printf(" '%s'", name);
}

static void print_fish(const cli_command_t *root) {
  printf("# Completion of tnk for fish, made by: tnk completion fish\n"
         "function __tnk_at\n"
         "  set -l where tnk\n"
         "  set -l words (commandline -opc)\n"
         "  for word in $words[2..-1]\n"
         "    switch \"$where $word\"\n"
         "      case");
  visit_all(root, root->name, put_fish_name);
  printf("\n"
         "        set where \"$where $word\"\n"
         "    end\n"
         "  end\n"
         "  test \"$where\" = \"$argv\"\n"
         "end\n");
  visit_all(root, root->name, put_fish);
}

/* Print the completion script for all commands below `root`. */
static void print_completion(const cli_command_t *root, shell_t shell) {
  if (shell == CLI_BASH)
    print_bash(root);
  else if (shell == CLI_ZSH)
    print_zsh(root);
  else
    print_fish(root);
}

/* ---- The program ---- */

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

/* ---- The program: tnk help ---- */

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
    .options = help_options,
    .run = help_of_words,
};

/* ---- The program: tnk completion ---- */

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
  print_completion(cli->root, (shell_t)find_shell(cli->words[0]));
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
    .examples = completion_examples,
    .check = check_shell,
    .run = run_completion,
};

/* ---- The program: all ---- */

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
