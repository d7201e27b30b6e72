/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_BASE_TERMINAL_H
#define TNK_TOOLS_COMMON_BASE_TERMINAL_H

#include <stdio.h>

/* When to use colors. */
typedef enum {
  CLI_COLOR_AUTO = 0, /* by NO_COLOR and FORCE_COLOR, else on a terminal */
  CLI_COLOR_ALWAYS,
  CLI_COLOR_NEVER
} cli_color_t;

/* Whether the file is a terminal. A terminal that cannot move the cursor
 * (TERM=dumb) counts too. */
int cli_is_terminal(FILE *file);
/* Whether the terminal can overwrite a line. */
int cli_can_rewrite(FILE *file);
/* Width of the terminal; 80 if it is unknown. */
size_t cli_columns(FILE *file);
int cli_has_color(FILE *file, cli_color_t when);

#endif
