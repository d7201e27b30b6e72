/* Man pages, in the classic macros. */
#include "cli/frame/manual.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/frame/help.h"
#include "tnk/version.h"

/* ---- Text ---- */

/* Write a line so that it means itself. */
static void put_line(FILE *to, const char *text, size_t n) {
  if (n > 0 && (*text == '.' || *text == '\''))
    fputs("\\&", to);
  for (size_t i = 0; i < n; i++)
    if (text[i] == '\\')
      fputs("\\e", to);
    else if (text[i] == '-')
      fputs("\\-", to);
    else
      fputc(text[i], to);
  fputc('\n', to);
}

/* Lines that begin with blanks stay as they are; an empty one begins a
 * paragraph. */
static void put_text(FILE *to, const char *text) {
  int is_raw = 0;

  for (;;) {
    size_t n = strcspn(text, "\n");

    if (is_raw != (*text == ' ')) {
      is_raw = *text == ' ';
      fputs(is_raw ? ".nf\n" : ".fi\n", to);
    }
    if (n > 0)
      put_line(to, text, n);
    else
      fputs(".PP\n", to);
    if (text[n] == '\0')
      break;
    text += n + 1;
  }
  if (is_raw)
    fputs(".fi\n", to);
}

static void put_item(FILE *to, const char *term, const char *text) {
  fputs(".TP\n.B ", to);
  put_line(to, term, strlen(term));
  put_text(to, text);
}

/* ---- Chapters ---- */

static void put_synopsis(FILE *to, const cli_command_t *command,
                         const char *name) {
  char text[256];

  snprintf(text, sizeof(text), "%.80s%s [OPTION]...%s%.100s", name,
           command->commands != NULL ? " COMMAND" : "",
           command->words != NULL ? " " : "",
           command->words != NULL ? command->words : "");
  put_line(to, text, strlen(text));
}

/* Its own, or those that it shares with others. */
static void put_options(FILE *to, const cli_command_t *command, int is_own) {
  const cli_option_t *option;
  size_t n_own = 0;
  char head[80];

  while (command->options != NULL && command->options[n_own].name != NULL)
    n_own++;
  for (size_t i = is_own ? 0 : n_own;
       (option = cli_option_at(command, i)) != NULL && (!is_own || i < n_own);
       i++) {
    cli_option_head(head, sizeof(head), option);
    put_item(to, head, option->help);
  }
}

static void put_about(FILE *to, const cli_command_t *command) {
  char text[256];

  if (command->about != NULL) {
    put_text(to, command->about);
    return;
  }
  snprintf(text, sizeof(text), "%.200s.", command->brief);
  if (text[0] >= 'a' && text[0] <= 'z')
    text[0] = (char)(text[0] - 'a' + 'A');
  put_text(to, text);
}

static void put_examples(FILE *to, const cli_command_t *command) {
  for (const cli_item_t *example = command->examples;
       example != NULL && example->term != NULL; example++)
    put_item(to, example->term, example->text);
}

/* The commands of a group, each with its options, or the names of those that
 * have pages of their own. */
static void put_commands(FILE *to, const cli_command_t *group, const char *name,
                         int is_root) {
  const cli_command_t *command;

  fputs(".SH COMMANDS\n", to);
  for (size_t i = 0; (command = cli_command_at(group, i)) != NULL; i++) {
    char full[160];

    snprintf(full, sizeof(full), "%.70s %.70s", name, command->name);
    if (is_root) {
      put_item(to, full, command->brief);
      continue;
    }
    fputs(".SS ", to);
    put_synopsis(to, command, full);
    put_about(to, command);
    put_options(to, command, 1);
    put_examples(to, command);
  }
}

static void put_sections(FILE *to, const cli_section_t *section) {
  for (; section != NULL && section->title != NULL; section++) {
    fputs(".SH ", to);
    for (const char *at = section->title; *at != '\0'; at++)
      fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, to);
    fputc('\n', to);
    if (section->text != NULL)
      put_text(to, section->text);
    for (const cli_item_t *item = section->items;
         item != NULL && item->term != NULL; item++)
      put_item(to, item->term, item->text);
  }
}

static void put_exits(FILE *to, const cli_command_t *command) {
  const char *text;
  int status;

  fputs(".SH EXIT STATUS\n", to);
  for (unsigned i = 0; (text = cli_exit_text(i, &status)) != NULL; i++) {
    char term[16];

    snprintf(term, sizeof(term), "%d", status);
    put_item(to, term,
             status == CLI_EXIT_FAILED && command->failed != NULL
                 ? command->failed
                 : text);
  }
}

/* ---- Pages ---- */

static void put_see_also(FILE *to, const cli_command_t *root, int is_root) {
  const cli_command_t *command;

  fputs(".SH SEE ALSO\n", to);
  if (!is_root) {
    fputs(".BR tnk (1)\n", to);
    return;
  }
  for (size_t i = 0; (command = cli_command_at(root, i)) != NULL; i++)
    fprintf(to, ".BR tnk\\-%s (1)%s\n", command->name,
            cli_command_at(root, i + 1) != NULL ? "," : "");
}

static void put_page(FILE *to, const cli_command_t *root,
                     const cli_command_t *command, const char *name) {
  int is_root = command == root;

  fprintf(to, ".\\\" Generated by tnk help --man-pages.\n.TH \"TNK%s",
          is_root ? "" : "\\-");
  for (const char *at = is_root ? "" : command->name; *at != '\0'; at++)
    fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, to);
  fprintf(to, "\" 1 \"\" \"tnk %s\" \"tnk\"\n.SH NAME\ntnk%s%s \\- %s\n",
          TNK_VERSION_STRING, is_root ? "" : "\\-",
          is_root ? "" : command->name, command->brief);
  fputs(".SH SYNOPSIS\n.B ", to);
  put_synopsis(to, command, name);
  fputs(".SH DESCRIPTION\n", to);
  put_about(to, command);
  if (command->commands != NULL)
    put_commands(to, command, name, is_root);
  fputs(".SH OPTIONS\n", to);
  put_options(to, command, 1);
  put_options(to, command, 0);
  put_sections(to, command->sections);
  if (command->examples != NULL) {
    fputs(".SH EXAMPLES\n", to);
    put_examples(to, command);
  }
  put_exits(to, command);
  put_see_also(to, root, is_root);
}

static int write_page(const cli_t *cli, const char *folder,
                      const cli_command_t *command, const char *name) {
  char path[4096];
  int is_bad;
  FILE *to;

  snprintf(path, sizeof(path), "%.3900s/tnk%s%.100s.1", folder,
           command == cli->root ? "" : "-",
           command == cli->root ? "" : command->name);
  to = fopen(path, "w");
  if (to == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
  put_page(to, cli->root, command, name);
  is_bad = ferror(to);
  return fclose(to) == 0 && !is_bad
             ? CLI_EXIT_OK
             : cli_fail(cli, CLI_EXIT_FILE, "%s cannot be written", path);
}

int cli_write_manual(const cli_t *cli, const char *folder) {
  const cli_command_t *root = cli->root;
  const cli_command_t *command;
  int status = write_page(cli, folder, root, root->name);

  for (size_t i = 0;
       status == CLI_EXIT_OK && (command = cli_command_at(root, i)) != NULL;
       i++) {
    char name[160];

    snprintf(name, sizeof(name), "%.70s %.70s", root->name, command->name);
    status = write_page(cli, folder, command, name);
  }
  return status;
}
