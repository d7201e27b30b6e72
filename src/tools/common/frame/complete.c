/*
 * Completion scripts. Each script determines the command of a line with a list
 * of all commands. It suggests values from the tables of that command.
 */
#include "tools/common/frame/complete.h"

#include <stdio.h>
#include <string.h>

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

/* ---- bash ---- */

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

/* ---- zsh ---- */

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

/* ---- fish ---- */

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

void cli_print_completion(const cli_command_t *root, cli_shell_t shell) {
  if (shell == CLI_BASH)
    print_bash(root);
  else if (shell == CLI_ZSH)
    print_zsh(root);
  else
    print_fish(root);
}
