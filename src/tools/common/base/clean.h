#ifndef TNK_TOOLS_COMMON_BASE_CLEAN_H
#define TNK_TOOLS_COMMON_BASE_CLEAN_H

#include <stddef.h>
#include <stdio.h>

/*
 * Text that others have written is shown as it is, but for what acts on a
 * terminal or makes it show something else than is there.
 */

/* Whether a character must not reach a terminal: controls, of C1 too, and what
 * changes the direction of the text behind it. */
int cli_is_harmful(unsigned long code);
/* Read the character at `text`, which is UTF-8, and move behind it. */
unsigned long cli_next_char(const char **text);
/* Put blanks in place of harmful characters, and '?' in place of what is not
 * UTF-8. */
void cli_clean(char *text);
/* Write a text: to a terminal without what it would act on, and '?' for what is
 * not UTF-8; to a file or a program byte for byte. */
void cli_put_shown(FILE *to, const char *text, size_t n);
/* Cut a clean text to so many columns. */
void cli_cut(char *text, size_t columns);
/* How many columns a clean text takes on a terminal. */
size_t cli_width(const char *text);

#endif
