/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <string.h>

#include "tools/common/frame/parts.h"

/* ---- Wrapping ---- */

enum { LAST_COLUMN = 79 };

/* Write `n` spaces. */
static void put_blanks(FILE *to, size_t n) {
  fprintf(to, "%*s", (int)n, "");
}

/* Leading spaces of a line are kept. */
static const char *skip_blanks(const char *text, size_t *n) {
  *n = strspn(text, " ");
  return text + *n;
}

/* Write text in lines of at most 79 columns, with `indent` spaces before each.
 * The first line begins at column `at`, after existing output. Newlines in the
 * text are kept. The output ends with a newline. */
static void wrap(FILE *to, const char *text, size_t indent, size_t at) {
  int is_first = 1; /* first word of its line */
  size_t more;

  /* The existing output leaves no gap, so begin on the next line. */
  if (at > 0 && at + 2 > indent) {
    fputc('\n', to);
    at = 0;
  }
  text = skip_blanks(text, &more);
  while (*text != '\0') {
    size_t n = strcspn(text, " \n");

    if (!is_first && at + 1 + n > LAST_COLUMN) {
      fputc('\n', to);
      at = 0;
      is_first = 1;
    }
    if (is_first && n > 0) {
      put_blanks(to, indent + more > at ? indent + more - at : 0);
      at = indent + more > at ? indent + more : at;
      is_first = 0;
    } else if (n > 0) {
      fputc(' ', to);
      at++;
    }
    fwrite(text, 1, n, to);
    at += n;
    text += n;
    if (*text == '\n') {
      fputc('\n', to);
      at = 0;
      is_first = 1;
      text = skip_blanks(text + 1, &more);
    } else if (*text == ' ') {
      text++;
    }
  }
  fputc('\n', to);
}

/* ---- Help ---- */

enum { TEXT_COLUMN = 26 };

void cli_option_head(char *out, size_t n, const cli_option_t *option) {
  char letter[8] = "";

  if (option->letter != 0)
    snprintf(letter, sizeof(letter), "-%c, ", option->letter);
  snprintf(out, n, "%s--%s%s%s", letter, option->name,
           option->value != NULL ? " " : "",
           option->value != NULL ? option->value : "");
}

static void put_item(FILE *to, const char *term, const char *text) {
  int n = fprintf(to, "  %s", term);

  wrap(to, text, TEXT_COLUMN, n < 0 ? 0 : (size_t)n);
}

static void put_usage(FILE *to, const cli_t *cli) {
  const cli_command_t *command = cli->command;

  fprintf(to, "usage: %s", cli->name);
  if (command->commands != NULL)
    fprintf(to, "%s", cli_command_word(command, cli->name));
  fprintf(to, " [OPTION]...");
  if (command->words != NULL)
    fprintf(to, " %s", command->words);
  fprintf(to, "\n\n");
}

/* Write all commands below a group; `name` is the path so far. */
static void put_commands(FILE *to, const cli_command_t *group,
                         const char *name) {
  const cli_command_t *command;

  for (size_t i = 0; (command = cli_command_at(group, i)) != NULL; i++) {
    char full[160];

    snprintf(full, sizeof(full), "%s %s", name, command->name);
    put_item(to, full, command->brief);
  }
}

static void put_sections(FILE *to, const cli_section_t *section) {
  for (; section != NULL && section->title != NULL; section++) {
    fprintf(to, "\n%s:\n", section->title);
    if (section->text != NULL)
      wrap(to, section->text, 2, 0);
    for (const cli_item_t *item = section->items;
         item != NULL && item->term != NULL; item++)
      put_item(to, item->term, item->text);
  }
}

static void put_examples(FILE *to, const cli_item_t *example) {
  if (example == NULL)
    return;
  fprintf(to, "\nExamples:\n");
  for (; example->term != NULL; example++) {
    fprintf(to, "  %s\n", example->term);
    wrap(to, example->text, 6, 0);
  }
}

static void put_exits(FILE *to, const cli_command_t *command) {
  const char *text;
  unsigned i = 0;
  int status;

  fprintf(to, "\nExit status:\n");
  while ((text = cli_exit_at(command, &i, &status)) != NULL) {
    char term[16];

    snprintf(term, sizeof(term), "%d", status);
    put_item(to, term, text);
  }
}

void cli_print_help(FILE *to, const cli_t *cli) {
  const cli_command_t *command = cli->command;
  const cli_option_t *option;
  char about[256];
  char head[80];

  put_usage(to, cli);
  wrap(to, cli_about(command, about, sizeof(about)), 0, 0);
  if (command->commands != NULL) {
    fprintf(to, "\nCommands:\n");
    put_commands(to, command, cli->name);
  }
  fprintf(to, "\nOptions:\n");
  for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
    cli_option_head(head, sizeof(head), option);
    put_item(to, head, option->help);
  }
  put_sections(to, command->sections);
  put_examples(to, command->examples);
  put_exits(to, command);
}
