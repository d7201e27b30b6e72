#ifndef TNK_TOOLS_COMMON_BASE_TERMINAL_H
#define TNK_TOOLS_COMMON_BASE_TERMINAL_H

#include <stdio.h>

/* When colours are shown. */
typedef enum {
  CLI_COLOR_AUTO = 0, /* by NO_COLOR and FORCE_COLOR, else on a terminal */
  CLI_COLOR_ALWAYS,
  CLI_COLOR_NEVER
} cli_color_t;

/* Whether a person sits behind the file. A terminal that can only print
 * (TERM=dumb) still is one. */
int cli_is_terminal(FILE *file);
/* Whether lines can be written over there. */
int cli_can_rewrite(FILE *file);
/* How wide its terminal is; 80 where that is not known. */
size_t cli_columns(FILE *file);
int cli_has_color(FILE *file, cli_color_t when);

#endif
