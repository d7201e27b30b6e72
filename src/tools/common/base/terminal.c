/* SPDX-License-Identifier: MIT */
#include "tools/common/base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int cli_is_terminal(FILE *file) {
  return isatty(fileno(file));
}

size_t cli_columns(FILE *file) {
  struct winsize size;

  return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0
             ? size.ws_col
             : 80;
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
