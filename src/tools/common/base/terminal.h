/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_BASE_TERMINAL_H
#define TNK_TOOLS_COMMON_BASE_TERMINAL_H
#include <stddef.h>
#include <stdio.h>

/* The cases in which to use colors. */
typedef enum {
  CLI_COLOR_AUTO = 0, /* by NO_COLOR and FORCE_COLOR, else on a terminal */
  CLI_COLOR_ALWAYS,
  CLI_COLOR_NEVER
} cli_color_t;

/* Returns whether the file is a terminal. A terminal that cannot move the
 * cursor (TERM=dumb) counts too. */
int cli_is_terminal(FILE *file);
/* Returns whether the terminal can overwrite a line. */
int cli_can_rewrite(FILE *file);
/* Returns whether the locale's strings are UTF-8, by LC_ALL, LC_CTYPE and LANG.
 * A locale that is not installed counts too, because the terminal decides. */
int cli_is_utf8(void);
/* Width of the terminal; 80 if it is unknown. */
size_t cli_columns(FILE *file);
int cli_has_color(FILE *file, cli_color_t when);

/* ---- Strings from other sources ---- */

/*
 * Sanitizes strings from other sources before they are shown. Characters that
 * control a terminal, or that disguise other text, are replaced.
 */

/* Returns whether a character must not reach a terminal: control characters,
 * also of C1, and characters that change the text direction. */
int cli_is_harmful(unsigned long code);
/* Decode the UTF-8 character at `text` and advance past it. */
unsigned long cli_next_char(const char **text);
/* Replace harmful characters by spaces, and invalid UTF-8 by '?'. */
void cli_clean(char *text);
/* Write a string. For a terminal, harmful characters are replaced, and invalid
 * UTF-8 becomes '?'. For a file or a program the bytes are unchanged. */
void cli_put_shown(FILE *to, const char *text, size_t n);
/* Cut a sanitized string to this many columns. */
void cli_cut(char *text, size_t columns);
/* Number of columns of a sanitized string on a terminal. */
size_t cli_width(const char *text);

#endif
