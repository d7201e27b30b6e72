#include "cli/base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_is_terminal(FILE *file) {
  return isatty(fileno(file));
}

static int is_set(const char *name) {
  const char *value = getenv(name);

  return value != NULL && value[0] != '\0';
}

int cli_can_rewrite(FILE *file) {
  const char *term = getenv("TERM");

  return cli_is_terminal(file) && (term == NULL || strcmp(term, "dumb") != 0);
}

int cli_has_color(FILE *file, cli_color_t when) {
  if (when != CLI_COLOR_AUTO)
    return when == CLI_COLOR_ALWAYS;
  if (is_set("NO_COLOR"))
    return 0;
  return is_set("FORCE_COLOR") || cli_can_rewrite(file);
}
