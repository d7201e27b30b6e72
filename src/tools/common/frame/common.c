/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tools/common/frame/parts.h"

static cli_t cli = {.retries = -1};

static const char *const formats[] = {"table", "json", NULL};
static const char *const colors[] = {[CLI_COLOR_AUTO] = "auto",
                                     [CLI_COLOR_ALWAYS] = "always",
                                     [CLI_COLOR_NEVER] = "never",
                                     NULL};

/* Compatible with the official command, which its users know. */
static int set_format(const cli_option_t *option, const char *value, char *why,
                      size_t n_why);

typedef struct {
  unsigned needs;
  cli_option_t option;
} row_t;

static const row_t rows[] = {
    {CLI_HAS_JSON,
     {.name = "json",
      .flag = &cli.json,
      .help = "Print one JSON document, {\"error\": ...} after a failure. "
              "Never asks."}},
    {CLI_HAS_JSON,
     {.name = "format",
      .letter = 'f',
      .value = "table|json",
      .set = set_format,
      .choices = formats,
      .help = "Output format: table (default) or json."}},
    {CLI_HAS_SERVICE,
     {.name = "base-url",
      .value = "URL",
      .text = &cli.base_url,
      .help = "URL of the service. Default: TINKER_BASE_URL."}},
    {CLI_HAS_SERVICE,
     {.name = "timeout",
      .value = "SECONDS",
      .number = &cli.timeout_s,
      .max = 31536000,
      .help = "Time limit. 0 means no limit (0)."}},
    {CLI_HAS_SERVICE,
     {.name = "retries",
      .value = "N",
      .number = &cli.retries,
      .max = 1000000,
      .help = "Maximum number of retries of a request (10)."}},
    {CLI_HAS_SERVICE,
     {.name = "verbose",
      .letter = 'v',
      .flag = &cli.verbose,
      .help = "Log each request to standard error."}},
    {0,
     {.name = "quiet",
      .letter = 'q',
      .flag = &cli.quiet,
      .help = "Print no notes and no progress."}},
    {0,
     {.name = "color",
      .value = "WHEN",
      .choice = &cli.color,
      .choices = colors,
      .help = "Colors: always, never, or auto (default: on a terminal, unless "
              "NO_COLOR or FORCE_COLOR is set)."}},
    {0,
     {.name = "help",
      .letter = 'h',
      .flag = &cli.help,
      .help = "Show this help."}},
};

static int set_format(const cli_option_t *option, const char *value, char *why,
                      size_t n_why) {
  (void)option;
  for (int format = 0; formats[format] != NULL; format++)
    if (strcmp(formats[format], value) == 0) {
      cli.json = format;
      return 0;
    }
  snprintf(why, n_why, "must be table or json");
  return -1;
}

cli_t *cli_common(void) {
  return &cli;
}

const cli_option_t *cli_common_at(size_t i, unsigned *needs) {
  if (i >= sizeof(rows) / sizeof(*rows))
    return NULL;
  *needs = rows[i].needs;
  return &rows[i].option;
}

const cli_command_t *cli_command_at(const cli_command_t *group, size_t i) {
  return group->commands != NULL ? group->commands[i] : NULL;
}

const cli_option_t *cli_option_at(const cli_command_t *command, size_t i) {
  size_t n = 0;

  for (const cli_option_t *own = command->options;
       own != NULL && own->name != NULL; own++)
    if (n++ == i)
      return own;
  for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++)
    /* A group accepts the options of all of its commands. */
    if (rows[k].needs == 0 || (rows[k].needs & command->has) != 0)
      if (n++ == i)
        return &rows[k].option;
  return NULL;
}

const char *cli_about(const cli_command_t *command, char *text, size_t n) {
  if (command->about != NULL)
    return command->about;
  snprintf(text, n, "%s.", command->brief);
  if (text[0] >= 'a' && text[0] <= 'z')
    text[0] = (char)(text[0] - 'a' + 'A');
  return text;
}

/* The root runs only for --version. */
const char *cli_command_word(const cli_command_t *group, const char *name) {
  return group->run != NULL && strchr(name, ' ') != NULL ? " [COMMAND]"
                                                         : " COMMAND";
}

static int may_end_with(const cli_command_t *command, int status) {
  return !command->is_server ||
         (status != CLI_EXIT_INTERRUPT && status != CLI_EXIT_TERMINATE);
}

const char *cli_exit_at(const cli_command_t *command, unsigned *i,
                        int *status) {
  const char *text = cli_exit_text((*i)++, status);

  while (text != NULL && !may_end_with(command, *status))
    text = cli_exit_text((*i)++, status);
  return text != NULL && *status == CLI_EXIT_FAILED && command->failed != NULL
             ? command->failed
             : text;
}
